//! The fields in which two objects differ, with a Secret's values masked. The stamps of an approval are no content: an object of which
//! only the stamps change is unchanged.

use agent_api::keys;
use agent_api::object::ObjectKey;
use cluster::object::content;
use executor_core::difference::{FieldChange, differing};
use serde_json::Value;

use super::Action;

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
    let mut fields = differing(old, new);
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
    fn what_is_not_there_is_created() {
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
