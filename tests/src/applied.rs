//! What one field manager applied to an object, read back from the object's own record of it (`managedFields`): the same bytes can be
//! applied again without a chart to render.

use serde_json::{Map, Value};

/// The object with nothing but identity and the fields that `manager` applied; `None` where it applied nothing.
#[must_use]
pub fn applied_by(live: &Value, manager: &str) -> Option<Value> {
    let entries = live.pointer("/metadata/managedFields")?.as_array()?;
    let entry = entries.iter().find(|entry| entry["manager"] == manager && entry["operation"] == "Apply")?;
    let mut applied = owned(live, entry.get("fieldsV1")?);
    for field in ["apiVersion", "kind"] {
        applied[field] = live[field].clone();
    }
    for field in ["name", "namespace"] {
        if let Some(value) = live["metadata"].get(field) {
            applied["metadata"][field] = value.clone();
        }
    }
    Some(applied)
}

/// What of `value` a set of fields owns. A leaf owns all that is below it.
fn owned(value: &Value, fields: &Value) -> Value {
    let below: Vec<(&String, &Value)> = fields.as_object().into_iter().flatten().filter(|(path, _)| *path != ".").collect();
    match value {
        _ if below.is_empty() => value.clone(),
        Value::Array(items) => Value::Array(items.iter().filter_map(|item| owned_item(item, &below)).collect()),
        _ => {
            let named = below.into_iter().filter_map(|(path, inner)| {
                let name = path.strip_prefix("f:")?;
                Some((name.to_owned(), owned(value.get(name)?, inner)))
            });
            Value::Object(named.collect::<Map<_, _>>())
        }
    }
}

/// An item of a list that is told apart by keys (`k:`) or by its value (`v:`).
fn owned_item(item: &Value, below: &[(&String, &Value)]) -> Option<Value> {
    below.iter().find_map(|(path, inner)| {
        let parse = |text: &str| serde_json::from_str::<Value>(text).ok();
        if let Some(value) = path.strip_prefix("v:") {
            return (parse(value)? == *item).then(|| item.clone());
        }
        let keys = parse(path.strip_prefix("k:")?)?;
        let same = keys.as_object()?.iter().all(|(name, value)| item.get(name) == Some(value));
        same.then(|| {
            let mut owned = owned(item, inner);
            for (name, value) in keys.as_object().into_iter().flatten() {
                owned[name] = value.clone();
            }
            owned
        })
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::applied_by;

    #[test]
    fn only_what_the_manager_applied_is_left() {
        let live = json!({
            "apiVersion": "v1", "kind": "Service",
            "metadata": {"name": "a", "namespace": "n", "uid": "u", "labels": {"own": "1", "other": "2"}, "finalizers": ["x", "y"],
                "managedFields": [
                    {"manager": "other", "operation": "Update", "fieldsV1": {"f:metadata": {"f:labels": {"f:other": {}}}}},
                    {"manager": "ours", "operation": "Apply", "fieldsV1": {
                        "f:metadata": {"f:labels": {"f:own": {}}, "f:finalizers": {"v:\"y\"": {}}},
                        "f:spec": {"f:selector": {}, "f:ports": {
                            "k:{\"port\":1,\"protocol\":\"TCP\"}": {".": {}, "f:port": {}, "f:name": {}}}}}},
                ]},
            "spec": {"clusterIP": "10.0.0.1", "selector": {"app": "x"},
                "ports": [{"port": 1, "protocol": "TCP", "name": "p", "nodePort": 30000}, {"port": 2, "protocol": "TCP"}]},
        });
        let expected = json!({
            "apiVersion": "v1", "kind": "Service",
            "metadata": {"name": "a", "namespace": "n", "labels": {"own": "1"}, "finalizers": ["y"]},
            "spec": {"selector": {"app": "x"}, "ports": [{"port": 1, "protocol": "TCP", "name": "p"}]},
        });
        assert_eq!(applied_by(&live, "ours"), Some(expected));
        assert_eq!(applied_by(&live, "nobody"), None);
    }
}
