//! Which address and CA the executor is told: not the person's own where that may be a tunnel.

use std::path::Path;

use agent_api::access::CA_CRT;
use agent_api::names::CLUSTER_DIR;
use cluster::connect::Connection;
use cluster::guard::{self, GuardError};
use cluster::{ClusterError, object};
use serde_json::{Value, json};

use super::Target;
use crate::access_folder::{AccessFolder, AccessFolderError};
use crate::clctl::server::{Server, ServerError};
use crate::error_code::{Code, Coded};

/// The API server as a pod of the cluster reaches it.
const IN_CLUSTER: &str = "https://kubernetes.default.svc";

/// Why there is none.
#[derive(Debug, thiserror::Error)]
pub(in crate::clctl::platform) enum ResolveError {
    /// Address or CA.
    #[error(transparent)]
    Server(#[from] ServerError),
    /// `_cluster/kubeconfig` breaks the guard.
    #[error("the access bundle {CLUSTER_DIR}: {0}")]
    Guard(#[from] GuardError),
    /// `_cluster/kubeconfig` cannot be read.
    #[error(transparent)]
    Folder(#[from] AccessFolderError),
    /// The cluster's CA could not be read.
    #[error(transparent)]
    Cluster(#[from] ClusterError),
}

impl Coded for ResolveError {
    fn code(&self) -> Code {
        match self {
            Self::Server(error) => error.code(),
            Self::Guard(error) => error.code(),
            Self::Folder(error) => error.code(),
            Self::Cluster(error) => error.code(),
        }
    }

    fn hints(&self) -> Vec<String> {
        match self {
            Self::Server(error) => error.hints(),
            Self::Guard(error) => error.hints(),
            Self::Folder(error) => error.hints(),
            Self::Cluster(error) => error.hints(),
        }
    }
}

/// Decides: flags first; for a pod the in-cluster address, on a VM `_cluster`'s; else the context's.
pub(in crate::clctl::platform) async fn resolve(
    connection: &Connection,
    target: &Target,
    home: &str,
    address: Option<&str>,
    ca_data: Option<&str>,
) -> Result<Server, ResolveError> {
    let context = Server::of_context(connection);
    let found = match target {
        Target::Secret { .. } => {
            Server { address: IN_CLUSTER.to_owned(), ca_pem: pod_ca(connection, home).await?.unwrap_or(context.ca_pem) }
        }
        Target::Folder(path) => of_cluster_bundle(path)?.unwrap_or(context),
    };
    Ok(found.overridden(address, ca_data)?)
}

fn of_cluster_bundle(path: &Path) -> Result<Option<Server>, ResolveError> {
    if !path.exists() {
        return Ok(None);
    }
    let Some(bytes) = AccessFolder::open(path)?.read(Some(CLUSTER_DIR), "kubeconfig", guard::MAX_BYTES as u64)? else {
        return Ok(None);
    };
    let guarded = guard::parse(&String::from_utf8_lossy(&bytes))?;
    Ok(Some(Server { address: guarded.server, ca_pem: guarded.ca_pem }))
}

/// The CA that the cluster publishes for its pods.
async fn pod_ca(connection: &Connection, home: &str) -> Result<Option<Vec<u8>>, ClusterError> {
    let published = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "kube-root-ca.crt", "namespace": home}});
    let live = object::get(&connection.client, &published).await?;
    let pem = live.as_ref().and_then(|live| live.get("data")?.get(CA_CRT)).and_then(Value::as_str);
    Ok(pem.map(|pem| pem.as_bytes().to_vec()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn on_a_machine_the_cluster_bundle_says_it() {
        let folder = tempfile::tempdir().unwrap();
        assert!(of_cluster_bundle(folder.path()).unwrap().is_none());
        std::fs::create_dir(folder.path().join("_cluster")).unwrap();
        let file = folder.path().join("_cluster/kubeconfig");
        let text = "clusters: [{name: c, cluster: {server: 'https://h:6443'}}]\ncontexts: [{name: c, context: {cluster: c}}]\n\
                    current-context: c\n";
        std::fs::write(&file, text).unwrap();
        assert_eq!(of_cluster_bundle(folder.path()).unwrap().unwrap().address, "https://h:6443");
        std::fs::write(&file, text.replace("https", "http")).unwrap();
        assert!(matches!(of_cluster_bundle(folder.path()), Err(ResolveError::Guard(_))));
    }
}
