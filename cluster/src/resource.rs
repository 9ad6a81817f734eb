//! Where an object lies in the API: its path, from the table of kinds and its own `apiVersion`. Nothing is discovered.

use agent_api::kind::Kind;
use agent_api::object::ObjectKey;
use agent_api::platform_approval;
use serde_json::Value;

use crate::crd::component_kind::ComponentKind;
use crate::crd::managed_component;
use crate::error::ClusterError;

/// Kinds that neither a bundle nor a component may hold: those that are only read, and our own. (group, kind, resource, namespaced).
const OTHERS: [(&str, &str, &str, bool); 7] = [
    (platform_approval::GROUP, platform_approval::KIND, platform_approval::RESOURCE, true),
    (managed_component::GROUP, managed_component::KIND, managed_component::RESOURCE, true),
    ("", "Pod", "pods", true),
    ("", "Event", "events", true),
    ("discovery.k8s.io", "EndpointSlice", "endpointslices", true),
    ("apps", "ReplicaSet", "replicasets", true),
    ("coordination.k8s.io", "Lease", "leases", true),
];

/// The collection of a kind, in a namespace or, with `None`, of the cluster.
pub(crate) fn collection(api_version: &str, kind: &str, namespace: Option<&str>) -> Result<String, ClusterError> {
    let group = api_version.split_once('/').map_or("", |(group, _)| group);
    let (resource, namespaced) = Kind::find(group, kind)
        .map(|row| (row.resource, row.namespaced))
        .or_else(|| ComponentKind::find(group, kind).map(|row| (row.resource, true)))
        .or_else(|| OTHERS.iter().find(|row| row.0 == group && row.1 == kind).map(|row| (row.2, row.3)))
        .ok_or_else(|| ClusterError::Other {
            about: kind.to_owned(),
            code: 0,
            message: format!("kind {kind} of `{api_version}` is unknown here"),
        })?;
    let root = if group.is_empty() { format!("/api/{api_version}") } else { format!("/apis/{api_version}") };
    Ok(match namespace {
        Some(namespace) if namespaced => format!("{root}/namespaces/{namespace}/{resource}"),
        Some(_) | None => format!("{root}/{resource}"),
    })
}

/// The collection that an object lies in, and its name.
pub(crate) fn of(object: &Value) -> Result<(String, String), ClusterError> {
    let key = ObjectKey::of(object);
    let api_version = object.get("apiVersion").and_then(Value::as_str).unwrap_or_default();
    let plain = |text: &str| !text.is_empty() && !text.contains(['/', '?', '#', '%', ' ']) && text != "." && text != "..";
    let part =
        |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'.' || b == b'-');
    let version = api_version.rsplit('/').next().unwrap_or_default();
    if api_version.matches('/').count() > 1 || !api_version.split('/').all(part) || version.contains('.') {
        return Err(ClusterError::Other { about: key.to_string(), code: 0, message: format!("`{api_version}` is not an apiVersion") });
    }
    if !plain(&key.name) || (!key.namespace.is_empty() && !plain(&key.namespace)) {
        return Err(ClusterError::Other { about: key.to_string(), code: 0, message: "a name or namespace that no URL can hold".into() });
    }
    let namespace = (!key.namespace.is_empty()).then_some(key.namespace.as_str());
    Ok((collection(api_version, &key.kind, namespace)?, key.name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn paths() {
        for (api_version, kind, namespace, path) in [
            ("v1", "Secret", Some("a"), "/api/v1/namespaces/a/secrets"),
            ("v1", "Namespace", None, "/api/v1/namespaces"),
            ("apps/v1", "Deployment", Some("a"), "/apis/apps/v1/namespaces/a/deployments"),
            ("keda.sh/v1alpha1", "ScaledObject", Some("a"), "/apis/keda.sh/v1alpha1/namespaces/a/scaledobjects"),
            (
                "platform.navin.ai/v1alpha1",
                "ManagedComponent",
                Some("a"),
                "/apis/platform.navin.ai/v1alpha1/namespaces/a/managedcomponents",
            ),
            ("rbac.authorization.k8s.io/v1", "RoleBinding", None, "/apis/rbac.authorization.k8s.io/v1/rolebindings"),
            ("rbac.authorization.k8s.io/v1", "ClusterRole", Some("a"), "/apis/rbac.authorization.k8s.io/v1/clusterroles"),
        ] {
            assert_eq!(collection(api_version, kind, namespace).unwrap(), path);
        }
        assert!(collection("apps/v1", "DaemonSet", None).is_err());
    }

    #[test]
    fn an_api_version_cannot_leave_its_place() {
        for api_version in ["v1/../v1", "", "/", "apps/v1/x", "v1?force=true", "apps/v1?x=", "..", "apps/..", "Apps/v1"] {
            let object = json!({"apiVersion": api_version, "kind": "Secret", "metadata": {"name": "a", "namespace": "a"}});
            assert!(of(&object).is_err(), "{api_version}");
        }
    }

    #[test]
    fn a_name_cannot_leave_its_place() {
        for name in ["", "..", "a/b", "a?x", "a%2fb"] {
            assert!(of(&json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": "a"}})).is_err(), "{name}");
        }
    }
}
