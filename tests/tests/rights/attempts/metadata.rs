//! Labels and annotations of objects and of pod templates: whole products go by them.

use agent_api::keys::PINNED;
use serde_json::{Value, json};

use super::pods::{DEPLOYMENT, JOB};
use super::{guard, pin};
use crate::ask::{as_executor, force, merge, path_of, put, remove};
use crate::live::{GONE, Live};
use crate::row::{Request, Row, row};

/// An object of each kind, changed alike where it is, and made anew where it is gone.
const OBJECTS: [(&str, &str); 6] = [
    ("ConfigMap", "monitoring-collectors"),
    ("Deployment", DEPLOYMENT),
    ("PodDisruptionBudget", "snapshot-controller"),
    ("Secret", "monitoring-collectors-endpoints"),
    ("Service", "clickhouse-operator-webhook"),
    ("Job", JOB),
];

const UNSEEN: &str = "no comparison with the approval";
const UNNOTICED: &str = "pods that do not notice their new configuration";

fn everywhere(change: impl Fn(&mut Value) + Copy + 'static) -> impl Fn(&Live) -> Vec<Request> + 'static {
    move |live| present(change)(live).into_iter().chain(anew(change)(live)).collect()
}

fn present(change: impl Fn(&mut Value) + 'static) -> impl Fn(&Live) -> Vec<Request> + 'static {
    move |live| OBJECTS.iter().map(|(kind, name)| force(live.changed(kind, name, &change))).collect()
}

fn anew(change: impl Fn(&mut Value) + 'static) -> impl Fn(&Live) -> Vec<Request> + 'static {
    move |live| GONE.iter().map(|(kind, name)| force(live.changed(kind, name, &change)).while_gone()).collect()
}

fn unpinned(object: &mut Value) {
    object["metadata"]["labels"].as_object_mut().unwrap().remove(PINNED);
}

fn pinned_otherwise(object: &mut Value) {
    object["metadata"]["labels"][PINNED] = json!("false");
}

fn annotated(key: &'static str, value: &'static str) -> impl Fn(&Live) -> Vec<Request> + 'static {
    everywhere(move |object| object["metadata"]["annotations"][key] = json!(value))
}

fn labelled(key: &'static str, value: &'static str) -> impl Fn(&Live) -> Vec<Request> + 'static {
    everywhere(move |object| object["metadata"]["labels"][key] = json!(value))
}

fn template(change: impl Fn(&mut Value) + 'static) -> impl Fn(&Live) -> Vec<Request> + 'static {
    move |live| {
        let changed =
            |kind: &str, name: &str| force(live.changed(kind, name, |object| change(&mut object["spec"]["template"]["metadata"])));
        vec![changed("Deployment", DEPLOYMENT), changed("Job", JOB).while_gone()]
    }
}

pub(super) fn rows() -> Vec<Row> {
    let mut rows = objects();
    rows.extend(templates());
    rows
}

fn objects() -> Vec<Row> {
    let ours = "objects that another tool takes for its own, and prunes or rolls back";
    vec![
        row("Helm's ownership (label)", ours, &[pin::LABELS], labelled("app.kubernetes.io/managed-by", "Helm")),
        row("Helm's ownership (annotation)", ours, &[pin::ANNOTATIONS], annotated("meta.helm.sh/release-name", "theirs")),
        row("kapp's ownership", ours, &[pin::LABELS], labelled("kapp.k14s.io/app", "1")),
        row("Argo CD's ownership", ours, &[pin::ANNOTATIONS], annotated("argocd.argoproj.io/tracking-id", "theirs:v1/ConfigMap:a/b")),
        row(
            "`helm.sh/resource-policy: keep`",
            "objects that nobody prunes",
            &[pin::ANNOTATIONS],
            annotated("helm.sh/resource-policy", "keep"),
        ),
        row(
            "kubectl's `last-applied-configuration`",
            "what the next `kubectl apply` takes away",
            &[pin::ANNOTATIONS],
            annotated("kubectl.kubernetes.io/last-applied-configuration", "{}"),
        ),
        row(
            "a load balancer's annotations",
            "a balancer that is open to the outside",
            &[pin::ANNOTATIONS],
            annotated("service.beta.kubernetes.io/aws-load-balancer-internal", "false"),
        ),
        row(
            "a name for external-dns",
            "somebody's name",
            &[pin::ANNOTATIONS],
            annotated("external-dns.alpha.kubernetes.io/hostname", "bank.example.com"),
        ),
        row(
            "a mirror of the Secret",
            "its values in other namespaces",
            &[pin::ANNOTATIONS],
            annotated("reflector.v1.k8s.emberstack.com/reflection-allowed", "true"),
        ),
        row(
            "`clicklink.io/component` of another",
            "an object that is told as another component's",
            &[pin::LABELS],
            labelled("clicklink.io/component", "theirs"),
        ),
        row(
            "a label of the bundle's left out",
            "to fall out of somebody's selection",
            &[pin::LABELS],
            everywhere(|object| {
                remove(object, "/metadata/labels/clicklink.io~1managed-by");
            }),
        ),
        row("the `pinned` label left out", UNSEEN, &[guard::LABEL, pin::LABELS], present(unpinned)),
        row("the `pinned` label with another value", UNSEEN, &[guard::LABEL, pin::LABELS], present(pinned_otherwise)),
        row("objects made anew without the `pinned` label", UNSEEN, &[guard::LABEL], anew(unpinned)),
        row("objects made anew with another value of it", UNSEEN, &[guard::LABEL], anew(pinned_otherwise)),
        row("the `pinned` label removed by a merge patch", UNSEEN, &[guard::LABEL, pin::LABELS], |live| {
            let patch = |(kind, name): &(&str, &str)| {
                merge(as_executor(&path_of(&live.named(kind, name))), json!({"metadata": {"labels": {PINNED: null}}}))
            };
            OBJECTS.iter().map(patch).collect()
        }),
    ]
}

fn templates() -> Vec<Row> {
    let injected = "a container that a webhook adds";
    let annotation = |key: &'static str, value: &'static str| template(move |metadata| metadata["annotations"][key] = json!(value));
    let label = |key: &'static str, value: &'static str| template(move |metadata| metadata["labels"][key] = json!(value));
    vec![
        row("pods labelled as another's", "traffic of a Service that selects them", &[pin::POD_LABELS], label("app", "keeper")),
        row("a label of workload identity on pods", "a cloud identity", &[pin::POD_LABELS], label("azure.workload.identity/use", "true")),
        row("a label for a mesh on pods", injected, &[pin::POD_LABELS], label("sidecar.istio.io/inject", "true")),
        row("an annotation for a mesh on pods", injected, &[pin::POD_ANNOTATIONS], annotation("sidecar.istio.io/inject", "true")),
        row(
            "an annotation for an agent on pods",
            injected,
            &[pin::POD_ANNOTATIONS],
            annotation("vault.hashicorp.com/agent-inject", "true"),
        ),
        row("a cloud role on pods", "a cloud identity", &[pin::POD_ANNOTATIONS], annotation("iam.amazonaws.com/role", "admin")),
        row("networks on pods", "another network", &[pin::POD_ANNOTATIONS], annotation("k8s.v1.cni.cncf.io/networks", "kube-system/host")),
        row("AppArmor's old annotation on pods", "fewer bounds", &[pin::POD_ANNOTATIONS, pin::POD], |live| {
            let key = "container.apparmor.security.beta.kubernetes.io/gateway";
            let changed = live.changed("Deployment", DEPLOYMENT, |object| {
                object["spec"]["template"]["metadata"]["annotations"][key] = json!("unconfined");
            });
            vec![force(changed)]
        }),
        row("an approved pod annotation changed", UNNOTICED, &[pin::POD_ANNOTATIONS], |live| {
            let changed = live.changed("Deployment", DEPLOYMENT, |object| {
                put(object, "/spec/template/metadata/annotations/checksum~1config", json!("theirs"));
            });
            vec![force(changed)]
        }),
        row("an approved pod annotation left out", UNNOTICED, &[pin::POD_ANNOTATIONS], |live| {
            let changed = live.changed("Deployment", DEPLOYMENT, |object| {
                remove(object, "/spec/template/metadata/annotations/checksum~1config");
            });
            vec![force(changed)]
        }),
        row(
            "pods with a finalizer",
            "pods that never end",
            &[guard::TEMPLATE],
            template(|metadata| metadata["finalizers"] = json!(["example.com/hold"])),
        ),
        row(
            "pods with an owner",
            "pods that end with another object",
            &[guard::TEMPLATE],
            template(|metadata| {
                metadata["ownerReferences"] =
                    json!([{"apiVersion": "v1", "kind": "Node", "name": "node-a", "uid": "00000000-0000-4000-8000-000000000000"}]);
            }),
        ),
        row("pods with a namespace", "pods elsewhere", &[guard::TEMPLATE], template(|metadata| metadata["namespace"] = json!("default"))),
        row(
            "pods with a name",
            "to be taken for another pod",
            &[guard::TEMPLATE],
            template(|metadata| metadata["generateName"] = json!("keeper-")),
        ),
    ]
}
