//! The token bundle: token, CA, address and approval, delivered whole into the access folder or into a Secret.
//!
//! Until it is delivered the former one is untouched.

mod folder;
mod secret;
mod server;

use std::fmt;
use std::path::PathBuf;

use agent_api::access::{APPROVAL, CA_CRT, SERVER, TOKEN};
use agent_api::approval::Approval;
use agent_api::names::PLATFORM_DIR;
use agent_api::secret::Secret;
use cluster::{Client, ClusterError, object};
use serde_json::json;

use crate::access_folder::AccessFolderError;
use crate::clctl::server::Server;
use crate::error_code::{Code, Coded};

pub(super) use server::{ResolveError, resolve};

/// Where it goes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Target {
    /// The access folder on a connector VM.
    Folder(PathBuf),
    /// A Secret that the connector's pod mounts.
    Secret {
        /// Namespace of the connector.
        namespace: String,
        /// Name.
        name: String,
    },
}

/// Why it was not delivered.
#[derive(Debug, thiserror::Error)]
pub(super) enum DeliverError {
    /// The access folder.
    #[error("the token bundle was not written: {0}")]
    Folder(#[from] AccessFolderError),
    /// The Secret.
    #[error("the token bundle was not written: {0}")]
    Secret(#[from] ClusterError),
    /// The approval could not be written down.
    #[error("the approval cannot be encoded: {0}")]
    Encode(#[from] serde_json::Error),
}

impl Coded for DeliverError {
    fn code(&self) -> Code {
        match self {
            Self::Folder(_) | Self::Secret(_) | Self::Encode(_) => Code::TokenBundleNotWritten,
        }
    }

    fn hints(&self) -> Vec<String> {
        match self {
            Self::Folder(error) => error.hints(),
            Self::Secret(error) => error.hints(),
            Self::Encode(_) => Vec::new(),
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Folder(path) => write!(f, "the token bundle {}", path.join(PLATFORM_DIR).display()),
            Self::Secret { namespace, name } => write!(f, "the token bundle, Secret {namespace}/{name}"),
        }
    }
}

impl Target {
    /// Whether it can be delivered, as far as that is seen without writing.
    pub(super) fn check(&self) -> Result<(), DeliverError> {
        match self {
            Self::Folder(path) => Ok(folder::check(path)?),
            Self::Secret { .. } => Ok(()),
        }
    }

    /// A pod's namespace comes with the connector's chart; one that is not there is a typing error.
    pub(super) async fn exists(&self, client: &Client) -> Result<(), ClusterError> {
        let Self::Secret { namespace, .. } = self else { return Ok(()) };
        let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
        match object::get(client, &object).await? {
            Some(_) => Ok(()),
            None => Err(ClusterError::NotFound {
                about: format!("Namespace {namespace}"),
                message: "--secret-namespace is the connector's".into(),
            }),
        }
    }

    /// Tries out that it will be delivered: whatever stands in the way is told before anything is applied.
    pub(super) async fn prepare(&self, client: &Client) -> Result<(), DeliverError> {
        match self {
            Self::Folder(path) => Ok(folder::prepare(path)?),
            Self::Secret { namespace, name } => Ok(secret::prepare(client, namespace, name).await?),
        }
    }

    /// Takes the token bundle away; one that is not there is away.
    pub(super) async fn remove(&self, client: &Client) -> Result<(), DeliverError> {
        match self {
            Self::Folder(path) => Ok(folder::remove(path)?),
            Self::Secret { namespace, name } => Ok(secret::remove(client, namespace, name).await?),
        }
    }

    /// Delivers it; answers with a warning where something could not be cleaned up.
    pub(super) async fn deliver(
        &self,
        client: &Client,
        token: &Secret,
        server: &Server,
        approval: &Approval,
    ) -> Result<Option<String>, DeliverError> {
        let mut approval = serde_json::to_vec_pretty(approval)?;
        approval.push(b'\n');
        let files: [(&str, &[u8]); 4] =
            [(TOKEN, token.expose().as_bytes()), (CA_CRT, &server.ca_pem), (SERVER, server.address.as_bytes()), (APPROVAL, &approval)];
        match self {
            Self::Folder(path) => Ok(folder::write(path, &files)?),
            Self::Secret { namespace, name } => {
                secret::write(client, namespace, name, &files).await?;
                Ok(None)
            }
        }
    }
}
