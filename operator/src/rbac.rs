//! The rights of the operator, declared once: what the reconcile steps need, and nothing more. `operator/config/rbac/role.yaml` is made of it.
//!
//! Secrets are only ever got, one by one, to see whether a key is there. Status and finalizers are written by `update`: there is no patch.

use cluster::crd::component_kind::COMPONENT_KINDS;
use cluster::crd::managed_component::{GROUP, RESOURCE};

/// Resources of one API group with the same verbs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Rule {
    /// API group, empty for the core group.
    pub group: &'static str,
    /// Resources, subresources with a slash.
    pub resources: Vec<String>,
    /// Verbs.
    pub verbs: &'static [&'static str],
}

/// Reading and carrying out what was read.
const READ_AND_UPDATE: [&str; 5] = ["get", "list", "watch", "update", "patch"];
/// Everything that the life of an applied object takes.
const WRITE: [&str; 7] = ["get", "list", "watch", "create", "update", "patch", "delete"];

/// Every rule of the operator's ClusterRole.
#[must_use]
pub fn rules() -> Vec<Rule> {
    let rule = |group, resources: &[&str], verbs| Rule { group, resources: resources.iter().map(ToString::to_string).collect(), verbs };
    let mut rules = vec![
        rule(GROUP, &[RESOURCE], &READ_AND_UPDATE),
        Rule { group: GROUP, resources: vec![format!("{RESOURCE}/status"), format!("{RESOURCE}/finalizers")], verbs: &["update"] },
    ];
    let mut groups: Vec<&'static str> = COMPONENT_KINDS.iter().map(|row| row.group).collect();
    groups.sort_unstable();
    groups.dedup();
    for group in groups {
        let of_group = COMPONENT_KINDS.iter().filter(|row| row.group == group);
        rules.push(Rule { group, resources: of_group.map(|row| row.resource.to_owned()).collect(), verbs: &WRITE });
    }
    rules.push(rule("", &["secrets"], &["get"]));
    rules.push(rule("coordination.k8s.io", &["leases"], &["get", "create", "update"]));
    rules
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    /// The table "RBAC de l'opérateur (moindre privilège)", row by row: resources, verbs.
    const TABLE: [(&[&str], &str); 6] = [
        (&["managedcomponents"], "get, list, watch, update, patch"),
        (&["managedcomponents/status", "managedcomponents/finalizers"], "update"),
        (
            &["deployments", "statefulsets", "configmaps", "services", "serviceaccounts", "persistentvolumeclaims"],
            "get, list, watch, create, update, patch, delete",
        ),
        (
            &["networkpolicies", "ingresses", "poddisruptionbudgets", "horizontalpodautoscalers", "scaledobjects"],
            "get, list, watch, create, update, patch, delete",
        ),
        (&["secrets"], "get"),
        (&["leases"], "get, create, update"),
    ];

    #[test]
    fn the_rights_are_exactly_the_table() {
        let table: BTreeMap<String, String> = TABLE
            .iter()
            .flat_map(|(resources, verbs)| resources.iter().map(|resource| ((*resource).to_owned(), (*verbs).to_owned())))
            .collect();
        let mut declared = BTreeMap::new();
        for rule in rules() {
            for resource in rule.resources {
                assert_eq!(declared.insert(resource.clone(), rule.verbs.join(", ")), None, "{resource} is declared twice");
            }
        }
        assert_eq!(declared, table);
    }

    #[test]
    fn the_published_table_is_this_one() {
        let mut page = vec!["| resources | verbs |".to_owned(), "| --- | --- |".to_owned()];
        page.extend(TABLE.iter().map(|(resources, verbs)| format!("| {} | {verbs} |", resources.join(", "))));
        crate::published::check("rights", &page);
    }

    #[test]
    fn each_resource_stands_in_the_group_that_serves_it() {
        let expected = [
            ("managedcomponents", "platform.navin.ai"),
            ("deployments", "apps"),
            ("configmaps", ""),
            ("networkpolicies", "networking.k8s.io"),
            ("poddisruptionbudgets", "policy"),
            ("horizontalpodautoscalers", "autoscaling"),
            ("scaledobjects", "keda.sh"),
            ("secrets", ""),
            ("leases", "coordination.k8s.io"),
        ];
        for (resource, group) in expected {
            let found = rules().into_iter().find(|rule| rule.resources.iter().any(|name| name == resource)).unwrap();
            assert_eq!(found.group, group, "{resource}");
        }
    }
}
