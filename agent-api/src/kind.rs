//! The kinds a bundle may hold, each in one half: what a person applies, and what the executor applies.
//!
//! A kind in neither half is refused. The table also says how the API server names each (resource, scope), so that nobody has to
//! ask for discovery and no answer of a cluster can change which half an object falls into.

use serde::{Deserialize, Serialize};

/// The half of a bundle that an object belongs to.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Half {
    /// Grants or bounds access; applied by the person with their own credentials.
    Permissions,
    /// Runs; applied by the executor as `pcm-platform`.
    Workload,
}

/// One row of the table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Kind {
    /// API group, empty for the core group.
    pub group: &'static str,
    /// Kind, as in a manifest.
    pub kind: &'static str,
    /// Resource: plural, lower case, as in RBAC rules and URLs.
    pub resource: &'static str,
    /// Whether its objects lie in a namespace.
    pub namespaced: bool,
    /// The half.
    pub half: Half,
}

const fn permission(group: &'static str, kind: &'static str, resource: &'static str, namespaced: bool) -> Kind {
    Kind { group, kind, resource, namespaced, half: Half::Permissions }
}

const fn workload(group: &'static str, kind: &'static str, resource: &'static str) -> Kind {
    Kind { group, kind, resource, namespaced: true, half: Half::Workload }
}

const RBAC: &str = "rbac.authorization.k8s.io";
const ADMISSION: &str = "admissionregistration.k8s.io";
const SNAPSHOT: &str = "snapshot.storage.k8s.io";

/// Every kind of a bundle, permissions half first, in the order in which `approve` applies kinds.
pub const KINDS: [Kind; 23] = [
    permission("", "Namespace", "namespaces", false),
    permission("scheduling.k8s.io", "PriorityClass", "priorityclasses", false),
    permission("storage.k8s.io", "StorageClass", "storageclasses", false),
    permission("apiextensions.k8s.io", "CustomResourceDefinition", "customresourcedefinitions", false),
    permission(SNAPSHOT, "VolumeSnapshotClass", "volumesnapshotclasses", false),
    permission("groupsnapshot.storage.k8s.io", "VolumeGroupSnapshotClass", "volumegroupsnapshotclasses", false),
    permission("", "ServiceAccount", "serviceaccounts", true),
    permission(RBAC, "ClusterRole", "clusterroles", false),
    permission(RBAC, "Role", "roles", true),
    permission(RBAC, "ClusterRoleBinding", "clusterrolebindings", false),
    permission(RBAC, "RoleBinding", "rolebindings", true),
    permission(ADMISSION, "ValidatingAdmissionPolicy", "validatingadmissionpolicies", false),
    permission(ADMISSION, "ValidatingAdmissionPolicyBinding", "validatingadmissionpolicybindings", false),
    permission(ADMISSION, "MutatingAdmissionPolicy", "mutatingadmissionpolicies", false),
    permission(ADMISSION, "MutatingAdmissionPolicyBinding", "mutatingadmissionpolicybindings", false),
    permission(ADMISSION, "ValidatingWebhookConfiguration", "validatingwebhookconfigurations", false),
    permission(ADMISSION, "MutatingWebhookConfiguration", "mutatingwebhookconfigurations", false),
    workload("", "Secret", "secrets"),
    workload("", "ConfigMap", "configmaps"),
    workload("", "Service", "services"),
    workload("apps", "Deployment", "deployments"),
    workload("batch", "Job", "jobs"),
    workload("policy", "PodDisruptionBudget", "poddisruptionbudgets"),
];

impl Kind {
    /// The row of a group and kind; `None` where it is in neither half.
    #[must_use]
    pub fn find(group: &str, kind: &str) -> Option<&'static Self> {
        KINDS.iter().find(|row| row.group == group && row.kind == kind)
    }

    /// Its place in the order in which kinds are applied.
    #[must_use]
    pub fn order(&self) -> usize {
        KINDS.iter().position(|row| row == self).unwrap_or(KINDS.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_identity_twice_and_halves_in_order() {
        for (i, row) in KINDS.iter().enumerate() {
            assert_eq!(row.order(), i, "{row:?}");
            assert_eq!(row.half == Half::Workload, i >= 17, "{row:?}");
        }
        assert_eq!(KINDS.iter().filter(|row| row.half == Half::Workload).count(), 6);
        assert_eq!(Kind::find("apps", "StatefulSet"), None);
        assert_eq!(Kind::find("extensions", "Deployment"), None);
    }
}
