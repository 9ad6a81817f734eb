//! `--take-over`: moves the ownership of fields from other managers to the one that will apply them. What the fields hold stays.
//!
//! A tool that applies whole objects (helm, `kubectl apply` in its old form, another server-side apply) gives up all that it applied, so that what
//! the bundle does not have vanishes with the next apply; anybody else (an autoscaler, an edit by hand) gives up the fields in conflict.

use std::collections::BTreeMap;

use agent_api::names::FIELD_MANAGER_APPROVE;
use agent_api::object::RenderedObject;
use cluster::object;
use cluster::{Client, ClusterError};
use serde_json::{Map, Value, json};

/// Managers that apply whole objects without server-side apply.
const WHOLE: [&str; 3] = ["kubectl-client-side-apply", "helm", "before-first-apply"];

/// Moves what a person agreed to, of one half, to the manager that applies it.
pub(super) async fn all(
    client: &Client,
    half: &[RenderedObject],
    taken: &BTreeMap<String, Vec<(String, String)>>,
    to: &str,
) -> Result<(), ClusterError> {
    for rendered in half {
        if let Some(conflicts) = taken.get(&rendered.key().to_string()) {
            take(client, &rendered.object, conflicts, to).await?;
        }
    }
    Ok(())
}

/// Moves what is in conflict, (manager, field) of each, to `to`. An object that is gone meanwhile is nobody's.
pub(super) async fn take(client: &Client, object: &Value, conflicts: &[(String, String)], to: &str) -> Result<(), ClusterError> {
    object::modify(client, object, FIELD_MANAGER_APPROVE, |live| moved(live, conflicts, to)).await.map(drop)
}

/// The object with its ownership moved; `None` where nobody named owns anything.
pub(super) fn moved(live: &Value, conflicts: &[(String, String)], to: &str) -> Option<Value> {
    let mut object = live.clone();
    let entries = object.pointer_mut("/metadata/managedFields")?.as_array_mut()?;
    let mut given = Map::new();
    let mut kept = Vec::new();
    let mut changed = false;
    for mut entry in std::mem::take(entries) {
        let text = |field: &str| entry.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
        let (manager, operation, subresource) = (text("manager"), text("operation"), text("subresource"));
        let fields: Vec<&str> = conflicts.iter().filter(|(owner, _)| *owner == manager).map(|(_, field)| field.as_str()).collect();
        let whole = subresource.is_empty() && (operation == "Apply" || WHOLE.contains(&manager.as_str()));
        if manager == to || fields.is_empty() {
            kept.push(entry);
            continue;
        }
        changed = true;
        let Some(tree) = entry.get_mut("fieldsV1").and_then(Value::as_object_mut) else { continue };
        if whole {
            merge(&mut given, std::mem::take(tree));
        } else {
            remove(tree, "", &fields);
            if !tree.is_empty() {
                kept.push(entry);
            }
        }
    }
    let version = live.get("apiVersion").cloned().unwrap_or_default();
    receive(&mut kept, to, given, &version);
    *object.pointer_mut("/metadata/managedFields")?.as_array_mut()? = kept;
    changed.then_some(object)
}

/// Adds fields to what `to` has applied.
fn receive(entries: &mut Vec<Value>, to: &str, given: Map<String, Value>, version: &Value) {
    if given.is_empty() {
        return;
    }
    let is_ours = |entry: &&mut Value| entry.get("manager") == Some(&to.into()) && entry.get("operation") == Some(&"Apply".into());
    match entries.iter_mut().find(is_ours).and_then(|entry| entry.get_mut("fieldsV1")?.as_object_mut()) {
        Some(tree) => merge(tree, given),
        None => {
            entries.push(json!({"manager": to, "operation": "Apply", "apiVersion": version, "fieldsType": "FieldsV1", "fieldsV1": given}))
        }
    }
}

fn merge(into: &mut Map<String, Value>, from: Map<String, Value>) {
    for (key, value) in from {
        match (into.get_mut(&key).and_then(Value::as_object_mut), value) {
            (Some(tree), Value::Object(more)) => merge(tree, more),
            (_, value) => drop(into.insert(key, value)),
        }
    }
}

/// Removes fields from a set, and the parents that held nothing else: an empty parent would own the whole field.
fn remove(tree: &mut Map<String, Value>, path: &str, fields: &[&str]) {
    tree.retain(|key, value| {
        let path = format!("{path}{}", element(key));
        if fields.contains(&path.as_str()) {
            return false;
        }
        match value.as_object_mut() {
            Some(children) if !children.is_empty() => {
                remove(children, &path, fields);
                !children.is_empty()
            }
            Some(_) | None => true,
        }
    });
}

/// A key of `fieldsV1` as the API server writes it in a conflict: `.spec`, `[name="a"]`, `[="a"]`, `[0]`.
fn element(key: &str) -> String {
    match key.split_once(':') {
        Some(("f", name)) => format!(".{name}"),
        Some(("k", keys)) => {
            let keys: Map<String, Value> = serde_json::from_str(keys).unwrap_or_default();
            format!("[{}]", keys.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(","))
        }
        Some(("v", value)) => format!("[={value}]"),
        Some(("i", index)) => format!("[{index}]"),
        // `.`: the parent itself.
        Some(_) | None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owned(manager: &str, operation: &str, fields: Value) -> Value {
        json!({"manager": manager, "operation": operation, "apiVersion": "apps/v1", "fieldsType": "FieldsV1", "fieldsV1": fields})
    }

    fn check(before: Value, conflicts: &[(&str, &str)], expected: Option<Value>) {
        let object = json!({"apiVersion": "apps/v1", "metadata": {"managedFields": before}, "spec": {"replicas": 3}});
        let conflicts: Vec<_> = conflicts.iter().map(|(manager, field)| ((*manager).to_owned(), (*field).to_owned())).collect();
        let after = moved(&object, &conflicts, "clicklink-executor");
        assert_eq!(after.as_ref().map(|object| &object["spec"]), expected.as_ref().map(|_| &object["spec"]), "content stays");
        assert_eq!(after.map(|object| object["metadata"]["managedFields"].clone()), expected);
    }

    #[test]
    fn an_edit_gives_up_the_fields_in_conflict() {
        let fields = json!({"f:spec": {"f:replicas": {}, "f:template": {"f:spec": {"f:containers":
            {"k:{\"name\":\"main\"}": {".": {}, "f:image": {}, "f:tty": {}}}}}}, "f:metadata": {"f:labels": {"f:a.io/b": {}}}});
        let left = json!({"f:spec": {"f:template": {"f:spec": {"f:containers": {"k:{\"name\":\"main\"}": {".": {}, "f:tty": {}}}}}}});
        check(
            json!([owned("kubectl-edit", "Update", fields), owned("other", "Update", json!({"f:spec": {"f:replicas": {}}}))]),
            &[
                ("kubectl-edit", ".spec.replicas"),
                ("kubectl-edit", ".spec.template.spec.containers[name=\"main\"].image"),
                ("kubectl-edit", ".metadata.labels.a.io/b"),
            ],
            Some(json!([owned("kubectl-edit", "Update", left), owned("other", "Update", json!({"f:spec": {"f:replicas": {}}}))])),
        );
    }

    #[test]
    fn a_tool_that_applies_whole_objects_gives_up_all() {
        let theirs = json!({"f:data": {"f:a": {}, "f:gone": {}}});
        let ours = owned("clicklink-executor", "Apply", json!({"f:data": {".": {}, "f:b": {}}}));
        let both = owned("clicklink-executor", "Apply", json!({"f:data": {".": {}, "f:a": {}, "f:b": {}, "f:gone": {}}}));
        for (manager, operation) in [("helm", "Update"), ("kubectl-client-side-apply", "Update"), ("argocd", "Apply")] {
            check(json!([owned(manager, operation, theirs.clone()), ours]), &[(manager, ".data.a")], Some(json!([both])));
            let alone = owned("clicklink-executor", "Apply", theirs.clone());
            check(json!([owned(manager, operation, theirs.clone())]), &[(manager, ".data.a")], Some(json!([alone])));
        }
    }

    #[test]
    fn a_status_and_strangers_are_left_alone() {
        let mut status = owned("controller", "Apply", json!({"f:status": {"f:x": {}}, "f:spec": {"f:replicas": {}}}));
        status["subresource"] = json!("status");
        let mut left = status.clone();
        left["fieldsV1"] = json!({"f:status": {"f:x": {}}});
        check(json!([status]), &[("controller", ".spec.replicas")], Some(json!([left])));
        check(json!([owned("a", "Update", json!({"f:x": {}}))]), &[("b", ".x")], None);
        check(json!([owned("clicklink-executor", "Apply", json!({"f:x": {}}))]), &[("clicklink-executor", ".x")], None);
    }

    #[test]
    fn elements_are_written_as_in_conflicts() {
        for (key, expected) in [
            ("f:spec", ".spec"),
            ("f:a:b", ".a:b"),
            ("k:{\"containerPort\":80,\"protocol\":\"TCP\"}", "[containerPort=80,protocol=\"TCP\"]"),
            ("v:\"x\"", "[=\"x\"]"),
            ("i:3", "[3]"),
            (".", ""),
        ] {
            assert_eq!(element(key), expected);
        }
    }
}
