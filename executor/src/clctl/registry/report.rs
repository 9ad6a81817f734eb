//! What was found at registries, as data and as text.

use agent_api::manifest::RegistryMode;
use jiff::Timestamp;
use render::registry_check::{ItemKind, RegistryItem, RegistryReport};
use render::{PullError, Who};
use serde::Serialize;

use crate::clctl::age;
use crate::clctl::output::table;
use crate::terminal::{chain, escaped};

/// Everything that was checked.
#[derive(Serialize)]
pub(super) struct Checked {
    /// sha256 of the bundle; absent where none is staged.
    pub(super) bundle: Option<String>,
    pub(super) registries: Vec<Registry>,
}

/// One registry.
#[derive(Serialize)]
pub(super) struct Registry {
    host: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    mode: Option<RegistryMode>,
    /// Absent where the registry did not let anybody in; then `problem` says why.
    identity: Option<Identity>,
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
    items: Vec<Item>,
    /// Images of other registries, not asked for.
    unchecked: Vec<String>,
}

/// Who one is there.
#[derive(Serialize)]
struct Identity {
    /// User or ARN; absent for nobody.
    name: Option<String>,
    source: String,
    /// When the login ends, where that is known.
    ends: Option<Timestamp>,
}

/// A chart or image.
#[derive(Serialize)]
struct Item {
    kind: &'static str,
    reference: String,
    outcome: Outcome,
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<String>,
}

/// Whether it may be pulled.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
enum Outcome {
    Ok,
    Missing,
    Denied,
    Failed,
}

impl Outcome {
    fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Missing => "MISSING",
            Self::Denied => "DENIED",
            Self::Failed => "FAILED",
        }
    }
}

impl From<Who> for Identity {
    fn from(who: Who) -> Self {
        Self { name: who.name, source: who.source, ends: who.ends }
    }
}

impl Item {
    fn of(item: RegistryItem) -> Self {
        let kind = match item.kind {
            ItemKind::Chart => "chart",
            ItemKind::Image => "image",
        };
        let (outcome, detail) = match item.found {
            Ok(true) => (Outcome::Ok, None),
            Ok(false) => (Outcome::Missing, None),
            Err(error) if error.is_denial() => (Outcome::Denied, Some(chain(&error))),
            Err(error) => (Outcome::Failed, Some(chain(&error))),
        };
        Self { kind, reference: item.reference, outcome, detail }
    }
}

impl Registry {
    /// A bundle's registry.
    pub(super) fn of(found: RegistryReport) -> Self {
        Self {
            host: found.host,
            mode: Some(found.mode),
            identity: Some(found.who.into()),
            problem: None,
            items: found.items.into_iter().map(Item::of).collect(),
            unchecked: found.unchecked,
        }
    }

    /// A registry alone.
    pub(super) fn of_host(host: &str, found: Result<Who, PullError>) -> Self {
        let (identity, problem) = match found {
            Ok(who) => (Some(who.into()), None),
            Err(error) => (None, Some(chain(&error))),
        };
        Self { host: host.to_owned(), mode: None, identity, problem, items: Vec::new(), unchecked: Vec::new() }
    }

    fn text(&self, now: Timestamp) -> String {
        let mode = self.mode.and_then(|mode| serde_json::to_value(mode).ok());
        let mode = mode.as_ref().and_then(serde_json::Value::as_str).map(|mode| format!(" (mode {mode})")).unwrap_or_default();
        let mut lines = vec![format!("Registry: {}{mode}", self.host)];
        match &self.identity {
            Some(identity) => {
                let name = identity.name.as_deref().unwrap_or("nobody");
                lines.push(format!("Identity: {name} (from {})", identity.source));
                let ends = match identity.ends {
                    None => "not stated".to_owned(),
                    Some(ends) if ends <= now => format!("{ends} (this is past: check this machine's clock)"),
                    Some(ends) => format!("{ends} (in {})", age::short(ends.duration_since(now).as_secs())),
                };
                lines.push(format!("Login ends: {ends}"));
            }
            None => lines.push(format!("Problem: {}", self.problem.as_deref().unwrap_or_default())),
        }
        let mut text = lines.iter().map(|line| escaped(line, &['\n'])).collect::<Vec<_>>().join("\n");
        if !self.items.is_empty() {
            let rows = self.items.iter().map(|item| vec![item.outcome.name().to_owned(), item.kind.to_owned(), item.reference.clone()]);
            text.push_str("\n\n");
            text.push_str(&table(&["MAY PULL", "KIND", "REFERENCE"], rows.collect()));
        }
        for detail in self.items.iter().filter_map(|item| item.detail.as_ref()) {
            text.push_str(&format!("\n  - {}", escaped(detail, &['\n'])));
        }
        if !self.unchecked.is_empty() {
            text.push_str(&format!("\n\n{} images of other registries are not checked", self.unchecked.len()));
        }
        text
    }
}

impl Checked {
    /// Whether something cannot be pulled.
    pub(super) fn any_failed(&self) -> bool {
        self.registries.iter().any(|registry| registry.problem.is_some()) || !self.failures().is_empty()
    }

    /// Whether there is no login anywhere.
    pub(super) fn nobody_is_let_in(&self) -> bool {
        self.registries.iter().all(|registry| registry.problem.is_some())
    }

    /// References of what cannot be pulled.
    pub(super) fn failures(&self) -> Vec<String> {
        let items = self.registries.iter().flat_map(|registry| &registry.items);
        items.filter(|item| item.outcome != Outcome::Ok).map(|item| item.reference.clone()).collect()
    }

    /// For a person.
    pub(super) fn text(&self, now: Timestamp) -> String {
        self.registries.iter().map(|registry| registry.text(now)).collect::<Vec<_>>().join("\n\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_tells_who_what_and_until_when() {
        let now: Timestamp = "2026-11-30T10:00:00Z".parse().unwrap();
        let item = |kind, reference: &str, found| RegistryItem { kind, reference: reference.into(), found };
        let denied = PullError::Forbidden { reference: "r/b@sha256:2".into(), said: ": no\u{202e}".into() };
        let found = RegistryReport {
            host: "r".into(),
            mode: RegistryMode::Direct,
            who: Who { name: Some("arn:x".into()), source: "role y".into(), ends: Some("2026-11-30T11:00:00Z".parse().unwrap()) },
            items: vec![
                item(ItemKind::Chart, "r/a@sha256:1", Ok(true)),
                item(ItemKind::Image, "r/b@sha256:2", Err(denied)),
                item(ItemKind::Image, "r/c@sha256:3", Ok(false)),
            ],
            unchecked: vec!["other/d@sha256:4".into()],
        };
        let checked = Checked { bundle: None, registries: vec![Registry::of(found)] };
        let expected = "Registry: r (mode direct)\nIdentity: arn:x (from role y)\nLogin ends: 2026-11-30T11:00:00Z (in 60m)\n\n \
            MAY PULL  KIND   REFERENCE\n ok        chart  r/a@sha256:1\n DENIED    image  r/b@sha256:2\n MISSING   image  r/c@sha256:3\n  \
            - r/b@sha256:2: the registry knows the user and refuses the pull (403): no\\u{202e}\n\n\
            1 images of other registries are not checked";
        assert_eq!(checked.text(now), expected);
        let ended = checked.text("2026-11-30T11:00:00Z".parse().unwrap());
        assert!(ended.contains("\nLogin ends: 2026-11-30T11:00:00Z (this is past: check this machine's clock)\n"), "{ended}");
        assert!(checked.any_failed());
        assert_eq!(checked.failures(), ["r/b@sha256:2", "r/c@sha256:3"]);
    }
}
