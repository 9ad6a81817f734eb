//! Who may do what more: by identity, in words where it leads further, and as a table.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use executor_core::privilege::{Holding, Mark, PodAccess, Right};

use super::super::plan::Plan;
use super::{count, escaped, list};
use crate::clctl::output;

/// Everything about privileges and pods.
pub(super) fn write(plan: &Plan, out: &mut String) {
    let privileges = &plan.privileges;
    holdings(out, "New privileges (! leads to more rights than it says)", &privileges.new);
    if !privileges.unbound.is_empty() {
        let _ = writeln!(out, "New rights in roles that nothing binds yet:");
        for unbound in &privileges.unbound {
            identity(out, &unbound.role, "who is bound to it could", &unbound.rights);
        }
        out.push('\n');
    }
    holdings(out, "Privileges that this approval takes away", &privileges.ending);
    holdings(out, "Privileges that are needed no more, and that objects left over go on giving", &privileges.lingering);
    list(out, "Privileges that could not be told", &privileges.unresolved);
    list(out, "Pods of the workload", &plan.pods.iter().map(pods).collect::<Vec<_>>());
}

fn holdings(out: &mut String, title: &str, holdings: &[Holding]) {
    if holdings.is_empty() {
        return;
    }
    let _ = writeln!(out, "{title}:");
    for holding in holdings {
        identity(out, &holding.identity.to_string(), "it could", &holding.rights);
    }
    out.push('\n');
}

fn identity(out: &mut String, name: &str, could: &str, rights: &[Right]) {
    let _ = writeln!(out, "  {}: {}", escaped(name), count(rights.len(), "right", "rights"));
    let further = further(rights);
    if !further.is_empty() {
        let _ = writeln!(out, "    {could} {}", escaped(&further));
    }
    let table = output::table(&["", "WHERE", "VERBS", "ON", "GIVEN BY"], rights.iter().map(row).collect());
    for line in table.lines() {
        let _ = writeln!(out, "    {line}");
    }
}

/// `read Secrets (namespace a, namespace b); run pods … (the whole cluster)`.
fn further(rights: &[Right]) -> String {
    let mut places: BTreeMap<Mark, Vec<String>> = BTreeMap::new();
    for right in rights {
        for mark in &right.escalation {
            let place = if right.resource_names.is_empty() {
                right.scope.to_string()
            } else {
                format!("{}, named {}", right.scope, right.resource_names.join(", "))
            };
            let places = places.entry(*mark).or_default();
            if !places.contains(&place) {
                places.push(place);
            }
        }
    }
    let sentences: Vec<String> = places.iter().map(|(mark, places)| format!("{} ({})", mark.words(), places.join("; "))).collect();
    sentences.join("; ")
}

fn row(right: &Right) -> Vec<String> {
    let mark = if right.escalation.is_empty() { "" } else { "!" };
    let on = match &right.api_group {
        None => right.non_resource_urls.join(", "),
        Some(group) => {
            let group = if group.is_empty() { "core" } else { group };
            let names = &right.resource_names;
            let named = if names.is_empty() { String::new() } else { format!(", named {}", names.join(", ")) };
            format!("{} ({group}){named}", right.resources.join(", "))
        }
    };
    vec![mark.into(), right.scope.to_string(), right.verbs.join(", "), on, right.given_by.join("; ")]
}

fn pods(pods: &PodAccess) -> String {
    let account = format!("{} runs as ServiceAccount {}/{}", pods.object, pods.namespace, pods.service_account);
    if pods.node.is_empty() {
        return format!("{account}, without access to its node");
    }
    let ways = pods.node.iter().map(|way| format!("{}{}", if way.new { "new: " } else { "" }, way.what));
    format!("! {account}, and {}", ways.collect::<Vec<_>>().join("; "))
}
