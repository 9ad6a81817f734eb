//! Where `pcm-executor`'s rights come from: the access bundle `_cluster/` on a VM, the pod's own ServiceAccount in a pod.

use std::path::PathBuf;
use std::time::SystemTime;

use agent_api::access::TOKEN;
use agent_api::names::CLUSTER_DIR;
use agent_api::secret::Secret;
use cluster::connect::{self, Connection};

use crate::config::Config;
use crate::terminal::chain;

/// One of the two.
#[derive(Clone, Debug)]
pub(crate) enum Access {
    /// Folder `_cluster`.
    Bundle(PathBuf),
    /// The pod's own.
    InCluster,
}

impl Access {
    /// As configured.
    pub(crate) fn of(config: &Config) -> Self {
        if config.executor.cluster.in_cluster { Self::InCluster } else { Self::Bundle(config.executor.access_dir.join(CLUSTER_DIR)) }
    }

    /// A connection; `None` while there is no access bundle.
    pub(crate) async fn connect(&self) -> Result<Option<Connection>, String> {
        let dir = match self {
            Self::InCluster => return connect::in_cluster().await.map(Some).map_err(|error| chain(&error)),
            Self::Bundle(dir) => dir,
        };
        let read = |name: &str| match std::fs::read_to_string(dir.join(name)) {
            Ok(text) => Ok(Some(text)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(format!("{}: {error}", dir.join(name).display())),
        };
        let (Some(kubeconfig), Some(token)) = (read("kubeconfig")?, read(TOKEN)?) else { return Ok(None) };
        let guarded = cluster::guard::parse(&kubeconfig).map_err(|error| format!("{}: {error}", dir.join("kubeconfig").display()))?;
        let token = Secret::new(token.trim().to_owned());
        connect::bearer(&guarded.server, &guarded.ca_pem, &token).await.map(Some).map_err(|error| chain(&error))
    }

    /// Changes when the bundle is replaced.
    pub(crate) fn fingerprint(&self) -> Option<SystemTime> {
        match self {
            Self::InCluster => None,
            Self::Bundle(dir) => std::fs::metadata(dir.join(TOKEN)).and_then(|metadata| metadata.modified()).ok(),
        }
    }
}
