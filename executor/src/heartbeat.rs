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
    let components = manifest.map(|manifest| observe::components(manifest, observed, operation(status, state))).unwrap_or_default();
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
        access: AccessInfo { cluster: observed.access, platform: access(seen, now) },
        platform: Platform {
            status,
            pending_sha256: state.platform.pending.as_ref().map(|pending| pending.sha256.clone()),
            approved_sha256: seen.map(|seen| seen.sha256.clone()),
            approval_expires_at: seen.map(|seen| seen.expires_at),
            applied_sha256: state.platform.applied.clone(),
            attempts: state.platform.attempts,
            message: state.platform.message.clone(),
            leftovers: seen.map_or(0, |seen| seen.leftovers),
        },
        components,
        commands: CommandCounts {
            queued: count(CommandStatus::Pending),
            running: count(CommandStatus::Running),
            journal_bytes: journal.bytes,
            journal_error: journal.trouble.map(str::to_owned),
        },
    }
}

/// State of the token bundle.
pub(crate) fn access(seen: Option<&ApprovalSeen>, now: jiff::Timestamp) -> AccessState {
    match seen {
        None => AccessState::Absent,
        Some(seen) if now >= seen.expires_at => AccessState::Expired,
        Some(seen) if seen.expires_at.duration_since(now) < EXPIRING => AccessState::Expiring,
        Some(_) => AccessState::Ok,
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
