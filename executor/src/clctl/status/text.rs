//! The status for people: a line for each part, then a line for each component. What is old says so.

use std::fmt::Write as _;

use agent_api::heartbeat::{AccessState, ComponentState};
use serde::Serialize;
use serde_json::Value;

use super::Seen;
use crate::clctl::age;
use crate::clctl::output::table;
use crate::local_api::{ChannelState, ChannelView, SyncView};
use crate::terminal::escaped;

/// What was read longer ago is old: the executor looks far more often.
const OLD_S: i64 = 120;
const HEADER: [&str; 9] = ["COMPONENT", "CHART", "STATE", "HEALTH", "OPERATION", "SECURITY", "READY", "READ", "MESSAGE"];

pub(super) fn text(seen: &Seen, now: jiff::Timestamp) -> String {
    let platform = &seen.platform;
    let mut out = String::new();
    let mut line = |name: &str, value: String| {
        let _ = writeln!(out, "{:<10} {}", format!("{name}:"), escaped(&value, &[]));
    };
    let sha = |sha256: &Option<agent_api::digest::Sha256>| sha256.as_ref().map_or("-".to_owned(), ToString::to_string);
    let sync = seen.sync.as_ref().map(|sync| format!(": {}", running(sync))).unwrap_or_default();
    line("Platform", format!("{}{sync}", word(&platform.status)));
    line("Pending", sha(&platform.pending_sha256));
    line("Approved", format!("{}{}", sha(&platform.approved_sha256), expiry(platform.approval_expires_at, now)));
    line("Applied", sha(&platform.applied_sha256));
    if platform.attempts > 0 {
        line("Attempts", platform.attempts.to_string());
    }
    if platform.leftovers > 0 {
        let objects = if platform.leftovers == 1 { "object" } else { "objects" };
        line("Leftovers", format!("{} {objects} of former bundles", platform.leftovers));
    }
    if let Some(drift) = platform.drift.filter(|drift| *drift > 0) {
        let objects = if drift == 1 { "object is" } else { "objects are" };
        line("Drift", format!("{drift} {objects} not as approved (which, and in what: clicklink clctl status -o json)"));
    }
    if let Some(message) = &platform.message {
        line("Message", message.split_whitespace().collect::<Vec<_>>().join(" "));
    }
    if let Some(channel) = &seen.channel {
        line("Channel", self::channel(channel, now));
    }
    line("Cluster", cluster(seen, now));
    line("Access", format!("_cluster {}, _platform {}", access(seen.access.cluster), access(seen.access.platform)));
    if let Some(commands) = &seen.commands {
        line("Commands", format!("{} queued, {} running", commands.queued, commands.running));
        if let Some(error) = &commands.journal_error {
            line("Journal", format!("takes no records: {error}"));
        }
    }
    if let Some(executor) = &seen.executor {
        line("Executor", format!("{} version {}, up {}", executor.id, executor.version, age::since(executor.started_at, now)));
    }
    if !seen.components.is_empty() {
        out.push('\n');
        out.push_str(&table(&HEADER, seen.components.iter().map(|component| row(component, now)).collect()));
    }
    out.trim_end().to_owned()
}

/// Each part that was read too long ago, or never.
pub(super) fn old(seen: &Seen, now: jiff::Timestamp) -> Vec<String> {
    let components = seen.components.iter().map(|component| (format!("component {}", component.name), component.observed_at));
    std::iter::once(("cluster".to_owned(), seen.cluster.observed_at))
        .chain(components)
        .filter_map(|(part, at)| match at {
            None => Some(format!("{part}: never read")),
            Some(at) if is_old(at, now) => Some(format!("{part}: read {} ago", age::since(at, now))),
            Some(_) => None,
        })
        .collect()
}

fn is_old(at: jiff::Timestamp, now: jiff::Timestamp) -> bool {
    now.duration_since(at).as_secs() > OLD_S
}

fn read(at: Option<jiff::Timestamp>, now: jiff::Timestamp) -> String {
    match at {
        None => "never".to_owned(),
        Some(at) if is_old(at, now) => format!("{} ago (old)", age::since(at, now)),
        Some(at) => format!("{} ago", age::since(at, now)),
    }
}

fn running(sync: &SyncView) -> String {
    let component = sync.component.as_ref().map(|component| format!(" {component}")).unwrap_or_default();
    format!("{}{component}, step {} of {}", sync.stage, sync.step, sync.of)
}

fn channel(channel: &ChannelView, now: jiff::Timestamp) -> String {
    let lasts = age::since(channel.since, now);
    let standing = match (channel.state, &channel.transport) {
        (ChannelState::Connected, Some(transport)) => format!("connected for {lasts}, {transport}"),
        (ChannelState::Connected, None) => format!("connected for {lasts}"),
        (ChannelState::Disconnected, _) => format!("not connected for {lasts}"),
        (ChannelState::Refused, _) => format!("refused by the manager for {lasts}"),
    };
    match (&channel.code, &channel.message) {
        (Some(code), Some(message)) => format!("{standing}: error[{code}]: {message}"),
        (None, _) | (_, None) => standing,
    }
}

fn cluster(seen: &Seen, now: jiff::Timestamp) -> String {
    let cluster = &seen.cluster;
    let known = [cluster.name.as_deref(), cluster.kubernetes_version.as_deref(), cluster.api_address.as_deref()];
    let mut parts: Vec<String> = known.into_iter().flatten().map(str::to_owned).collect();
    parts.push(if cluster.reachable { "reachable".into() } else { "not reachable".into() });
    parts.push(format!("read {}", read(cluster.observed_at, now)));
    parts.join(", ")
}

fn expiry(end: Option<jiff::Timestamp>, now: jiff::Timestamp) -> String {
    match end {
        None => String::new(),
        Some(end) if end <= now => format!(", expired {} ago ({end})", age::since(end, now)),
        Some(end) => format!(", valid for {} more (until {end})", age::since(now, end)),
    }
}

fn access(state: AccessState) -> String {
    word(&state)
}

fn row(component: &ComponentState, now: jiff::Timestamp) -> Vec<String> {
    vec![
        component.name.to_string(),
        component.chart_version.clone().unwrap_or_else(|| "-".into()),
        component.state.as_ref().map_or("unknown".into(), word),
        word(&component.health),
        word(&component.operation_state),
        word(&component.security_state),
        format!("{}/{}", component.ready, component.desired),
        read(component.observed_at, now),
        component.message.clone().unwrap_or_default(),
    ]
}

/// A state by its name on the wire.
fn word(state: &impl Serialize) -> String {
    match serde_json::to_value(state) {
        Ok(Value::String(word)) => word,
        Ok(_) | Err(_) => "unknown".to_owned(),
    }
}
