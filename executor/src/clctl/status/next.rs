//! What a person should do next, given where the platform stands: a command that a shell takes as it is, and what it is for.

use agent_api::heartbeat::{AccessState, ExecutorKind, PlatformStatus};

use super::Seen;
use crate::local_api::ChannelState;

/// How a refusal's hint begins.
const RUN: &str = "run: clctl platform approve";
/// What stands between its command and its end.
const PENDING: &str = " (pending bundle sha ";

/// One step.
#[derive(PartialEq, Eq, Debug)]
pub(super) struct Step {
    /// What it is for.
    pub(super) why: String,
    /// What to type; what has to be filled in is in capitals.
    pub(super) command: String,
}

fn step(why: impl Into<String>, command: impl Into<String>) -> Step {
    Step { why: why.into(), command: command.into() }
}

/// The most urgent first; none where nothing is to be done.
pub(super) fn steps(seen: &Seen, now: jiff::Timestamp) -> Vec<Step> {
    let mut steps = Vec::new();
    match seen.channel.as_ref().map(|channel| (channel.state, channel.code.is_some())) {
        Some((ChannelState::Refused, _)) => steps.push(step("enrol the executor again", "clicklink clctl init --enroll URL --force")),
        Some((ChannelState::Disconnected, true)) => steps.push(step("look at the way to the manager", "clicklink clctl preflight")),
        Some((ChannelState::Connected, _) | (ChannelState::Disconnected, false)) | None => {}
    }
    match seen.platform.status {
        PlatformStatus::ApprovalRequired => steps.push(approve(seen)),
        PlatformStatus::Failed => {
            // A refusal for want of approval ends with the command itself.
            let needs_approval = seen.platform.message.as_deref().is_some_and(|message| message.contains(RUN));
            let expired = seen.platform.approval_expires_at.is_none_or(|end| end <= now);
            if needs_approval || expired {
                steps.push(approve(seen));
            }
            steps.push(step("see why", "clicklink clctl commands list --status failed --action sync_platform"));
        }
        PlatformStatus::None | PlatformStatus::Syncing | PlatformStatus::Synced | PlatformStatus::Approved => {}
    }
    match seen.access.cluster {
        AccessState::Absent => steps.push(step(
            "let the executor see the cluster",
            "clicklink clctl executor access grant --cluster && clicklink clctl executor access apply --cluster",
        )),
        // It renews its token long before; so late, something keeps it from that.
        AccessState::Expiring | AccessState::Expired => {
            steps.push(step("renew the executor's access to the cluster", "clicklink clctl executor access apply --cluster"));
        }
        AccessState::Ok => {}
    }
    steps
}

/// As the executor's own hint says it, where it gave one (it knows its namespace).
fn approve(seen: &Seen) -> Step {
    const APPROVE: &str = "clicklink clctl platform approve";
    let Some(pending) = &seen.platform.pending_sha256 else { return step("approve the pending bundle", APPROVE) };
    let why = format!("approve the pending bundle, sha {pending}");
    let own = seen.platform.message.iter().flat_map(|message| message.match_indices(RUN).map(|(at, _)| &message[at + RUN.len()..]));
    let own = own.filter_map(|hint| hint.split_once(PENDING)).filter(|(_, rest)| rest.starts_with(&pending.to_string())).last();
    if let Some((arguments, _)) = own {
        return step(why, format!("{APPROVE}{arguments}"));
    }
    let in_pod = seen.executor.as_ref().is_some_and(|executor| executor.kind == ExecutorKind::Pod);
    step(why, format!("{APPROVE}{}", if in_pod { " --secret-namespace NAMESPACE" } else { "" }))
}
