//! What former bundles left: live objects with our labels that this bundle does not have.

use std::collections::BTreeSet;

use agent_api::keys;
use agent_api::kind::Half;
use agent_api::object::ObjectKey;
use serde::Serialize;
use serde_json::Value;

/// An object that stays, though no bundle has it any more.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub(in super::super) struct Leftover {
    /// The object.
    pub(in super::super) object: String,
    /// Its component, by its label.
    pub(in super::super) component: Option<String>,
    /// The half that it was in.
    pub(in super::super) half: Half,
    /// Pods of it run.
    pub(in super::super) running: bool,
    /// Its identity.
    #[serde(skip)]
    pub(in super::super) key: ObjectKey,
    /// As it was read.
    #[serde(skip)]
    pub(in super::super) api_version: String,
    /// As it was read: another one of its name is not this one.
    #[serde(skip)]
    pub(in super::super) uid: String,
    /// Its chart said that it is to be kept (`helm.sh/resource-policy`).
    pub(in super::super) keep: bool,
    /// It is deleted: a webhook configuration before anything is applied, all else at the end, as asked.
    pub(in super::super) pruned: bool,
}

impl Leftover {
    /// Whether it could still decide on the requests of others.
    pub(in super::super) fn is_webhook(&self) -> bool {
        is_webhook(&self.key)
    }
}

/// Those of `live` that the bundle lacks. In the permissions half an approval's stamp tells what was applied by one; in the workload half
/// the label of a component does. What belongs to another object, or is being deleted, is nobody's leftover; but for a webhook configuration,
/// which decides on requests until it is gone.
pub(in super::super) fn leftovers(live: &[Value], bundle: &BTreeSet<ObjectKey>) -> Vec<Leftover> {
    let mut found: Vec<Leftover> = live
        .iter()
        .filter_map(|object| {
            let key = ObjectKey::of(object);
            let half = key.row()?.half;
            let component = metadata(object, "labels", keys::COMPONENT).map(str::to_owned);
            let applied = match half {
                Half::Permissions => metadata(object, "annotations", keys::BUNDLE_SHA256).is_some(),
                Half::Workload => component.is_some(),
            };
            let has = |field: &str| object.pointer(&format!("/metadata/{field}")).is_some_and(|value| !value.is_null());
            if !applied || bundle.contains(&key) || has("ownerReferences") || has("deletionTimestamp") && !is_webhook(&key) {
                return None;
            }
            Some(Leftover {
                object: key.to_string(),
                component,
                half,
                running: is_running(&key.kind, object),
                api_version: object.get("apiVersion").and_then(Value::as_str).unwrap_or_default().to_owned(),
                uid: object.pointer("/metadata/uid").and_then(Value::as_str).unwrap_or_default().to_owned(),
                keep: metadata(object, "annotations", "helm.sh/resource-policy") == Some("keep"),
                pruned: false,
                key,
            })
        })
        .collect();
    found.sort_by(|a, b| a.key.cmp(&b.key));
    found.dedup_by(|a, b| a.key == b.key);
    found
}

fn is_webhook(key: &ObjectKey) -> bool {
    matches!(key.kind.as_str(), "ValidatingWebhookConfiguration" | "MutatingWebhookConfiguration")
}

fn metadata<'a>(object: &'a Value, place: &str, key: &str) -> Option<&'a str> {
    object.get("metadata")?.get(place)?.get(key)?.as_str()
}

fn is_running(kind: &str, object: &Value) -> bool {
    let number = |pointer: &str| object.pointer(pointer).and_then(Value::as_u64);
    match kind {
        "Deployment" => number("/spec/replicas") != Some(0),
        "Job" => number("/status/active").is_some_and(|active| active > 0),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn object(api_version: &str, kind: &str, name: &str, metadata: Value) -> Value {
        let mut object = json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name, "namespace": "n"}});
        object["metadata"].as_object_mut().unwrap().extend(metadata.as_object().unwrap().clone());
        object
    }

    #[test]
    fn what_the_bundle_lacks_is_left_over() {
        let component = json!({"labels": {keys::COMPONENT: "c"}});
        let stamped = json!({"annotations": {keys::BUNDLE_SHA256: "s"}});
        let mut stopped = object("apps/v1", "Deployment", "stopped", component.clone());
        stopped["spec"] = json!({"replicas": 0});
        let mut active = object("batch/v1", "Job", "active", component.clone());
        active["status"] = json!({"active": 1});
        let mut owned = component.clone();
        owned["ownerReferences"] = json!([{"name": "o"}]);
        let mut going = component.clone();
        going["deletionTimestamp"] = json!("2026-11-30T10:00:00Z");
        let mut hook = stamped.clone();
        hook["deletionTimestamp"] = json!("2026-11-30T10:00:00Z");
        let kept = object("v1", "ConfigMap", "kept", component.clone());
        let live = [
            object("apps/v1", "Deployment", "old", component.clone()),
            object("apps/v1", "Deployment", "old", component.clone()),
            stopped,
            active,
            kept.clone(),
            object("batch/v1", "Job", "done", component.clone()),
            object("v1", "ConfigMap", "owned", owned),
            object("v1", "ConfigMap", "going", going),
            object("v1", "ConfigMap", "no-component", json!({})),
            object("v1", "ServiceAccount", "unstamped", component),
            object("v1", "ServiceAccount", "stamped", stamped),
            object("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", "going", hook),
        ];
        let found = leftovers(&live, &BTreeSet::from([ObjectKey::of(&kept)]));
        let found: Vec<(&str, bool, Half)> = found.iter().map(|one| (one.object.as_str(), one.running, one.half)).collect();
        assert_eq!(
            found,
            [
                ("ServiceAccount n/stamped", false, Half::Permissions),
                ("ValidatingWebhookConfiguration.admissionregistration.k8s.io n/going", false, Half::Permissions),
                ("Deployment.apps n/old", true, Half::Workload),
                ("Deployment.apps n/stopped", false, Half::Workload),
                ("Job.batch n/active", true, Half::Workload),
                ("Job.batch n/done", false, Half::Workload),
            ]
        );
    }
}
