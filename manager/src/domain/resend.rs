//! When a bundle's sync is sent, to whom, and when no more.
//!
//! A pure function: the shell calls it at each event and when its last answer's time has come, carries out one answer, and asks
//! again until it has nothing to send.

use std::str::FromStr;

use agent_api::digest::Sha256;
use agent_api::heartbeat::PlatformStatus;
use agent_api::name::ExecutorId;
use jiff::Timestamp;

use super::delivery::Unknown;
use crate::config;

/// Why a sync was sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Purpose {
    /// To put the bundle before a person; refused for want of approval, it is no attempt.
    Stage,
    /// To apply what a person approved.
    Apply,
}

impl Purpose {
    /// As stored and shown.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Stage => "stage",
            Self::Apply => "apply",
        }
    }
}

impl FromStr for Purpose {
    type Err = Unknown;

    fn from_str(text: &str) -> Result<Self, Unknown> {
        [Self::Stage, Self::Apply].into_iter().find(|purpose| purpose.as_str() == text).ok_or_else(|| Unknown(text.to_owned()))
    }
}

/// All that is decided on: the newest proposal of an environment, and what is known of it.
#[derive(Clone, Debug)]
pub struct State {
    /// Identity of the newest proposal.
    pub sha256: Sha256,
    /// Attempts before this moment do not count: it was proposed then, or re-armed.
    pub armed_at: Timestamp,
    /// The environment's executors.
    pub executors: Vec<Executor>,
    /// Syncs of the newest proposal, and those of former ones that an executor may still be running; oldest first.
    pub syncs: Vec<Sync>,
}

/// An executor.
#[derive(Clone, Debug)]
pub struct Executor {
    /// Its id.
    pub id: ExecutorId,
    /// Whether its channel is open.
    pub connected: bool,
    /// Its last heartbeat.
    pub report: Option<Report>,
}

/// What of a heartbeat matters here.
#[derive(Clone, Debug)]
pub struct Report {
    /// When it came.
    pub at: Timestamp,
    /// What the executor says.
    pub status: PlatformStatus,
    /// The bundle that it holds an approval for.
    pub approved_sha256: Option<Sha256>,
    /// Until when.
    pub approval_expires_at: Option<Timestamp>,
}

/// A sync that was sent, or will be.
#[derive(Clone, Debug)]
pub struct Sync {
    /// For whom.
    pub executor: ExecutorId,
    /// Its bundle.
    pub sha256: Sha256,
    /// Why.
    pub purpose: Purpose,
    /// End of the approval that it built on.
    pub approval_expires_at: Option<Timestamp>,
    /// When it was made.
    pub created_at: Timestamp,
    /// Where it stands.
    pub phase: Phase,
}

/// Where a sync stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Phase {
    /// Not acknowledged.
    Queued,
    /// On the executor's disk since then.
    Delivered {
        /// Since when.
        at: Timestamp,
    },
    /// Over.
    Ended {
        /// When.
        at: Timestamp,
        /// How.
        end: End,
    },
}

/// How a sync ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    /// Applied.
    Completed,
    /// Refused: a person has to approve.
    WantsApproval,
    /// Failed otherwise.
    Failed,
    /// No executor was there.
    Undelivered,
    /// A newer proposal came first.
    Superseded,
}

/// What to do now.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Decision {
    /// Queue a sync, then ask again.
    Send {
        /// For whom.
        executor: ExecutorId,
        /// Why.
        purpose: Purpose,
        /// End of the approval that it builds on.
        approval_expires_at: Option<Timestamp>,
    },
    /// Ask again then, or at the next event.
    Wait {
        /// When.
        until: Timestamp,
        /// For what.
        reason: WaitReason,
    },
    /// Ask again at the next event.
    Rest(RestReason),
}

/// What is waited for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WaitReason {
    /// A sync runs.
    Running,
    /// The pause after a failed attempt.
    Retry,
}

/// Why nothing is to be done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RestReason {
    /// The bundle is applied.
    Applied,
    /// No executor is enrolled.
    NoExecutor,
    /// No executor reports an approval of this bundle.
    ApprovalRequired,
    /// One did, and has been silent for too long.
    ExecutorSilent,
    /// All attempts are used up; a person re-arms.
    Exhausted,
}

impl State {
    /// Attempts that count: those of this bundle since it was armed, over or not. Once it is applied, what a later approval asks for counts
    /// from one again.
    #[must_use]
    pub fn attempts(&self) -> usize {
        let counted: Vec<&Sync> = self.counted().collect();
        let before = counted.split_last().map_or(&[][..], |(_, before)| before);
        let applied = before.iter().rposition(|sync| matches!(sync.phase, Phase::Ended { end: End::Completed, .. }));
        counted.len() - applied.map_or(0, |at| at + 1)
    }

    /// A refusal under a former approval says nothing about the present one: the person did what it asked for.
    fn builds_on_present_approval(&self, sync: &Sync) -> bool {
        let report = self.executors.iter().find(|executor| executor.id == sync.executor).and_then(|executor| executor.report.as_ref());
        report.is_some_and(|report| report.approval_expires_at == sync.approval_expires_at)
    }

    fn counted(&self) -> impl Iterator<Item = &Sync> {
        let armed = |sync: &&Sync| sync.sha256 == self.sha256 && sync.created_at >= self.armed_at;
        self.syncs.iter().filter(armed).filter(|sync| match (sync.purpose, sync.phase) {
            (_, Phase::Ended { end: End::Undelivered | End::Superseded, .. }) => false,
            (Purpose::Apply, Phase::Ended { end: End::WantsApproval, .. }) => self.builds_on_present_approval(sync),
            (Purpose::Apply, _) | (Purpose::Stage, Phase::Ended { end: End::Completed | End::Failed, .. }) => true,
            (Purpose::Stage, Phase::Ended { end: End::WantsApproval, .. } | Phase::Queued | Phase::Delivered { .. }) => false,
        })
    }
}

/// The rules, in the order in which they hold.
#[must_use]
pub fn decide(state: &State, now: Timestamp) -> Decision {
    if state.executors.is_empty() {
        return Decision::Rest(RestReason::NoExecutor);
    }
    if let Some(executor) = state.executors.iter().find(|executor| wants_staging(state, executor)) {
        return Decision::Send { executor: executor.id, purpose: Purpose::Stage, approval_expires_at: None };
    }
    let over = |end: End| state.counted().any(|sync| matches!(sync.phase, Phase::Ended { end: is, .. } if is == end));
    if over(End::Completed) && !wants_it_again(state, now) {
        return Decision::Rest(RestReason::Applied);
    }
    if let Some(until) = state.syncs.iter().filter_map(|sync| runs_until(state, sync, now)).min() {
        return Decision::Wait { until, reason: WaitReason::Running };
    }
    let attempts = state.attempts() + overdue_stagings(state);
    if attempts >= config::MAX_ATTEMPTS {
        return Decision::Rest(RestReason::Exhausted);
    }
    match candidate(state, now) {
        Err(reason) => Decision::Rest(reason),
        Ok((executor, report)) => match pause_until(state, report) {
            Some(until) if now < until => Decision::Wait { until, reason: WaitReason::Retry },
            Some(_) | None => {
                Decision::Send { executor: executor.id, purpose: Purpose::Apply, approval_expires_at: report.approval_expires_at }
            }
        },
    }
}

/// An executor that has applied the bundle says `synced`. An approval that is newer than what the completed sync built on means that a person
/// wants the bundle applied once more: over objects that somebody changed or removed, or, where the executor says `approved`, to another
/// installation after a reset.
fn wants_it_again(state: &State, now: Timestamp) -> bool {
    let last = state.counted().filter_map(|sync| match sync.phase {
        Phase::Ended { at, end: End::Completed } => Some((at, sync)),
        Phase::Queued | Phase::Delivered { .. } | Phase::Ended { .. } => None,
    });
    let Some((at, last)) = last.max_by_key(|(at, _)| *at) else { return false };
    let mut reports = state.executors.iter().filter_map(|executor| Some((executor.id, executor.report.as_ref()?)));
    reports.any(|(id, report)| {
        let newer = report.at > at && report.approval_expires_at != last.approval_expires_at;
        // Another executor holds an approval of its own, and a staging does not say what it built on.
        let comparable = id == last.executor && last.purpose == Purpose::Apply;
        newer && (comparable || report.status == PlatformStatus::Approved) && approves(report, &state.sha256, now)
    })
}

/// An executor is shown each bundle once; again only if that never reached it, and then not before it is there.
fn wants_staging(state: &State, executor: &Executor) -> bool {
    let mut syncs = state.syncs.iter().filter(|sync| sync.executor == executor.id && sync.sha256 == state.sha256).peekable();
    let first = syncs.peek().is_none();
    let reached = syncs.any(|sync| !matches!(sync.phase, Phase::Ended { end: End::Undelivered | End::Superseded, .. }));
    !reached && (first || executor.connected)
}

/// Until when a sync is waited for; none if it is over, or counts as failed. A queued staging holds up nothing.
fn runs_until(state: &State, sync: &Sync, now: Timestamp) -> Option<Timestamp> {
    let since = match (sync.phase, sync.purpose) {
        (Phase::Delivered { at }, _) => at,
        (Phase::Queued, Purpose::Apply) if sync.sha256 == state.sha256 => sync.created_at,
        (Phase::Queued | Phase::Ended { .. }, _) => return None,
    };
    Some(since + config::RUNNING_AT_MOST).filter(|until| now < *until)
}

/// Stagings that an executor took and never answered; asked only when none is waited for any more.
fn overdue_stagings(state: &State) -> usize {
    let overdue = |sync: &&Sync| {
        sync.purpose == Purpose::Stage
            && sync.sha256 == state.sha256
            && sync.created_at >= state.armed_at
            && matches!(sync.phase, Phase::Delivered { .. })
    };
    state.syncs.iter().filter(overdue).count()
}

/// The executor that reports the approval, heard of lately; a connected one before others.
fn candidate(state: &State, now: Timestamp) -> Result<(&Executor, &Report), RestReason> {
    let reports = state.executors.iter().filter_map(|executor| Some((executor, executor.report.as_ref()?)));
    let approving: Vec<_> = reports.filter(|(_, report)| approves(report, &state.sha256, now)).collect();
    let fresh = |report: &Report| now.duration_since(report.at) <= config::HEARTBEAT_AT_MOST;
    let best = approving.iter().filter(|(_, report)| fresh(report)).max_by_key(|(executor, report)| (executor.connected, report.at));
    match best {
        Some(&found) => Ok(found),
        None if approving.is_empty() => Err(RestReason::ApprovalRequired),
        None => Err(RestReason::ExecutorSilent),
    }
}

fn approves(report: &Report, sha256: &Sha256, now: Timestamp) -> bool {
    let valid = match report.status {
        PlatformStatus::None | PlatformStatus::ApprovalRequired => false,
        PlatformStatus::Syncing | PlatformStatus::Synced | PlatformStatus::Failed | PlatformStatus::Approved => true,
    };
    valid && report.approved_sha256.as_ref() == Some(sha256) && report.approval_expires_at.is_none_or(|until| now < until)
}

/// When the next attempt is due; none if at once. A new approval of the same bundle does not wait for an old failure.
fn pause_until(state: &State, report: &Report) -> Option<Timestamp> {
    let last = state.counted().last()?;
    let pause = config::RETRY_AFTER[(state.attempts() - 1).min(config::RETRY_AFTER.len() - 1)];
    let ended = match last.phase {
        Phase::Ended { at, .. } => at,
        Phase::Delivered { at } => at + config::RUNNING_AT_MOST,
        Phase::Queued => last.created_at + config::RUNNING_AT_MOST,
    };
    let same_approval = last.purpose == Purpose::Stage || last.approval_expires_at == report.approval_expires_at;
    same_approval.then(|| ended + pause)
}

#[cfg(test)]
mod tests;
