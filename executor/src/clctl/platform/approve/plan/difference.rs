//! The fields in which two objects differ, with a Secret's values masked. The stamps of an approval are no content: an object of which
//! only the stamps change is unchanged.

use std::collections::BTreeSet;

use agent_api::keys;
use agent_api::object::ObjectKey;
use cluster::object::content;
use serde::Serialize;
use serde_json::Value;

use super::{Action, by_name};

/// A field that differs; a side is absent where the field is not there.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub(in super::super) struct FieldChange {
    pub(in super::super) path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in super::super) old: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in super::super) new: Option<Value>,
}

/// Kinds whose content says nothing about what they allow, or is said in words (see `rights`).
const TOLD_BY_NAME: [&str; 7] =
    ["Namespace", "ServiceAccount", "CustomResourceDefinition", "Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding"];

/// The fields of an object that is to be created, each with its value: what a person agrees to where nothing is live to compare with.
pub(in super::super) fn created(object: &Value) -> Vec<FieldChange> {
    if TOLD_BY_NAME.contains(&ObjectKey::of(object).kind.as_str()) {
        return Vec::new();
    }
    let fields = object.as_object().into_iter().flatten();
    let content = fields.filter(|(key, _)| !matches!(key.as_str(), "apiVersion" | "kind" | "metadata" | "status"));
    content.map(|(key, value)| FieldChange { path: key.clone(), old: None, new: Some(value.clone()) }).collect()
}

/// Compares what is live with what an apply would make of it.
pub(in super::super) fn compare(live: Option<&Value>, result: &Value) -> (Action, Vec<FieldChange>) {
    let Some(live) = live else { return (Action::Create, Vec::new()) };
    let (old, new) = (without_stamps(content(live)), without_stamps(content(result)));
    let fields = fields_of(&old, &new);
    (if fields.is_empty() { Action::Unchanged } else { Action::Change }, fields)
}

/// The fields in which two forms of an object differ; a Secret's values are masked.
pub(in super::super) fn fields_of(old: &Value, new: &Value) -> Vec<FieldChange> {
    let mut fields = Vec::new();
    walk(Some(old), Some(new), &mut String::new(), &mut fields);
    if ObjectKey::of(new).kind == "Secret" {
        fields.iter_mut().for_each(mask);
    }
    fields
}

fn without_stamps(mut object: Value) -> Value {
    let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) else { return object };
    if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) {
        annotations.remove(keys::BUNDLE_SHA256);
        annotations.remove(keys::CONTENT_SHA256);
        if annotations.is_empty() {
            metadata.remove("annotations");
        }
    }
    object
}

/// In a Secret only names are shown; an annotation may hold a copy of the whole (`last-applied-configuration`).
fn mask(field: &mut FieldChange) {
    let open = ["kind", "type", "immutable", "metadata.labels"].iter().any(|prefix| field.path.starts_with(prefix));
    if !open {
        for value in [&mut field.old, &mut field.new].into_iter().flatten() {
            *value = Value::from("[secret]");
        }
    }
}

fn walk(old: Option<&Value>, new: Option<&Value>, path: &mut String, fields: &mut Vec<FieldChange>) {
    match (old, new) {
        (Some(old), Some(new)) if old == new => {}
        (Some(Value::Object(old)), Some(Value::Object(new))) => {
            let keys: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
            for key in keys {
                let length = path.len();
                push_key(path, key);
                walk(old.get(key), new.get(key), path, fields);
                path.truncate(length);
            }
        }
        (Some(Value::Array(old)), Some(Value::Array(new))) => match (by_name(old), by_name(new)) {
            (Some(old), Some(new)) if !old.is_empty() || !new.is_empty() => {
                let names: BTreeSet<&str> = old.keys().chain(new.keys()).copied().collect();
                for name in names {
                    let length = path.len();
                    path.push_str(&format!("[name={name}]"));
                    walk(old.get(name).copied(), new.get(name).copied(), path, fields);
                    path.truncate(length);
                }
            }
            _ => {
                for i in 0..old.len().max(new.len()) {
                    let length = path.len();
                    path.push_str(&format!("[{i}]"));
                    walk(old.get(i), new.get(i), path, fields);
                    path.truncate(length);
                }
            }
        },
        (None, None) => {}
        (old, new) => fields.push(FieldChange { path: path.clone(), old: old.cloned(), new: new.cloned() }),
    }
}

/// A key with dots or slashes is put in brackets, so that a path can be read back.
fn push_key(path: &mut String, key: &str) {
    if key.contains(['.', '/', '[', ' ']) {
        path.push_str(&format!("[{key}]"));
    } else {
        if !path.is_empty() {
            path.push('.');
        }
        path.push_str(key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(old: Value, new: Value, expected: &[&str]) {
        let (action, fields) = compare(Some(&old), &new);
        let side = |value: &Option<Value>| value.as_ref().map_or("-".to_owned(), ToString::to_string);
        let found: Vec<String> = fields.iter().map(|field| format!("{} {} {}", field.path, side(&field.old), side(&field.new))).collect();
        assert_eq!(found, expected);
        assert_eq!(action, if expected.is_empty() { Action::Unchanged } else { Action::Change });
    }

    #[test]
    fn fields_are_named_with_both_sides() {
        check(
            json!({"rules": [{"verbs": ["get"]}], "spec": {"containers": [{"name": "a", "image": "x"}, {"name": "b"}]}}),
            json!({"rules": [{"verbs": ["get", "list"]}], "spec": {"containers": [{"name": "b"}, {"name": "a", "image": "y"}]}, "n": 1}),
            &["n - 1", r#"rules[0].verbs[1] - "list""#, r#"spec.containers[name=a].image "x" "y""#],
        );
        check(
            json!({"metadata": {"labels": {"a.io/b": "1"}}, "data": {"k": "v"}}),
            json!({"metadata": {"labels": {"a.io/b": "2"}}}),
            &[r#"data {"k":"v"} -"#, r#"metadata.labels[a.io/b] "1" "2""#],
        );
        assert_eq!(compare(None, &json!({})), (Action::Create, vec![]));
    }

    #[test]
    fn what_is_created_is_shown_by_its_content() {
        let class = json!({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "a"}, "provisioner": "p"});
        assert_eq!(created(&class), [FieldChange { path: "provisioner".into(), old: None, new: Some("p".into()) }]);
        let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "rules": []});
        assert_eq!(created(&role), []);
    }

    #[test]
    fn stamps_and_what_the_api_server_keeps_are_no_content() {
        check(
            json!({"metadata": {"name": "a", "resourceVersion": "1", "generation": 1}, "status": {"x": 1}}),
            json!({"metadata": {"name": "a", "resourceVersion": "1", "generation": 2, "annotations":
                {"clicklink.io/bundle-sha256": "s", "clicklink.io/content-sha256": "c"}}}),
            &[],
        );
    }

    #[test]
    fn a_secret_shows_names_only() {
        let secret = |value: &str| {
            json!({"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "data": {"k": value},
                "metadata": {"labels": {"l": value}, "annotations": {"last": value}}})
        };
        check(
            secret("b2xk"),
            secret("bmV3"),
            &[
                r#"data.k "[secret]" "[secret]""#,
                r#"metadata.annotations.last "[secret]" "[secret]""#,
                r#"metadata.labels.l "b2xk" "bmV3""#,
            ],
        );
    }
}
