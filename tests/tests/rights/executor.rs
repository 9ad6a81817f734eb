//! What is attempted with `pcm-executor`'s token, and what it is for.

use reqwest::Method;
use serde_json::json;
use system_tests::bundle::NAMESPACE;

use crate::HOME;
use crate::ask::{Identity, apply, ask, config_map, delete, force, get, merge, object, path_of, post};
use crate::attempts::{Section, token};
use crate::row::{Denial, Row, row};

const GUARDED: [Denial; 2] = [Denial::Rbac, Denial::Prefix];

/// The paths that it reads to observe.
const READS: [&str; 11] = [
    "/api/v1/namespaces",
    "/api/v1/pods",
    "/api/v1/events",
    "/api/v1/services",
    "/apis/apps/v1/deployments",
    "/apis/apps/v1/statefulsets",
    "/apis/batch/v1/jobs",
    "/apis/policy/v1/poddisruptionbudgets",
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
    "/apis/clicklink.io/v1alpha1/platformapprovals",
    "/api/v1/namespaces/clickhouse-platform/pods",
];

/// Reads what it observes, and asks for its own next token, which is its one write.
pub(crate) async fn does_its_work(executor: &Identity) -> Vec<String> {
    let mut wrong = Vec::new();
    let reads = READS.iter().map(|path| (get(*path), 200));
    for (request, expected) in reads.chain([(token(HOME, "pcm-executor"), 201)]) {
        let (status, message) = executor.ask(&request).await;
        if status != expected {
            wrong.push(format!("pcm-executor cannot {} {}: {status} {message}", request.method, request.path));
        }
    }
    wrong
}

pub(crate) fn sections() -> Vec<Section> {
    vec![
        Section { title: "The platform", rows: platform() },
        Section { title: "Other identities", rows: identities() },
        Section { title: "Reading", rows: reads() },
    ]
}

fn platform() -> Vec<Row> {
    let pod = |live: &crate::live::Live| format!("/api/v1/namespaces/{NAMESPACE}/pods/{}", live.pod);
    let change = "a platform that nobody approved";
    vec![
        row("the bundle's objects", change, &GUARDED, |live| live.objects.iter().cloned().map(force).collect()),
        row("a ConfigMap outside the service prefix", "a way out of the services' namespaces", &GUARDED, |_| {
            ["default", "kube-system", HOME].map(|namespace| apply(config_map(namespace, "x"))).into()
        }),
        row("a Namespace outside the service prefix", "a place of its own", &GUARDED, |_| {
            vec![apply(object("v1", "Namespace", None, "x", json!({})))]
        }),
        row("the platform's Namespace deleted", "a platform that is gone", &GUARDED, |_| {
            vec![delete(format!("/api/v1/namespaces/{NAMESPACE}"))]
        }),
        row("a Deployment deleted, scaled", "a platform that does not run", &GUARDED, |live| {
            let deployment = path_of(&live.named("Deployment", "snapshot-controller"));
            vec![delete(deployment.clone()), merge(format!("{deployment}/scale"), json!({"spec": {"replicas": 0}}))]
        }),
        row("a pod deleted, exec", "a process in the platform's pods", &GUARDED, move |live| {
            vec![delete(pod(live)), ask(Method::POST, format!("{}/exec?command=id&stdout=true", pod(live)))]
        }),
        row("`current`, the pins", "an approval of what it wants", &GUARDED, |_| {
            let current = format!("/apis/clicklink.io/v1alpha1/namespaces/{HOME}/platformapprovals/current");
            let pins = format!("/api/v1/namespaces/{HOME}/secrets/pcm-platform-pins");
            [current, pins].map(|path| merge(path, json!({"metadata": {"annotations": {"a": "b"}}}))).into()
        }),
        row("a service's namespace, before instances are there", "rights ahead of their time", &[Denial::Rbac], |_| {
            vec![apply(config_map("ns-service", "x")), apply(object("v1", "Namespace", None, "ns-x", json!({})))]
        }),
        row("its own guard", "no bounds", &[Denial::Rbac], |_| {
            let kinds = ["validatingadmissionpolicies", "validatingadmissionpolicybindings"];
            kinds.map(|kind| delete(format!("/apis/admissionregistration.k8s.io/v1/{kind}/pcm-executor-prefix-guard"))).into()
        }),
    ]
}

fn identities() -> Vec<Row> {
    vec![
        row("a token of `pcm-platform`", "an approval that nobody gave", &GUARDED, |_| vec![token(HOME, "pcm-platform")]),
        row("a token of another account", "its rights", &GUARDED, |_| {
            vec![token(HOME, "default"), token("kube-system", "default"), token(NAMESPACE, "clickhouse-operator")]
        }),
        row("a token of a service's account", "its rights", &[Denial::Rbac], |_| {
            vec![token("ns-service", "default"), token("ns-service", "pcm-executor")]
        }),
        row("impersonation", "anybody's rights", &[Denial::Rbac], |_| {
            ["testbed-admin", "system:serviceaccount:clicklink-system:pcm-platform"]
                .map(|user| get("/api/v1/pods").header("impersonate-user", user))
                .into()
        }),
        row("a Role, a binding", "more rights", &GUARDED, |_| {
            let rules = json!({"rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]});
            let role = object("rbac.authorization.k8s.io/v1", "Role", Some(HOME), "x", rules.clone());
            vec![apply(role), apply(object("rbac.authorization.k8s.io/v1", "ClusterRole", None, "x", rules))]
        }),
        row("a token Secret", "a token that never ends", &GUARDED, |_| {
            let mut secret = object("v1", "Secret", Some(HOME), "x", json!({"type": "kubernetes.io/service-account-token"}));
            secret["metadata"]["annotations"] = json!({"kubernetes.io/service-account.name": "pcm-platform"});
            vec![post(crate::ask::collection_of(&secret), secret)]
        }),
    ]
}

fn reads() -> Vec<Row> {
    let read = |attempt: &str, hope, paths: Vec<String>| row(attempt, hope, &[Denial::Rbac], move |_| paths.iter().map(get).collect());
    vec![
        read(
            "Secrets, anywhere",
            "values of Secrets",
            vec![
                "/api/v1/secrets".into(),
                format!("/api/v1/namespaces/{NAMESPACE}/secrets/monitoring-collectors-endpoints"),
                format!("/api/v1/namespaces/{HOME}/secrets/pcm-platform-pins"),
                "/api/v1/namespaces/ns-service/secrets".into(),
            ],
        ),
        read(
            "ConfigMaps, accounts, nodes, roles",
            "what else is here",
            vec![
                format!("/api/v1/namespaces/{NAMESPACE}/configmaps"),
                "/api/v1/serviceaccounts".into(),
                "/api/v1/nodes".into(),
                "/apis/rbac.authorization.k8s.io/v1/clusterroles".into(),
            ],
        ),
        row("logs", "Secrets that are logged", &[Denial::Rbac], |live| {
            vec![get(format!("/api/v1/namespaces/{NAMESPACE}/pods/{}/log", live.pod))]
        }),
    ]
}
