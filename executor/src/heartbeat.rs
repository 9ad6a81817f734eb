//! Composes the heartbeat from what was observed.

use agent_api::command::CommandStatus;
use agent_api::heartbeat::{
    AccessInfo, AccessState, ClusterInfo, CommandCounts, ExecutorInfo, ExecutorKind, Heartbeat, OperationState, Platform, PlatformStatus,
};
use agent_api::manifest::Manifest;
use executor_core::{ApprovalSeen, State, platform_status};

use crate::config::Config;
use crate::journal::Condition;
use crate::observe::{self, Observed};

/// Less than this before its end, an access bundle is `expiring`.
const EXPIRING: jiff::SignedDuration = jiff::SignedDuration::from_mins(10);

/// What does not change while the daemon lives.
#[derive(Debug)]
pub(crate) struct Fixed {
    /// Configuration.
    pub(crate) config: Config,
    /// Start of the process.
    pub(crate) started_at: jiff::Timestamp,
}

/// The heartbeat at a time.
pub(crate) fn compose(
    fixed: &Fixed,
    state: &State,
    manifest: Option<&Manifest>,
    seen: Option<&ApprovalSeen>,
    observed: &Observed,
    journal: Condition<'_>,
    now: jiff::Timestamp,
) -> Heartbeat {
    let config = &fixed.config;
    let status = platform_status(state, seen, now);
    let count = |status| u32::try_from(state.commands.values().filter(|entry| entry.status == status).count()).unwrap_or(u32::MAX);
    let meta = |value: &Option<String>| value.clone().filter(|_| config.report_infra_meta);
    let cluster = &config.executor.cluster;
    let components = manifest
        .map(|manifest| observe::components(manifest, observed, state.platform.applied.as_ref(), operation(status, state)))
        .unwrap_or_default();
    Heartbeat {
        executor: ExecutorInfo {
            id: config.pcm_infra_uuid,
            version: env!("CARGO_PKG_VERSION").into(),
            started_at: fixed.started_at,
            uptime_s: u64::try_from(now.duration_since(fixed.started_at).as_secs()).unwrap_or_default(),
            kind: if cluster.in_cluster { ExecutorKind::Pod } else { ExecutorKind::Vm },
        },
        cluster: ClusterInfo {
            name: meta(&cluster.name),
            region: meta(&cluster.region),
            account_id: meta(&cluster.account_id),
            ..observed.cluster.clone()
        },
        access: AccessInfo { cluster: cluster_access(observed, now), platform: platform_access(seen, now) },
        platform: Platform {
            status,
            pending_sha256: state.platform.pending.as_ref().map(|pending| pending.sha256.clone()),
            approved_sha256: seen.map(|seen| seen.sha256.clone()),
            approval_expires_at: seen.map(|seen| seen.expires_at),
            applied_sha256: state.platform.applied.clone(),
            attempts: state.platform.attempts,
            message: last_end(status, state),
            drift: observed.drift(state.platform.applied.as_ref()).map(|all| u32::try_from(all.count()).unwrap_or(u32::MAX)),
            leftovers: seen.map_or(0, |seen| seen.leftovers),
        },
        components,
        commands: CommandCounts {
            queued: count(CommandStatus::Pending),
            running: count(CommandStatus::Running),
            journal_bytes: journal.bytes,
            journal_error: journal.trouble.map(str::to_owned),
        },
        approvals: observed.approvals.clone(),
    }
}

/// State of `pcm-executor`'s access bundle: what the API server said of it, and while it has no objection, what its token says.
pub(crate) fn cluster_access(observed: &Observed, now: jiff::Timestamp) -> AccessState {
    match (observed.access, observed.token_expires_at) {
        (AccessState::Ok, Some(end)) => until(end, now),
        (AccessState::Ok | AccessState::Expiring | AccessState::Expired | AccessState::Absent, _) => observed.access,
    }
}

/// State of the token bundle.
pub(crate) fn platform_access(seen: Option<&ApprovalSeen>, now: jiff::Timestamp) -> AccessState {
    seen.map_or(AccessState::Absent, |seen| until(seen.expires_at, now))
}

fn until(end: jiff::Timestamp, now: jiff::Timestamp) -> AccessState {
    match end.duration_since(now) {
        left if !left.is_positive() => AccessState::Expired,
        left if left < EXPIRING => AccessState::Expiring,
        _ => AccessState::Ok,
    }
}

/// How the last sync ended, while that says something of how things are now.
fn last_end(status: PlatformStatus, state: &State) -> Option<String> {
    match status {
        PlatformStatus::None | PlatformStatus::Syncing | PlatformStatus::Approved => None,
        PlatformStatus::Synced | PlatformStatus::ApprovalRequired | PlatformStatus::Failed => state.platform.message.clone(),
    }
}

/// The last operation that was asked for, for every component of the pending bundle.
fn operation(status: PlatformStatus, state: &State) -> OperationState {
    match status {
        PlatformStatus::None => OperationState::Idle,
        PlatformStatus::Syncing => OperationState::Running,
        PlatformStatus::Synced => OperationState::Succeeded,
        PlatformStatus::ApprovalRequired => OperationState::Blocked,
        PlatformStatus::Failed => OperationState::Failed,
        PlatformStatus::Approved if state.commands.values().any(|entry| entry.status == CommandStatus::Running) => OperationState::Running,
        PlatformStatus::Approved => OperationState::Idle,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_end_is_told_while_it_says_how_things_are() {
        let mut state = executor_core::State::default();
        state.platform.message = Some("it failed".into());
        for status in PlatformStatus::ALL {
            let expected = matches!(status, PlatformStatus::Synced | PlatformStatus::ApprovalRequired | PlatformStatus::Failed);
            assert_eq!(last_end(status, &state).is_some(), expected, "{status:?}");
        }
    }

    #[test]
    fn the_access_bundle_is_what_the_api_server_says_and_then_what_its_token_says() {
        let now: jiff::Timestamp = "2026-11-30T10:00:00Z".parse().unwrap();
        let check = |said: AccessState, left_s: Option<i64>, expected: AccessState| {
            let mut observed = Observed::nothing();
            observed.access = said;
            observed.token_expires_at = left_s.map(|left| now + jiff::SignedDuration::from_secs(left));
            assert_eq!(cluster_access(&observed, now), expected, "{said:?}, {left_s:?} s left");
        };
        check(AccessState::Absent, None, AccessState::Absent);
        check(AccessState::Ok, None, AccessState::Ok);
        check(AccessState::Ok, Some(600), AccessState::Ok);
        check(AccessState::Ok, Some(599), AccessState::Expiring);
        check(AccessState::Ok, Some(0), AccessState::Expired);
        check(AccessState::Expired, Some(86_400), AccessState::Expired);
    }
}
