//! Grants put together again, into lines that a person can read.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::grant::{Grants, Scope, Target};
use super::mark::{self, Mark};

/// Verbs on resources of one group, or on URLs.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
pub struct Right {
    /// Why it is escalation-grade; empty where it is not.
    pub escalation: Vec<Mark>,
    /// Where it holds.
    #[serde(rename = "namespace")]
    pub scope: Scope,
    /// The verbs.
    pub verbs: Vec<String>,
    /// The API group, empty for the core group; `None` for URLs.
    pub api_group: Option<String>,
    /// Resources with their subresources; empty for URLs.
    pub resources: Vec<String>,
    /// Only these objects; empty for all.
    pub resource_names: Vec<String>,
    /// URLs that are no resources.
    pub non_resource_urls: Vec<String>,
    /// The bindings that give it; empty for a role that nothing binds.
    pub given_by: Vec<String>,
}

type Marks = BTreeSet<Mark>;
type Words = BTreeSet<String>;

/// What a line has but for the things that it is about: those that share all of this are told together. URLs have no group.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Common<'a> {
    scope: &'a Scope,
    group: Option<&'a str>,
    verbs: Words,
    marks: Marks,
    by: &'a Words,
}

/// The lines of grants, those that are escalation-grade first. A grant that another one of them holds is left out.
pub(super) fn rights(grants: &Grants) -> Vec<Right> {
    let own = grants.iter().filter(|(grant, _)| !grant.is_in_another(grants));
    let mut by_target: BTreeMap<(&Scope, &Target, &Words), (Words, Marks)> = BTreeMap::new();
    for (grant, by) in own {
        let (verbs, marks) = by_target.entry((&grant.scope, &grant.target, by)).or_default();
        verbs.insert(grant.verb.clone());
        marks.extend(mark::marks(grant));
    }
    let mut by_thing: BTreeMap<(Common<'_>, &str), Words> = BTreeMap::new();
    for ((scope, target, by), (verbs, marks)) in by_target {
        let (group, thing, name) = match target {
            Target::Resource { group, resource, name } => (Some(group.as_str()), resource.as_str(), name.clone()),
            Target::Url(url) => (None, url.as_str(), None),
        };
        by_thing.entry((Common { scope, group, verbs, marks, by }, thing)).or_default().extend(name);
    }
    let mut lines: BTreeMap<(Common<'_>, Words), Words> = BTreeMap::new();
    for ((common, thing), names) in by_thing {
        lines.entry((common, names)).or_default().insert(thing.to_owned());
    }
    let mut rights: Vec<Right> = lines
        .into_iter()
        .map(|((Common { scope, group, verbs, marks, by }, names), things)| {
            let (resources, urls) = if group.is_some() { (things, Words::new()) } else { (Words::new(), things) };
            Right {
                escalation: marks.into_iter().collect(),
                scope: scope.clone(),
                verbs: verbs.into_iter().collect(),
                api_group: group.map(str::to_owned),
                resources: resources.into_iter().collect(),
                resource_names: names.into_iter().collect(),
                non_resource_urls: urls.into_iter().collect(),
                given_by: by.iter().cloned().collect(),
            }
        })
        .collect();
    rights.sort_by_key(|right| right.escalation.is_empty());
    rights
}
