//! The fields in which two forms of an object differ, each by its path. Pure; whoever shows them masks what is secret.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::Value;

/// A field that differs; a side is absent where the field is not there.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct FieldChange {
    pub path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub old: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub new: Option<Value>,
}

/// All fields that differ, in the order of their paths; lists whose items have names are compared by them, whatever their order.
#[must_use]
pub fn differing(old: &Value, new: &Value) -> Vec<FieldChange> {
    let mut fields = Vec::new();
    walk(Some(old), Some(new), &mut String::new(), &mut fields);
    fields
}

/// A list whose items all have a name of their own.
#[must_use]
pub fn by_name(items: &[Value]) -> Option<BTreeMap<&str, &Value>> {
    let named: Option<BTreeMap<&str, &Value>> =
        items.iter().map(|item| item.get("name").and_then(Value::as_str).map(|name| (name, item))).collect();
    named.filter(|named| named.len() == items.len())
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
        let side = |value: &Option<Value>| value.as_ref().map_or("-".to_owned(), ToString::to_string);
        let fields = differing(&old, &new);
        let found: Vec<String> = fields.iter().map(|field| format!("{} {} {}", field.path, side(&field.old), side(&field.new))).collect();
        assert_eq!(found, expected);
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
    }
}
