//! The plan for a person: one object a line, changed fields below it. Everything that came from a bundle or a cluster is escaped.

use std::fmt::Write as _;
use std::time::Duration;

use serde_json::Value;

use super::plan::{Action, FieldChange, Plan, PlannedObject};

/// Fields shown of one object; a CRD may change in thousands.
const MAX_FIELDS: usize = 20;
/// Characters shown of one value.
const MAX_VALUE: usize = 160;

/// The plan as text, without a last line break.
pub(super) fn text(plan: &Plan) -> String {
    let mut out = String::new();
    heading(plan, &mut out);
    let (foreign, own): (Vec<_>, Vec<_>) = plan.permissions.iter().partition(|object| object.foreign);
    section(&mut out, "Permissions, applied now, with your credentials", &own, true);
    if !foreign.is_empty() {
        section(&mut out, "Permissions in namespaces outside the bundle, applied now as well", &foreign, true);
    }
    let workload: Vec<_> = plan.workload.iter().collect();
    let title = format!("Workload, applied later by the executor as pcm-platform, inside {}", plan.bundle.namespaces.join(", "));
    section(&mut out, &title, &workload, false);
    list(&mut out, "Secrets that somebody else fills (created empty where they are missing)", &plan.placeholder_secrets);
    let webhooks: Vec<String> = plan
        .webhooks
        .iter()
        .map(|hook| {
            let (configuration, webhook, intercepts) = (escaped(&hook.configuration), escaped(&hook.webhook), escaped(&hook.intercepts));
            format!("{configuration}, {webhook}: sees {intercepts}; a request waits up to {} s for it", hook.timeout_seconds)
        })
        .collect();
    list(&mut out, "Webhooks that see requests, and let them pass when they fail", &webhooks);
    list(&mut out, "Warnings", &plan.warnings);
    out.trim_end().to_owned()
}

fn heading(plan: &Plan, out: &mut String) {
    let (cluster, bundle) = (&plan.cluster, &plan.bundle);
    let context = cluster.context.as_ref().map(|context| format!(" (context {})", escaped(context))).unwrap_or_default();
    let _ = writeln!(out, "Cluster  {}{context}", escaped(&cluster.server));
    let checked = if cluster.checked { "" } else { "; it was not checked that the bundle was staged for this cluster" };
    let _ = writeln!(out, "         uid {}, Kubernetes {}{checked}", escaped(&cluster.uid), escaped(&cluster.kubernetes));
    let staged = bundle.received_at.map(|time| format!(", staged {time}")).unwrap_or_default();
    let _ = writeln!(out, "Bundle   {}", bundle.sha256);
    let _ = writeln!(out, "         environment {}, created {}{staged}", bundle.environment, bundle.created_at);
    let _ = writeln!(out, "         workload {}\n", bundle.workload_sha256);
}

fn section(out: &mut String, title: &str, objects: &[&PlannedObject], all: bool) {
    let count = |action| objects.iter().filter(|object| object.action == action).count();
    let _ = writeln!(
        out,
        "{title}: {} to create, {} to change, {} unchanged",
        count(Action::Create),
        count(Action::Change),
        count(Action::Unchanged)
    );
    for object in objects.iter().filter(|object| all || object.action != Action::Unchanged) {
        let action = match object.action {
            Action::Create => "create   ",
            Action::Change => "change   ",
            Action::Unchanged => "unchanged",
        };
        let component = object.component.as_ref().map(|component| format!("  ({component})")).unwrap_or_default();
        let _ = writeln!(out, "  {action}  {}{component}", escaped(&object.object));
        if object.action == Action::Create {
            for grant in &object.grants {
                let _ = writeln!(out, "               {}", escaped(grant));
            }
        }
        for field in object.fields.iter().take(MAX_FIELDS) {
            let _ = writeln!(out, "               {}", line(field, object.action));
        }
        if object.fields.len() > MAX_FIELDS {
            let _ = writeln!(out, "               … and {} fields more (-o json shows all)", object.fields.len() - MAX_FIELDS);
        }
    }
    out.push('\n');
}

fn list(out: &mut String, title: &str, lines: &[String]) {
    if lines.is_empty() {
        return;
    }
    let _ = writeln!(out, "{title}:");
    for line in lines {
        let _ = writeln!(out, "  {}", escaped(line));
    }
    out.push('\n');
}

fn line(field: &FieldChange, action: Action) -> String {
    let side = |value: &Option<Value>| match value {
        None => "(none)".to_owned(),
        Some(value) => short(&value.to_string()),
    };
    if action == Action::Create {
        return format!("{}: {}", escaped(&field.path), side(&field.new));
    }
    format!("{}: {} → {}", escaped(&field.path), side(&field.old), side(&field.new))
}

fn short(text: &str) -> String {
    match text.char_indices().nth(MAX_VALUE) {
        Some((at, _)) => format!("{}…", escaped(&text[..at])),
        None => escaped(text),
    }
}

/// Text of others in a plan, on one line.
pub(super) fn escaped(text: &str) -> String {
    crate::terminal::escaped(text, &[])
}

/// `2h`, `1h 30m`, `45m`, as a person writes it.
pub(super) fn duration(duration: Duration) -> String {
    let seconds = duration.as_secs();
    let parts = [(seconds / 3600, "h"), (seconds % 3600 / 60, "m"), (seconds % 60, "s")];
    let text: Vec<String> = parts.iter().filter(|(n, _)| *n > 0).map(|(n, unit)| format!("{n}{unit}")).collect();
    text.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_could_fool_a_terminal_is_escaped() {
        assert_eq!(escaped("a\u{1b}[2Kb\u{202e}c é"), "a\\u{1b}[2Kb\\u{202e}c é");
    }

    #[test]
    fn durations() {
        for (seconds, text) in [(7200, "2h"), (5400, "1h 30m"), (600, "10m"), (3601, "1h 1s")] {
            assert_eq!(duration(Duration::from_secs(seconds)), text);
        }
    }

    #[test]
    fn long_values_are_cut_at_a_character() {
        let text = "é".repeat(MAX_VALUE + 1);
        assert_eq!(short(&text).chars().count(), MAX_VALUE + 1);
    }
}
