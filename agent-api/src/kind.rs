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
    /// Why it is in this half: what an object of it does.
    pub why: &'static str,
}

const fn permission(group: &'static str, kind: &'static str, resource: &'static str, namespaced: bool, why: &'static str) -> Kind {
    Kind { group, kind, resource, namespaced, half: Half::Permissions, why }
}

const fn workload(group: &'static str, kind: &'static str, resource: &'static str, why: &'static str) -> Kind {
    Kind { group, kind, resource, namespaced: true, half: Half::Workload, why }
}

const RBAC: &str = "rbac.authorization.k8s.io";
const ADMISSION: &str = "admissionregistration.k8s.io";
const SNAPSHOT: &str = "snapshot.storage.k8s.io";

/// Every kind of a bundle, permissions half first, in the order in which `approve` applies kinds.
pub const KINDS: [Kind; 23] = [
    permission("", "Namespace", "namespaces", false, "where rights and policies apply, and where the workload half may go"),
    permission("scheduling.k8s.io", "PriorityClass", "priorityclasses", false, "decides whose pods go first, in the whole cluster"),
    permission("storage.k8s.io", "StorageClass", "storageclasses", false, "decides how volumes of the whole cluster are made"),
    permission(
        "apiextensions.k8s.io",
        "CustomResourceDefinition",
        "customresourcedefinitions",
        false,
        "defines a kind for the whole cluster; without it all its objects go",
    ),
    permission(SNAPSHOT, "VolumeSnapshotClass", "volumesnapshotclasses", false, "a storage class for snapshots"),
    permission(
        "groupsnapshot.storage.k8s.io",
        "VolumeGroupSnapshotClass",
        "volumegroupsnapshotclasses",
        false,
        "a storage class for snapshots of groups",
    ),
    permission("", "ServiceAccount", "serviceaccounts", true, "an identity that pods run as"),
    permission(RBAC, "ClusterRole", "clusterroles", false, "rights, in the whole cluster or in any namespace"),
    permission(RBAC, "Role", "roles", true, "rights in a namespace"),
    permission(RBAC, "ClusterRoleBinding", "clusterrolebindings", false, "gives rights in the whole cluster"),
    permission(RBAC, "RoleBinding", "rolebindings", true, "gives rights in a namespace"),
    permission(ADMISSION, "ValidatingAdmissionPolicy", "validatingadmissionpolicies", false, "decides what everybody may write"),
    permission(ADMISSION, "ValidatingAdmissionPolicyBinding", "validatingadmissionpolicybindings", false, "puts such a policy into force"),
    permission(ADMISSION, "MutatingAdmissionPolicy", "mutatingadmissionpolicies", false, "changes what everybody writes"),
    permission(ADMISSION, "MutatingAdmissionPolicyBinding", "mutatingadmissionpolicybindings", false, "puts such a policy into force"),
    permission(
        ADMISSION,
        "ValidatingWebhookConfiguration",
        "validatingwebhookconfigurations",
        false,
        "lets a server decide on the requests of others",
    ),
    permission(
        ADMISSION,
        "MutatingWebhookConfiguration",
        "mutatingwebhookconfigurations",
        false,
        "lets a server change the requests of others",
    ),
    workload("", "Secret", "secrets", "values for pods; written and pinned, never read back"),
    workload("", "ConfigMap", "configmaps", "configuration for pods"),
    workload("", "Service", "services", "how pods are reached in the cluster"),
    workload("apps", "Deployment", "deployments", "pods that are kept running"),
    workload("batch", "Job", "jobs", "pods that run to their end, hooks of charts above all"),
    workload("policy", "PodDisruptionBudget", "poddisruptionbudgets", "how many pods may be taken away at once"),
];

/// Kinds in neither half: a bundle that holds one is refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Refused {
    /// API group, empty for the core group; `*` for every group that is not Kubernetes' own.
    pub group: &'static str,
    /// The kinds, `*` for all of the group.
    pub kinds: &'static [&'static str],
    /// Why.
    pub why: &'static str,
    /// The chart value that usually avoids it; empty where none is known.
    pub avoid: &'static str,
}

const fn refused(group: &'static str, kinds: &'static [&'static str], why: &'static str) -> Refused {
    Refused { group, kinds, why, avoid: "" }
}

const fn avoidable(group: &'static str, kinds: &'static [&'static str], why: &'static str, avoid: &'static str) -> Refused {
    Refused { group, kinds, why, avoid }
}

const ANY: &[&str] = &["*"];
const QUESTION: &str = "a question to the API server, nothing that is kept";
const MONITORING: &str = "read by a monitoring of the cluster, which need not be there";

/// Every other kind of Kubernetes 1.37, and what charts often have besides; the first row that fits holds.
pub const REFUSED: [Refused; 36] = [
    avoidable(
        "apps",
        &["DaemonSet"],
        "runs on every node, and on those that come later",
        "set the chart's deployment mode to Deployment (often `mode: deployment` or `kind: Deployment`)",
    ),
    refused("apps", &["StatefulSet"], "its volumes outlive it, and their templates cannot be changed; what holds data is a service"),
    refused("apps", &["ReplicaSet", "ControllerRevision"], "made by the controllers of Deployments"),
    refused("", &["Pod", "ReplicationController", "PodTemplate", "Binding"], "pods come from Deployments and Jobs, which restart them"),
    refused("batch", &["CronJob"], "would start pods when no approval holds any more"),
    refused("", &["PersistentVolume", "PersistentVolumeClaim"], "data outlives bundles; what holds data is a service"),
    refused("", &["Endpoints"], "written by controllers; by hand it could send traffic anywhere"),
    refused("discovery.k8s.io", ANY, "written by controllers; by hand it could send traffic anywhere"),
    refused("", &["LimitRange", "ResourceQuota"], "bounds everybody in a namespace, the approval's own writes too"),
    refused("", &["Node", "ComponentStatus"], "belongs to the cluster itself"),
    refused("", &["Event"], "a record of what happened"),
    refused("events.k8s.io", ANY, "a record of what happened"),
    avoidable(
        "autoscaling",
        ANY,
        "would go on changing replicas when no approval holds any more",
        "switch the chart's autoscaling off (often `autoscaling.enabled: false`)",
    ),
    avoidable(
        "networking.k8s.io",
        &["Ingress"],
        "opens a way into the cluster",
        "switch the chart's ingress off (often `ingress.enabled: false`)",
    ),
    avoidable(
        "networking.k8s.io",
        &["NetworkPolicy"],
        "decides on the traffic of everybody in a namespace",
        "switch the chart's network policy off (often `networkPolicy.enabled: false`)",
    ),
    refused("networking.k8s.io", ANY, "belongs to the cluster's network"),
    refused("node.k8s.io", ANY, "decides how pods run on nodes, in the whole cluster"),
    refused("coordination.k8s.io", ANY, "made by its holder while it runs; a role allows it"),
    refused("flowcontrol.apiserver.k8s.io", ANY, "decides how much of the API server everybody gets"),
    refused("apiregistration.k8s.io", ANY, "lets a server answer for a part of the API, in the whole cluster"),
    refused("certificates.k8s.io", ANY, "asks for, or spreads, trust of the whole cluster"),
    refused("authorization.k8s.io", ANY, QUESTION),
    refused("authentication.k8s.io", ANY, QUESTION),
    refused("storage.k8s.io", ANY, "belongs to the cluster's storage drivers"),
    refused("storagemigration.k8s.io", ANY, "rewrites what the whole cluster has stored"),
    refused("resource.k8s.io", ANY, "belongs to the cluster's devices"),
    refused("scheduling.k8s.io", ANY, "belongs to the cluster's scheduler"),
    refused("admissionregistration.k8s.io", ANY, "not known to be safe to apply"),
    refused("policy", ANY, "a request to take a pod away"),
    refused(SNAPSHOT, ANY, "made while the platform runs, by people and controllers"),
    refused("groupsnapshot.storage.k8s.io", ANY, "made while the platform runs, by people and controllers"),
    avoidable(
        "cert-manager.io",
        ANY,
        "asks another program of the cluster, which need not be there, for certificates",
        "switch the chart's cert-manager and webhook values off (often `certManager.enabled: false`, `webhook.enabled: false`)",
    ),
    avoidable(
        "monitoring.coreos.com",
        &["ServiceMonitor", "PodMonitor"],
        MONITORING,
        "switch the chart's monitor off (often `serviceMonitor.enabled: false`, `podMonitor.enabled: false`)",
    ),
    avoidable(
        "monitoring.coreos.com",
        &["PrometheusRule"],
        MONITORING,
        "switch the chart's rules off (often `prometheusRule.enabled: false`)",
    ),
    refused("monitoring.coreos.com", ANY, MONITORING),
    refused("*", ANY, "a custom resource: what its controller does with it, no plan can say"),
];

impl Refused {
    /// Why a group and kind is refused; `None` where it is in one of the halves, or is of Kubernetes' own and not known here.
    #[must_use]
    pub fn find(group: &str, kind: &str) -> Option<&'static Self> {
        if Kind::find(group, kind).is_some() {
            return None;
        }
        let own = !group.contains('.') || group.ends_with(".k8s.io");
        REFUSED.iter().find(|row| {
            let group_fits = row.group == group || (row.group == "*" && !own);
            group_fits && row.kinds.iter().any(|listed| *listed == "*" || *listed == kind)
        })
    }
}

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

    #[test]
    fn what_is_in_neither_half_has_its_reason() {
        for (group, kind, expected) in [
            ("apps", "DaemonSet", Some("runs on every node")),
            ("autoscaling", "HorizontalPodAutoscaler", Some("would go on changing replicas")),
            ("monitoring.coreos.com", "Probe", Some("read by a monitoring")),
            ("clickhouse.com", "KeeperCluster", Some("a custom resource")),
            ("apps", "Deployment", None),
            ("", "Unknown", None),
            ("new.k8s.io", "Unknown", None),
        ] {
            let why = Refused::find(group, kind).map(|row| row.why);
            assert_eq!(why.is_some(), expected.is_some(), "{kind}.{group}: {why:?}");
            assert!(why.is_none_or(|why| why.starts_with(expected.unwrap_or_default())), "{kind}.{group}: {why:?}");
        }
    }
}
