//! Subresources: a right to an object is none to these, and the scope guard denies every one.

use agent_api::names::PCM_PLATFORM;
use reqwest::Method;
use serde_json::{Value, json};
use system_tests::bundle::NAMESPACE;

use super::guard;
use crate::ask::{STRATEGIC, ask, delete, get, merge, path_of, post};
use crate::live::Live;
use crate::row::{Denial, Row, row};

fn pod(live: &Live) -> String {
    format!("/api/v1/namespaces/{NAMESPACE}/pods/{}", live.pod)
}

fn patched(attempt: &str, hope: &'static str, of: (&'static str, &'static str), subresource: &'static str, body: Value) -> Row {
    row(attempt, hope, &[Denial::Rbac, guard::WHOLE], move |live| {
        vec![merge(format!("{}/{subresource}", path_of(&live.named(of.0, of.1))), body.clone())]
    })
}

pub(super) fn rows() -> Vec<Row> {
    let mut rows = of_objects();
    rows.extend(of_pods());
    rows
}

fn of_objects() -> Vec<Row> {
    let note = || json!({"metadata": {"annotations": {"a": "b"}}});
    let deployment = ("Deployment", "snapshot-controller");
    let balanced = json!({"status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}}});
    vec![
        patched("scaling", "a platform that does not run", deployment, "scale", json!({"spec": {"replicas": 9}})),
        row("reading a scale", "a way round", &[Denial::Rbac], |live| {
            vec![get(format!("{}/scale", path_of(&live.named("Deployment", "snapshot-controller"))))]
        }),
        patched("a Deployment's status", "an update that is told as ready", deployment, "status", json!({"status": {"conditions": []}})),
        patched("a Service's status", "traffic to an address of theirs", ("Service", "monitoring-collectors"), "status", balanced),
        patched("a Job's status", "a migration that is told as done", ("Job", "monitoring-collectors-migration"), "status", note()),
        patched("a budget's status", "pods evicted all at once", ("PodDisruptionBudget", "snapshot-controller"), "status", note()),
        row("a Service's proxy", "requests from the API server's place", &[Denial::Rbac, guard::WHOLE], |live| {
            vec![get(format!("{}/proxy", path_of(&live.named("Service", "clickhouse-operator-webhook"))))]
        }),
        row("a Node's proxy", "the kubelet's own API", &[Denial::Rbac, guard::WHOLE], |_| vec![get("/api/v1/nodes/node-a/proxy/")]),
        row("the Namespace finalized", "a Namespace that ends half", &[Denial::Rbac, guard::WHOLE], |_| {
            let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}, "spec": {"finalizers": []}});
            vec![ask(Method::PUT, format!("/api/v1/namespaces/{NAMESPACE}/finalize")).body(crate::ask::JSON, namespace)]
        }),
    ]
}

fn of_pods() -> Vec<Row> {
    let inside = "a process in the platform's pods, and its tokens";
    let both = [Denial::Rbac, guard::WHOLE];
    vec![
        row("exec", inside, &both, |live| {
            vec![
                post(format!("{}/exec?command=id&stdout=true", pod(live)), Value::Null),
                get(format!("{}/exec?command=id&stdout=true", pod(live))),
            ]
        }),
        row("attach", inside, &both, |live| vec![post(format!("{}/attach?stdout=true", pod(live)), Value::Null)]),
        row("port-forward", "a port that no Service opens", &both, |live| {
            vec![post(format!("{}/portforward?ports=80", pod(live)), Value::Null)]
        }),
        row("a pod's proxy", "the same", &both, |live| vec![get(format!("{}/proxy", pod(live)))]),
        row("a container to debug", inside, &both, |live| {
            let debug = json!({"spec": {"ephemeralContainers": [{"name": "x", "image": "registry.invalid/a@sha256:00"}]}});
            vec![ask(Method::PATCH, format!("{}/ephemeralcontainers", pod(live))).body(STRATEGIC, debug)]
        }),
        row("logs", "Secrets that are logged", &[Denial::Rbac], |live| vec![get(format!("{}/log", pod(live)))]),
        row("eviction", "a platform that does not run", &both, |live| {
            let eviction = json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": live.pod, "namespace": NAMESPACE}});
            vec![post(format!("{}/eviction", pod(live)), eviction)]
        }),
        row("a pod deleted", "a platform that does not run", &both, |live| {
            vec![delete(pod(live)), delete(format!("/api/v1/namespaces/{NAMESPACE}/pods"))]
        }),
        row("a pod's image or annotations", "other code in a pod that runs", &[Denial::Rbac, guard::KIND], |live| {
            vec![merge(pod(live), json!({"metadata": {"annotations": {"a": "b"}}}))]
        }),
        row("a pod's resources", "all that a node has", &[Denial::Rbac], |live| {
            let resized = json!({"spec": {"containers": [{"name": "manager", "resources": {"requests": {"cpu": "9"}}}]}});
            vec![ask(Method::PATCH, format!("{}/resize", pod(live))).body(STRATEGIC, resized)]
        }),
        row("a pod's node", "a pod elsewhere", &both, |live| {
            let bound = json!({"apiVersion": "v1", "kind": "Binding", "metadata": {"name": live.pod},
                "target": {"kind": "Node", "name": "node-a"}});
            vec![post(format!("{}/binding", pod(live)), bound)]
        }),
        row("its own token's subresource by patch", "a longer life", &[Denial::Rbac], |_| {
            vec![merge(format!("/api/v1/namespaces/{}/serviceaccounts/{PCM_PLATFORM}/token", crate::HOME), json!({}))]
        }),
    ]
}
