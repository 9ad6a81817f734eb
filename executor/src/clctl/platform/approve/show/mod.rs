//! The plan for a person: the numbers first, then what was asked for. Everything that came from a bundle or a cluster is escaped.

mod objects;
mod privileges;

use std::fmt::Write as _;
use std::time::Duration;

use clap::ValueEnum;

use super::plan::{Counts, Plan};

/// What is told of a plan beside its numbers and warnings.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(super) enum Details {
    /// Objects that are made, changed, replaced or left over, with their fields.
    Changes,
    /// Who may do what more, and what pods run as.
    Privileges,
    /// Both, and the objects that stay as they are, and the rules of roles.
    All,
    /// Neither.
    None,
}

/// The plan as text, without a last line break.
pub(super) fn text(plan: &Plan, details: &[Details]) -> String {
    let all = details.contains(&Details::All);
    let mut out = String::new();
    heading(plan, &mut out);
    summary(plan, &mut out);
    list(&mut out, "Estimates: where you may not ask or read, the plan is worked out from what you may", &plan.estimates);
    let replacements = plan.replacements().map(|(object, how)| {
        let stops = if how.stops_pods { "; its pods stop until it is made anew" } else { "" };
        format!("{object}: {}; by hand: {}{stops}", how.reason, how.by_hand)
    });
    let title = if plan.replace {
        "Replaced: no apply can change these; they are deleted when you agree, and made anew"
    } else {
        "Must be replaced: no apply can change these"
    };
    list(&mut out, title, &replacements.collect::<Vec<_>>());
    let deleted = plan.leftovers.iter().filter(|leftover| leftover.pruned).map(objects::leftover);
    list(&mut out, "Deleted: left over from former bundles", &deleted.collect::<Vec<_>>());
    list(&mut out, "Warnings", &plan.warnings);
    if all || details.contains(&Details::Privileges) {
        privileges::write(plan, &mut out);
    }
    if all || details.contains(&Details::Changes) {
        objects::write(plan, all, &mut out);
    }
    out.trim_end().to_owned()
}

/// What a person agrees to, in one sentence.
pub(super) fn question(plan: &Plan, ttl: Duration) -> String {
    let lifetime = duration(ttl);
    let left_over = plan.leftovers.iter().filter(|leftover| leftover.pruned).count();
    let left_over = if left_over == 0 { String::new() } else { format!("delete {} left over, ", count(left_over, "object", "objects")) };
    let (replaced, stopped) = (plan.replacements().count(), plan.replacements().filter(|(_, how)| how.stops_pods).count());
    if replaced == 0 {
        let sentence = format!("{left_over}apply the permissions, and let the executor apply the workload for {lifetime}?");
        return format!("\n{}{}", sentence[..1].to_uppercase(), &sentence[1..]);
    }
    let stops = if stopped == 0 { String::new() } else { format!(" (pods of {stopped} stop until it is made anew)") };
    format!(
        "\nDelete {}{stops}, {left_over}apply the permissions, and let the executor apply the workload for {lifetime}?",
        count(replaced, "object to make it anew", "objects to make them anew")
    )
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

/// One line each.
fn summary(plan: &Plan, out: &mut String) {
    let summary = plan.summary();
    let _ = writeln!(out, "Summary");
    for (half, counts) in [("Permissions", summary.permissions), ("Workload", summary.workload)] {
        let _ = writeln!(out, "  {half}: {}", numbers(counts));
    }
    let privileges = summary.privileges;
    let _ = writeln!(
        out,
        "  Privileges: {} new of {}, {} of them escalation-grade (!); {} taken away, {} left over",
        privileges.new,
        count(privileges.identities, "identity", "identities"),
        privileges.escalation,
        privileges.ending,
        privileges.lingering
    );
    let _ = writeln!(out, "  Pods: {}, {} with access to its node\n", count(summary.pods, "template", "templates"), summary.pods_in_node);
}

fn numbers(counts: Counts) -> String {
    let Counts { create, change, replace, unchanged, unknown, refused, left_over } = counts;
    let rare = |n: usize, what: &str| if n == 0 { String::new() } else { format!(", {n} {what}") };
    format!(
        "{create} to create, {change} to change, {unchanged} unchanged, {replace} to replace, {left_over} left over{}{}",
        rare(unknown, "not known"),
        rare(refused, "refused")
    )
}

fn count(n: usize, one: &str, many: &str) -> String {
    format!("{n} {}", if n == 1 { one } else { many })
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

/// Text of others in a plan, on one line.
fn escaped(text: &str) -> String {
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
mod tests;
