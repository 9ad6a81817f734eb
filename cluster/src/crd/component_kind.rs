//! The kinds that a component's chart may produce: the allow-list of `ManagedComponent`, in the order in which they are applied.
//!
//! The table also says how the API server names each. All lie in a namespace. Absent on purpose: Secrets, RBAC, and whatever belongs to the
//! whole cluster.

/// One row of the table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ComponentKind {
    /// API group, empty for the core group.
    pub group: &'static str,
    /// Kind, as in a manifest.
    pub kind: &'static str,
    /// Resource: plural, lower case, as in RBAC rules and URLs.
    pub resource: &'static str,
}

const fn row(group: &'static str, kind: &'static str, resource: &'static str) -> ComponentKind {
    ComponentKind { group, kind, resource }
}

/// API group of KEDA.
pub const KEDA: &str = "keda.sh";

/// Every allowed kind, in the order in which objects are applied; they are removed in the opposite one.
pub const COMPONENT_KINDS: [ComponentKind; 11] = [
    row("", "ServiceAccount", "serviceaccounts"),
    row("", "ConfigMap", "configmaps"),
    row("", "PersistentVolumeClaim", "persistentvolumeclaims"),
    row("networking.k8s.io", "NetworkPolicy", "networkpolicies"),
    row("", "Service", "services"),
    row("policy", "PodDisruptionBudget", "poddisruptionbudgets"),
    row("apps", "Deployment", "deployments"),
    row("apps", "StatefulSet", "statefulsets"),
    row("autoscaling", "HorizontalPodAutoscaler", "horizontalpodautoscalers"),
    row(KEDA, "ScaledObject", "scaledobjects"),
    row("networking.k8s.io", "Ingress", "ingresses"),
];

impl ComponentKind {
    /// The row of a group and kind; `None` where no chart may produce it.
    #[must_use]
    pub fn find(group: &str, kind: &str) -> Option<&'static Self> {
        COMPONENT_KINDS.iter().find(|row| row.group == group && row.kind == kind)
    }

    /// Its place in the order in which kinds are applied.
    #[must_use]
    pub fn order(group: &str, kind: &str) -> usize {
        COMPONENT_KINDS.iter().position(|row| row.group == group && row.kind == kind).unwrap_or(COMPONENT_KINDS.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eleven_kinds_each_once_and_none_of_those_that_are_refused() {
        for (i, row) in COMPONENT_KINDS.iter().enumerate() {
            assert_eq!(ComponentKind::order(row.group, row.kind), i, "{row:?}");
        }
        for (group, kind) in [("", "Secret"), ("rbac.authorization.k8s.io", "Role"), ("apps", "DaemonSet"), ("extensions", "Deployment")] {
            assert_eq!(ComponentKind::find(group, kind), None, "{kind}");
        }
    }
}
