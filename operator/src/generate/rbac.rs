//! RBAC of the operator and of the manager as manifests.

use cluster::crd::managed_component::{GROUP, RESOURCE};
use serde_json::{Value, json};

use super::{HOME, MANAGED, MANAGER, OPERATOR};
use crate::rbac;

const RBAC: &str = "rbac.authorization.k8s.io";

/// What the operator may do, in each namespace where it is bound.
pub(super) fn cluster_role() -> Value {
    let rules: Vec<Value> = rbac::rules()
        .into_iter()
        .map(|rule| json!({"apiGroups": [rule.group], "resources": rule.resources, "verbs": rule.verbs}))
        .collect();
    role("ClusterRole", json!({"name": OPERATOR}), &rules)
}

/// The operator's account, and one binding for a namespace that it manages. There is no ClusterRoleBinding: another namespace takes another
/// RoleBinding.
pub(super) fn bindings() -> Vec<Value> {
    let account = json!({"kind": "ServiceAccount", "name": OPERATOR, "namespace": HOME});
    vec![
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": OPERATOR, "namespace": HOME}}),
        binding("RoleBinding", json!({"name": OPERATOR, "namespace": MANAGED}), "ClusterRole", &account),
    ]
}

/// What the manager may do: read what discovery tells, and write ManagedComponents in the registered namespace.
pub(super) fn manager_access() -> Vec<Value> {
    let user = json!({"apiGroup": RBAC, "kind": "User", "name": MANAGER});
    let rule = |group: &str, resources: &[&str], verbs: &[&str]| json!({"apiGroups": [group], "resources": resources, "verbs": verbs});
    let reads = ["get", "list"];
    let discovery = json!({"name": format!("{MANAGER}-discovery")});
    let dns = json!({"name": format!("{MANAGER}-discovery"), "namespace": "kube-system"});
    let components = json!({"name": format!("{MANAGER}-components"), "namespace": MANAGED});
    vec![
        role(
            "ClusterRole",
            discovery.clone(),
            &[
                rule("", &["nodes"], &reads),
                rule("storage.k8s.io", &["storageclasses"], &reads),
                rule("networking.k8s.io", &["ingressclasses"], &reads),
            ],
        ),
        binding("ClusterRoleBinding", discovery, "ClusterRole", &user),
        role("Role", dns.clone(), &[rule("apps", &["deployments"], &reads)]),
        binding("RoleBinding", dns, "Role", &user),
        role("Role", components.clone(), &[rule(GROUP, &[RESOURCE], &["get", "list", "watch", "create", "update", "patch", "delete"])]),
        binding("RoleBinding", components, "Role", &user),
    ]
}

fn role(kind: &str, metadata: Value, rules: &[Value]) -> Value {
    json!({"apiVersion": format!("{RBAC}/v1"), "kind": kind, "metadata": metadata, "rules": rules})
}

/// Binds the role of the same name.
fn binding(kind: &str, metadata: Value, role: &str, subject: &Value) -> Value {
    json!({"apiVersion": format!("{RBAC}/v1"), "kind": kind, "roleRef": {"apiGroup": RBAC, "kind": role, "name": metadata["name"]},
        "subjects": [subject], "metadata": metadata})
}
