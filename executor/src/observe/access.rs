//! Where `pcm-executor`'s rights come from: the access bundle `_cluster/` on a VM, the pod's own ServiceAccount in a pod.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use agent_api::access::TOKEN;
use agent_api::names::CLUSTER_DIR;
use agent_api::secret::Secret;
use cluster::connect::{self, ConnectError, Connection};
use cluster::guard::{self, GuardError, Guarded};

use crate::access_folder::{AccessFolderError, Bundle};
use crate::config::Config;

/// The bundle's file with address and CA of the API server.
pub(crate) const KUBECONFIG: &str = "kubeconfig";
/// Largest file of the bundle: 256 KiB.
const MAX_FILE: u64 = 256 << 10;

/// One of the two.
#[derive(Clone, Debug)]
pub(crate) enum Access {
    /// Folder `_cluster`.
    Bundle(PathBuf),
    /// The pod's own.
    InCluster,
}

/// Why the cluster cannot be asked.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AccessError {
    /// The bundle's files.
    #[error(transparent)]
    Folder(#[from] AccessFolderError),
    /// Its kubeconfig.
    #[error("{CLUSTER_DIR}/{KUBECONFIG}: {0}")]
    Kubeconfig(#[from] GuardError),
    /// No connection by it.
    #[error(transparent)]
    Connect(#[from] ConnectError),
}

/// A connection, and when the token that it was made with ends; in a pod the kubelet and the client see to that.
pub(crate) struct Accessed {
    /// The connection.
    pub(crate) connection: Connection,
    /// As the token says of itself.
    pub(crate) expires_at: Option<jiff::Timestamp>,
}

impl Access {
    /// As configured.
    pub(crate) fn of(config: &Config) -> Self {
        if config.executor.cluster.in_cluster { Self::InCluster } else { Self::Bundle(config.executor.access_dir.join(CLUSTER_DIR)) }
    }

    /// A connection; `None` while there is no access bundle.
    pub(crate) async fn connect(&self) -> Result<Option<Accessed>, AccessError> {
        let dir = match self {
            Self::InCluster => return Ok(Some(Accessed { connection: connect::in_cluster().await?, expires_at: None })),
            Self::Bundle(dir) => dir,
        };
        let Some(credentials) = Credentials::read(dir)? else { return Ok(None) };
        let expires_at = cluster::token::claims(&credentials.token).ok().map(|claims| claims.expires_at);
        Ok(Some(Accessed { connection: credentials.connect().await?, expires_at }))
    }

    /// Changes when the bundle, or its token, is replaced.
    pub(crate) fn fingerprint(&self) -> Option<Fingerprint> {
        match self {
            Self::InCluster => None,
            Self::Bundle(dir) => std::fs::symlink_metadata(dir.join(TOKEN))
                .ok()
                .map(|file| Fingerprint { inode: (file.dev(), file.ino()), modified: (file.mtime(), file.mtime_nsec()) }),
        }
    }
}

/// Which file the token is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Fingerprint {
    inode: (u64, u64),
    modified: (i64, i64),
}

/// What the bundle holds, all read through one handle.
#[derive(Debug)]
pub(crate) struct Credentials {
    /// The bundle that it was read from.
    pub(crate) bundle: Bundle,
    /// Address and CA.
    server: Guarded,
    /// The token.
    pub(crate) token: Secret,
}

impl Credentials {
    /// Reads the bundle in this folder; `None` while there is none, or no token was minted for it yet.
    pub(crate) fn read(dir: &Path) -> Result<Option<Self>, AccessError> {
        let Some(bundle) = Bundle::open(dir)? else { return Ok(None) };
        let text = |name| Ok::<_, AccessError>(bundle.read(name, MAX_FILE)?.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()));
        let (Some(kubeconfig), Some(token)) = (text(KUBECONFIG)?, text(TOKEN)?) else { return Ok(None) };
        let server = guard::parse(&kubeconfig)?;
        Ok(Some(Self { bundle, server, token: Secret::new(token.trim().to_owned()) }))
    }

    /// A connection by these credentials alone.
    pub(crate) async fn connect(&self) -> Result<Connection, ConnectError> {
        connect::bearer(&self.server.server, &self.server.ca_pem, &self.token).await
    }
}
