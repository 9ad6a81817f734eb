//! "Normalising, before anything is judged".

use executor_core::bundle::Judged;
use render::normalise::Normalised;
use serde_json::{Value, json};

use super::{Live, judged, rendered};
use crate::ours;

/// A chart, the objects that it becomes, and what one of them then holds.
struct Row {
    rule: &'static str,
    chart: &'static str,
    /// All of the component's, as `Kind.group namespace/name`.
    objects: &'static [&'static str],
    /// Of the first: a field by its path, and its value, null where the field is not there.
    holds: &'static [(&'static str, &'static str)],
}

const ROWS: [Row; 23] = [
    Row {
        rule: "`List` objects are opened, those inside others too",
        chart: "
apiVersion: v1
kind: List
items:
  - {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}
  - {apiVersion: v1, kind: List, items: [{apiVersion: v1, kind: ConfigMap, metadata: {name: b}}]}",
        objects: &["ConfigMap platform/a", "ConfigMap platform/b"],
        holds: &[],
    },
    Row {
        rule: "a typed list of a kind that a bundle may hold is opened",
        chart: "{apiVersion: v1, kind: ConfigMapList, items: [{metadata: {name: a}}]}",
        objects: &["ConfigMap platform/a"],
        holds: &[("/apiVersion", r#""v1""#)],
    },
    Row {
        rule: "a custom kind that merely ends in List is none",
        chart: "{apiVersion: own.io/v1, kind: AllowList, metadata: {name: a}, items: [{apiVersion: v1, kind: ConfigMap}]}",
        objects: &["AllowList.own.io a"],
        holds: &[("/items/0/kind", r#""ConfigMap""#)],
    },
    Row {
        rule: "a namespaced object without a namespace gets its component's",
        chart: "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}",
        objects: &["ConfigMap platform/a"],
        holds: &[],
    },
    Row {
        rule: "one with a namespace keeps it",
        chart: "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: platform-extra}}",
        objects: &["ConfigMap platform-extra/a"],
        holds: &[],
    },
    Row {
        rule: "a cluster-scoped object with a namespace loses it",
        chart: "{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: a, namespace: x}, value: 1}",
        objects: &["PriorityClass.scheduling.k8s.io a"],
        holds: &[("/metadata/namespace", "null")],
    },
    Row {
        rule: "a RoleBinding's ServiceAccount without a namespace is one of the binding's",
        chart: "
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: a, namespace: kube-system}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: r}
subjects: [{kind: ServiceAccount, name: s}, {kind: ServiceAccount, name: t, namespace: other}, {kind: Group, name: g}]",
        objects: &["RoleBinding.rbac.authorization.k8s.io kube-system/a"],
        holds: &[("/subjects/0/namespace", r#""kube-system""#), ("/subjects/1/namespace", r#""other""#), ("/subjects/2/namespace", "null")],
    },
    Row {
        rule: "`stringData` is folded into `data` and wins",
        chart: "{apiVersion: v1, kind: Secret, metadata: {name: a}, data: {k: b2xk, l: bA==}, stringData: {k: new}}",
        objects: &["Secret platform/a"],
        holds: &[("/data/k", r#""bmV3""#), ("/data/l", r#""bA==""#), ("/stringData", "null")],
    },
    Row {
        rule: "an empty caBundle is a place for another writer's",
        chart: "
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: a}
webhooks: [{name: w, clientConfig: {caBundle: '', service: {name: s, namespace: elsewhere}}}, {name: v, clientConfig: {caBundle: QQ==}}]",
        objects: &["ValidatingWebhookConfiguration.admissionregistration.k8s.io a"],
        holds: &[
            ("/webhooks/0/clientConfig", r#"{"service":{"name":"s","namespace":"elsewhere"}}"#),
            ("/webhooks/1/clientConfig", r#"{"caBundle":"QQ=="}"#),
        ],
    },
    Row {
        rule: "test hooks are left out",
        chart: "{apiVersion: v1, kind: Pod, metadata: {name: a, annotations: {helm.sh/hook: test}}}",
        objects: &[],
        holds: &[],
    },
    Row {
        rule: "test hooks under their old name are left out",
        chart: "{apiVersion: v1, kind: Pod, metadata: {name: a, annotations: {helm.sh/hook: test-success}}}",
        objects: &[],
        holds: &[],
    },
    Row {
        rule: "delete hooks are left out, in the permissions half too",
        chart: "
{apiVersion: batch/v1, kind: Job, metadata: {name: a, annotations: {helm.sh/hook: pre-delete}}}
---
{apiVersion: v1, kind: ServiceAccount, metadata: {name: a, annotations: {helm.sh/hook: post-delete}}}",
        objects: &[],
        holds: &[],
    },
    Row {
        rule: "rollback hooks are left out",
        chart: "{apiVersion: batch/v1, kind: Job, metadata: {name: a, annotations: {helm.sh/hook: 'pre-rollback,post-rollback'}}}",
        objects: &[],
        holds: &[],
    },
    Row {
        rule: "a hook that is for tests and for the installation is not left out",
        chart: "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, annotations: {helm.sh/hook: 'test,post-install'}}}",
        objects: &["ConfigMap platform/a"],
        holds: &[],
    },
    Row {
        rule: "labels say whose an object is, and on the workload half that it is pinned",
        chart: "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, labels: {clicklink.io/pinned: 'false', own: kept}}}",
        objects: &["ConfigMap platform/a"],
        holds: &[(
            "/metadata/labels",
            r#"{"clicklink.io/component":"c0","clicklink.io/managed-by":"platform","clicklink.io/pinned":"true","own":"kept"}"#,
        )],
    },
    Row {
        rule: "no label of the pinned on the permissions half",
        chart: "{apiVersion: v1, kind: ServiceAccount, metadata: {name: a}}",
        objects: &["ServiceAccount platform/a"],
        holds: &[("/metadata/labels", r#"{"clicklink.io/component":"c0","clicklink.io/managed-by":"platform"}"#)],
    },
    Row {
        rule: "labels are set on the object, not on its pods, whose selector is the chart's",
        chart: "{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, spec: {template: {metadata: {labels: {a: b}}}}}",
        objects: &["Deployment.apps platform/a"],
        holds: &[("/spec/template/metadata", r#"{"labels":{"a":"b"}}"#), ("/metadata/labels/clicklink.io~1pinned", r#""true""#)],
    },
    Row {
        rule: "a hook of the permissions half stays, as an object like any other",
        chart: "{apiVersion: v1, kind: ServiceAccount, metadata: {name: a, annotations: {helm.sh/hook: pre-install}}}",
        objects: &["ServiceAccount platform/a"],
        holds: &[],
    },
    Row {
        rule: "what only a server writes is dropped",
        chart: "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, creationTimestamp: null}, status: {x: 1}}",
        objects: &["ConfigMap platform/a"],
        holds: &[("/status", "null"), ("/metadata/creationTimestamp", "null")],
    },
    Row {
        rule: "of a key that is there twice the last one counts",
        chart: "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {k: first, k: last}}",
        objects: &["ConfigMap platform/a"],
        holds: &[("/data", r#"{"k":"last"}"#)],
    },
    Row {
        rule: "an empty document is none",
        chart: "---\n# nothing\n---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}\n---\n",
        objects: &["ConfigMap platform/a"],
        holds: &[],
    },
    Row {
        rule: "a list of nothing is nothing",
        chart: "{apiVersion: v1, kind: List, items: [{{ range .Values.none }}{}{{ end }}]}",
        objects: &[],
        holds: &[],
    },
    Row {
        rule: "what a hook's list holds are hooks",
        chart: "{apiVersion: v1, kind: List, metadata: {annotations: {helm.sh/hook: test}}, items: [{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}]}",
        objects: &[],
        holds: &[],
    },
];

#[tokio::test]
async fn normalising() {
    let engine = ours::engine().await;
    let mut wrong = Vec::new();
    for Row { rule, chart, objects, holds } in &ROWS {
        let (_, normalised) = rendered(&engine, &[chart]).await;
        let found = of_component(&normalised);
        let names: Vec<String> = found.iter().map(|(name, _)| name.clone()).collect();
        let differ = |(path, value): &&(&str, &str)| {
            let expected: Value = serde_json::from_str(value).unwrap();
            found.first().is_none_or(|(_, object)| object.pointer(path).unwrap_or(&Value::Null) != &expected)
        };
        if names != *objects || holds.iter().any(|holds| differ(&holds)) {
            wrong.push(format!("{rule}: {found:#?}"));
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

fn of_component(normalised: &Normalised) -> Vec<(String, &Value)> {
    let own = normalised.objects.iter().filter(|object| object.component.is_some());
    own.map(|object| (object.key().to_string(), &object.object)).collect()
}

/// A Namespace for each of the bundle's that no chart renders.
#[tokio::test]
async fn namespaces_are_added() {
    let engine = ours::engine().await;
    for (chart, expected) in [
        ("", [(None, "Namespace platform"), (None, "Namespace platform-extra")]),
        (
            "{apiVersion: v1, kind: Namespace, metadata: {name: platform-extra, labels: {own: kept}}}",
            [(Some("c0"), "Namespace platform-extra"), (None, "Namespace platform")],
        ),
    ] {
        let (_, normalised) = rendered(&engine, &[chart]).await;
        let found: Vec<_> = normalised.objects.iter().map(|object| (object.component.as_deref(), object.key().to_string())).collect();
        assert_eq!(found, expected.map(|(component, name)| (component, name.to_owned())), "{chart}");
    }
}

/// A Secret without data is a place for somebody else's secret: in no half, count, digest or order, and not pinned.
#[tokio::test]
async fn a_secret_without_data_is_a_place_for_a_secret() {
    let engine = ours::engine().await;
    let judge = async |chart: &str| -> Judged {
        let (bundle, normalised) = rendered(&engine, &[chart]).await;
        judged(&bundle, normalised, &Live).unwrap()
    };
    let config = "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}";
    let without = judge(config).await;
    for place in ["", ", data: {}", ", data: null, stringData: {}", ", type: kubernetes.io/tls"] {
        let with = judge(&format!("{config}\n---\n{{apiVersion: v1, kind: Secret, metadata: {{name: place}}{place}}}")).await;
        assert_eq!((with.workload(), with.permissions()), (without.workload(), without.permissions()), "{place}");
        assert_eq!(with.workload_sha256(), without.workload_sha256(), "{place}");
        let labels: Vec<_> = with.placeholders().iter().map(|object| object.object["metadata"]["labels"].clone()).collect();
        assert_eq!(labels, [json!({"clicklink.io/component": "c0", "clicklink.io/managed-by": "platform"})], "{place}");
    }
    let filled = judge(&format!("{config}\n---\n{{apiVersion: v1, kind: Secret, metadata: {{name: place}}, data: {{k: dg==}}}}")).await;
    assert_eq!((filled.workload().len(), filled.placeholders().len()), (2, 0));
    assert_ne!(filled.workload_sha256(), without.workload_sha256());
}

/// Labels are set before any digest: other labels of ours would be another content.
#[tokio::test]
async fn labels_are_part_of_the_digest() {
    let engine = ours::engine().await;
    let (_, normalised) = rendered(&engine, &["{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}"]).await;
    let labelled = &normalised.objects[0];
    let mut plain = labelled.clone();
    plain.object["metadata"].as_object_mut().unwrap().remove("labels");
    assert_ne!(plain.digest(), labelled.digest());
}

/// A Job is applied under the name of its content, the same on both sides, at most 63 long: the name is cut, never the digest.
#[tokio::test]
async fn a_job_is_named_by_its_content() {
    let engine = ours::engine().await;
    let name = async |job: &str, image: &str| -> String {
        let spec = format!("{{template: {{spec: {{containers: [{{name: m, image: '{image}'}}]}}}}}}");
        let (_, normalised) =
            rendered(&engine, &[&format!("{{apiVersion: batch/v1, kind: Job, metadata: {{name: {job}}}, spec: {spec}}}")]).await;
        normalised.objects[0].key().name
    };
    let (first, again, other) = (name("migrate", "a").await, name("migrate", "a").await, name("migrate", "b").await);
    assert!(first == again && first != other && first.len() == "migrate-01234567".len(), "{first} {again} {other}");
    let long = "m".repeat(63);
    let (cut, other) = (name(&long, "a").await, name(&long, "b").await);
    assert!(cut.len() == 63 && cut.starts_with(&format!("{}-", &long[..54])) && cut != other, "{cut} {other}");
}
