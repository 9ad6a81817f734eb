//! One verb on one thing: the atoms that rules are taken apart into, and when one holds another.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::{Serialize, Serializer};
use serde_json::Value;

/// Most atoms of one rule, and of all rules of a comparison: rules are products, and a chart of a few kilobytes could ask for more
/// than fits into memory.
const MOST_OF_A_RULE: usize = 5_000;
const MOST: usize = 200_000;

/// Characters of a URL's wider forms: a longer one is only found in forms that are short, or the whole of it.
const LONGEST_PREFIX: usize = 256;

/// Where a right holds.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Scope {
    /// In all namespaces, and on what lies in none.
    Cluster,
    /// In this namespace.
    Namespace(String),
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cluster => f.write_str("the whole cluster"),
            Self::Namespace(namespace) => write!(f, "namespace {namespace}"),
        }
    }
}

impl Serialize for Scope {
    /// The namespace's name, or null.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Cluster => serializer.serialize_none(),
            Self::Namespace(namespace) => serializer.serialize_str(namespace),
        }
    }
}

/// What a verb is for.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Target {
    Resource { group: String, resource: String, name: Option<String> },
    Url(String),
}

/// One verb on one thing.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Grant {
    pub(super) scope: Scope,
    pub(super) verb: String,
    pub(super) target: Target,
}

/// Grants, each with the bindings that give it.
pub(super) type Grants = BTreeMap<Grant, BTreeSet<String>>;

/// How many atoms may still be made.
pub(super) struct Budget(usize);

impl Default for Budget {
    fn default() -> Self {
        Self(MOST)
    }
}

impl Budget {
    fn take(&mut self, atoms: usize) -> Option<()> {
        if atoms > MOST_OF_A_RULE {
            return None;
        }
        self.0 = self.0.checked_sub(atoms)?;
        Some(())
    }
}

/// The atoms of a rule; `None` where there are too many. In a namespace a rule's URLs give nothing (Kubernetes, "Using RBAC").
pub(super) fn expand(rule: &Value, scope: &Scope, budget: &mut Budget) -> Option<Vec<Grant>> {
    let verbs = words(rule, "verbs");
    let (groups, resources) = (words(rule, "apiGroups"), words(rule, "resources"));
    let names: Vec<Option<String>> = match words(rule, "resourceNames") {
        names if names.is_empty() => vec![None],
        names => names.into_iter().map(|name| Some(name.to_owned())).collect(),
    };
    let urls = if *scope == Scope::Cluster { words(rule, "nonResourceURLs") } else { Vec::new() };
    let product = [groups.len(), resources.len(), names.len()].into_iter().try_fold(1_usize, usize::checked_mul)?;
    budget.take(product.checked_add(urls.len())?.checked_mul(verbs.len())?)?;
    let mut targets: Vec<Target> = urls.into_iter().map(|url| Target::Url(url.to_owned())).collect();
    for group in &groups {
        for resource in &resources {
            for name in &names {
                targets.push(Target::Resource { group: (*group).to_owned(), resource: (*resource).to_owned(), name: name.clone() });
            }
        }
    }
    let one = |verb: &str, target: &Target| Grant { scope: scope.clone(), verb: verb.to_owned(), target: target.clone() };
    Some(verbs.iter().flat_map(|verb| targets.iter().map(|target| one(verb, target))).collect())
}

impl Grant {
    /// Everything: what counts where a rule cannot be taken apart.
    pub(super) fn everything(scope: &Scope) -> Self {
        let target = Target::Resource { group: "*".into(), resource: "*".into(), name: None };
        Self { scope: scope.clone(), verb: "*".into(), target }
    }

    /// Whether `held` gives this too, in the same words or in wider ones.
    pub(super) fn is_in(&self, held: &Grants) -> bool {
        self.wider().any(|grant| held.contains_key(&grant))
    }

    /// Whether another grant of `held` gives this too.
    pub(super) fn is_in_another(&self, held: &Grants) -> bool {
        self.wider().any(|grant| grant != *self && held.contains_key(&grant))
    }

    /// Itself, and every grant that RBAC takes for it: a few dozen, so that looking each up is cheaper than comparing all.
    fn wider(&self) -> impl Iterator<Item = Self> + '_ {
        let scopes = or(self.scope.clone(), Scope::Cluster);
        let verbs = or(self.verb.clone(), "*".to_owned());
        let targets = self.target.wider();
        scopes.into_iter().flat_map(move |scope| {
            let targets = targets.clone();
            verbs.clone().into_iter().flat_map(move |verb| {
                let scope = scope.clone();
                targets.clone().into_iter().map(move |target| Self { scope: scope.clone(), verb: verb.clone(), target })
            })
        })
    }
}

impl Target {
    fn wider(&self) -> Vec<Self> {
        match self {
            Self::Resource { group, resource, name } => {
                let mut resources = or(resource.clone(), "*".to_owned());
                resources.extend(resource.split_once('/').map(|(_, sub)| format!("*/{sub}")));
                let mut targets = Vec::new();
                for group in or(group.clone(), "*".to_owned()) {
                    for resource in &resources {
                        for name in or(name.clone(), None) {
                            targets.push(Self::Resource { group: group.clone(), resource: resource.clone(), name });
                        }
                    }
                }
                targets
            }
            // A star at the end stands for any rest, and only there.
            Self::Url(url) => {
                let fixed = url.strip_suffix('*').unwrap_or(url);
                let prefixes = fixed.char_indices().take(LONGEST_PREFIX).map(|(at, _)| &fixed[..at]).chain([fixed]);
                [Self::Url(url.clone())].into_iter().chain(prefixes.map(|prefix| Self::Url(format!("{prefix}*")))).collect()
            }
        }
    }
}

fn or<T: PartialEq>(own: T, wide: T) -> Vec<T> {
    if own == wide { vec![own] } else { vec![own, wide] }
}

pub(super) fn words<'a>(rule: &'a Value, field: &str) -> Vec<&'a str> {
    rule.get(field).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect()
}
