//! What can be learnt: reads, and answers to writes that are refused. Admission sees no read: RBAC alone denies.

use agent_api::names::PINS_SECRET;
use serde_json::json;
use system_tests::bundle::NAMESPACE;

use super::pin;
use crate::HOME;
use crate::ask::{JSON_PATCH, apply, as_executor, ask, get, merge, object};
use crate::row::{Denial, Row, row};
use reqwest::Method;

/// A Secret of somebody else's in the platform's namespace.
pub(crate) const FOREIGN: &str = "foreign";

pub(super) fn rows() -> Vec<Row> {
    let mut rows = secrets();
    rows.extend(answers());
    rows.extend(others());
    rows
}

fn read(attempt: &str, hope: &'static str, paths: Vec<String>) -> Row {
    row(attempt, hope, &[Denial::Rbac], move |_| paths.iter().map(get).collect())
}

fn secrets() -> Vec<Row> {
    let values = "values of Secrets";
    let secrets = format!("/api/v1/namespaces/{NAMESPACE}/secrets");
    vec![
        read("the bundle's own Secret", values, vec![format!("{secrets}/monitoring-collectors-endpoints")]),
        read("another Secret of the namespace", values, vec![format!("{secrets}/{FOREIGN}")]),
        read("listing Secrets", values, vec![secrets.clone(), format!("{secrets}?limit=1"), "/api/v1/secrets".into()]),
        read("listing Secrets as a table, or their metadata", "names of Secrets", vec![format!("{secrets}?includeObject=Metadata")]),
        read("watching Secrets", values, vec![format!("{secrets}?watch=true"), format!("/api/v1/watch/namespaces/{NAMESPACE}/secrets")]),
        read("watching one Secret by its name", values, vec![format!("{secrets}?watch=true&fieldSelector=metadata.name%3D{FOREIGN}")]),
        read(
            "Secrets at home: pins, token bundle",
            "pinned values",
            vec![format!("/api/v1/namespaces/{HOME}/secrets"), format!("/api/v1/namespaces/{HOME}/secrets/{PINS_SECRET}")],
        ),
    ]
}

/// A patch of a name is a read of it: its answer and its error show the object.
fn answers() -> Vec<Row> {
    let shown = "the object, shown by the answer or the error";
    let path = format!("/api/v1/namespaces/{NAMESPACE}/secrets/{FOREIGN}");
    let (dry, tested) = (path.clone(), path.clone());
    vec![
        row("a dry-run apply over another Secret", shown, &[Denial::Rbac, pin::LISTED, pin::SECRET], |_| {
            let mut request = apply(object("v1", "Secret", Some(NAMESPACE), FOREIGN, json!({})));
            request.path.push_str("&dryRun=All");
            vec![request]
        }),
        row("a merge patch of another Secret that does nothing", shown, &[Denial::Rbac], move |_| {
            vec![merge(format!("{}&dryRun=All", as_executor(&dry)), json!({}))]
        }),
        row("a patch of another Secret that is invalid", shown, &[Denial::Rbac], move |_| {
            vec![merge(as_executor(&path), json!({"type": "kubernetes.io/tls"}))]
        }),
        row("a JSON patch that tests a value of another Secret", "its value, one guess at a time", &[Denial::Rbac], move |_| {
            vec![
                ask(Method::PATCH, as_executor(&tested))
                    .body(JSON_PATCH, json!([{"op": "test", "path": "/data/password", "value": "eA=="}])),
            ]
        }),
        row("a dry-run apply over another Deployment", shown, &[Denial::Rbac], |_| {
            vec![merge("/apis/apps/v1/namespaces/kube-system/deployments/x?fieldManager=clicklink-executor&dryRun=All", json!({}))]
        }),
    ]
}

fn others() -> Vec<Row> {
    let map = "configuration that is not the bundle's";
    let maps = format!("/api/v1/namespaces/{NAMESPACE}/configmaps");
    vec![
        read("listing ConfigMaps", map, vec![maps.clone()]),
        read("another ConfigMap of the namespace", map, vec![format!("{maps}/kube-root-ca.crt")]),
        read("ConfigMaps elsewhere", map, vec!["/api/v1/namespaces/kube-system/configmaps".into(), "/api/v1/configmaps".into()]),
        read(
            "listing Deployments, Services, Jobs",
            "what else runs here",
            vec![
                format!("/apis/apps/v1/namespaces/{NAMESPACE}/deployments"),
                format!("/api/v1/namespaces/{NAMESPACE}/services"),
                format!("/apis/batch/v1/namespaces/{NAMESPACE}/jobs"),
            ],
        ),
        read("pods elsewhere", "what else runs here", vec!["/api/v1/pods".into(), "/api/v1/namespaces/kube-system/pods".into()]),
        read(
            "former approvals, and all of them",
            "who approved what",
            vec![format!("/apis/clicklink.io/v1alpha1/namespaces/{HOME}/platformapprovals")],
        ),
        read("nodes", "where to go next", vec!["/api/v1/nodes".into()]),
        read(
            "listing Roles and bindings",
            "whom to attack next",
            vec![
                "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings".into(),
                format!("/apis/rbac.authorization.k8s.io/v1/namespaces/{NAMESPACE}/roles"),
            ],
        ),
        read(
            "the API server's metrics, logs, profiles",
            "names of all that is here",
            vec!["/metrics".into(), "/logs/".into(), "/debug/pprof/".into()],
        ),
    ]
}
