//! "Webhooks": one that fails closed can stop nobody but its own kinds, and each has a Service that is or will be there.

use super::{Live, Row, check};

pub(super) const ROWS: [Row; 20] = [
    Row {
        rule: "Fail on what others write is refused",
        chart: "
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: a}
webhooks:
  - name: w.fails.io
    failurePolicy: Fail
    rules: [{apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [pods]}]
    clientConfig: {service: {namespace: elsewhere, name: live}}",
        says: &[
            "webhook w.fails.io: failurePolicy Fail on create of pods in core could stop writes in platform, platform-extra, clicklink-system, kube-system",
        ],
    },
    Row {
        rule: "an absent failurePolicy means Fail",
        chart: "
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata: {name: a}
webhooks:
  - name: w.absent.io
    rules: [{apiGroups: [apps], apiVersions: [v1], operations: ['*'], resources: [deployments]}]
    clientConfig: {service: {namespace: elsewhere, name: live}}",
        says: &["webhook w.absent.io: failurePolicy Fail"],
    },
    Row {
        rule: "Fail on groups of CRDs of the same bundle is allowed",
        chart: "
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: as.mine.io}
spec: {group: mine.io}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: a}
webhooks:
  - name: w.mine.io
    rules: [{apiGroups: [mine.io], apiVersions: ['*'], operations: ['*'], resources: ['*']}]
    clientConfig: {service: {namespace: elsewhere, name: live}}",
        says: &[],
    },
    Row {
        rule: "on groups of a CRD that is not the bundle's it is refused",
        chart: "
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: a}
webhooks:
  - name: w.theirs.io
    rules: [{apiGroups: [theirs.io], apiVersions: ['*'], operations: ['*'], resources: ['*']}]
    clientConfig: {service: {namespace: elsewhere, name: live}}",
        says: &["webhook w.theirs.io: failurePolicy Fail"],
    },
    Row {
        rule: "every rule counts",
        chart: "
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: as.both.io}
spec: {group: both.io}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: a}
webhooks:
  - name: w.both.io
    rules:
      - {apiGroups: [both.io], apiVersions: ['*'], operations: ['*'], resources: ['*']}
      - {apiGroups: [both.io, batch], apiVersions: ['*'], operations: ['*'], resources: [jobs]}
    clientConfig: {service: {namespace: elsewhere, name: live}}",
        says: &["webhook w.both.io: failurePolicy Fail on * of jobs in both.io,batch"],
    },
    Row {
        rule: "groups of CRDs of the bundle of which it holds an object",
        chart: "
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: volumesnapshotclasses.snapshot.storage.k8s.io}
spec: {group: snapshot.storage.k8s.io}
---
{apiVersion: snapshot.storage.k8s.io/v1, kind: VolumeSnapshotClass, metadata: {name: a}}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: a}
webhooks:
  - name: w.held.io
    rules: [{apiGroups: [snapshot.storage.k8s.io], apiVersions: ['*'], operations: ['*'], resources: ['*']}]
    clientConfig: {service: {namespace: elsewhere, name: live}}",
        says: &["webhook w.held.io: failurePolicy Fail"],
    },
    Row {
        rule: "a selector that leaves out the bundle's namespaces, the connector's and kube-system",
        chart: "
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: a}
webhooks:
  - name: w.selects.io
    rules: [{apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [pods], scope: Namespaced}]
    namespaceSelector:
      matchExpressions:
        - {key: kubernetes.io/metadata.name, operator: NotIn, values: [platform, platform-extra, clicklink-system, kube-system]}
    clientConfig: {service: {namespace: elsewhere, name: live}}",
        says: &[],
    },
    Row {
        rule: "a selector that leaves out all of them but one",
        chart: "
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: a}
webhooks:
  - name: w.nearly.io
    rules: [{apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [pods]}]
    namespaceSelector:
      matchExpressions:
        - {key: kubernetes.io/metadata.name, operator: NotIn, values: [platform, clicklink-system, kube-system]}
    clientConfig: {service: {namespace: elsewhere, name: live}}",
        says: &["could stop writes in platform-extra while its server is away"],
    },
    Row {
        rule: "a selector by labels that anybody may set proves nothing",
        chart: "
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: a}
webhooks:
  - name: w.labels.io
    rules: [{apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [pods]}]
    namespaceSelector: {matchLabels: {own: 'yes'}}
    objectSelector: {matchLabels: {own: 'yes'}}
    matchConditions: [{name: never, expression: 'false'}]
    clientConfig: {service: {namespace: elsewhere, name: live}}",
        says: &["webhook w.labels.io: failurePolicy Fail"],
    },
    Row {
        rule: "a selector of namespaces proves nothing about what lies outside them",
        chart: "
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: a}
webhooks:
  - name: w.outside.io
    rules: [{apiGroups: [rbac.authorization.k8s.io], apiVersions: [v1], operations: ['*'], resources: [clusterroles]}]
    namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: shop}}
    clientConfig: {service: {namespace: elsewhere, name: live}}",
        says: &[
            "webhook w.outside.io: failurePolicy Fail on * of clusterroles in rbac.authorization.k8s.io reaches objects outside namespaces",
        ],
    },
    Row {
        rule: "Ignore is allowed",
        chart: "
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: a}
webhooks:
  - name: w.ignores.io
    failurePolicy: Ignore
    rules: [{apiGroups: ['*'], apiVersions: ['*'], operations: ['*'], resources: ['*']}]
    clientConfig: {service: {namespace: elsewhere, name: live}}",
        says: &[],
    },
    Row {
        rule: "its Service may be rendered by the same component",
        chart: "
{apiVersion: v1, kind: Service, metadata: {name: hook}}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: a}
webhooks: [{name: w.own.io, failurePolicy: Ignore, rules: [], clientConfig: {service: {namespace: platform, name: hook}}}]",
        says: &[],
    },
    Row {
        rule: "a Service that is neither rendered nor live",
        chart: "
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: a}
webhooks: [{name: w.nobody.io, failurePolicy: Ignore, rules: [], clientConfig: {service: {namespace: platform, name: nobody}}}]",
        says: &[
            "webhook w.nobody.io: its Service platform/nobody is neither rendered by this component nor live; switch the chart's webhook off",
        ],
    },
    Row {
        rule: "a Service of this name in another namespace",
        chart: "
{apiVersion: v1, kind: Service, metadata: {name: apart, namespace: platform-extra}}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: a}
webhooks: [{name: w.apart.io, failurePolicy: Ignore, rules: [], clientConfig: {service: {namespace: platform, name: apart}}}]",
        says: &["its Service platform/apart is neither rendered by this component nor live"],
    },
    Row {
        rule: "`clientConfig.url` is refused, of a webhook that ignores its failures too",
        chart: "
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata: {name: a}
webhooks: [{name: w.url.io, failurePolicy: Ignore, rules: [], clientConfig: {url: 'https://elsewhere.example/x'}}]",
        says: &["webhook w.url.io: clientConfig.url is refused"],
    },
    Row {
        rule: "a webhook without a Service",
        chart: "
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata: {name: a}
webhooks: [{name: w.none.io, failurePolicy: Ignore, rules: [], clientConfig: {caBundle: ''}}]",
        says: &["webhook w.none.io: clientConfig names no Service"],
    },
    Row {
        rule: "a CRD that turns to a conversion webhook whose Service has no ready endpoint while objects of it exist",
        chart: "
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: as.turns.io}
spec:
  group: turns.io
  conversion: {strategy: Webhook, webhook: {clientConfig: {service: {namespace: platform, name: away}}}}",
        says: &["it turns to a conversion webhook whose Service platform/away has no ready endpoint while objects of it exist"],
    },
    Row {
        rule: "one whose Service is ready",
        chart: "
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: as.ready.io}
spec:
  group: ready.io
  conversion: {strategy: Webhook, webhook: {clientConfig: {service: {namespace: elsewhere, name: live}}}}",
        says: &[],
    },
    Row {
        rule: "a conversion webhook outside the cluster",
        chart: "
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: as.leaves.io}
spec:
  group: leaves.io
  conversion: {strategy: Webhook, webhook: {clientConfig: {url: 'https://elsewhere.example'}}}",
        says: &["the conversion webhook's clientConfig.url is refused"],
    },
    Row {
        rule: "a CRD that converts nothing",
        chart: "
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: as.plain.io}
spec: {group: plain.io, conversion: {strategy: None}}",
        says: &[],
    },
];

#[tokio::test]
async fn webhooks() {
    check(&ROWS, &Live).await;
}
