//! The names of referenced Secrets, put into the values that the chart is rendered with. Only names: whether key and Secret are there is asked
//! elsewhere, and no value is read.

use cluster::crd::managed_component::SecretRef;
use serde_json::{Map, Value};

/// A value path that leads through something that is no map.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("secretRefs: `{path}` cannot be set: `{at}` is no map in values")]
pub struct NoMap {
    /// The whole path.
    pub path: String,
    /// The part that is in the way.
    pub at: String,
}

/// Values with each Secret's name at its value path; maps on the way are made.
///
/// # Errors
/// See [`NoMap`].
pub fn with_secret_names(values: &Map<String, Value>, references: &[SecretRef]) -> Result<Map<String, Value>, NoMap> {
    let mut values = values.clone();
    for reference in references {
        put(&mut values, reference)?;
    }
    Ok(values)
}

fn put(values: &mut Map<String, Value>, reference: &SecretRef) -> Result<(), NoMap> {
    let path = &reference.value_path;
    let (parents, last) = path.rsplit_once('.').map_or((None, path.as_str()), |(parents, last)| (Some(parents), last));
    let mut map = values;
    let mut at = String::new();
    for key in parents.into_iter().flat_map(|parents| parents.split('.')) {
        if !at.is_empty() {
            at.push('.');
        }
        at.push_str(key);
        let entry = map.entry(key).or_insert_with(|| Value::Object(Map::new()));
        if entry.is_null() {
            *entry = Value::Object(Map::new());
        }
        map = entry.as_object_mut().ok_or_else(|| NoMap { path: path.clone(), at: at.clone() })?;
    }
    map.insert(last.to_owned(), Value::from(reference.secret_name.as_str()));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(values: Value, path: &str, expected: Result<Value, &str>) {
        let reference = SecretRef { secret_name: "redis-auth".into(), key: "password".into(), value_path: path.into() };
        let found = with_secret_names(values.as_object().unwrap(), &[reference]).map(Value::Object);
        assert_eq!(found.map_err(|error| error.at), expected.map_err(str::to_owned), "{path}");
    }

    #[test]
    fn the_name_stands_at_the_path() {
        check(json!({}), "auth.existingSecret", Ok(json!({"auth": {"existingSecret": "redis-auth"}})));
        check(
            json!({"auth": {"enabled": true}}),
            "auth.existingSecret",
            Ok(json!({"auth": {"enabled": true, "existingSecret": "redis-auth"}})),
        );
        check(json!({"auth": null}), "auth.existingSecret", Ok(json!({"auth": {"existingSecret": "redis-auth"}})));
        check(json!({"secret": "old"}), "secret", Ok(json!({"secret": "redis-auth"})));
        check(json!({"a": {"b": 1}}), "a.b.c", Err("a.b"));
        check(json!({"a": [1]}), "a.b", Err("a"));
    }
}
