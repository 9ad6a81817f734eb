//! "Refusals, all of a bundle in one message, each naming chart, template, object, and where one is known the chart value that avoids it".

use super::{Live, Row, check, judged, rendered};
use crate::ours;

const ROWS: [Row; 37] = [
    Row {
        rule: "a kind in neither half: DaemonSet, with the deployment mode",
        chart: "{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: a}}",
        says: &["DaemonSet.apps a: DaemonSet.apps is in neither half of a bundle; set the chart's deployment mode to Deployment"],
    },
    Row {
        rule: "Certificate, with the cert-manager and webhook switches",
        chart: "{apiVersion: cert-manager.io/v1, kind: Certificate, metadata: {name: a}}",
        says: &["switch the chart's cert-manager and webhook values off (often `certManager.enabled: false`, `webhook.enabled: false`)"],
    },
    Row {
        rule: "ServiceMonitor, with its switch",
        chart: "{apiVersion: monitoring.coreos.com/v1, kind: ServiceMonitor, metadata: {name: a}}",
        says: &["switch the chart's monitor off (often `serviceMonitor.enabled: false`"],
    },
    Row {
        rule: "PrometheusRule, with its switch",
        chart: "{apiVersion: monitoring.coreos.com/v1, kind: PrometheusRule, metadata: {name: a}}",
        says: &["`prometheusRule.enabled: false`"],
    },
    Row {
        rule: "HorizontalPodAutoscaler, with its switch",
        chart: "{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: a}}",
        says: &["`autoscaling.enabled: false`"],
    },
    Row {
        rule: "Ingress, with its switch",
        chart: "{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: a}}",
        says: &["`ingress.enabled: false`"],
    },
    Row {
        rule: "NetworkPolicy, with its switch",
        chart: "{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {name: a}}",
        says: &["`networkPolicy.enabled: false`"],
    },
    Row {
        rule: "what keeps data, what runs later, and pods without an owner",
        chart: "
{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: a}}
---
{apiVersion: batch/v1, kind: CronJob, metadata: {name: a}}
---
{apiVersion: v1, kind: Pod, metadata: {name: a}}
---
{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: a}}",
        says: &["PersistentVolumeClaim is in", "Pod a: Pod is in", "StatefulSet.apps is in", "CronJob.batch is in"],
    },
    Row {
        rule: "a custom resource",
        chart: "{apiVersion: clickhouse.com/v1alpha1, kind: KeeperCluster, metadata: {name: a}}",
        says: &["KeeperCluster.clickhouse.com is in neither half of a bundle"],
    },
    Row {
        rule: "a kind of another group that is called as one of ours",
        chart: "{apiVersion: own.io/v1, kind: Deployment, metadata: {name: a, namespace: platform}}",
        says: &["Deployment.own.io is in neither half of a bundle"],
    },
    Row {
        rule: "a refused kind in a List",
        chart: "{apiVersion: v1, kind: List, items: [{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: a}}]}",
        says: &["DaemonSet.apps is in neither half"],
    },
    Row {
        rule: "a refused kind as a hook that runs",
        chart: "{apiVersion: v1, kind: Pod, metadata: {name: a, annotations: {helm.sh/hook: pre-install}}}",
        says: &["Pod is in neither half"],
    },
    Row { rule: "a document that is no object", chart: "{apiVersion: v1, metadata: {name: a}}", says: &["has no apiVersion or no kind"] },
    Row {
        rule: "a workload object outside `namespaces`",
        chart: "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: kube-system}}",
        says: &["ConfigMap kube-system/a: a workload object may lie in the bundle's `namespaces` only, not in `kube-system`; set the chart's"],
    },
    Row {
        rule: "a place for a secret outside `namespaces`",
        chart: "{apiVersion: v1, kind: Secret, metadata: {name: a, namespace: default}}",
        says: &["Secret default/a: a workload object may lie in the bundle's `namespaces` only"],
    },
    Row {
        rule: "permission objects in namespaces outside the bundle are allowed",
        chart: "{apiVersion: v1, kind: ServiceAccount, metadata: {name: a, namespace: kube-system}}",
        says: &[],
    },
    Row {
        rule: "a Namespace of the cluster, of the connector, or inside the service prefix",
        chart: "
{apiVersion: v1, kind: Namespace, metadata: {name: kube-system}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: clicklink-system}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: ns-shop}}",
        says: &["`kube-system` belongs to the cluster", "`clicklink-system` is the connector's own", "`ns-shop` lies inside the service prefix"],
    },
    Row {
        rule: "an image without a digest",
        chart: "
apiVersion: apps/v1
kind: Deployment
metadata: {name: a}
spec: {template: {spec: {containers: [{name: main, image: 'r.example/app:v1'}]}}}",
        says: &["Deployment.apps platform/a: containers `main`: image `r.example/app:v1` has no digest; set the chart's image digest"],
    },
    Row {
        rule: "in every list of containers and in volumes",
        chart: "
apiVersion: batch/v1
kind: Job
metadata: {name: a}
spec:
  template:
    spec:
      initContainers: [{name: i, image: x}]
      containers: [{name: c, image: x}]
      volumes: [{name: v, image: {reference: x}}]",
        says: &["initContainers `i`", "containers `c`", "volumes[0].image"],
    },
    Row {
        rule: "a container without an image",
        chart: "{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, spec: {template: {spec: {containers: [{name: c}]}}}}",
        says: &["containers `c` has no image"],
    },
    Row {
        rule: "an image that is not in `images`, by repository",
        chart: "
apiVersion: apps/v1
kind: Deployment
metadata: {name: a}
spec: {template: {spec: {containers: [{name: c, image: 'r.example/other@sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa'}]}}}",
        says: &["is not one of the component's `images`; name it there"],
    },
    Row {
        rule: "an image that is not in `images`, by digest",
        chart: "
apiVersion: apps/v1
kind: Deployment
metadata: {name: a}
spec: {template: {spec: {containers: [{name: c, image: 'r.example/app@sha256:bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb'}]}}}",
        says: &["is not one of the component's `images`"],
    },
    Row {
        rule: "compared by repository and digest: a tag beside it says nothing, and `images` may hold more",
        chart: "
apiVersion: apps/v1
kind: Deployment
metadata: {name: a}
spec: {template: {spec: {containers: [{name: c, image: 'IMAGE'}, {name: d, image: '{{ \"IMAGE\" | replace \"@\" \":v9@\" }}'}]}}}",
        says: &[],
    },
    Row {
        rule: "`generateName`",
        chart: "{apiVersion: v1, kind: ConfigMap, metadata: {generateName: a-}}",
        says: &["metadata.generateName is refused"],
    },
    Row {
        rule: "`finalizers`, in either half",
        chart: "
{apiVersion: v1, kind: ConfigMap, metadata: {name: a, finalizers: [x.io/y]}}
---
{apiVersion: v1, kind: ServiceAccount, metadata: {name: a, finalizers: [x.io/y]}}",
        says: &["ServiceAccount platform/a: metadata.finalizers is refused", "ConfigMap platform/a: metadata.finalizers is refused"],
    },
    Row {
        rule: "`ownerReferences`",
        chart: "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, ownerReferences: [{apiVersion: v1, kind: Pod, name: p, uid: u}]}}",
        says: &["metadata.ownerReferences is refused"],
    },
    Row { rule: "an object without a name", chart: "{apiVersion: v1, kind: ConfigMap, metadata: {}}", says: &["metadata.name is missing"] },
    Row {
        rule: "a label or annotation that is no text",
        chart: "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, labels: {number: 1}, annotations: {flag: yes}}}",
        says: &["metadata.labels.number is not a string; quote the value", "metadata.annotations.flag is not a string"],
    },
    Row {
        rule: "a Secret's text that is none",
        chart: "{apiVersion: v1, kind: Secret, metadata: {name: a}, stringData: {port: 1}}",
        says: &["stringData.port is not a string; quote the value"],
    },
    Row {
        rule: "Secrets of types that the cluster itself reads",
        chart: "{apiVersion: v1, kind: Secret, type: kubernetes.io/service-account-token, metadata: {name: a}, data: {k: dg==}}",
        says: &["a Secret of type `kubernetes.io/service-account-token` is refused; Opaque and kubernetes.io/tls are allowed"],
    },
    Row {
        rule: "a Service that leads out of the cluster by name",
        chart: "{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {type: ExternalName, externalName: x.example}}",
        says: &["a Service of type ExternalName is refused"],
    },
    Row {
        rule: "a Service that takes over addresses of others",
        chart: "{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {externalIPs: [192.0.2.1]}}",
        says: &["spec.externalIPs is refused"],
    },
    Row {
        rule: "two objects of one identity, also as different versions of a kind",
        chart: "
{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: a}}
---
{apiVersion: policy/v1beta1, kind: PodDisruptionBudget, metadata: {name: a, namespace: platform}}",
        says: &["the object is rendered twice, first by c/templates/x.yaml of component c0"],
    },
    Row {
        rule: "names of clicklink's own",
        chart: "
{apiVersion: v1, kind: ServiceAccount, metadata: {name: pcm-platform}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: pcm-executor-x}}",
        says: &["the name `pcm-platform` is kept", "the name `pcm-executor-x` is kept"],
    },
    Row {
        rule: "rights for clicklink's own identities, and for groups that hold them",
        chart: "
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: a}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: r}
subjects:
  - {kind: ServiceAccount, namespace: clicklink-system, name: pcm-platform}
  - {kind: Group, name: 'system:serviceaccounts'}
  - {kind: ServiceAccount, namespace: platform, name: operator}",
        says: &["it gives rights to ServiceAccount pcm-platform", "it gives rights to Group system:serviceaccounts"],
    },
    Row {
        rule: "a kind in an API version that Kubernetes had in another group",
        chart: "{apiVersion: extensions/v1beta1, kind: Deployment, metadata: {name: a}}",
        says: &["Deployment.extensions is in neither half"],
    },
    Row {
        rule: "all six kinds of the workload half, in the component's namespace, are taken",
        chart: "
{apiVersion: v1, kind: Secret, metadata: {name: a}, data: {k: dg==}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}
---
{apiVersion: v1, kind: Service, metadata: {name: a}}
---
{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}}
---
{apiVersion: batch/v1, kind: Job, metadata: {name: a}}
---
{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: a}}",
        says: &[],
    },
];

#[tokio::test]
async fn refusals() {
    check(&ROWS, &Live).await;
}

/// Every chart that is refused, as components of one bundle: one message, a line each, in the order of the components.
#[tokio::test]
async fn all_refusals_of_a_bundle_stand_in_one_readable_message() {
    let engine = ours::engine().await;
    let mut charts: Vec<(&str, &[&str])> = ROWS.iter().chain(&super::webhooks::ROWS).map(|row| (row.chart, row.says)).collect();
    charts.retain(|(_, says)| !says.is_empty());
    let texts: Vec<String> = charts.iter().enumerate().map(|(n, (chart, _))| apart(chart, n)).collect();
    let (bundle, normalised) = rendered(&engine, &texts.iter().map(String::as_str).collect::<Vec<_>>()).await;
    let text = judged(&bundle, normalised, &Live).unwrap_err().to_string();
    let (first, lines) = text.split_once('\n').unwrap();
    let lines: Vec<&str> = lines.lines().collect();
    assert_eq!(first, format!("the bundle is refused for {} reasons:", lines.len()));
    assert_eq!(lines.len(), charts.iter().map(|(_, says)| says.len()).sum::<usize>(), "{text}");
    for (n, (_, says)) in charts.iter().enumerate() {
        let place = format!("  - component c{n} (chart c 1.0.0), c/templates/x.yaml");
        let told = lines.iter().filter(|line| line.starts_with(&place)).count();
        assert_eq!(told, says.len(), "{place} in\n{text}");
    }
    assert!(lines.iter().all(|line| line.len() < 450), "a line that nobody reads to its end:\n{text}");
}

/// The same chart under names of its own, so that it does not meet those of other rows.
fn apart(chart: &str, n: usize) -> String {
    chart.replace("metadata: {name: a", &format!("metadata: {{name: a{n}"))
}
