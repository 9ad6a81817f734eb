//! What a person should do next, given where the platform stands.

use agent_api::heartbeat::{AccessState, ExecutorKind, PlatformStatus};

use super::Seen;
use crate::local_api::ChannelState;

/// How a refusal's hint begins.
const RUN: &str = "run: clctl platform approve";
/// The same as a command that the shell finds.
const APPROVE: &str = "run: clicklink clctl platform approve";

/// Commands, the most urgent first; none where nothing is to be done.
pub(super) fn steps(seen: &Seen, now: jiff::Timestamp) -> Vec<String> {
    let mut steps = Vec::new();
    match seen.channel.as_ref().map(|channel| (channel.state, channel.code.is_some())) {
        Some((ChannelState::Refused, _)) => steps.push("enrol the executor again: clicklink clctl init --enroll <url> --force".into()),
        Some((ChannelState::Disconnected, true)) => steps.push("look at the way to the manager: clicklink clctl preflight".into()),
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
            steps.push("see why: clicklink clctl commands list --status failed --action sync_platform".into());
        }
        PlatformStatus::None | PlatformStatus::Syncing | PlatformStatus::Synced | PlatformStatus::Approved => {}
    }
    match seen.access.cluster {
        AccessState::Absent => steps.push(
            "let the executor see the cluster: clicklink clctl executor access grant --cluster, then \
             clicklink clctl executor access apply --cluster"
                .into(),
        ),
        // It renews its token long before; so late, something keeps it from that.
        AccessState::Expiring | AccessState::Expired => {
            steps.push("renew the executor's access to the cluster: clicklink clctl executor access apply --cluster".into());
        }
        AccessState::Ok => {}
    }
    steps
}

/// As the executor's own hint says it, where it gave one (it knows its namespace).
fn approve(seen: &Seen) -> String {
    let Some(pending) = &seen.platform.pending_sha256 else { return APPROVE.to_owned() };
    let own = seen.platform.message.iter().flat_map(|message| message.match_indices(RUN).map(|(at, _)| &message[at..]));
    if let Some(own) = own.filter(|hint| hint.contains(&pending.to_string())).last() {
        return own.replacen(RUN, APPROVE, 1);
    }
    let in_pod = seen.executor.as_ref().is_some_and(|executor| executor.kind == ExecutorKind::Pod);
    let secret = if in_pod { " --secret-namespace <namespace of the connector>" } else { "" };
    format!("{APPROVE}{secret} (pending bundle sha {pending})")
}
