//! What is live in the managed namespaces: components, and objects of the kinds that a component may have, as the watches and our own writes tell.
//!
//! Each is kept as bytes, a fraction of what it takes read; a pass reads those that concern its component. An older version never stands in for
//! a newer one, so that the answer to a write counts at once and the watch that tells of it later is no news.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use agent_api::object::ObjectKey;
use cluster::crd::component_kind::KEDA;
use cluster::crd::managed_component::KIND;
use serde_json::{Value, json};

use super::queue::Name;
use crate::reconcile::Live;
use crate::reconcile::diff::owner;
use crate::reconcile::transform::autoscaler;
use crate::reconcile::workload::Workload;

/// An object as it was last told.
struct Entry {
    version: Option<u64>,
    /// The component that it is labelled with.
    owner: Option<Arc<str>>,
    aims: Aims,
    bytes: Box<[u8]>,
}

/// Whom an object concerns beside its owner.
enum Aims {
    /// Nobody.
    Nobody,
    /// The workload that an autoscaler scales: kind and name.
    Scales(Box<(String, String)>),
    /// The pods of a budget.
    Selects(Box<Value>),
}

/// What is live.
#[derive(Default)]
pub struct Store(Mutex<Contents>);

#[derive(Default)]
struct Contents {
    objects: HashMap<Arc<ObjectKey>, Entry>,
    /// Objects by namespace and label.
    owned: BTreeMap<(String, Arc<str>), BTreeSet<Arc<ObjectKey>>>,
    /// Autoscalers, budgets and claims by namespace: those that concern more than their owner.
    shared: BTreeMap<String, BTreeSet<Arc<ObjectKey>>>,
    /// Components that want a name which another has, until that one lets it go.
    wanted: HashMap<ObjectKey, BTreeSet<Name>>,
}

impl Store {
    /// Takes an object as it is now. The components that have to be looked at; none where it is no news.
    pub fn put(&self, object: &Value) -> Vec<Name> {
        self.lock().put(object)
    }

    /// An object is gone since a version.
    pub fn remove(&self, object: &Value) -> Vec<Name> {
        let (key, gone) = (ObjectKey::of(object), version(object));
        let mut contents = self.lock();
        match contents.objects.get(&key) {
            Some(entry) if !is_older(gone, entry.version) => contents.let_go(&key),
            Some(_) | None => Vec::new(),
        }
    }

    /// A list has been read whole: of its kind and namespace, what it did not have is gone.
    pub fn keep_only(&self, group: &str, kind: &str, namespace: &str, listed: &BTreeSet<ObjectKey>) -> Vec<Name> {
        let mut contents = self.lock();
        let of_list = |key: &ObjectKey| key.group == group && key.kind == kind && key.namespace == namespace;
        let gone: Vec<Arc<ObjectKey>> =
            contents.objects.keys().filter(|key| of_list(key) && !listed.contains(key.as_ref())).cloned().collect();
        gone.iter().flat_map(|key| contents.let_go(key)).collect()
    }

    /// A component wants names that others have: it is concerned once when one of them is let go.
    pub fn wants(&self, name: &Name, keys: impl IntoIterator<Item = ObjectKey>) {
        let mut contents = self.lock();
        for key in keys {
            contents.wanted.entry(key).or_default().insert(name.clone());
        }
    }

    /// A component as it is now.
    #[must_use]
    pub fn component(&self, name: &Name) -> Option<Value> {
        self.read(&component_key(name))
    }

    /// An object as it is now.
    #[must_use]
    pub fn read(&self, key: &ObjectKey) -> Option<Value> {
        serde_json::from_slice(&self.lock().objects.get(key)?.bytes).ok()
    }

    /// The components of a namespace.
    #[must_use]
    pub fn components_of(&self, namespace: &str) -> Vec<Name> {
        let contents = self.lock();
        let here = contents.objects.keys().filter(|key| key.kind == KIND && key.namespace == namespace);
        here.map(|key| Name { namespace: key.namespace.clone(), name: key.name.clone() }).collect()
    }

    /// How many components there are.
    #[must_use]
    pub fn components(&self) -> usize {
        self.lock().objects.keys().filter(|key| key.kind == KIND).count()
    }

    /// What concerns a component: what is labelled with it, `others` by name, and of the whole namespace what scales its workloads, selects
    /// their pods, or is labelled with nobody.
    #[must_use]
    pub fn view(&self, name: &Name, others: impl IntoIterator<Item = ObjectKey>) -> Live {
        let contents = self.lock();
        let own = contents.owned.get(&(name.namespace.clone(), Arc::from(name.name.as_str()))).into_iter().flatten();
        let others: Vec<ObjectKey> = others.into_iter().collect();
        let mut live: Live = own.map(Arc::as_ref).chain(&others).filter_map(|key| contents.read(key)).collect();
        let workloads: Vec<Workload<'_>> = live.values().filter_map(Workload::of).collect();
        let concerns = |key: &ObjectKey| {
            let Some(entry) = contents.objects.get(key) else { return false };
            match &entry.aims {
                Aims::Nobody => entry.owner.is_none() && workloads.iter().any(|workload| may_be_claim_of(key, workload)),
                Aims::Scales(target) => workloads.iter().any(|workload| workload.key.kind == target.0 && workload.key.name == target.1),
                Aims::Selects(selector) => workloads.iter().any(|workload| workload.is_selected_by(selector)),
            }
        };
        let shared = contents.shared.get(&name.namespace).into_iter().flatten();
        let more: Vec<(ObjectKey, Value)> =
            shared.filter(|key| !live.contains_key(key.as_ref()) && concerns(key)).filter_map(|key| contents.read(key)).collect();
        live.extend(more);
        live
    }

    fn lock(&self) -> MutexGuard<'_, Contents> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Contents {
    fn put(&mut self, object: &Value) -> Vec<Name> {
        let (key, version) = (ObjectKey::of(object), version(object));
        let known = self.objects.get(&key).map(|entry| entry.version);
        if known.is_some_and(|known| is_older(version, known) || (version.is_some() && version == known)) {
            return Vec::new();
        }
        let owner = owner(object).filter(|_| key.kind != KIND).map(Arc::from);
        let passes_on = self.objects.get(&key).is_some_and(|entry| entry.owner != owner);
        let mut concerned = if passes_on { self.let_go(&key) } else { self.forget(&key) };
        let Ok(bytes) = kept(&key, object) else { return concerned };
        let entry = Entry { version, owner, aims: aims(&key, object), bytes: bytes.into() };
        let key = Arc::new(key);
        if let Some(owner) = &entry.owner {
            self.owned.entry((key.namespace.clone(), Arc::clone(owner))).or_default().insert(Arc::clone(&key));
        }
        if is_shared(&key) {
            self.shared.entry(key.namespace.clone()).or_default().insert(Arc::clone(&key));
        }
        self.objects.insert(Arc::clone(&key), entry);
        concerned.extend(self.concerned(&key));
        concerned.sort();
        concerned.dedup();
        concerned
    }

    /// Its owner has it no more.
    fn let_go(&mut self, key: &ObjectKey) -> Vec<Name> {
        let waiting = self.wanted.remove(key).into_iter().flatten();
        waiting.chain(self.forget(key)).collect()
    }

    fn forget(&mut self, key: &ObjectKey) -> Vec<Name> {
        let concerned = self.concerned(key);
        let Some(entry) = self.objects.remove(key) else { return Vec::new() };
        if let Some(owner) = entry.owner {
            let place = (key.namespace.clone(), owner);
            if let Some(keys) = self.owned.get_mut(&place) {
                keys.remove(key);
                if keys.is_empty() {
                    self.owned.remove(&place);
                }
            }
        }
        if let Some(keys) = self.shared.get_mut(&key.namespace) {
            keys.remove(key);
        }
        concerned
    }

    /// Whom an object concerns: the component itself, the one that it is labelled with, those of the workloads that it scales or selects.
    fn concerned(&self, key: &ObjectKey) -> Vec<Name> {
        let name = |name: &str| Name { namespace: key.namespace.clone(), name: name.to_owned() };
        let Some(entry) = self.objects.get(key) else { return Vec::new() };
        if key.kind == KIND {
            return vec![name(&key.name)];
        }
        let workloads = || self.objects.iter().filter(|(other, _)| other.namespace == key.namespace && other.group == "apps");
        let aimed: Vec<Name> = match &entry.aims {
            Aims::Scales(target) if entry.owner.is_none() => {
                let hit = workloads().filter(|(other, _)| other.kind == target.0 && other.name == target.1);
                hit.filter_map(|(_, entry)| entry.owner.as_deref().map(name)).collect()
            }
            Aims::Selects(selector) if entry.owner.is_none() => {
                let hit = workloads().filter(|(_, entry)| {
                    let object: Value = serde_json::from_slice(&entry.bytes).unwrap_or_default();
                    Workload::of(&object).is_some_and(|workload| workload.is_selected_by(selector))
                });
                hit.filter_map(|(_, entry)| entry.owner.as_deref().map(name)).collect()
            }
            Aims::Nobody | Aims::Scales(_) | Aims::Selects(_) => Vec::new(),
        };
        entry.owner.as_deref().map(name).into_iter().chain(aimed).collect()
    }

    fn read(&self, key: &ObjectKey) -> Option<(ObjectKey, Value)> {
        let entry = self.objects.get(key)?;
        Some((key.clone(), serde_json::from_slice(&entry.bytes).ok()?))
    }
}

/// The identity of a component.
#[must_use]
pub fn component_key(name: &Name) -> ObjectKey {
    let group = cluster::crd::managed_component::GROUP.to_owned();
    ObjectKey { group, kind: KIND.to_owned(), namespace: name.namespace.clone(), name: name.name.clone() }
}

/// Whether a claim may have been made from the templates of a StatefulSet: `<template>-<set>-<ordinal>`.
fn may_be_claim_of(key: &ObjectKey, workload: &Workload<'_>) -> bool {
    let of_set = workload.key.kind == "StatefulSet" && key.kind == "PersistentVolumeClaim";
    of_set && key.name.rsplit_once('-').is_some_and(|(name, _)| name.ends_with(&format!("-{}", workload.key.name)))
}

/// What is kept of an object. A ConfigMap can be a megabyte, is mostly somebody else's, and no step looks into it.
fn kept(key: &ObjectKey, object: &Value) -> serde_json::Result<Vec<u8>> {
    if key.group.is_empty() && key.kind == "ConfigMap" {
        let [version, kind, metadata] = ["apiVersion", "kind", "metadata"].map(|field| &object[field]);
        return serde_json::to_vec(&json!({"apiVersion": version, "kind": kind, "metadata": metadata}));
    }
    serde_json::to_vec(object)
}

fn is_shared(key: &ObjectKey) -> bool {
    matches!((key.group.as_str(), key.kind.as_str()), ("", "PersistentVolumeClaim") | ("policy", "PodDisruptionBudget"))
        || autoscaler::is_autoscaler(key)
}

fn aims(key: &ObjectKey, object: &Value) -> Aims {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
    if autoscaler::is_autoscaler(key) {
        let default = (key.group == KEDA).then(|| "Deployment".to_owned());
        let kind = text("/spec/scaleTargetRef/kind").or(default).unwrap_or_default();
        return Aims::Scales(Box::new((kind, text("/spec/scaleTargetRef/name").unwrap_or_default())));
    }
    match object.pointer("/spec/selector") {
        Some(selector) if key.group == "policy" => Aims::Selects(Box::new(selector.clone())),
        Some(_) | None => Aims::Nobody,
    }
}

/// Resource versions are numbers that grow (Kubernetes 1.35 promises it, etcd always gave them so); one that is none is always news.
fn version(object: &Value) -> Option<u64> {
    object.pointer("/metadata/resourceVersion")?.as_str()?.parse().ok()
}

fn is_older(version: Option<u64>, than: Option<u64>) -> bool {
    version.zip(than).is_some_and(|(version, than)| version < than)
}

#[cfg(test)]
mod tests {
    use super::*;
    use cluster::crd::managed_component::COMPONENT_LABEL;

    fn object(api_version: &str, kind: &str, name: &str, version: u64, owner: Option<&str>, spec: Value) -> Value {
        let labels = owner.map(|owner| json!({COMPONENT_LABEL: owner}));
        json!({"apiVersion": api_version, "kind": kind, "spec": spec,
            "metadata": {"name": name, "namespace": "here", "resourceVersion": version.to_string(), "labels": labels}})
    }

    fn map(version: u64, owner: Option<&str>) -> Value {
        object("v1", "ConfigMap", "map", version, owner, json!({}))
    }

    fn workload(name: &str, owner: &str) -> Value {
        let template = json!({"metadata": {"labels": {"app": name}}});
        object("apps/v1", "Deployment", name, 1, Some(owner), json!({"template": template}))
    }

    fn names(found: &[Name]) -> Vec<&str> {
        found.iter().map(|name| name.name.as_str()).collect()
    }

    fn seen(store: &Store, component: &str) -> Vec<String> {
        let name = Name { namespace: "here".into(), name: component.into() };
        store.view(&name, []).keys().map(|key| format!("{}/{}", key.kind, key.name)).collect()
    }

    #[test]
    fn an_older_version_is_no_news() {
        let store = Store::default();
        assert_eq!(names(&store.put(&map(5, Some("a")))), ["a"]);
        for old in [5, 4] {
            assert_eq!(names(&store.put(&map(old, Some("b")))), [""; 0]);
        }
        assert_eq!(names(&store.remove(&map(4, None))), [""; 0], "deleted before it was made again");
        assert_eq!(names(&store.put(&map(6, Some("b")))), ["a", "b"], "both, the former owner and the new one");
        assert_eq!((seen(&store, "a").len(), seen(&store, "b").len()), (0, 1));
        assert_eq!(names(&store.remove(&map(7, None))), ["b"]);
        assert!(seen(&store, "b").is_empty());
    }

    #[test]
    fn of_a_config_map_only_what_it_is_and_whose_is_kept() {
        let store = Store::default();
        let mut big = map(5, Some("a"));
        big["data"] = json!({"x": "x".repeat(1 << 20)});
        store.put(&big);
        assert_eq!(store.read(&ObjectKey::of(&big)).unwrap()["metadata"], big["metadata"]);
        assert!(store.lock().objects.values().all(|entry| entry.bytes.len() < 1_000));
    }

    #[test]
    fn a_list_tells_what_is_gone() {
        let store = Store::default();
        store.put(&map(5, Some("a")));
        store.put(&workload("w", "a"));
        assert_eq!(names(&store.keep_only("", "ConfigMap", "elsewhere", &BTreeSet::new())), [""; 0]);
        assert_eq!(names(&store.keep_only("", "ConfigMap", "here", &BTreeSet::new())), ["a"]);
        assert_eq!(seen(&store, "a"), ["Deployment/w"]);
    }

    #[test]
    fn who_wants_a_name_is_concerned_once_when_it_is_let_go() {
        let store = Store::default();
        let want = |name: &str| {
            let name = Name { namespace: "here".into(), name: name.into() };
            store.wants(&name, [ObjectKey::of(&map(0, None))]);
        };
        store.put(&map(5, Some("a")));
        want("b");
        assert_eq!(names(&store.put(&map(6, Some("a")))), ["a"], "it is still a's");
        assert_eq!(names(&store.put(&map(7, None))), ["a", "b"]);
        assert_eq!(names(&store.put(&map(8, Some("b")))), ["b"]);
        want("a");
        assert_eq!(names(&store.remove(&map(9, None))), ["a", "b"]);
        assert_eq!(names(&store.put(&map(10, Some("c")))), ["c"]);
    }

    #[test]
    fn what_scales_or_selects_concerns_whoever_has_the_workload() {
        let store = Store::default();
        store.put(&workload("a", "a"));
        store.put(&workload("b", "b"));
        let scaler = object(
            "autoscaling/v2",
            "HorizontalPodAutoscaler",
            "by-hand",
            3,
            None,
            json!({"scaleTargetRef": {"kind": "Deployment", "name": "a"}}),
        );
        assert_eq!(names(&store.put(&scaler)), ["a"]);
        let budget = object("policy/v1", "PodDisruptionBudget", "by-hand", 4, None, json!({"selector": {"matchLabels": {"app": "b"}}}));
        assert_eq!(names(&store.put(&budget)), ["b"]);
        store.put(&object("apps/v1", "StatefulSet", "db", 5, Some("b"), json!({})));
        store.put(&object("v1", "PersistentVolumeClaim", "data-db-0", 5, None, json!({})));
        assert_eq!(seen(&store, "a"), ["Deployment/a", "HorizontalPodAutoscaler/by-hand"]);
        let expected = ["PersistentVolumeClaim/data-db-0", "Deployment/b", "StatefulSet/db", "PodDisruptionBudget/by-hand"];
        assert_eq!(seen(&store, "b"), expected);
        assert_eq!(names(&store.remove(&scaler)), ["a"]);
    }
}
