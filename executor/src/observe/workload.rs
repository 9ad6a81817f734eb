//! The live workload half, as far as `pcm-executor` may read it, and how it departs from the approval that the cluster keeps.
//!
//! Nothing is rendered for this: the approval holds each object as a person saw it. What departs is worked out again for the one object of
//! which there is news.

use std::collections::{BTreeMap, BTreeSet};

use agent_api::digest::Sha256;
use agent_api::keys;
use agent_api::kind::{KINDS, Kind};
use agent_api::object::ObjectKey;
use agent_api::platform_approval;
use executor_core::difference::FieldChange;
use executor_core::drift;
use serde_json::{Value, json};

/// When an object's deletion began.
const DELETED: &str = "/metadata/deletionTimestamp";

/// Kinds that are watched.
pub(super) fn kinds() -> impl Iterator<Item = &'static Kind> {
    KINDS.iter().filter(|row| drift::KINDS.contains(&row.kind))
}

/// What an approval says of objects of the watched kinds.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Pins {
    /// The approved bundle.
    pub(super) sha256: Sha256,
    /// Pins by their keys in the approval.
    pub(super) objects: BTreeMap<String, Value>,
}

/// An object that is not as it was approved.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Drifted {
    /// Which.
    pub(crate) object: ObjectKey,
    /// The fields, `old` approved and `new` live; empty where the object is missing.
    pub(crate) fields: Vec<FieldChange>,
}

/// An object of the applied bundle that is not there.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Missing {
    /// Which.
    pub(super) object: ObjectKey,
    /// Whose it was.
    pub(super) component: String,
    /// How many pods it kept running; 0 for what keeps none.
    pub(super) replicas: u32,
}

/// What is live, and what was approved.
#[derive(Clone, Default, Debug)]
pub(super) struct Workload {
    approved: Option<Pins>,
    live: BTreeMap<String, Value>,
    /// Kinds of which the first list is whole.
    listed: BTreeSet<&'static str>,
    drifted: BTreeMap<String, Drifted>,
}

impl Workload {
    /// What departs from the approval of the applied bundle; `None` while that is not known: another bundle is approved, or not everything
    /// was listed yet.
    pub(super) fn drift(&self, applied: Option<&Sha256>) -> Option<impl Iterator<Item = &Drifted>> {
        let approved = self.approved.as_ref().map(|pins| &pins.sha256);
        let known = approved.is_some() && approved == applied && kinds().all(|row| self.listed.contains(row.kind));
        known.then(|| self.drifted.values())
    }

    /// What of the applied bundle is not there; nothing while that is not known.
    pub(super) fn missing(&self, applied: Option<&Sha256>) -> Vec<Missing> {
        let pin = |object: &ObjectKey| self.approved.as_ref()?.objects.get(&platform_approval::key(object));
        let missing = |drifted: &Drifted| {
            let pin = pin(&drifted.object)?;
            let component = pin.get("labels")?.get(keys::COMPONENT)?.as_str()?.to_owned();
            let replicas =
                pin.pointer("/spec/replicas").and_then(Value::as_u64).map_or(1, |count| u32::try_from(count).unwrap_or(u32::MAX));
            let replicas = if drifted.object.kind == "Deployment" { replicas } else { 0 };
            Some(Missing { object: drifted.object.clone(), component, replicas })
        };
        self.drift(applied).into_iter().flatten().filter(|drifted| drifted.fields.is_empty()).filter_map(missing).collect()
    }

    /// The approval that holds, or none; whether it is another one than before.
    pub(super) fn approve(&mut self, pins: Option<Pins>) -> bool {
        if self.approved == pins {
            return false;
        }
        self.approved = pins;
        self.drifted.clear();
        let keys: Vec<String> = self.approved.iter().flat_map(|pins| pins.objects.keys().cloned()).collect();
        keys.iter().for_each(|key| self.judge(key));
        true
    }

    /// All objects of a kind.
    pub(super) fn list(&mut self, kind: &'static Kind, objects: Vec<Value>) {
        let former: Vec<String> = self.live.keys().filter(|key| is_of(key, kind)).cloned().collect();
        self.live.retain(|key, _| !is_of(key, kind));
        self.listed.insert(kind.kind);
        let mut keys: BTreeSet<String> = former.into_iter().collect();
        keys.extend(self.approved.iter().flat_map(|pins| pins.objects.keys().filter(|key| is_of(key, kind)).cloned()));
        self.live.extend(objects.into_iter().map(|object| (key_of(&object), kept(&object))));
        keys.iter().for_each(|key| self.judge(key));
    }

    /// An object is there, or has changed.
    pub(super) fn put(&mut self, object: &Value) {
        let key = key_of(object);
        self.live.insert(key.clone(), kept(object));
        self.judge(&key);
    }

    /// An object is gone.
    pub(super) fn remove(&mut self, object: &Value) {
        let key = key_of(object);
        self.live.remove(&key);
        self.judge(&key);
    }

    fn judge(&mut self, key: &str) {
        self.drifted.remove(key);
        let Some(pin) = self.approved.as_ref().and_then(|pins| pins.objects.get(key)) else { return };
        let object = platform_approval::object_of(key);
        let drifted = match self.live.get(key) {
            Some(_) if object.kind == "Job" && going(self.live.get(key)) => None,
            Some(live) => Some(departs(pin, live)).filter(|fields| !fields.is_empty()),
            // A Job that is done may be removed, by its time-to-live above all.
            None if object.kind == "Job" => None,
            None => Some(Vec::new()),
        };
        if let Some(fields) = drifted {
            self.drifted.insert(key.to_owned(), Drifted { object, fields });
        }
    }
}

/// What is being deleted is as good as gone: that alone is told.
fn departs(pin: &Value, live: &Value) -> Vec<FieldChange> {
    match live.pointer(DELETED) {
        Some(Value::Null) | None => drift::drift(pin, live),
        Some(since) => vec![FieldChange { path: "metadata.deletionTimestamp".into(), old: None, new: Some(since.clone()) }],
    }
}

fn going(live: Option<&Value>) -> bool {
    live.and_then(|live| live.pointer(DELETED)).is_some_and(|since| !since.is_null())
}

fn key_of(object: &Value) -> String {
    platform_approval::key(&ObjectKey::of(object))
}

fn is_of(key: &str, kind: &Kind) -> bool {
    key.strip_prefix(kind.group).and_then(|rest| rest.strip_prefix('/')?.strip_prefix(kind.kind)).is_some_and(|rest| rest.starts_with('/'))
}

/// Only what is compared.
fn kept(object: &Value) -> Value {
    let metadata = |field: &str| object.pointer(&format!("/metadata/{field}"));
    json!({"apiVersion": object.get("apiVersion"), "kind": object.get("kind"), "spec": object.get("spec"),
        "metadata": {"labels": metadata("labels"), "annotations": metadata("annotations"), "deletionTimestamp": metadata("deletionTimestamp")}})
}

#[cfg(test)]
mod tests {
    use super::*;

    fn budget(name: &str, min: u32) -> Value {
        json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": name, "namespace": "n", "uid": "u"},
            "spec": {"minAvailable": min}})
    }

    fn pins(names: &[&str]) -> Pins {
        let pin = |name: &&str| (format!("policy/PodDisruptionBudget/n/{name}"), json!({"spec": {"minAvailable": 1}}));
        Pins { sha256: Sha256::of(b"a"), objects: names.iter().map(pin).collect() }
    }

    fn told(workload: &Workload, applied: &[u8]) -> Option<Vec<String>> {
        let text = |drifted: &Drifted| {
            let fields: Vec<&str> = drifted.fields.iter().map(|field| field.path.as_str()).collect();
            format!("{}: {}", drifted.object, fields.join(","))
        };
        Some(workload.drift(Some(&Sha256::of(applied)))?.map(text).collect())
    }

    #[test]
    fn drift_is_known_once_all_is_listed_and_the_applied_bundle_is_the_approved_one() {
        let mut workload = Workload::default();
        workload.approve(Some(pins(&["a", "gone"])));
        for kind in kinds() {
            assert_eq!(told(&workload, b"a"), None, "before {} is listed", kind.kind);
            workload.list(kind, if kind.kind == "PodDisruptionBudget" { vec![budget("a", 1), budget("theirs", 9)] } else { vec![] });
        }
        let gone = "PodDisruptionBudget.policy n/gone: ".to_owned();
        assert_eq!(told(&workload, b"a"), Some(vec![gone.clone()]));
        assert_eq!(told(&workload, b"another"), None);
        workload.put(&budget("a", 2));
        let changed = "PodDisruptionBudget.policy n/a: spec.minAvailable".to_owned();
        assert_eq!(told(&workload, b"a"), Some(vec![changed.clone(), gone.clone()]));
        workload.put(&budget("gone", 1));
        assert_eq!(told(&workload, b"a"), Some(vec![changed]));
        workload.remove(&budget("a", 2));
        assert_eq!(told(&workload, b"a"), Some(vec!["PodDisruptionBudget.policy n/a: ".into()]));
        // Listed anew, and approved anew.
        let kind = Kind::find("policy", "PodDisruptionBudget").unwrap();
        workload.list(kind, vec![budget("a", 1)]);
        assert_eq!(told(&workload, b"a"), Some(vec![gone]));
        workload.approve(Some(pins(&["a"])));
        assert_eq!(told(&workload, b"a"), Some(vec![]));
        workload.approve(None);
        assert_eq!(told(&workload, b"a"), None);
    }

    #[test]
    fn what_is_being_deleted_is_told_and_what_is_gone_is_of_a_component() {
        let mut workload = Workload::default();
        kinds().for_each(|kind| workload.list(kind, vec![]));
        let labels = json!({"clicklink.io/component": "c"});
        let objects = BTreeMap::from([
            ("apps/Deployment/n/d".to_owned(), json!({"labels": labels, "spec": {"replicas": 3}})),
            ("apps/Deployment/n/e".to_owned(), json!({"labels": labels, "spec": {}})),
            ("/Service/n/s".to_owned(), json!({"labels": labels, "spec": {}})),
            ("batch/Job/n/j".to_owned(), json!({"labels": labels, "spec": {}})),
        ]);
        workload.approve(Some(Pins { sha256: Sha256::of(b"a"), objects }));
        let missing = |workload: &Workload| -> Vec<(String, String, u32)> {
            let missing = workload.missing(Some(&Sha256::of(b"a")));
            missing.into_iter().map(|missing| (missing.object.to_string(), missing.component, missing.replicas)).collect()
        };
        let of = |object: &str, replicas| (object.to_owned(), "c".to_owned(), replicas);
        let all = [of("Service n/s", 0), of("Deployment.apps n/d", 3), of("Deployment.apps n/e", 1)];
        assert_eq!(missing(&workload), all);
        assert_eq!(workload.missing(Some(&Sha256::of(b"b"))), []);

        let going = |version: &str, kind: &str, name: &str| {
            json!({"apiVersion": version, "kind": kind, "spec": {},
                "metadata": {"name": name, "namespace": "n", "labels": labels, "deletionTimestamp": "2026-11-30T10:00:00Z"}})
        };
        workload.put(&going("apps/v1", "Deployment", "e"));
        workload.put(&going("batch/v1", "Job", "j"));
        assert_eq!(missing(&workload), all[..2]);
        let told = told(&workload, b"a").unwrap();
        assert_eq!(told, ["Service n/s: ", "Deployment.apps n/d: ", "Deployment.apps n/e: metadata.deletionTimestamp"]);
    }

    #[test]
    fn a_job_that_is_gone_is_done() {
        let mut workload = Workload::default();
        kinds().for_each(|kind| workload.list(kind, vec![]));
        let objects = BTreeMap::from([("batch/Job/n/j".to_owned(), json!({"spec": {}}))]);
        workload.approve(Some(Pins { sha256: Sha256::of(b"a"), objects }));
        assert_eq!(told(&workload, b"a"), Some(vec![]));
    }

    #[test]
    fn a_kind_is_told_by_its_key() {
        let service = Kind::find("", "Service").unwrap();
        assert!(is_of("/Service/n/x", service));
        assert!(!is_of("/ServiceAccount/n/x", service) && !is_of("apps/Service/n/x", service));
    }
}
