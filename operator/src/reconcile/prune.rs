//! What goes: in an update, what the inventory has and the spec no longer asks for; in a deletion, all that the inventory has. Never anything that
//! the inventory does not have, and nothing that another component owns.
//!
//! `helm.sh/resource-policy: keep` spares an object in an update only. Claims that a StatefulSet made from its templates are in no inventory: they
//! stay, and are named.

use std::collections::BTreeSet;
use std::time::Duration;

use agent_api::object::ObjectKey;
use cluster::crd::component_kind::ComponentKind;
use cluster::crd::managed_component::InventoryItem;
use cluster::object::finalizers;
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::Live;
use super::diff::owner;
use super::observe::Outcome;
use super::reason::Reason;

/// Helm's annotation of objects that an update spares.
pub const RESOURCE_POLICY: &str = "helm.sh/resource-policy";

/// What becomes of an object of the inventory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Fate {
    /// It is deleted.
    Delete,
    /// It stays, and in the inventory: `keep`.
    Keep,
    /// It leaves the inventory: it is gone.
    Gone,
    /// It leaves the inventory: another component, or nobody, owns it now.
    Left,
}

/// Whether an object says that updates spare it.
#[must_use]
pub fn is_kept(object: &Value) -> bool {
    let policy = object.pointer("/metadata/annotations").and_then(|annotations| annotations.get(RESOURCE_POLICY)).and_then(Value::as_str);
    policy.is_some_and(|policy| policy.trim().eq_ignore_ascii_case("keep"))
}

/// The inventory that is recorded before the first write: what it had, and what is about to be written.
#[must_use]
pub fn recorded<'a>(inventory: &[InventoryItem], desired: impl IntoIterator<Item = &'a Value>) -> Vec<InventoryItem> {
    let wanted: Vec<InventoryItem> = desired.into_iter().map(|object| InventoryItem::of(ObjectKey::of(object), is_kept(object))).collect();
    let keys: BTreeSet<ObjectKey> = wanted.iter().map(InventoryItem::key).collect();
    let mut all: Vec<InventoryItem> = inventory.iter().filter(|item| !keys.contains(&item.key())).cloned().chain(wanted).collect();
    all.sort();
    all
}

/// What an update does with each object that is no longer desired.
#[must_use]
pub fn update(component: &str, inventory: &[InventoryItem], desired: &BTreeSet<ObjectKey>, live: &Live) -> Vec<(ObjectKey, Fate)> {
    let unwanted = inventory.iter().filter(|item| !desired.contains(&item.key()));
    in_order_of_removal(unwanted.map(|item| {
        let key = item.key();
        let fate = match live.get(&key) {
            None => Fate::Gone,
            Some(object) if owner(object) != Some(component) => Fate::Left,
            Some(object) if item.keep || is_kept(object) => Fate::Keep,
            Some(_) => Fate::Delete,
        };
        (key, fate)
    }))
}

/// Keeps what would be deleted; which objects those are.
pub fn spare(fates: &mut [(ObjectKey, Fate)]) -> Vec<ObjectKey> {
    let deleted = fates.iter_mut().filter(|(_, fate)| *fate == Fate::Delete);
    deleted
        .map(|(key, fate)| {
            *fate = Fate::Keep;
            key.clone()
        })
        .collect()
}

/// What a deletion does with each object of the inventory. `keep` spares nothing here.
#[must_use]
pub fn deletion(component: &str, inventory: &[InventoryItem], live: &Live) -> Vec<(ObjectKey, Fate)> {
    in_order_of_removal(inventory.iter().map(|item| {
        let key = item.key();
        let fate = match live.get(&key) {
            None => Fate::Gone,
            Some(object) if owner(object) != Some(component) => Fate::Left,
            Some(_) => Fate::Delete,
        };
        (key, fate)
    }))
}

/// Objects with `keep` that a deletion removes, named in the status before it does.
#[must_use]
pub fn kept_until_deletion(inventory: &[InventoryItem], live: &Live) -> Vec<ObjectKey> {
    inventory.iter().filter(|item| item.keep || live.get(&item.key()).is_some_and(is_kept)).map(InventoryItem::key).collect()
}

/// Claims that the inventory's StatefulSets made from their templates: `<template>-<set>-<ordinal>`. A deletion leaves them.
#[must_use]
pub fn claims_of_sets(inventory: &[InventoryItem], live: &Live) -> Vec<ObjectKey> {
    let recorded: BTreeSet<ObjectKey> = inventory.iter().map(InventoryItem::key).collect();
    let prefixes: Vec<(&str, String)> = inventory
        .iter()
        .filter(|item| item.group == "apps" && item.kind == "StatefulSet")
        .filter_map(|item| Some((item, live.get(&item.key())?.pointer("/spec/volumeClaimTemplates")?.as_array()?)))
        .flat_map(|(item, templates)| templates.iter().map(move |template| (item, template)))
        .filter_map(|(item, template)| {
            let name = template.pointer("/metadata/name")?.as_str()?;
            Some((item.namespace.as_str(), format!("{name}-{}-", item.name)))
        })
        .collect();
    let is_of_a_set = |key: &&ObjectKey| {
        prefixes.iter().any(|(namespace, prefix)| {
            let ordinal = key.name.strip_prefix(prefix.as_str()).unwrap_or_default();
            key.namespace == *namespace && !ordinal.is_empty() && ordinal.bytes().all(|byte| byte.is_ascii_digit())
        })
    };
    let claims = live.keys().filter(|key| key.group.is_empty() && key.kind == "PersistentVolumeClaim" && !recorded.contains(key));
    claims.filter(is_of_a_set).cloned().collect()
}

/// So long an object that is being deleted may take before whoever holds it is named.
const PATIENCE: SignedDuration = SignedDuration::from_secs(60);

/// What holds a deletion up: objects that have been going for too long, with their finalizers. Else how long until that may be so.
#[must_use]
pub fn held(fates: &[(ObjectKey, Fate)], live: &Live, now: Timestamp) -> (Option<Outcome>, Option<Duration>) {
    let going = |key: &ObjectKey| {
        let object = live.get(key)?;
        let since: Timestamp = object.pointer("/metadata/deletionTimestamp")?.as_str()?.parse().ok()?;
        Some((since, finalizers(object).join(", ")))
    };
    let going: Vec<_> = fates.iter().filter_map(|(key, _)| going(key).map(|(since, by)| (key, since, by))).collect();
    let late: Vec<String> = going
        .iter()
        .filter(|(_, since, _)| now.duration_since(*since) >= PATIENCE)
        .map(|(key, since, by)| format!("{key} has been going since {since}, held by {by}"))
        .collect();
    if !late.is_empty() {
        return (Some(Outcome::Blocked { reason: Reason::HeldByFinalizer, message: late.join("; ") }), None);
    }
    let first = going.iter().map(|(_, since, _)| *since).min();
    (None, first.map(|since| Duration::try_from(PATIENCE - now.duration_since(since)).unwrap_or_default() + Duration::from_secs(1)))
}

/// The opposite of the order in which kinds are applied.
fn in_order_of_removal(fates: impl Iterator<Item = (ObjectKey, Fate)>) -> Vec<(ObjectKey, Fate)> {
    let mut fates: Vec<_> = fates.collect();
    fates.sort_by_key(|(key, _)| (std::cmp::Reverse(ComponentKind::order(&key.group, &key.kind)), key.clone()));
    fates
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reconcile::live;
    use serde_json::json;

    fn object(kind: &str, name: &str, owner: &str, policy: &str) -> Value {
        let api_version = if ["Deployment", "StatefulSet"].contains(&kind) { "apps/v1" } else { "v1" };
        let mut object = json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name, "namespace": "here",
            "labels": {}, "annotations": {}}});
        if !owner.is_empty() {
            object["metadata"]["labels"]["platform.navin.ai/component"] = owner.into();
        }
        if !policy.is_empty() {
            object["metadata"]["annotations"][RESOURCE_POLICY] = policy.into();
        }
        object
    }

    fn names(fates: &[(ObjectKey, Fate)]) -> Vec<String> {
        fates.iter().map(|(key, fate)| format!("{} {fate:?}", key.name)).collect()
    }

    /// "suppression" and "configuration": what goes and what stays.
    #[test]
    fn fates() {
        for (name, item_keeps, live_object, on_update, on_deletion) in [
            ("an ordinary one", false, Some(object("ConfigMap", "a", "redis", "")), Fate::Delete, Fate::Delete),
            ("it is gone", false, None, Fate::Gone, Fate::Gone),
            ("another component's", false, Some(object("ConfigMap", "a", "other", "")), Fate::Left, Fate::Left),
            ("nobody's", false, Some(object("ConfigMap", "a", "", "")), Fate::Left, Fate::Left),
            ("keep", true, Some(object("ConfigMap", "a", "redis", "keep")), Fate::Keep, Fate::Delete),
            ("keep, as it was recorded", true, Some(object("ConfigMap", "a", "redis", "")), Fate::Keep, Fate::Delete),
            ("keep, as it is live", false, Some(object("ConfigMap", "a", "redis", "Keep")), Fate::Keep, Fate::Delete),
            ("another policy", false, Some(object("ConfigMap", "a", "redis", "delete")), Fate::Delete, Fate::Delete),
        ] {
            let key = ObjectKey::of(&object("ConfigMap", "a", "", ""));
            let inventory = [InventoryItem::of(key.clone(), item_keeps)];
            let live = live(live_object);
            let none = BTreeSet::new();
            assert_eq!(update("redis", &inventory, &none, &live), [(key.clone(), on_update)], "{name}");
            assert_eq!(deletion("redis", &inventory, &live), [(key.clone(), on_deletion)], "{name}");
            assert_eq!(update("redis", &inventory, &BTreeSet::from([key]), &live), [], "{name}, and still desired");
        }
    }

    #[test]
    fn removal_is_in_the_opposite_order_and_never_of_what_was_not_applied() {
        let ours = [
            object("ServiceAccount", "account", "redis", ""),
            object("Deployment", "app", "redis", ""),
            object("Service", "service", "redis", ""),
        ];
        let inventory: Vec<InventoryItem> = ours.iter().map(|object| InventoryItem::of(ObjectKey::of(object), false)).collect();
        let live = live([&ours[..], &[object("ConfigMap", "not-applied", "redis", "")]].concat());
        assert_eq!(names(&deletion("redis", &inventory, &live)), ["app Delete", "service Delete", "account Delete"]);
    }

    #[test]
    fn what_is_about_to_be_written_is_recorded_first() {
        let old = InventoryItem::of(ObjectKey::of(&object("ConfigMap", "old", "", "")), false);
        let both = InventoryItem::of(ObjectKey::of(&object("ConfigMap", "both", "", "")), false);
        let desired = [object("ConfigMap", "both", "redis", "keep"), object("Service", "new", "redis", "")];
        let found: Vec<(String, bool)> = recorded(&[old, both], &desired).into_iter().map(|item| (item.name, item.keep)).collect();
        assert_eq!(found, [("both".into(), true), ("old".into(), false), ("new".into(), false)]);
    }

    #[test]
    fn claims_of_stateful_sets_stay_and_are_named() {
        let mut set = object("StatefulSet", "redis", "redis", "");
        set["spec"] = json!({"volumeClaimTemplates": [{"metadata": {"name": "data"}}]});
        let claims = ["data-redis-0", "data-redis-11", "data-redis-x", "data-redis-", "data-other-0", "chart-claim"];
        let own = object("PersistentVolumeClaim", "chart-claim", "redis", "");
        let inventory = [InventoryItem::of(ObjectKey::of(&set), false), InventoryItem::of(ObjectKey::of(&own), true)];
        let live = live(claims.iter().map(|name| object("PersistentVolumeClaim", name, "", "")).chain([set]));
        let found: Vec<String> = claims_of_sets(&inventory, &live).into_iter().map(|key| key.name).collect();
        assert_eq!(found, ["data-redis-0", "data-redis-11"]);
        let kept: Vec<String> = kept_until_deletion(&inventory, &live).into_iter().map(|key| key.name).collect();
        assert_eq!(kept, ["chart-claim"]);
    }

    #[test]
    fn what_holds_a_deletion_is_named_after_a_minute() {
        let mut object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "here",
            "deletionTimestamp": "1970-01-01T00:01:00Z", "finalizers": ["acme.io/hold"]}});
        let fates = [(ObjectKey::of(&object), Fate::Delete)];
        let at = |object: &Value, second: i64| held(&fates, &live([object.clone()]), Timestamp::from_second(second).unwrap());
        assert_eq!(at(&object, 70), (None, Some(Duration::from_secs(51))));
        let (outcome, look) = at(&object, 120);
        let Some(Outcome::Blocked { reason: Reason::HeldByFinalizer, message }) = outcome else { panic!("{outcome:?}") };
        assert_eq!((message.as_str(), look), ("ConfigMap here/a has been going since 1970-01-01T00:01:00Z, held by acme.io/hold", None));
        object["metadata"].as_object_mut().unwrap().remove("deletionTimestamp");
        assert_eq!(at(&object, 120), (None, None), "not asked to go yet");
        assert_eq!(held(&fates, &Live::new(), Timestamp::from_second(120).unwrap()), (None, None));
    }
}
