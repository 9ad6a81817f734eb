//! The objects of the standing access, in the order in which they are applied: the bindings that give the rights come last, so
//! that a half-applied grant grants nothing.

use agent_api::names::PCM_EXECUTOR;
use serde_json::{Value, json};

use super::prefix_guard;

const RBAC: &str = "rbac.authorization.k8s.io";
/// ClusterRole and binding.
const CLUSTER_ROLE: &str = "pcm-executor-cluster";
/// Role and binding in the account's namespace.
const TOKEN_ROLE: &str = "pcm-executor-token";

/// What is applied, and what is applied only once the guard is seen to deny.
pub(super) struct Objects {
    /// Namespace, account, roles, guard.
    pub(super) before: Vec<Value>,
    /// The bindings.
    pub(super) last: [Value; 2],
}

/// All of it, for a service prefix and the account's namespace.
pub(super) fn objects(prefix: &str, home: &str) -> Objects {
    Objects {
        before: vec![
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": home}}),
            json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": PCM_EXECUTOR, "namespace": home}}),
            cluster_role(),
            token_role(home),
            prefix_guard::policy(prefix, home),
            prefix_guard::binding(),
        ],
        last: [
            binding("RoleBinding", json!({"name": TOKEN_ROLE, "namespace": home}), home),
            binding("ClusterRoleBinding", json!({"name": CLUSTER_ROLE}), home),
        ],
    }
}

/// Binds the role of the same name to the account.
fn binding(kind: &str, metadata: Value, home: &str) -> Value {
    json!({"apiVersion": format!("{RBAC}/v1"), "kind": kind,
        "roleRef": {"apiGroup": RBAC, "kind": kind.trim_end_matches("Binding"), "name": metadata["name"]},
        "subjects": [{"kind": "ServiceAccount", "name": PCM_EXECUTOR, "namespace": home}], "metadata": metadata})
}

impl Objects {
    /// As YAML documents, for review.
    pub(super) fn yaml(&self) -> Result<String, serde_saphyr::ser_error::Error> {
        let documents: Result<Vec<String>, _> = self.before.iter().chain(&self.last).map(serde_saphyr::to_string).collect();
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

/// Asking for its own next token, and for nobody else's: a Role with the one name, so that not even its namesake elsewhere is meant.
fn token_role(home: &str) -> Value {
    json!({"apiVersion": format!("{RBAC}/v1"), "kind": "Role", "metadata": {"name": TOKEN_ROLE, "namespace": home}, "rules": [
        {"apiGroups": [""], "resources": ["serviceaccounts/token"], "resourceNames": [PCM_EXECUTOR], "verbs": ["create"]}]})
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
        let made: Vec<Value> = objects.before.iter().chain(&objects.last).cloned().collect();
        assert_eq!(read, made);
        assert_eq!(home_in(&yaml).as_deref(), Some("clicklink-system"));
    }

    #[test]
    fn its_only_write_is_its_own_next_token_at_home() {
        let objects = objects("ns-", "home");
        let roles: Vec<&Value> = objects.before.iter().filter(|object| object["kind"] == "Role").collect();
        let [role] = roles.as_slice() else { panic!("{roles:?}") };
        assert_eq!(role["metadata"]["namespace"], "home");
        assert_eq!(
            role["rules"],
            json!([{"apiGroups": [""], "resources": ["serviceaccounts/token"], "resourceNames": ["pcm-executor"], "verbs": ["create"]}])
        );
        let [own, cluster] = &objects.last;
        assert_eq!((&own["kind"], &own["roleRef"]["kind"], &own["metadata"]), (&json!("RoleBinding"), &json!("Role"), &role["metadata"]));
        assert_eq!((&cluster["kind"], &cluster["roleRef"]["kind"]), (&json!("ClusterRoleBinding"), &json!("ClusterRole")));
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
