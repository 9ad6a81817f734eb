//! What a chart may be told of the cluster: version, served group/versions and kinds, named as Helm names them.

use std::collections::BTreeSet;

use agent_api::approval::{Capabilities, ServerWords};
use kube::Client;
use kube::core::discovery::v2::{APIGroupDiscovery, APIVersionDiscovery};

use crate::error::ClusterError;
use crate::inventory;
use crate::told;

/// Reads version and every served `group/version` and `group/version/Kind` (core: `v1`, `v1/Pod`), sorted.
///
/// Two requests (aggregated discovery, stable since Kubernetes 1.30). A version whose own server does not answer (`Stale`) is left
/// out, as Helm leaves it out, and its group named as unknown.
///
/// # Errors
/// See [`ClusterError`].
pub async fn read(client: &Client) -> Result<Capabilities, ClusterError> {
    let version = inventory::server_version(client).await?;
    let failed = |error: kube::Error| ClusterError::Unreachable { about: "discovery".into(), message: told::client(&error) };
    let core = client.list_core_api_versions_aggregated().await.map_err(failed)?;
    let groups = client.list_api_groups_aggregated().await.map_err(failed)?;
    let (mut names, mut unknown) = (BTreeSet::new(), BTreeSet::new());
    for group in core.items.iter().chain(&groups.items) {
        add_group(group, &mut names, &mut unknown);
    }
    Ok(Capabilities {
        kube_version: version.git_version,
        api_versions: names.into_iter().collect(),
        server: Box::new(ServerWords { major: version.major, minor: version.minor, unknown_groups: unknown.into_iter().collect() }),
    })
}

fn add_group(group: &APIGroupDiscovery, names: &mut BTreeSet<String>, unknown: &mut BTreeSet<String>) {
    let name = group.metadata.as_ref().and_then(|metadata| metadata.name.as_deref()).unwrap_or_default();
    for version in &group.versions {
        let Some(text) = &version.version else { continue };
        if version.freshness.as_deref() == Some("Stale") {
            unknown.insert(name.to_owned());
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
    use std::convert::Infallible;

    use http::header::ACCEPT;
    use http::{Request, Response};
    use kube::client::Body;
    use serde_json::{Value, json};

    use super::*;

    /// A server that answers what was asked for in the form that was asked for, and nothing else.
    fn server(version: Value) -> Client {
        let kind = |kind: &str| json!({"group": "", "version": "", "kind": kind});
        let resource = |name: &str, of: &str, subresources: Value| {
            json!({"resource": name, "responseKind": kind(of), "scope": "Namespaced", "singularResource": name, "verbs": ["get"],
                "subresources": subresources})
        };
        let eviction = json!([{"subresource": "eviction", "responseKind": kind("Eviction"), "verbs": ["create"]}]);
        let list =
            |items: Value| json!({"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items});
        let core = list(json!([{"metadata": {}, "versions": [
            {"version": "v1", "freshness": "Current", "resources": [resource("pods", "Pod", eviction)]}]}]));
        let groups = list(json!([
            {"metadata": {"name": "apps"}, "versions": [{"version": "v1", "freshness": "Current", "resources": []}]},
            {"metadata": {"name": "half.io"}, "versions": [
                {"version": "v2", "freshness": "Current", "resources": [resource("as", "A", json!([]))]},
                {"version": "v1", "freshness": "Stale", "resources": [resource("as", "A", json!([]))]}]},
            {"metadata": {"name": "metrics.k8s.io"}, "versions": [{"version": "v1beta1", "freshness": "Stale"}]}
        ]));
        let service = tower::service_fn(move |request: Request<Body>| {
            let accept = request.headers().get(ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned();
            let aggregated = accept.contains("g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList");
            let answer = match (request.uri().path(), aggregated) {
                ("/version", _) => version.clone(),
                ("/api", true) => core.clone(),
                ("/apis", true) => groups.clone(),
                (path, _) => panic!("{path} was asked, accepting {accept}"),
            };
            let response = Response::builder().header("content-type", "application/json").body(Body::from(answer.to_string().into_bytes()));
            async move { Ok::<_, Infallible>(response.unwrap()) }
        });
        Client::new(service, "default")
    }

    #[tokio::test]
    async fn names_as_helm_writes_them_and_groups_that_do_not_answer() {
        let read = read(&server(json!({"gitVersion": "v1.37.2", "major": "1", "minor": "37"}))).await.unwrap();
        assert_eq!(read.api_versions, ["apps/v1", "half.io/v2", "half.io/v2/A", "v1", "v1/Eviction", "v1/Pod"]);
        assert_eq!(read.server.unknown_groups, ["half.io", "metrics.k8s.io"]);
    }

    #[tokio::test]
    async fn versions_are_the_servers_own_words() {
        for (git, major, minor) in
            [("v1.37.2", "1", "37"), ("v1.32.3-eks-2d5f260", "1", "32+"), ("v1.31.4-gke.1183000", "1", "31"), ("v1.33.1+k3s1", "1", "33")]
        {
            let read = read(&server(json!({"gitVersion": git, "major": major, "minor": minor}))).await.unwrap();
            assert_eq!([read.kube_version, read.server.major, read.server.minor], [git, major, minor]);
        }
    }
}
