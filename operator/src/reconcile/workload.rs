//! Deployments and StatefulSets, rendered or live, as the steps look at them.

use agent_api::digest::Sha256;
use agent_api::object::ObjectKey;
use serde_json::{Map, Value};

use super::{FIELD_MANAGER, Live};

/// Longest derived name: KEDA carries that of a ScaledObject in a label.
const MAX_DERIVED_NAME: usize = 63;

/// A Deployment or StatefulSet.
#[derive(Clone, Debug)]
pub struct Workload<'a> {
    /// Its identity.
    pub key: ObjectKey,
    object: &'a Value,
}

impl<'a> Workload<'a> {
    /// A workload, or `None` for an object of another kind.
    #[must_use]
    pub fn of(object: &'a Value) -> Option<Self> {
        let key = ObjectKey::of(object);
        is_workload(&key).then_some(Self { key, object })
    }

    /// `spec.replicas`.
    #[must_use]
    pub fn replicas(&self) -> Option<u32> {
        self.number("/spec/replicas")
    }

    /// A count of the status, 0 where it is not there.
    #[must_use]
    pub fn status(&self, field: &str) -> u32 {
        self.number(&format!("/status/{field}")).unwrap_or(0)
    }

    /// Whether its controller has said anything at all.
    #[must_use]
    pub fn has_status(&self) -> bool {
        self.object.pointer("/status/observedGeneration").is_some()
    }

    /// Whether its status speaks of its newest generation.
    #[must_use]
    pub fn is_observed(&self) -> bool {
        let generation = |pointer: &str| self.object.pointer(pointer).and_then(Value::as_i64);
        generation("/status/observedGeneration") >= generation("/metadata/generation") && self.has_status()
    }

    /// Whether the operator owns `spec.replicas` by its applies, so that leaving it out of one would remove it.
    #[must_use]
    pub fn owns_replicas(&self) -> bool {
        self.owners_of_replicas().any(is_ours)
    }

    /// Whether anybody else owns `spec.replicas`, be it the operator by a patch: another count would be a conflict.
    #[must_use]
    pub fn others_own_replicas(&self) -> bool {
        self.owners_of_replicas().any(|entry| !is_ours(entry))
    }

    fn owners_of_replicas(&self) -> impl Iterator<Item = &'a Value> {
        let entries = self.object.pointer("/metadata/managedFields").and_then(Value::as_array).into_iter().flatten();
        entries.filter(|entry| entry.pointer("/fieldsV1/f:spec/f:replicas").is_some())
    }

    /// Whether a label selector fits its pods.
    #[must_use]
    pub fn is_selected_by(&self, selector: &Value) -> bool {
        let empty = Map::new();
        let labels = self.object.pointer("/spec/template/metadata/labels").and_then(Value::as_object).unwrap_or(&empty);
        selects(selector, labels)
    }

    /// The selector of its pods.
    #[must_use]
    pub fn selector(&self) -> Value {
        self.object.pointer("/spec/selector").cloned().unwrap_or_default()
    }

    /// A field of `spec`.
    #[must_use]
    pub fn text(&self, pointer: &str) -> Option<&'a str> {
        self.object.pointer(pointer).and_then(Value::as_str)
    }

    /// Name of what the operator makes for it: the budget, the autoscaler. Two workloads of one name and other kinds get two.
    #[must_use]
    pub fn derived_name(&self) -> String {
        let whole = format!("{}-{}", self.key.name, self.key.kind.to_lowercase());
        if whole.len() <= MAX_DERIVED_NAME {
            return whole;
        }
        let digest = Sha256::of(whole.as_bytes());
        let digest = &digest.short()[..8];
        let kept: String = whole.chars().take(MAX_DERIVED_NAME - 1 - digest.len()).collect();
        format!("{}-{digest}", kept.trim_end_matches(['-', '.']))
    }

    /// The object itself.
    #[must_use]
    pub fn object(&self) -> &'a Value {
        self.object
    }

    fn number(&self, pointer: &str) -> Option<u32> {
        self.object.pointer(pointer).and_then(Value::as_u64).and_then(|number| u32::try_from(number).ok())
    }
}

/// Whether an entry of `managedFields` is of the operator's applies.
fn is_ours(entry: &Value) -> bool {
    entry["manager"] == FIELD_MANAGER && entry["operation"] == "Apply"
}

/// Whether an object is one.
#[must_use]
pub fn is_workload(key: &ObjectKey) -> bool {
    key.group == "apps" && ["Deployment", "StatefulSet"].contains(&key.kind.as_str())
}

/// The live workloads among some objects.
pub fn live_workloads<'a>(keys: impl IntoIterator<Item = &'a ObjectKey>, live: &'a Live) -> impl Iterator<Item = Workload<'a>> {
    keys.into_iter().filter_map(|key| Workload::of(live.get(key)?))
}

/// A label selector over labels; one that is empty selects everything, as in `policy/v1`.
fn selects(selector: &Value, labels: &Map<String, Value>) -> bool {
    let exact = selector.get("matchLabels").and_then(Value::as_object).into_iter().flatten();
    let expressions = selector.get("matchExpressions").and_then(Value::as_array).into_iter().flatten();
    selector.is_object()
        && exact.into_iter().all(|(key, value)| labels.get(key) == Some(value))
        && expressions.into_iter().all(|expression| fits(expression, labels))
}

fn fits(expression: &Value, labels: &Map<String, Value>) -> bool {
    let key = expression.get("key").and_then(Value::as_str).unwrap_or_default();
    let value = labels.get(key);
    let listed =
        || expression.get("values").and_then(Value::as_array).is_some_and(|values| value.is_some_and(|value| values.contains(value)));
    match expression.get("operator").and_then(Value::as_str).unwrap_or_default() {
        "In" => listed(),
        "NotIn" => !listed(),
        "Exists" => value.is_some(),
        "DoesNotExist" => value.is_none(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn set(name: &str) -> Value {
        json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": name, "namespace": "n"},
            "spec": {"template": {"metadata": {"labels": {"app": "redis", "tier": "cache"}}}}})
    }

    #[test]
    fn derived_names_fit_a_label_and_stay_apart() {
        let (short, long) = (set("redis"), set(&"x".repeat(63)));
        assert_eq!(Workload::of(&short).unwrap().derived_name(), "redis-statefulset");
        let other = set(&format!("{}y", "x".repeat(62)));
        let (long, other) = (Workload::of(&long).unwrap().derived_name(), Workload::of(&other).unwrap().derived_name());
        assert!(long.len() <= 63 && other.len() <= 63 && long != other, "{long} {other}");
    }

    #[test]
    fn selectors() {
        let object = set("redis");
        let workload = Workload::of(&object).unwrap();
        let expression =
            |operator: &str, values: Value| json!({"matchExpressions": [{"key": "tier", "operator": operator, "values": values}]});
        for (selector, expected) in [
            (json!({}), true),
            (json!(null), false),
            (json!({"matchLabels": {"app": "redis"}}), true),
            (json!({"matchLabels": {"app": "redis", "tier": "db"}}), false),
            (expression("In", json!(["cache", "db"])), true),
            (expression("In", json!(["db"])), false),
            (expression("NotIn", json!(["db"])), true),
            (expression("NotIn", json!(["cache"])), false),
            (expression("Exists", json!(null)), true),
            (expression("DoesNotExist", json!(null)), false),
            (expression("Odd", json!(null)), false),
        ] {
            assert_eq!(workload.is_selected_by(&selector), expected, "{selector}");
        }
    }
}
