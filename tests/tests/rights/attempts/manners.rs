//! Other manners of writing than server-side apply by the executor: update, create, patches, other managers, deletion.

use reqwest::Method;
use serde_json::json;
use system_tests::bundle::NAMESPACE;

use super::{guard, pin};
use crate::ask::{JSON, JSON_PATCH, STRATEGIC, apply, apply_as, as_executor, ask, collection_of, config_map, delete, merge, path_of, post};
use crate::live::KINDS;
use crate::row::{Denial, Row, row};

const MAP: &str = "monitoring-collectors";
const DEPLOYMENT: &str = "clickhouse-operator";

pub(super) fn rows() -> Vec<Row> {
    let mut rows = updates();
    rows.extend(creations());
    rows.extend(deletions());
    rows
}

fn updates() -> Vec<Row> {
    let round = "a write that no rule about applies sees";
    let note = || json!({"metadata": {"annotations": {"a": "b"}}});
    vec![
        row("update (PUT) with other content", round, &[Denial::Rbac, guard::MANNER, pin::CONTENT], |live| {
            let other = live.changed("ConfigMap", MAP, |map| map["data"]["a"] = json!("b"));
            vec![ask(Method::PUT, as_executor(&path_of(&other))).body(JSON, other)]
        }),
        row("merge patch", round, &[guard::MANNER, pin::ANNOTATIONS], move |live| {
            vec![merge(as_executor(&path_of(&live.named("ConfigMap", MAP))), note())]
        }),
        row("JSON patch", round, &[guard::MANNER, pin::CONTENT], |live| {
            let operations = json!([{"op": "add", "path": "/data/a", "value": "b"}]);
            vec![ask(Method::PATCH, as_executor(&path_of(&live.named("ConfigMap", MAP)))).body(JSON_PATCH, operations)]
        }),
        row("strategic merge patch", round, &[guard::MANNER, pin::ANNOTATIONS], move |live| {
            vec![ask(Method::PATCH, as_executor(&path_of(&live.named("Deployment", DEPLOYMENT)))).body(STRATEGIC, note())]
        }),
        row("the approved content, by another manager", "fields that the executor loses", &[guard::MANNER], |live| {
            let managers = ["kubectl", "clicklink-approve", "Helm"];
            managers
                .iter()
                .flat_map(|manager| {
                    [apply_as(live.named("ConfigMap", MAP), manager), apply_as(live.named("Deployment", DEPLOYMENT), manager)]
                })
                .collect()
        }),
        row("a merge patch without a manager", round, &[guard::MANNER, pin::ANNOTATIONS], move |live| {
            vec![merge(path_of(&live.named("ConfigMap", MAP)), note())]
        }),
        row("an apply of another name than the path's", "an object that is not listed", &[Denial::Server("does not match")], |live| {
            let (path, other) = (path_of(&live.named("ConfigMap", MAP)), config_map(NAMESPACE, "x"));
            let mut request = apply(other);
            request.path = as_executor(&path);
            vec![request]
        }),
        row("an apply of another namespace than the path's", "an object elsewhere", &[Denial::Server("does not match")], |live| {
            let path = path_of(&live.named("ConfigMap", MAP));
            let mut request = apply(config_map("default", MAP));
            request.path = as_executor(&path);
            vec![request]
        }),
    ]
}

fn creations() -> Vec<Row> {
    let new = "an object that RBAC by name does not see";
    vec![
        row("create (POST)", new, &[Denial::Rbac, guard::MANNER, pin::LISTED], |_| {
            vec![post(as_executor(&collection_of(&config_map(NAMESPACE, "x"))), config_map(NAMESPACE, "x"))]
        }),
        row("create with `generateName`", new, &[Denial::Rbac, guard::MANNER, pin::LISTED], |_| {
            let mut map = config_map(NAMESPACE, "x");
            map["metadata"].as_object_mut().unwrap().remove("name");
            map["metadata"]["generateName"] = json!("monitoring-");
            vec![post(as_executor(&format!("/api/v1/namespaces/{NAMESPACE}/configmaps")), map)]
        }),
        row("create with an apply made up", new, &[Denial::Rbac, guard::MANNER, pin::LISTED], |_| {
            let mut map = config_map(NAMESPACE, "x");
            map["metadata"]["managedFields"] = json!([{"manager": "clicklink-executor", "operation": "Apply", "apiVersion": "v1",
                "time": "2026-01-01T00:00:00Z", "fieldsType": "FieldsV1", "fieldsV1": {"f:data": {"f:a": {}}}}]);
            vec![post(as_executor(&collection_of(&map)), map.clone())]
        }),
        row("create of the approved objects, unchanged", "objects that no apply owns", &[Denial::Rbac, guard::MANNER], |live| {
            let gone = crate::live::GONE.iter().map(|(kind, name)| live.named(kind, name));
            gone.map(|object| post(as_executor(&collection_of(&object)), object).while_gone()).collect()
        }),
        row("an unlisted name of each kind", new, &[Denial::Rbac, pin::LISTED, pin::SECRET], |live| {
            let another = |kind: &&str| {
                let mut object = live.objects.iter().find(|object| object["kind"] == **kind).unwrap().clone();
                object["metadata"]["name"] = json!("x");
                apply(object)
            };
            KINDS.iter().map(another).collect()
        }),
    ]
}

fn deletions() -> Vec<Row> {
    let gone = "a platform that is gone";
    let first_of_each = |live: &crate::live::Live| {
        let first = |kind: &&str| live.objects.iter().find(|object| object["kind"] == **kind).unwrap().clone();
        KINDS.iter().map(first).collect::<Vec<_>>()
    };
    vec![
        row("delete, of each kind", gone, &[Denial::Rbac, guard::WHOLE], move |live| {
            first_of_each(live).iter().map(|object| delete(path_of(object))).collect()
        }),
        row("delete all, of each kind", gone, &[Denial::Rbac, guard::WHOLE], move |live| {
            first_of_each(live).iter().map(|object| delete(collection_of(object))).collect()
        }),
        row("delete with orphans left", "pods that nobody owns", &[Denial::Rbac, guard::WHOLE], |live| {
            vec![delete(format!("{}?propagationPolicy=Orphan", path_of(&live.named("Deployment", DEPLOYMENT))))]
        }),
    ]
}
