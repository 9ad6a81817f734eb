//! "Order of the permissions half" and "order inside a component's workload half".

use executor_core::bundle::{Judged, Phase};

use super::{Live, judged, rendered};
use crate::ours;

/// One object of each permission kind, the last first.
const PERMISSIONS: &str = "
{{- range list \"ValidatingWebhookConfiguration\" \"MutatingWebhookConfiguration\" }}
{apiVersion: admissionregistration.k8s.io/v1, kind: {{ . }}, metadata: {name: a}, webhooks: []}
---
{{- end }}
{{- range list \"ValidatingAdmissionPolicyBinding\" \"ValidatingAdmissionPolicy\" }}
{apiVersion: admissionregistration.k8s.io/v1, kind: {{ . }}, metadata: {name: a}}
---
{{- end }}
{{- range list \"RoleBinding\" \"ClusterRoleBinding\" \"Role\" \"ClusterRole\" }}
{apiVersion: rbac.authorization.k8s.io/v1, kind: {{ . }}, metadata: {name: a}}
---
{{- end }}
{apiVersion: v1, kind: ServiceAccount, metadata: {name: a}}
---
{apiVersion: snapshot.storage.k8s.io/v1, kind: VolumeSnapshotClass, metadata: {name: a}}
---
{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: as.own.io}}
---
{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: a}}
---
{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: a}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: platform}}
";

/// Two components: what each brings is applied by kind all the same.
#[tokio::test]
async fn permissions_are_applied_by_kind_over_all_components() {
    let config = "{apiVersion: v1, kind: ServiceAccount, metadata: {name: of-the-first}}";
    let kinds: Vec<String> = judge(&[config, PERMISSIONS]).await.permissions().iter().map(|object| object.key().kind).collect();
    let expected = [
        "Namespace",
        "Namespace",
        "PriorityClass",
        "StorageClass",
        "CustomResourceDefinition",
        "VolumeSnapshotClass",
        "ServiceAccount",
        "ServiceAccount",
        "ClusterRole",
        "Role",
        "ClusterRoleBinding",
        "RoleBinding",
        "ValidatingAdmissionPolicy",
        "ValidatingAdmissionPolicyBinding",
        "ValidatingWebhookConfiguration",
        "MutatingWebhookConfiguration",
    ];
    assert_eq!(kinds, expected);
}

/// Everything that a component may have, the last first.
const WORKLOAD: &str = "
{{- define \"hook\" }}annotations: {helm.sh/hook: '{{ index . 0 }}', helm.sh/hook-weight: '{{ index . 1 }}'}{{ end }}
{apiVersion: batch/v1, kind: Job, metadata: {name: post-9, {{ include \"hook\" (list \"post-upgrade\" 9) }}}}
---
{apiVersion: batch/v1, kind: Job, metadata: {name: post-0, {{ include \"hook\" (list \"post-install,post-upgrade\" 0) }}}}
---
{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: budget}}
---
{apiVersion: batch/v1, kind: Job, metadata: {name: job}}
---
{apiVersion: apps/v1, kind: Deployment, metadata: {name: server}}
---
{apiVersion: v1, kind: Service, metadata: {name: service}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: config}}
---
{apiVersion: v1, kind: Secret, metadata: {name: secret}, data: {k: dg==}}
---
{apiVersion: batch/v1, kind: Job, metadata: {name: only-upgrade, {{ include \"hook\" (list \"pre-upgrade\" 5) }}}}
---
{apiVersion: batch/v1, kind: Job, metadata: {name: pre-0, {{ include \"hook\" (list \"pre-install\" 0) }}}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: for-pre-0, {{ include \"hook\" (list \"pre-install\" 0) }}}}
---
{apiVersion: batch/v1, kind: Job, metadata: {name: pre-minus, {{ include \"hook\" (list \"pre-install,pre-upgrade\" -3) }}}}
";

/// A hook that is only for upgrades runs on the first install too.
#[tokio::test]
async fn the_workload_half_is_applied_in_waves() {
    let told: Vec<(Phase, Vec<String>)> = judge(&[WORKLOAD])
        .await
        .waves("c0")
        .into_iter()
        .map(|wave| (wave.phase, wave.objects.iter().map(|object| object.key().name).collect()))
        .collect();
    let expected: [(Phase, &[&str]); 10] = [
        (Phase::PreHook(-3), &["pre-minus-"]),
        (Phase::PreHook(0), &["for-pre-0"]),
        (Phase::PreHook(0), &["pre-0-"]),
        (Phase::PreHook(5), &["only-upgrade-"]),
        (Phase::Configuration, &["secret", "config"]),
        (Phase::Services, &["service"]),
        (Phase::Workloads, &["server", "job-"]),
        (Phase::Disruption, &["budget"]),
        (Phase::PostHook(0), &["post-0-"]),
        (Phase::PostHook(9), &["post-9-"]),
    ];
    assert_eq!(told.len(), expected.len(), "{told:#?}");
    for ((phase, names), (expected, prefixes)) in told.iter().zip(expected) {
        let fits = names.len() == prefixes.len() && names.iter().zip(prefixes).all(|(name, prefix)| name.starts_with(prefix));
        assert!(*phase == expected && fits, "{phase:?} {names:?} where {expected:?} {prefixes:?} was due");
    }
}

/// Components in list order, whatever their objects are.
#[tokio::test]
async fn the_workload_of_a_component_is_before_that_of_the_next() {
    let config = |name: &str| format!("{{apiVersion: v1, kind: ConfigMap, metadata: {{name: {name}}}}}");
    let budget = "{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: last-of-the-first}}";
    let first = format!("{budget}\n---\n{}", config("first"));
    let judged = judge(&[&first, &config("second")]).await;
    let names: Vec<String> = judged.workload().iter().map(|object| object.key().name).collect();
    assert_eq!(names, ["first", "last-of-the-first", "second"]);
}

/// What of the permissions half lies outside the bundle's namespaces is told apart.
#[tokio::test]
async fn permissions_outside_the_bundles_namespaces_are_told_apart() {
    let role = |namespace: &str| {
        format!("{{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {{name: r, namespace: {namespace}}}}}")
    };
    let judged = judge(&[&format!("{}\n---\n{}", role("kube-system"), role("platform-extra"))]).await;
    let names: Vec<String> = judged.foreign_permissions().iter().map(|object| object.key().to_string()).collect();
    assert_eq!(names, ["Role.rbac.authorization.k8s.io kube-system/r"]);
}

async fn judge(charts: &[&str]) -> Judged {
    let (bundle, normalised) = rendered(&ours::engine().await, charts).await;
    judged(&bundle, normalised, &Live).unwrap()
}
