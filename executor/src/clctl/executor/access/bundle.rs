//! The access bundle `_cluster`: `rbac.yaml` for review, `kubeconfig` with address and CA, and `token` once it is minted.
//!
//! The executor owns the folder. So a file in it is never applied as it is: `apply` renders anew and compares.

use agent_api::access::{RBAC, TOKEN};
use agent_api::names::CLUSTER_DIR;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cluster::guard::{self, GuardError};

use super::Shared;
use super::objects::{self, Objects};
use crate::access_folder::{AccessFolder, AccessFolderError};
use crate::clctl::namespace_prefix::{self, PrefixError};
use crate::clctl::server::Server;
use crate::error_code::{Code, Coded};
use crate::observe::KUBECONFIG;

/// Largest file of the bundle.
const MAX_BYTES: u64 = 256 << 10;

/// Why there is no bundle.
#[derive(Debug, thiserror::Error)]
pub(super) enum BundleError {
    /// The configuration.
    #[error(transparent)]
    Prefix(#[from] PrefixError),
    /// The access folder.
    #[error(transparent)]
    Folder(#[from] AccessFolderError),
    /// YAML.
    #[error("the access cannot be written as YAML: {0}")]
    Yaml(#[from] serde_saphyr::ser_error::Error),
    /// The rendered kubeconfig.
    #[error("{CLUSTER_DIR}/{KUBECONFIG}: {0}")]
    Guard(#[from] GuardError),
    /// Somebody, or another version or configuration, wrote something else.
    #[error(
        "{CLUSTER_DIR}/{0} is not what this command renders; look at it, and run `clicklink clctl executor access grant --cluster --force` to replace it"
    )]
    Differs(&'static str),
}

impl Coded for BundleError {
    fn code(&self) -> Code {
        match self {
            Self::Prefix(error) => error.code(),
            Self::Folder(error) => error.code(),
            Self::Yaml(_) => Code::Internal,
            Self::Guard(error) => error.code(),
            Self::Differs(_) => Code::AccessDiffers,
        }
    }

    fn hints(&self) -> Vec<String> {
        match self {
            Self::Folder(error) => error.hints(),
            Self::Prefix(_) | Self::Yaml(_) | Self::Guard(_) | Self::Differs(_) => Vec::new(),
        }
    }
}

/// What is rendered, and what is on disk.
pub(super) struct Rendered {
    pub(super) home: String,
    pub(super) objects: Objects,
    pub(super) rbac: String,
    /// Address and CA on disk.
    pub(super) server: Option<Server>,
    /// `rbac.yaml` on disk.
    pub(super) on_disk: Option<String>,
    /// `token` on disk.
    pub(super) token: Option<Vec<u8>>,
}

/// Renders the access; a rendered bundle's namespace holds where none is given.
pub(super) fn render(shared: &Shared) -> Result<Rendered, BundleError> {
    let prefix = namespace_prefix::read(shared.config.as_deref())?;
    let folder = if shared.output_dir.exists() { Some(AccessFolder::open(&shared.output_dir)?) } else { None };
    let read = |name: &str| match &folder {
        Some(folder) => folder.read(Some(CLUSTER_DIR), name, MAX_BYTES),
        None => Ok(None),
    };
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    let on_disk = read(RBAC)?.map(text);
    let former = on_disk.as_deref().and_then(objects::home_in).filter(|home| home.parse::<agent_api::name::DnsLabel>().is_ok());
    let home = match (&shared.sa_namespace, former) {
        (None, Some(former)) => former,
        (Some(_), _) | (None, None) => shared.home(),
    };
    let objects = objects::objects(&prefix, &home);
    let server = match read(KUBECONFIG)?.map(text) {
        Some(text) if !shared.force => {
            let guarded = guard::parse(&text)?;
            Some(Server { address: guarded.server, ca_pem: guarded.ca_pem })
        }
        Some(_) | None => None,
    };
    Ok(Rendered { rbac: objects.yaml()?, home, objects, server, on_disk, token: read(TOKEN)? })
}

/// Puts the bundle in place, in one rename; answers with a warning where something could not be cleaned up.
pub(super) fn write(shared: &Shared, rbac: &str, server: &Server, token: Option<&[u8]>) -> Result<Option<String>, BundleError> {
    let kubeconfig = kubeconfig(server);
    guard::parse(&kubeconfig)?;
    let mut files: Vec<(&str, &[u8])> = vec![(RBAC, rbac.as_bytes()), (KUBECONFIG, kubeconfig.as_bytes())];
    if let Some(token) = token {
        files.push((TOKEN, token));
    }
    Ok(AccessFolder::open_or_create(&shared.output_dir)?.exchange(CLUSTER_DIR, &files)?)
}

/// Address and CA only. The address holds no quote: [`Server::overridden`] let it through.
fn kubeconfig(server: &Server) -> String {
    let authority = if server.ca_pem.is_empty() {
        String::new()
    } else {
        format!("    certificate-authority-data: {}\n", STANDARD.encode(&server.ca_pem))
    };
    format!(
        "apiVersion: v1\nkind: Config\nclusters:\n- name: cluster\n  cluster:\n    server: '{}'\n{authority}\
         contexts:\n- name: cluster\n  context:\n    cluster: cluster\ncurrent-context: cluster\n",
        server.address
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kubeconfig_passes_the_guard_and_holds_no_credential() {
        let server = Server { address: "https://[::1]:6443".into(), ca_pem: b"ca".to_vec() };
        let guarded = guard::parse(&kubeconfig(&server)).unwrap();
        assert_eq!((guarded.server.as_str(), guarded.ca_pem.as_slice()), ("https://[::1]:6443", b"ca".as_slice()));
        assert!(guarded.token.is_none());
        assert!(guard::parse(&kubeconfig(&Server { ca_pem: Vec::new(), ..server })).unwrap().ca_pem.is_empty());
    }
}
