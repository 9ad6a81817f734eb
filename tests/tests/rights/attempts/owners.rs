//! What other managers own on the bundle's objects: an administrator's labels, an autoscaler's replicas, a controller's finalizer.
//!
//! A patch that only removes leaves no trace of its own in `managedFields`, and may name `managedFields` itself.

use agent_api::names::FIELD_MANAGER_EXECUTOR;
use serde_json::{Value, json};

use super::pods::DEPLOYMENT;
use super::{guard, pin};
use crate::ask::{JSON_PATCH, apply_as, as_executor, ask, force, merge, path_of, put};
use crate::live::Live;
use crate::row::{Request, Row, row};
use reqwest::Method;

/// What an administrator put on [`DEPLOYMENT`].
pub(crate) const LABEL: &str = "example.com/team";
/// Another one, that the token's bearer applied as well, with the same value: that much is no change.
pub(crate) const SHARED: &str = "example.com/cost-centre";
pub(crate) const ANNOTATION: &str = "example.com/contact";

const TAKEN: &str = "what an administrator or a controller goes by, gone";

fn patch(body: Value) -> impl Fn(&Live) -> Vec<Request> + 'static {
    move |live| vec![merge(as_executor(&path_of(&live.named("Deployment", DEPLOYMENT))), body.clone())]
}

fn managers(change: fn(&mut Vec<Value>)) -> impl Fn(&Live) -> Vec<Request> + 'static {
    move |live| {
        let mut entries = live.whole("Deployment", DEPLOYMENT)["metadata"]["managedFields"].as_array().unwrap().clone();
        change(&mut entries);
        patch(json!({"metadata": {"managedFields": entries}}))(live)
    }
}

fn is_ours(entry: &Value) -> bool {
    entry["manager"] == FIELD_MANAGER_EXECUTOR
}

pub(super) fn rows() -> Vec<Row> {
    let mut rows = removed();
    rows.extend(forced());
    rows.extend(recorded());
    rows.extend(kept());
    rows
}

fn removed() -> Vec<Row> {
    vec![
        row(
            "an administrator's label removed",
            TAKEN,
            &[pin::REMOVED, guard::OTHERS],
            patch(json!({"metadata": {"labels": {LABEL: null}}})),
        ),
        row("an administrator's annotation removed", TAKEN, &[pin::REMOVED, guard::OTHERS], |live| {
            let path = as_executor(&path_of(&live.named("Deployment", DEPLOYMENT)));
            let operations = json!([{"op": "remove", "path": format!("/metadata/annotations/{}", ANNOTATION.replace('/', "~1"))}]);
            vec![ask(Method::PATCH, path).body(JSON_PATCH, operations)]
        }),
        row(
            "an administrator's label applied with its value, then removed",
            TAKEN,
            &[guard::OTHERS],
            patch(json!({"metadata": {"labels": {SHARED: null}}})),
        ),
        row(
            "an administrator's annotation on the pods removed",
            "pods that restart, or lose what an administrator gave them",
            &[guard::OTHERS],
            patch(json!({"spec": {"template": {"metadata": {"annotations": {"kubectl.kubernetes.io/restartedAt": null}}}}})),
        ),
        row("all labels of others removed", TAKEN, &[guard::MANNER, pin::LABELS, pin::REMOVED, guard::OTHERS, guard::LABEL], |live| {
            let labels = live.named("Deployment", DEPLOYMENT)["metadata"]["labels"].clone();
            let path = path_of(&live.named("Deployment", DEPLOYMENT));
            let operations = json!([{"op": "replace", "path": "/metadata/labels", "value": labels}]);
            vec![ask(Method::PATCH, as_executor(&path)).body(JSON_PATCH, operations)]
        }),
    ]
}

fn forced() -> Vec<Row> {
    let forced = |change: fn(&mut Value)| move |live: &Live| vec![force(live.changed("Deployment", DEPLOYMENT, change))];
    vec![
        row(
            "an administrator's label taken by force, with another value",
            TAKEN,
            &[pin::LABELS, guard::OTHERS],
            forced(|object| {
                object["metadata"]["labels"][LABEL] = json!("theirs");
            }),
        ),
        row(
            "an administrator's annotation taken by force",
            TAKEN,
            &[pin::ANNOTATIONS, guard::OTHERS],
            forced(|object| {
                object["metadata"]["annotations"][ANNOTATION] = json!("theirs");
            }),
        ),
        // The scale subresource leaves no owner of replicas that nobody applied.
        row(
            "an autoscaler's replicas taken by force",
            "a platform that is too small",
            &[pin::SPEC],
            forced(|object| {
                object["spec"]["replicas"] = json!(1);
            }),
        ),
        row("the approved replicas, by force over a person's", "to undo by token what a person did by hand", &[guard::OTHERS], |live| {
            vec![force(live.named("Deployment", "snapshot-controller"))]
        }),
        row("the same as the approving manager", "what a person's `approve` owns", &[guard::MANNER], |live| {
            vec![apply_as(live.named("Deployment", "snapshot-controller"), "clicklink-approve&force=true")]
        }),
    ]
}

fn recorded() -> Vec<Row> {
    let blind = "a next update that takes from others without a conflict";
    vec![
        row("others' entries removed from `managedFields`", blind, &[guard::OTHERS], managers(|entries| entries.retain(is_ours))),
        row(
            "others' entries emptied",
            blind,
            &[guard::OTHERS],
            managers(|entries| {
                entries.iter_mut().filter(|entry| !is_ours(entry) && entry["subresource"].is_null()).for_each(|entry| {
                    entry["fieldsV1"] = json!({"f:metadata": {"f:labels": {}}});
                });
            }),
        ),
        row(
            "an entry of another manager made up",
            "a next update that is refused as a conflict",
            &[guard::OTHERS],
            managers(|entries| {
                entries.push(json!({"manager": "kubectl", "operation": "Update", "apiVersion": "apps/v1", "time": "2026-01-01T00:00:00Z",
                "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {"f:template": {"f:spec": {"f:dnsPolicy": {}}}}}}));
            }),
        ),
        row(
            "an `Update` of the executor's made up",
            "a plain update that passes for an apply",
            &[guard::MANNER],
            managers(|entries| {
                entries.push(json!({"manager": FIELD_MANAGER_EXECUTOR, "operation": "Update", "apiVersion": "apps/v1",
                "time": "2026-01-01T00:00:00Z", "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {"f:paused": {}}}}));
            }),
        ),
        row("the executor's own entry removed", "the same", &[guard::MANNER], managers(|entries| entries.retain(|entry| !is_ours(entry)))),
        row("`managedFields` cleared", blind, &[guard::MANNER], patch(json!({"metadata": {"managedFields": [{}]}}))),
        row("content changed, and an apply made up", "a plain update that passes for an apply", &[guard::MANNER, pin::SPEC], |live| {
            let entries = live.whole("Deployment", DEPLOYMENT)["metadata"]["managedFields"].clone();
            patch(json!({"metadata": {"managedFields": entries}, "spec": {"paused": true}}))(live)
        }),
    ]
}

fn kept() -> Vec<Row> {
    let hold = "an object that cannot be deleted";
    let owner =
        json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "kube-root-ca.crt", "uid": "00000000-0000-4000-8000-000000000000"}]);
    let changed = |change: fn(&mut Value, Value), value: Value| {
        move |live: &Live| {
            let of = |kind: &str, name: &str| live.changed(kind, name, |object| change(object, value.clone()));
            let present = force(of("ConfigMap", "monitoring-collectors"));
            vec![present, force(of("Deployment", DEPLOYMENT)), force(of("Job", "monitoring-collectors-migration")).while_gone()]
        }
    };
    let finalizers = |object: &mut Value, value: Value| put(object, "/metadata/finalizers", value);
    let owners = |object: &mut Value, value: Value| put(object, "/metadata/ownerReferences", value);
    vec![
        row("a finalizer", hold, &[guard::OWNERS], changed(finalizers, json!(["example.com/hold"]))),
        row("`foregroundDeletion` as a finalizer", hold, &[guard::OWNERS], changed(finalizers, json!(["foregroundDeletion"]))),
        row("a controller's finalizer removed", "a balancer that nobody takes down", &[guard::OWNERS, guard::OTHERS], |live| {
            let path = as_executor(&path_of(&live.named("Service", "monitoring-collectors")));
            vec![merge(path, json!({"metadata": {"finalizers": null}}))]
        }),
        row("an owner", "an object that ends with another", &[guard::OWNERS], changed(owners, owner)),
    ]
}
