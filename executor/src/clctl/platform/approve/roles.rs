//! The rights of `pcm-platform`: in each platform namespace the bundle's objects by name, cluster-wide the reads of its preflight.
//!
//! Rights name objects, so that they fail closed while they propagate. Secrets are written and never read. Nothing here may delete.

use std::collections::{BTreeMap, BTreeSet};

use agent_api::kind::{Half, KINDS};
use agent_api::manifest::Manifest;
use agent_api::names::{APPROVAL_ROLE, PCM_PLATFORM};
use agent_api::object::RenderedObject;
use agent_api::platform_approval;
use serde_json::{Value, json};

use super::{MANAGED_BY_APPROVE, OWN_LABEL};

const RBAC: &str = "rbac.authorization.k8s.io";

/// One Role for each platform namespace.
pub(super) fn roles(manifest: &Manifest, workload: &[RenderedObject]) -> Vec<Value> {
    manifest.namespaces.iter().map(|namespace| role(namespace.as_str(), workload)).collect()
}

fn role(namespace: &str, workload: &[RenderedObject]) -> Value {
    // By place in the table of kinds; the names sorted.
    let mut names: BTreeMap<usize, BTreeSet<String>> = BTreeMap::new();
    for key in workload.iter().map(RenderedObject::key).filter(|key| key.namespace == namespace) {
        if let Some(row) = key.row() {
            names.entry(row.order()).or_default().insert(key.name);
        }
    }
    let mut rules: Vec<Value> = names
        .into_iter()
        .filter_map(|(order, names)| KINDS.get(order).map(|row| (row, names)))
        .map(|(row, names)| {
            let verbs: &[&str] = if row.kind == "Secret" { &["create", "patch"] } else { &["create", "patch", "get", "watch"] };
            json!({"apiGroups": [row.group], "resources": [row.resource], "resourceNames": names, "verbs": verbs})
        })
        .collect();
    rules.push(json!({"apiGroups": [""], "resources": ["pods", "events"], "verbs": ["get", "list", "watch"]}));
    json!({"apiVersion": format!("{RBAC}/v1"), "kind": "Role", "metadata": metadata(Some(namespace)), "rules": rules})
}

/// One RoleBinding for each platform namespace.
pub(super) fn role_bindings(manifest: &Manifest, home: &str) -> Vec<Value> {
    let binding = |namespace: &str| {
        json!({"apiVersion": format!("{RBAC}/v1"), "kind": "RoleBinding", "metadata": metadata(Some(namespace)),
            "roleRef": {"apiGroup": RBAC, "kind": "Role", "name": PCM_PLATFORM}, "subjects": [subject(home)]})
    };
    manifest.namespaces.iter().map(|namespace| binding(namespace.as_str())).collect()
}

/// Reads: every permission kind, by one name at a time.
pub(super) fn cluster_role() -> Value {
    let mut resources: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for row in KINDS.iter().filter(|row| row.half == Half::Permissions) {
        resources.entry(row.group).or_default().push(row.resource);
    }
    let rules: Vec<Value> =
        resources.into_iter().map(|(group, resources)| json!({"apiGroups": [group], "resources": resources, "verbs": ["get"]})).collect();
    json!({"apiVersion": format!("{RBAC}/v1"), "kind": "ClusterRole", "metadata": metadata(None), "rules": rules})
}

/// The binding of [`cluster_role`].
pub(super) fn cluster_role_binding(home: &str) -> Value {
    json!({"apiVersion": format!("{RBAC}/v1"), "kind": "ClusterRoleBinding", "metadata": metadata(None),
        "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": PCM_PLATFORM}, "subjects": [subject(home)]})
}

/// At home: the one approval that holds, by name; and its binding.
pub(super) fn approval_role(home: &str) -> Value {
    let rule = json!({"apiGroups": [platform_approval::GROUP], "resources": [platform_approval::RESOURCE],
        "resourceNames": [platform_approval::CURRENT], "verbs": ["get"]});
    json!({"apiVersion": format!("{RBAC}/v1"), "kind": "Role", "metadata": home_metadata(home), "rules": [rule]})
}

/// The binding of [`approval_role`].
pub(super) fn approval_role_binding(home: &str) -> Value {
    json!({"apiVersion": format!("{RBAC}/v1"), "kind": "RoleBinding", "metadata": home_metadata(home),
        "roleRef": {"apiGroup": RBAC, "kind": "Role", "name": APPROVAL_ROLE}, "subjects": [subject(home)]})
}

fn home_metadata(home: &str) -> Value {
    json!({"name": APPROVAL_ROLE, "namespace": home, "labels": {OWN_LABEL: MANAGED_BY_APPROVE}})
}

fn metadata(namespace: Option<&str>) -> Value {
    let mut metadata = json!({"name": PCM_PLATFORM, "labels": {OWN_LABEL: MANAGED_BY_APPROVE}});
    if let Some(namespace) = namespace {
        metadata["namespace"] = namespace.into();
    }
    metadata
}

fn subject(home: &str) -> Value {
    json!({"kind": "ServiceAccount", "name": PCM_PLATFORM, "namespace": home})
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rendered(api_version: &str, kind: &str, namespace: &str, name: &str) -> RenderedObject {
        let object = json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name, "namespace": namespace}});
        RenderedObject { component: None, template: String::new(), hook: None, object }
    }

    /// `group/resource names verbs`, one line a rule.
    fn lines(role: &Value) -> Vec<String> {
        let list = |rule: &Value, field: &str| {
            let items = rule[field].as_array().map(Vec::as_slice).unwrap_or_default();
            items.iter().map(|item| item.as_str().unwrap()).collect::<Vec<_>>().join(",")
        };
        let line = |rule: &Value| {
            format!("{}/{} [{}] {}", list(rule, "apiGroups"), list(rule, "resources"), list(rule, "resourceNames"), list(rule, "verbs"))
        };
        role["rules"].as_array().unwrap().iter().map(line).collect()
    }

    #[test]
    fn a_role_names_the_objects_of_its_namespace() {
        let workload = [
            rendered("apps/v1", "Deployment", "a", "web"),
            rendered("v1", "Secret", "a", "s"),
            rendered("v1", "ConfigMap", "a", "z"),
            rendered("v1", "ConfigMap", "a", "b"),
            rendered("batch/v1", "Job", "a", "hook-1a2b3c4d"),
            rendered("policy/v1", "PodDisruptionBudget", "a", "web"),
            rendered("v1", "Service", "other", "elsewhere"),
        ];
        assert_eq!(
            lines(&role("a", &workload)),
            [
                "/secrets [s] create,patch",
                "/configmaps [b,z] create,patch,get,watch",
                "apps/deployments [web] create,patch,get,watch",
                "batch/jobs [hook-1a2b3c4d] create,patch,get,watch",
                "policy/poddisruptionbudgets [web] create,patch,get,watch",
                "/pods,events [] get,list,watch",
            ]
        );
        assert_eq!(lines(&role("empty", &workload)), ["/pods,events [] get,list,watch"], "no rule without names");
    }

    #[test]
    fn the_cluster_role_only_gets() {
        assert_eq!(
            lines(&cluster_role()),
            [
                "/namespaces,serviceaccounts [] get",
                "admissionregistration.k8s.io/validatingadmissionpolicies,validatingadmissionpolicybindings,mutatingadmissionpolicies,\
                 mutatingadmissionpolicybindings,validatingwebhookconfigurations,mutatingwebhookconfigurations [] get",
                "apiextensions.k8s.io/customresourcedefinitions [] get",
                "groupsnapshot.storage.k8s.io/volumegroupsnapshotclasses [] get",
                "rbac.authorization.k8s.io/clusterroles,roles,clusterrolebindings,rolebindings [] get",
                "scheduling.k8s.io/priorityclasses [] get",
                "snapshot.storage.k8s.io/volumesnapshotclasses [] get",
                "storage.k8s.io/storageclasses [] get",
            ]
        );
    }

    #[test]
    fn at_home_the_account_reads_the_approval_that_holds() {
        assert_eq!(lines(&approval_role("home")), ["clicklink.io/platformapprovals [current] get"]);
        assert_eq!(approval_role_binding("home")["roleRef"]["name"], "pcm-platform-approval");
    }

    #[test]
    fn bindings_name_the_account_in_its_home() {
        let binding = cluster_role_binding("home");
        assert_eq!(binding["subjects"], json!([{"kind": "ServiceAccount", "name": "pcm-platform", "namespace": "home"}]));
        assert_eq!(binding["roleRef"]["name"], "pcm-platform");
    }
}
