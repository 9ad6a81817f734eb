//! Which answers must not lie on disk.

use serde_json::{Map, Value};

use crate::engine::{Answer, Second};

/// Whether a Secret with data is among the objects, in a list, or in any other object: what wraps objects of others knows no bound.
pub(super) fn any(answer: &Answer) -> bool {
    let second = match &answer.second {
        Some(Second::Other(second)) => second.objects.as_slice(),
        Some(Second::Same) | None => &[],
    };
    answer.first.objects.iter().chain(second).any(|object| within(&object.object))
}

fn within(value: &Value) -> bool {
    match value {
        Value::Object(map) => is_one(map) || map.values().any(within),
        Value::Array(items) => items.iter().any(within),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// Of any group; an item of a typed list has no kind of its own.
fn is_one(map: &Map<String, Value>) -> bool {
    let filled = |map: &Map<String, Value>| ["data", "stringData"].iter().any(|field| map.get(*field).is_some_and(|data| !empty(data)));
    match map.get("kind").and_then(Value::as_str) {
        Some("Secret") => filled(map),
        Some("SecretList") => {
            map.get("items").and_then(Value::as_array).into_iter().flatten().any(|item| item.as_object().is_some_and(filled))
        }
        Some(_) | None => false,
    }
}

fn empty(data: &Value) -> bool {
    data.is_null() || data.as_object().is_some_and(Map::is_empty)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_secret_with_data_is_found_wherever_it_is() {
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "data": {"password": "eA=="}});
        let text = json!({"kind": "Secret", "stringData": {"password": "x"}});
        for object in [
            secret.clone(),
            text,
            json!({"kind": "Secret", "data": "no map"}),
            json!({"kind": "List", "items": [{"kind": "ConfigMap"}, secret]}),
            json!({"kind": "SecretList", "items": [{"metadata": {"name": "s"}, "data": {"a": "eA=="}}]}),
            json!({"kind": "Object", "spec": {"forProvider": {"manifest": secret}}}),
        ] {
            assert!(within(&object), "{object}");
        }
        for object in [
            json!({"kind": "Secret", "metadata": {"name": "s"}}),
            json!({"kind": "Secret", "data": null, "stringData": {}}),
            json!({"kind": "ConfigMap", "data": {"kind": "Secret"}}),
            json!({"kind": "SecretList", "items": []}),
        ] {
            assert!(!within(&object), "{object}");
        }
    }
}
