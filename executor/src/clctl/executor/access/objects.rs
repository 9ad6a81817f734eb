//! The objects of the standing access, in the order in which they are applied: the binding that gives the rights comes last, so
//! that a half-applied grant grants nothing.

use agent_api::names::PCM_EXECUTOR;
use serde_json::{Value, json};

use super::prefix_guard;

const RBAC: &str = "rbac.authorization.k8s.io";
/// ClusterRole and binding.
const CLUSTER_ROLE: &str = "pcm-executor-cluster";

/// What is applied, and what is applied only once the guard is seen to deny.
pub(super) struct Objects {
    /// Namespace, account, role, guard.
    pub(super) before: Vec<Value>,
    /// The binding.
    pub(super) last: Value,
}

/// All of it, for a service prefix and the account's namespace.
pub(super) fn objects(prefix: &str, home: &str) -> Objects {
    Objects {
        before: vec![
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": home}}),
            json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": PCM_EXECUTOR, "namespace": home}}),
            cluster_role(),
            prefix_guard::policy(prefix, home),
            prefix_guard::binding(),
        ],
        last: json!({"apiVersion": format!("{RBAC}/v1"), "kind": "ClusterRoleBinding", "metadata": {"name": CLUSTER_ROLE},
            "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": CLUSTER_ROLE},
            "subjects": [{"kind": "ServiceAccount", "name": PCM_EXECUTOR, "namespace": home}]}),
    }
}

impl Objects {
    /// As YAML documents, for review.
    pub(super) fn yaml(&self) -> Result<String, serde_saphyr::ser_error::Error> {
        let documents: Result<Vec<String>, _> = self.before.iter().chain([&self.last]).map(serde_saphyr::to_string).collect();
        Ok(documents?.iter().map(|document| format!("---\n{}\n", document.trim_end())).collect())
    }
}

/// What it observes: API groups and their resources, all namespaces.
pub(crate) const READS: [(&str, &[&str]); 6] = [
    ("", &["namespaces", "pods", "events", "services"]),
    ("apps", &["deployments", "statefulsets"]),
    ("batch", &["jobs"]),
    ("policy", &["poddisruptionbudgets"]),
    ("apiextensions.k8s.io", &["customresourcedefinitions"]),
    ("clicklink.io", &["platformapprovals"]),
];

/// Reading what it observes. Its writes come with instances.
fn cluster_role() -> Value {
    let rules: Vec<Value> = READS
        .iter()
        .map(|(group, resources)| json!({"apiGroups": [group], "resources": resources, "verbs": ["get", "list", "watch"]}))
        .collect();
    json!({"apiVersion": format!("{RBAC}/v1"), "kind": "ClusterRole", "metadata": {"name": CLUSTER_ROLE}, "rules": rules})
}

/// The account's namespace that rendered YAML was made for.
pub(super) fn home_in(yaml: &str) -> Option<String> {
    let documents: Vec<Value> = serde_saphyr::from_multiple(yaml).ok()?;
    let account = documents.iter().find(|document| document.get("kind").and_then(Value::as_str) == Some("ServiceAccount"))?;
    account.pointer("/metadata/namespace").and_then(Value::as_str).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rendered_yaml_reads_back_as_the_same_objects() {
        let objects = objects("ns-", "clicklink-system");
        let yaml = objects.yaml().unwrap();
        let read: Vec<Value> = serde_saphyr::from_multiple(&yaml).unwrap();
        let made: Vec<Value> = objects.before.iter().chain([&objects.last]).cloned().collect();
        assert_eq!(read, made);
        assert_eq!(home_in(&yaml).as_deref(), Some("clicklink-system"));
    }

    #[test]
    fn it_only_reads_and_never_secrets() {
        let role = cluster_role();
        for rule in role["rules"].as_array().unwrap() {
            assert_eq!(rule["verbs"], json!(["get", "list", "watch"]));
            assert!(!rule["resources"].as_array().unwrap().contains(&json!("secrets")));
        }
    }
}
