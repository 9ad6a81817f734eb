//! Services in the connector's namespaces: while one exists, its platform is not taken away.

use agent_api::object::ObjectKey;
use cluster::{Client, ClusterError, object};
use serde_json::json;

/// Definitions of what a service consists of.
const DEFINITIONS: [&str; 2] = ["clickhouseclusters.clickhouse.com", "keeperclusters.clickhouse.com"];

/// All of them, whatever version is served.
pub(super) async fn find(client: &Client, prefix: &str) -> Result<Vec<ObjectKey>, ClusterError> {
    let mut found = Vec::new();
    for name in DEFINITIONS {
        let definition = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": name}});
        if let Some(live) = object::get(client, &definition).await? {
            let all = object::all_of(client, &live).await?;
            found.extend(all.iter().map(ObjectKey::of).filter(|key| key.namespace.starts_with(prefix)));
        }
    }
    Ok(found)
}
