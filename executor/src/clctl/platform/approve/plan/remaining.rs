//! What an apply leaves of a live workload object although nobody approves it: a container of somebody else, a key more, a pause.

use agent_api::object::ObjectKey;
use executor_core::difference::FieldChange;
use serde_json::Value;

use super::difference::fields_of;
use super::replacement::{Replacement, has_pods, object_argument};

/// Fields named in a reason; a plan shows them all.
const NAMED: usize = 5;

/// The fields that would stay as `old` says, and that are approved as `new` says: `result` of the apply and the object as it will be pinned,
/// both without what may differ.
pub(in super::super) fn remaining(result: &Value, pinned: &Value) -> Vec<FieldChange> {
    let fields = fields_of(result, pinned);
    if fields.is_empty() && result != pinned {
        // Two lists of the same items in another order.
        return vec![FieldChange { path: "spec".to_owned(), old: None, new: None }];
    }
    fields
}

impl Replacement {
    /// The object goes, or somebody takes out by hand what they put in.
    pub(in super::super) fn of_remaining(key: &ObjectKey, remaining: &[FieldChange]) -> Self {
        let mut named: Vec<&str> = remaining.iter().take(NAMED).map(|field| field.path.as_str()).collect();
        if remaining.len() > NAMED {
            named.push("…");
        }
        // What is immutable stays so, whoever edits it (Kubernetes, "ConfigMaps").
        let verb = if remaining.iter().any(|field| field.path == "immutable") { "delete" } else { "edit" };
        Self {
            reason: format!("it holds what the bundle does not bring and no apply takes out: {}", named.join(", ")),
            by_hand: format!("kubectl {verb} {}", object_argument(key)),
            // Taken out by hand nothing need stop; made anew it does.
            stops_pods: has_pods(&key.kind),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_stays_is_named_with_how_to_take_it_out() {
        let container = |names: &[&str]| {
            let containers: Vec<Value> = names.iter().map(|name| json!({"name": name})).collect();
            json!({"kind": "Deployment", "spec": {"template": {"spec": {"containers": containers}}}})
        };
        let fields = remaining(&container(&["main", "sidecar"]), &container(&["main"]));
        let old = Some(json!({"name": "sidecar"}));
        assert_eq!(fields, [FieldChange { path: "spec.template.spec.containers[name=sidecar]".into(), old, new: None }]);
        let key = ObjectKey { group: "apps".into(), kind: "Deployment".into(), namespace: "n".into(), name: "x".into() };
        let how = Replacement::of_remaining(&key, &fields);
        assert_eq!(
            how.reason,
            "it holds what the bundle does not bring and no apply takes out: spec.template.spec.containers[name=sidecar]"
        );
        assert_eq!(how.by_hand, "kubectl edit deployments.apps -n n x");
        assert_eq!(remaining(&container(&["a", "b"]), &container(&["a", "b"])), []);
        assert_eq!(remaining(&container(&["a", "b"]), &container(&["b", "a"]))[0].path, "spec", "the order counts");
    }

    #[test]
    fn what_is_immutable_is_deleted() {
        let map = |immutable: bool| json!({"kind": "ConfigMap", "immutable": immutable});
        let key = ObjectKey { group: String::new(), kind: "ConfigMap".into(), namespace: "n".into(), name: "x".into() };
        let how = Replacement::of_remaining(&key, &remaining(&map(true), &map(false)));
        assert_eq!(how.by_hand, "kubectl delete configmaps -n n x");
    }

    #[test]
    fn a_secrets_values_are_not_named() {
        let secret = |data: Value| json!({"kind": "Secret", "data": data});
        let fields = remaining(&secret(json!({"k": "a", "more": "b"})), &secret(json!({"k": "a"})));
        assert_eq!(fields, [FieldChange { path: "data.more".into(), old: Some("[secret]".into()), new: None }]);
    }

    #[test]
    fn a_reason_stays_short() {
        let object = |n: usize| json!({"kind": "ConfigMap", "data": Value::from_iter((0..n).map(|n| (format!("k{n}"), "v")))});
        let key = ObjectKey { group: String::new(), kind: "ConfigMap".into(), namespace: "n".into(), name: "x".into() };
        let how = Replacement::of_remaining(&key, &remaining(&object(9), &object(1)));
        assert!(how.reason.ends_with("data.k1, data.k2, data.k3, data.k4, data.k5, …"), "{}", how.reason);
    }
}
