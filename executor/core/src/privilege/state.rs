//! Roles and bindings as they are, or as they would be, and the rules behind a binding.

use std::collections::{BTreeMap, BTreeSet};

use agent_api::object::ObjectKey;
use serde_json::Value;

use super::grant::words;

/// RBAC's group.
const GROUP: &str = "rbac.authorization.k8s.io";

/// Roles and bindings by identity.
#[derive(Clone, Default)]
pub(super) struct State<'a> {
    roles: BTreeMap<ObjectKey, &'a Value>,
    bindings: BTreeMap<ObjectKey, &'a Value>,
}

impl<'a> State<'a> {
    pub(super) fn of(objects: impl IntoIterator<Item = &'a Value>) -> Self {
        let mut state = Self::default();
        for object in objects {
            let key = ObjectKey::of(object);
            match key.kind.as_str() {
                _ if key.group != GROUP => {}
                "Role" | "ClusterRole" => drop(state.roles.insert(key, object)),
                "RoleBinding" | "ClusterRoleBinding" => drop(state.bindings.insert(key, object)),
                _ => {}
            }
        }
        state
    }

    /// This state with `new` applied over it.
    pub(super) fn with(&self, new: &Self) -> Self {
        let mut state = self.clone();
        state.roles.extend(new.roles.clone());
        state.bindings.extend(new.bindings.clone());
        state
    }

    pub(super) fn bindings(&self) -> impl Iterator<Item = (&ObjectKey, &'a Value)> {
        self.bindings.iter().map(|(key, binding)| (key, *binding))
    }

    pub(super) fn roles(&self) -> impl Iterator<Item = (&ObjectKey, &'a Value)> {
        self.roles.iter().map(|(key, role)| (key, *role))
    }

    pub(super) fn has_binding(&self, key: &ObjectKey) -> bool {
        self.bindings.contains_key(key)
    }

    pub(super) fn has_role(&self, key: &ObjectKey) -> bool {
        self.roles.contains_key(key)
    }

    /// The rules of a role as they are stored; of an aggregated one those that its controller filled in.
    pub(super) fn stored_rules(&self, role: &ObjectKey) -> Option<Vec<&'a Value>> {
        self.roles.get(role).map(|role| rules(role).collect())
    }

    /// The rules of a role once its controller has filled it in from the roles of this state. What is stored already counts as well for
    /// a role that is not in `bundle`: not every role may have been readable.
    pub(super) fn rules(&self, role: &ObjectKey, bundle: &Self) -> Option<Vec<&'a Value>> {
        self.roles.get(role)?;
        let (mut all, mut seen, mut open) = (Vec::new(), BTreeSet::new(), vec![role]);
        while let Some(key) = open.pop() {
            let Some(role) = self.roles.get(key).filter(|_| seen.insert(key)) else { continue };
            let selectors = selectors(role);
            if selectors.is_empty() || !bundle.has_role(key) {
                all.extend(rules(role));
            }
            open.extend(self.roles.iter().filter(|(key, role)| key.kind == "ClusterRole" && fits(&selectors, role)).map(|(key, _)| key));
        }
        Some(all)
    }

    /// Roles whose rules change with the bundle's: its own, and aggregated ones that take from them, also by others.
    pub(super) fn affected_by(&self, bundle: &Self) -> BTreeSet<ObjectKey> {
        let mut affected: BTreeSet<ObjectKey> = bundle.roles.keys().cloned().collect();
        loop {
            let takes = |role: &Value| {
                let selectors = selectors(role);
                let sources = self.roles.iter().filter(|(key, _)| key.kind == "ClusterRole" && affected.contains(*key));
                let mut sources = sources.map(|(_, role)| *role);
                !selectors.is_empty() && sources.any(|source| fits(&selectors, source))
            };
            let more: Vec<ObjectKey> =
                self.roles.iter().filter(|(key, role)| !affected.contains(*key) && takes(role)).map(|(key, _)| key.clone()).collect();
            if more.is_empty() {
                return affected;
            }
            affected.extend(more);
        }
    }
}

/// The role that a binding names.
pub(super) fn role_of(binding: &Value) -> ObjectKey {
    let text = |pointer: &str| binding.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
    let kind = text("/roleRef/kind");
    let namespace = if kind == "Role" { text("/metadata/namespace") } else { String::new() };
    ObjectKey { group: GROUP.to_owned(), kind, namespace, name: text("/roleRef/name") }
}

fn rules(role: &Value) -> impl Iterator<Item = &Value> {
    role.get("rules").and_then(Value::as_array).into_iter().flatten()
}

fn selectors(role: &Value) -> Vec<&Value> {
    role.pointer("/aggregationRule/clusterRoleSelectors").and_then(Value::as_array).into_iter().flatten().collect()
}

fn fits(selectors: &[&Value], role: &Value) -> bool {
    let labels = role.pointer("/metadata/labels");
    let label = |key: &str| labels.and_then(|labels| labels.get(key)).and_then(Value::as_str);
    selectors.iter().any(|selector| {
        let mut pairs = selector.get("matchLabels").and_then(Value::as_object).into_iter().flatten();
        let mut expressions = selector.get("matchExpressions").and_then(Value::as_array).into_iter().flatten();
        pairs.all(|(key, value)| label(key) == value.as_str() && value.is_string())
            && expressions.all(|expression| {
                let text = |field: &str| expression.get(field).and_then(Value::as_str).unwrap_or_default();
                let found = label(text("key"));
                let listed = found.is_some_and(|found| words(expression, "values").contains(&found));
                match text("operator") {
                    "In" => listed,
                    "NotIn" => !listed,
                    "Exists" => found.is_some(),
                    "DoesNotExist" => found.is_none(),
                    // The API server refuses any other.
                    _ => false,
                }
            })
    })
}
