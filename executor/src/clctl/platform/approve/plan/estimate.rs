//! What an apply would make of a live object, worked out here: for a person whom the API server does not let ask, and for what must
//! be replaced, where it does not answer.
//!
//! As server-side apply merges: what is rendered is set, what the same manager applied before and renders no more goes, the rest stays.
//! Not known here are the API server's defaults, its forms of quantities, and what admission adds.

use agent_api::object::is_zero;
use executor_core::difference::by_name;
use serde_json::{Map, Value, json};

/// The live object as it would be.
pub(in super::super) fn applied(live: &Value, rendered: &Value, manager: &str) -> Value {
    let entries = live.pointer("/metadata/managedFields").and_then(Value::as_array).into_iter().flatten();
    let text = |entry: &Value, field: &str| entry.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
    let mut ours = entries.filter(|entry| text(entry, "manager") == manager && text(entry, "operation") == "Apply");
    let owned = ours.find_map(|entry| entry.get("fieldsV1"));
    merge(live, rendered, owned)
}

/// `owned` are the fields of the manager in the form of `fieldsV1`, `None` where it has none here.
fn merge(live: &Value, wanted: &Value, owned: Option<&Value>) -> Value {
    match (live, wanted) {
        (Value::Object(live), Value::Object(wanted)) => map(live, wanted, owned).into(),
        (Value::Array(live), Value::Array(wanted)) => list(live, wanted, owned).into(),
        (live, wanted) if is_zero(live) && is_zero(wanted) => live.clone(),
        (Value::Number(found), Value::Number(wanted)) if found.as_f64() == wanted.as_f64() => live.clone(),
        _ => wanted.clone(),
    }
}

fn map(live: &Map<String, Value>, wanted: &Map<String, Value>, owned: Option<&Value>) -> Map<String, Value> {
    let mut result = live.clone();
    for (key, value) in wanted {
        let below = owned.and_then(|owned| owned.get(format!("f:{key}")));
        match live.get(key) {
            Some(found) => drop(result.insert(key.clone(), merge(found, value, below))),
            // The API server drops optional fields with a zero value.
            None if is_zero(value) => {}
            None => drop(result.insert(key.clone(), value.clone())),
        }
    }
    for (key, found) in live.iter().filter(|(key, _)| !wanted.contains_key(*key)) {
        if let Some(below) = owned.and_then(|owned| owned.get(format!("f:{key}"))) {
            match without(found, below) {
                Some(rest) => drop(result.insert(key.clone(), rest)),
                None => drop(result.remove(key)),
            }
        }
    }
    result
}

/// A list with names is merged by them, as most with names are by the API server; any other is one value.
fn list(live: &[Value], wanted: &[Value], owned: Option<&Value>) -> Vec<Value> {
    let whole = owned.and_then(Value::as_object).is_some_and(Map::is_empty);
    let (Some(found), Some(_)) = (by_name(live), by_name(wanted)) else {
        return match live.len() == wanted.len() {
            true => live.iter().zip(wanted).map(|(live, wanted)| merge(live, wanted, None)).collect(),
            false => wanted.to_vec(),
        };
    };
    let name = |item: &Value| item.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
    let below = |name: &str| owned.and_then(|owned| owned.get(format!("k:{}", json!({"name": name}))));
    let merged = wanted.iter().map(|item| match found.get(name(item).as_str()) {
        Some(live) => merge(live, item, below(&name(item))),
        None => item.clone(),
    });
    let wanted_names: Vec<String> = wanted.iter().map(name).collect();
    let stays = |item: &&Value| !whole && !wanted_names.contains(&name(item)) && below(&name(item)).is_none();
    merged.chain(live.iter().filter(stays).cloned()).collect()
}

/// A value without the fields that are owned; `None` where nothing is left.
fn without(value: &Value, owned: &Value) -> Option<Value> {
    let (Value::Object(map), Some(owned)) = (value, owned.as_object().filter(|owned| !owned.is_empty())) else { return None };
    let rest = map.iter().filter_map(|(key, value)| {
        let rest = match owned.get(&format!("f:{key}")) {
            Some(below) => without(value, below)?,
            None => value.clone(),
        };
        Some((key.clone(), rest))
    });
    let rest: Map<String, Value> = rest.collect();
    (!rest.is_empty()).then_some(rest.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(live: Value, rendered: Value, owned: Value, expected: Value) {
        let mut live = live;
        live["metadata"] = json!({"managedFields": [
            {"manager": "other", "operation": "Apply", "fieldsV1": {"f:theirs": {}}},
            {"manager": "us", "operation": "Update", "fieldsV1": {"f:theirs": {}}},
            {"manager": "us", "operation": "Apply", "fieldsV1": owned}]});
        let mut found = applied(&live, &rendered, "us");
        found.as_object_mut().unwrap().remove("metadata");
        assert_eq!(found, expected, "{rendered}");
    }

    #[test]
    fn what_is_rendered_is_set_and_what_others_set_stays() {
        check(json!({"a": {"b": 1, "c": 2}}), json!({"a": {"b": 3}}), json!({}), json!({"a": {"b": 3, "c": 2}}));
        check(json!({"theirs": 1}), json!({"a": 1}), json!({}), json!({"theirs": 1, "a": 1}));
        check(json!({"a": 1}), json!({"a": 1.0, "zero": 0, "none": [], "no": false}), json!({}), json!({"a": 1}));
    }

    #[test]
    fn what_was_applied_before_and_is_rendered_no_more_goes() {
        check(json!({"a": 1, "b": 2}), json!({"a": 1}), json!({"f:a": {}, "f:b": {}}), json!({"a": 1}));
        check(json!({"l": {"x": 1, "y": 2}}), json!({}), json!({"f:l": {"f:x": {}}}), json!({"l": {"y": 2}}));
        check(json!({"l": {"x": 1}}), json!({}), json!({"f:l": {"f:x": {}}}), json!({}));
    }

    #[test]
    fn lists_with_names_are_merged_and_others_are_one_value() {
        let live = json!({"c": [{"name": "a", "image": "1", "policy": "Always"}, {"name": "sidecar"}, {"name": "old"}]});
        let owned = json!({"f:c": {"k:{\"name\":\"a\"}": {"f:image": {}}, "k:{\"name\":\"old\"}": {}}});
        let expected = json!({"c": [{"name": "a", "image": "2", "policy": "Always"}, {"name": "b"}, {"name": "sidecar"}]});
        check(live, json!({"c": [{"name": "a", "image": "2"}, {"name": "b"}]}), owned, expected);
        // Subjects have names, and are one value all the same.
        check(
            json!({"s": [{"name": "a", "apiGroup": "g"}, {"name": "b"}]}),
            json!({"s": [{"name": "a"}]}),
            json!({"f:s": {}}),
            json!({"s": [{"name": "a", "apiGroup": "g"}]}),
        );
        check(json!({"l": [1, 2, 3]}), json!({"l": [1, 4]}), json!({"f:l": {}}), json!({"l": [1, 4]}));
    }
}
