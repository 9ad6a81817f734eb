//! The comparison: what identities may do that they might not before, and what is needed no more.
//!
//! "Before" is what the live objects of the former bundle gave. A right that somebody else gave counts as new here all the same: from
//! now on it is the bundle that gives it. Bindings of somebody else's count where they name a role that the bundle changes.

use std::collections::{BTreeMap, BTreeSet};

use agent_api::keys;
use agent_api::object::ObjectKey;
use serde::Serialize;
use serde_json::Value;

use super::grant::{self, Budget, Grant, Grants, Scope};
use super::identity::Identity;
use super::right::{self, Right};
use super::state::{self, State};

/// What a bundle changes about who may do what.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Comparison {
    /// Rights that are new.
    pub new: Vec<Holding>,
    /// Rights that the approval takes away.
    pub ending: Vec<Holding>,
    /// Rights that the bundle needs no more, and that objects left over go on giving until somebody removes them.
    pub lingering: Vec<Holding>,
    /// New rights in roles of the bundle that nothing binds yet.
    pub unbound: Vec<Unbound>,
    /// What could not be told, as sentences.
    pub unresolved: Vec<String>,
}

/// Rights of one identity.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Holding {
    /// Whose.
    pub identity: Identity,
    /// Which, those that are escalation-grade first.
    pub rights: Vec<Right>,
}

/// Rights in a role that nobody has yet.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Unbound {
    /// The role.
    pub role: String,
    /// Its rights.
    pub rights: Vec<Right>,
}

type Held = BTreeMap<Identity, Grants>;

/// Compares the live roles and bindings of a cluster with what a bundle makes of them. Objects of other kinds are passed over.
#[must_use]
pub fn compare<'a>(live: impl IntoIterator<Item = &'a Value>, bundle: impl IntoIterator<Item = &'a Value>) -> Comparison {
    let (live, bundle) = (State::of(live), State::of(bundle));
    let then = live.with(&bundle);
    let affected = then.affected_by(&bundle);
    let ours = |key: &ObjectKey, binding: &Value| bundle.has_binding(key) || is_ours(binding);
    let counts = |key: &ObjectKey, binding: &Value| ours(key, binding) || affected.contains(&state::role_of(binding));

    let stored = |role: &ObjectKey| live.stored_rules(role);
    let filled = |role: &ObjectKey| then.rules(role, &bundle);
    let (mut before, mut former, mut after, mut lasting) =
        (Collector::lenient(), Collector::lenient(), Collector::strict(), Collector::lenient());
    for (key, binding) in live.bindings().filter(|(key, binding)| counts(key, binding)) {
        before.add(key, binding, stored);
        if ours(key, binding) {
            former.add(key, binding, stored);
        }
    }
    for (key, binding) in then.bindings().filter(|(key, binding)| counts(key, binding)) {
        after.add(key, binding, filled);
        if bundle.has_binding(key) {
            lasting.add(key, binding, filled);
        }
    }

    let bound: BTreeSet<ObjectKey> = then.bindings().map(|(_, binding)| state::role_of(binding)).collect();
    let (ended, kept) = split(without(&former.held, &lasting.held), &after.held);
    let unbound = unbound(&live, &then, &bundle, &bound, &mut after);
    Comparison {
        new: holdings(&without(&after.held, &before.held)),
        ending: holdings(&ended),
        lingering: holdings(&kept),
        unbound,
        unresolved: after.unresolved.into_iter().collect(),
    }
}

/// An object of a former bundle: our label, or an approval's stamp.
fn is_ours(object: &Value) -> bool {
    let of = |place: &str, key: &str| object.get("metadata")?.get(place)?.get(key)?.as_str();
    of("labels", keys::MANAGED_BY) == Some(keys::MANAGED_BY_PLATFORM) || of("annotations", keys::BUNDLE_SHA256).is_some()
}

fn unbound(live: &State<'_>, then: &State<'_>, bundle: &State<'_>, bound: &BTreeSet<ObjectKey>, into: &mut Collector) -> Vec<Unbound> {
    let mut found = Vec::new();
    for (key, _) in bundle.roles().filter(|(key, _)| !bound.contains(*key)) {
        let scope = if key.namespace.is_empty() { Scope::Cluster } else { Scope::Namespace(key.namespace.clone()) };
        let grants = |rules: Option<Vec<&Value>>, collector: &mut Collector| -> Grants {
            let grants = collector.expand(key, rules.unwrap_or_default(), &scope);
            grants.into_iter().map(|grant| (grant, BTreeSet::new())).collect()
        };
        let before = grants(live.stored_rules(key), &mut Collector::lenient());
        let mut new = grants(then.rules(key, bundle), into);
        new.retain(|grant, _| !grant.is_in(&before));
        if !new.is_empty() {
            found.push(Unbound { role: key.to_string(), rights: right::rights(&new) });
        }
    }
    found
}

/// What of `left` nothing in `right` gives the same identity.
fn without(left: &Held, right: &Held) -> Held {
    let nothing = Grants::new();
    let rest = left.iter().map(|(identity, grants)| {
        let held = right.get(identity).unwrap_or(&nothing);
        let rest = grants.iter().filter(|(grant, _)| !grant.is_in(held));
        (identity.clone(), rest.map(|(grant, by)| (grant.clone(), by.clone())).collect())
    });
    rest.collect()
}

/// What is gone in `after`, and what is not.
fn split(held: Held, after: &Held) -> (Held, Held) {
    let gone = without(&held, after);
    let mut kept = held;
    for (identity, grants) in &mut kept {
        grants.retain(|grant, _| !gone.get(identity).is_some_and(|gone| gone.contains_key(grant)));
    }
    (gone, kept)
}

fn holdings(held: &Held) -> Vec<Holding> {
    let some = held.iter().filter(|(_, grants)| !grants.is_empty());
    some.map(|(identity, grants)| Holding { identity: identity.clone(), rights: right::rights(grants) }).collect()
}

/// Gathers what bindings give.
struct Collector {
    held: Held,
    unresolved: BTreeSet<String>,
    budget: Budget,
    strict: bool,
}

impl Collector {
    /// What cannot be told counts as everything, and is said.
    fn strict() -> Self {
        Self { held: Held::new(), unresolved: BTreeSet::new(), budget: Budget::default(), strict: true }
    }

    /// What cannot be told counts as nothing, so that it hides nothing that is new.
    fn lenient() -> Self {
        Self { strict: false, ..Self::strict() }
    }

    fn add<'a>(&mut self, key: &ObjectKey, binding: &Value, rules: impl Fn(&ObjectKey) -> Option<Vec<&'a Value>>) {
        let role = state::role_of(binding);
        let Some(rules) = rules(&role) else {
            self.unresolved.insert(format!(
                "{} names {}, which is not there or could not be read: what it gives is not known",
                of(key),
                of(&role)
            ));
            return;
        };
        let scope = if key.namespace.is_empty() { Scope::Cluster } else { Scope::Namespace(key.namespace.clone()) };
        let grants = self.expand(&role, rules, &scope);
        let by = format!("{} → {}", of(key), of(&role));
        let subjects = binding.get("subjects").and_then(Value::as_array).into_iter().flatten();
        for identity in subjects.filter_map(|subject| Identity::of(subject, &key.namespace)) {
            let held = self.held.entry(identity).or_default();
            for grant in &grants {
                held.entry(grant.clone()).or_default().insert(by.clone());
            }
        }
    }

    fn expand(&mut self, role: &ObjectKey, rules: Vec<&Value>, scope: &Scope) -> Vec<Grant> {
        let mut grants = Vec::new();
        for rule in rules {
            match grant::expand(rule, scope, &mut self.budget) {
                Some(more) => grants.extend(more),
                None if self.strict => {
                    self.unresolved.insert(format!("{} has more rules than can be compared: it counts as everything", of(role)));
                    grants.push(Grant::everything(scope));
                }
                None => {}
            }
        }
        grants
    }
}

/// Kind and name, without the group that all of them have.
fn of(key: &ObjectKey) -> String {
    ObjectKey { group: String::new(), ..key.clone() }.to_string()
}
