//! Rendered objects: what a chart becomes, normalised, with the place it came from.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::digest::Sha256;
use crate::kind::{Half, Kind};

/// Identity of an object: group, kind, namespace (empty where there is none), name.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct ObjectKey {
    /// API group, empty for the core group.
    pub group: String,
    /// Kind.
    pub kind: String,
    /// Namespace, empty for a cluster-scoped object.
    pub namespace: String,
    /// Name.
    pub name: String,
}

impl ObjectKey {
    /// The identity of a JSON object; missing parts are empty.
    #[must_use]
    pub fn of(object: &Value) -> Self {
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
        let api_version = text("/apiVersion");
        let group = api_version.split_once('/').map(|(group, _)| group.to_owned()).unwrap_or_default();
        Self { group, kind: text("/kind"), namespace: text("/metadata/namespace"), name: text("/metadata/name") }
    }

    /// The row of its kind, `None` for a kind that a bundle may not hold.
    #[must_use]
    pub fn row(&self) -> Option<&'static Kind> {
        Kind::find(&self.group, &self.kind)
    }
}

impl fmt::Display for ObjectKey {
    /// `Deployment.apps clickhouse-platform/operator`, as kubectl names resources. On one line whatever the parts hold: they come from
    /// charts and manifests, and an error that names an object must not become two lines.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let dot = if self.group.is_empty() { "" } else { "." };
        let slash = if self.namespace.is_empty() { "" } else { "/" };
        for part in [&self.kind, dot, &self.group, " ", &self.namespace, slash, &self.name] {
            for c in part.chars() {
                if c.is_control() { write!(f, "{}", c.escape_unicode())? } else { write!(f, "{c}")? }
            }
        }
        Ok(())
    }
}

/// When a hook object is applied, relative to its component's other objects.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum HookPhase {
    /// pre-install, pre-upgrade: runs to completion before.
    Pre,
    /// post-install, post-upgrade: after them.
    Post,
}

/// A hook's place in the order: lower weights first (Helm's `helm.sh/hook-weight`).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Hook {
    /// Before or after.
    pub phase: HookPhase,
    /// Weight, 0 where the chart gives none.
    pub weight: i64,
}

/// A normalised object of a bundle. Its JSON is exactly what is digested and applied, stamps aside.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct RenderedObject {
    /// The component that rendered it; `None` for the bundle's own `objects` and added Namespaces.
    pub component: Option<String>,
    /// Template (`operator/templates/deployment.yaml`), or the place in the manifest (`objects[0]`).
    pub template: String,
    /// Set for hooks that run.
    pub hook: Option<Hook>,
    /// The object.
    pub object: Value,
}

impl RenderedObject {
    /// Identity.
    #[must_use]
    pub fn key(&self) -> ObjectKey {
        ObjectKey::of(&self.object)
    }

    /// The half; `None` for a kind in neither.
    #[must_use]
    pub fn half(&self) -> Option<Half> {
        self.key().row().map(|row| row.half)
    }

    /// Digest of the object as rendered, without any stamp.
    #[must_use]
    pub fn digest(&self) -> Sha256 {
        Sha256::of_json(&self.object)
    }
}

/// Digest of a workload half: of the sorted list of its objects' digests, each with its identity; the order of rendering is without effect.
#[must_use]
pub fn workload_digest<'a>(objects: impl IntoIterator<Item = &'a RenderedObject>) -> Sha256 {
    let mut lines: Vec<(ObjectKey, Sha256)> = objects.into_iter().map(|object| (object.key(), object.digest())).collect();
    lines.sort();
    Sha256::of_json(&serde_json::json!(lines))
}

/// The map under `metadata.<field>`, made where it is missing.
pub fn metadata_map<'a>(object: &'a mut Value, field: &str) -> Option<&'a mut Map<String, Value>> {
    let metadata = object.as_object_mut()?.entry("metadata").or_insert_with(|| Value::Object(Map::new()));
    let entry = metadata.as_object_mut()?.entry(field).or_insert_with(|| Value::Object(Map::new()));
    if entry.is_null() {
        *entry = Value::Object(Map::new());
    }
    entry.as_object_mut()
}

/// Null, or a text, list or map without content.
#[must_use]
pub fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(map) => map.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

/// What the API server leaves out when it stores an optional field: a Go zero value (`omitempty`, encoding/json).
#[must_use]
pub fn is_zero(value: &Value) -> bool {
    match value {
        Value::Bool(on) => !on,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::Null | Value::String(_) | Value::Array(_) | Value::Object(_) => is_empty(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn rendered(object: Value) -> RenderedObject {
        RenderedObject { component: None, template: String::new(), hook: None, object }
    }

    #[test]
    fn identity_and_its_text() {
        let key = ObjectKey::of(&json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "n", "namespace": "s"}}));
        assert_eq!(key.to_string(), "Deployment.apps s/n");
        let key = ObjectKey::of(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"}}));
        assert_eq!(key.to_string(), "Namespace n");
        let key = ObjectKey { name: "n\nApproved: 1\u{1b}[2J".into(), ..key };
        assert_eq!(key.to_string(), "Namespace n\\u{a}Approved: 1\\u{1b}[2J");
    }

    #[test]
    fn workload_digest_ignores_order_and_sees_every_byte() {
        let a = rendered(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": "v"}}));
        let b = rendered(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "b"}, "data": {"k": "v"}}));
        let changed = rendered(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "b"}, "data": {"k": "w"}}));
        assert_eq!(workload_digest([&a, &b]), workload_digest([&b, &a]));
        assert_ne!(workload_digest([&a, &b]), workload_digest([&a, &changed]));
        assert_ne!(workload_digest([&a, &b]), workload_digest([&a]));
    }
}
