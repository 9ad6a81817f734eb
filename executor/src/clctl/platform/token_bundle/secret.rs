//! The token bundle as a Secret that the connector's chart mounts into the pod.

use agent_api::access::{APPROVAL, CA_CRT, SERVER, TOKEN};
use agent_api::names::FIELD_MANAGER_APPROVE;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cluster::object::{self, Apply, Propagation};
use cluster::{Client, ClusterError};
use serde_json::{Map, Value, json};

const KEYS: [&str; 4] = [TOKEN, CA_CRT, SERVER, APPROVAL];

/// Sees in a dry run that the Secret is taken. Its namespace may come with the approval.
pub(super) async fn prepare(client: &Client, namespace: &str, name: &str) -> Result<(), ClusterError> {
    let files = KEYS.map(|key| (key, [].as_slice()));
    match apply(client, namespace, name, &files, true).await {
        Ok(()) | Err(ClusterError::NotFound { .. }) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Writes all keys by one server-side apply.
pub(super) async fn write(client: &Client, namespace: &str, name: &str, files: &[(&str, &[u8])]) -> Result<(), ClusterError> {
    apply(client, namespace, name, files, false).await
}

/// Deletes it.
pub(super) async fn remove(client: &Client, namespace: &str, name: &str) -> Result<(), ClusterError> {
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": namespace}});
    object::delete(client, &secret, Propagation::Background).await.map(drop)
}

async fn apply(client: &Client, namespace: &str, name: &str, files: &[(&str, &[u8])], dry_run: bool) -> Result<(), ClusterError> {
    let data: Map<String, Value> = files.iter().map(|(key, content)| ((*key).to_owned(), STANDARD.encode(content).into())).collect();
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "metadata": {"name": name, "namespace": namespace},
        "data": data});
    object::apply_over(client, &secret, None, Apply { manager: FIELD_MANAGER_APPROVE, dry_run }).await.map(drop)
}
