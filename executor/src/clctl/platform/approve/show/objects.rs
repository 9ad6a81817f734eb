//! The objects of a plan: one a line, changed fields below it.

use std::fmt::Write as _;

use serde_json::Value;

use super::super::plan::{Action, FieldChange, Leftover, Plan, PlannedObject};
use super::{escaped, list};

/// Fields shown of one object; a CRD may change in thousands.
const MAX_FIELDS: usize = 20;
/// Characters shown of one value.
const MAX_VALUE: usize = 160;

/// Both halves and what is around them; with `all` also what stays as it is, and the rules of roles.
pub(super) fn write(plan: &Plan, all: bool, out: &mut String) {
    let (foreign, own): (Vec<_>, Vec<_>) = plan.permissions.iter().partition(|object| object.foreign);
    section(out, "Permissions, applied now, with your credentials", &own, all);
    section(out, "Permissions in namespaces outside the bundle, applied now as well", &foreign, all);
    let title = format!("Workload, applied later by the executor as pcm-platform, inside {}", plan.bundle.namespaces.join(", "));
    section(out, &title, &plan.workload.iter().collect::<Vec<_>>(), all);
    let leftovers = plan.leftovers.iter().filter(|leftover| !leftover.pruned).map(leftover);
    list(out, "Left over from former bundles, and not touched", &leftovers.collect::<Vec<_>>());
    let placeholders = plan.placeholder_secrets.iter().map(|secret| {
        let missing = plan.missing_placeholder_secrets.contains(secret);
        if missing { format!("{secret}: missing, to be created") } else { secret.clone() }
    });
    list(out, "Secrets that somebody else fills (created empty where they are missing)", &placeholders.collect::<Vec<_>>());
    let webhooks = plan.webhooks.iter().map(|hook| {
        let (configuration, webhook, intercepts) = (&hook.configuration, &hook.webhook, &hook.intercepts);
        format!("{configuration}, {webhook}: sees {intercepts}; a request waits up to {} s for it", hook.timeout_seconds)
    });
    list(out, "Webhooks that see requests, and let them pass when they fail", &webhooks.collect::<Vec<_>>());
}

/// One that former bundles left, and what becomes of it.
pub(super) fn leftover(leftover: &Leftover) -> String {
    let component = leftover.component.as_ref().map(|component| format!("  ({component})")).unwrap_or_default();
    let running = if leftover.running { ", running" } else { "" };
    let keep = if leftover.keep { ", to be kept" } else { "" };
    let end = match (leftover.pruned, leftover.is_webhook()) {
        (true, true) => ": withdrawn now, before anything is applied",
        (true, false) => ": deleted at the end",
        (false, _) => "",
    };
    format!("{}{component}{running}{keep}{end}", leftover.object)
}

fn section(out: &mut String, title: &str, objects: &[&PlannedObject], all: bool) {
    let shown: Vec<_> = objects.iter().filter(|object| all || object.action != Action::Unchanged).collect();
    if shown.is_empty() {
        return;
    }
    let _ = writeln!(out, "{title}:");
    for object in shown {
        let action = match object.action {
            Action::Create => "create   ",
            Action::Change => "change   ",
            Action::Replace => "replace  ",
            Action::Unchanged => "unchanged",
            Action::Unknown => "not known",
            Action::Refused => "refused  ",
        };
        let component = object.component.as_ref().map(|component| format!("  ({})", escaped(component))).unwrap_or_default();
        let estimate = if object.estimate { ", estimated" } else { "" };
        let before = if object.approved_before { ", approved before: not run again where it has run" } else { "" };
        let _ = writeln!(out, "  {action}  {}{component}{estimate}{before}", escaped(&object.object));
        if let Some(how) = &object.replacement {
            let _ = writeln!(out, "               {}", escaped(&how.reason));
        }
        if let Some(why) = &object.refused {
            let _ = writeln!(out, "               {}", escaped(why));
        }
        for field in &object.unset {
            let _ = writeln!(out, "               {} is unset now, with your credentials; no rollout begins", escaped(field));
        }
        for taken in &object.taken {
            let _ = writeln!(out, "               {} is taken over from {}", escaped(&taken.field), escaped(&taken.manager));
        }
        // What a role allows is told by identity; of a binding one line says it.
        let grants = object.grants.iter().filter(|_| all || object.object.contains("Binding."));
        for grant in grants.filter(|_| object.action == Action::Create) {
            let _ = writeln!(out, "               {}", escaped(grant));
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

/// A long value is cut at a character.
pub(super) fn short(text: &str) -> String {
    match text.char_indices().nth(MAX_VALUE) {
        Some((at, _)) => format!("{}…", escaped(&text[..at])),
        None => escaped(text),
    }
}
