//! A manifest's components as they are live: found by our labels, to be removed in reverse order.

use agent_api::keys;
use agent_api::kind::{Half, KINDS, Kind};
use agent_api::manifest::Manifest;
use cluster::{Client, ClusterError, object};
use serde_json::Value;

/// Permission kinds that belong to what runs: a webhook whose Service is gone would only stand in the way.
const WEBHOOKS: [&str; 2] = ["ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"];

/// A component and what of it is live.
pub(super) struct Component {
    pub(super) name: String,
    pub(super) objects: Vec<Value>,
}

/// The components, the last one first: each needs those before it.
pub(super) async fn find(client: &Client, manifest: &Manifest) -> Result<Vec<Component>, ClusterError> {
    let mut components = Vec::new();
    for component in manifest.components.iter().rev() {
        let selector = format!("{}={},{}={}", keys::MANAGED_BY, keys::MANAGED_BY_PLATFORM, keys::COMPONENT, component.name);
        let mut objects = Vec::new();
        for row in kinds() {
            let namespaces: Vec<Option<&str>> =
                if row.namespaced { manifest.namespaces.iter().map(|name| Some(name.as_str())).collect() } else { vec![None] };
            for namespace in namespaces {
                objects.extend(object::list(client, &api_version(row), row.kind, namespace, Some(&selector)).await?);
            }
        }
        components.push(Component { name: component.name.to_string(), objects });
    }
    Ok(components)
}

/// Webhooks first, since they would see the rest go; then what runs, and last what it read.
fn kinds() -> impl Iterator<Item = &'static Kind> {
    let webhooks = KINDS.iter().filter(|row| WEBHOOKS.contains(&row.kind));
    webhooks.chain(KINDS.iter().filter(|row| row.half == Half::Workload).rev())
}

/// All of these kinds are stable.
fn api_version(row: &Kind) -> String {
    if row.group.is_empty() { "v1".to_owned() } else { format!("{}/v1", row.group) }
}
