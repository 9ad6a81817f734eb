//! What a chart may be told of the cluster: version, served group/versions and kinds, named as Helm names them.

use std::collections::BTreeSet;

use agent_api::approval::Capabilities;
use kube::Client;
use kube::core::discovery::v2::{APIGroupDiscovery, APIVersionDiscovery};

use crate::error::ClusterError;
use crate::inventory;
use crate::told;

/// Reads version and every served `group/version` and `group/version/Kind` (core: `v1`, `v1/Pod`), sorted.
///
/// Two requests (aggregated discovery, stable since Kubernetes 1.30). A group whose own server does not answer (`Stale`) is left
/// out, as Helm leaves it out.
///
/// # Errors
/// See [`ClusterError`].
pub async fn read(client: &Client) -> Result<Capabilities, ClusterError> {
    let kube_version = inventory::kubernetes_version(client).await?;
    let failed = |error: kube::Error| ClusterError::Unreachable { about: "discovery".into(), message: told::client(&error) };
    let core = client.list_core_api_versions_aggregated().await.map_err(failed)?;
    let groups = client.list_api_groups_aggregated().await.map_err(failed)?;
    let mut names = BTreeSet::new();
    for group in core.items.iter().chain(&groups.items) {
        add_group(group, &mut names);
    }
    Ok(Capabilities { kube_version, api_versions: names.into_iter().collect() })
}

fn add_group(group: &APIGroupDiscovery, names: &mut BTreeSet<String>) {
    let name = group.metadata.as_ref().and_then(|metadata| metadata.name.as_deref()).unwrap_or_default();
    for version in &group.versions {
        let Some(text) = &version.version else { continue };
        if version.freshness.as_deref() == Some("Stale") {
            continue;
        }
        let group_version = if name.is_empty() { text.clone() } else { format!("{name}/{text}") };
        for kind in kinds(version) {
            names.insert(format!("{group_version}/{kind}"));
        }
        names.insert(group_version);
    }
}

/// Kinds of resources and of their subresources (`Scale`, `Eviction`): Helm lists both.
fn kinds(version: &APIVersionDiscovery) -> impl Iterator<Item = &str> {
    version.resources.iter().flat_map(|resource| {
        let own = resource.response_kind.as_ref();
        let subresources = resource.subresources.iter().filter_map(|sub| sub.response_kind.as_ref());
        own.into_iter().chain(subresources).filter_map(|kind| kind.kind.as_deref()).filter(|kind| !kind.is_empty())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn names_as_helm_writes_them() {
        let kind = |kind: &str| json!({"group": "", "version": "", "kind": kind});
        let groups = json!([
            {"metadata": {}, "versions": [{"version": "v1", "freshness": "Current", "resources": [
                {"resource": "pods", "responseKind": kind("Pod"), "scope": "Namespaced", "singularResource": "pod", "verbs": [],
                 "subresources": [{"subresource": "eviction", "responseKind": kind("Eviction"), "verbs": []}]}]}]},
            {"metadata": {"name": "apps"}, "versions": [{"version": "v1", "resources": []}]},
            {"metadata": {"name": "stale.io"}, "versions": [{"version": "v1", "freshness": "Stale", "resources": []}]}
        ]);
        let groups: Vec<APIGroupDiscovery> = serde_json::from_value(groups).unwrap();
        let mut names = BTreeSet::new();
        groups.iter().for_each(|group| add_group(group, &mut names));
        assert_eq!(names.into_iter().collect::<Vec<_>>(), ["apps/v1", "v1", "v1/Eviction", "v1/Pod"]);
    }
}
