//! The platform's status in the heartbeat: the first that holds, in the contract's order.

use agent_api::digest::Sha256;
use agent_api::heartbeat::PlatformStatus;
use agent_api::name::InstallId;

use crate::record::Stage;
use crate::state::State;

/// The approval that lies at hand, as far as the executor can tell by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApprovalSeen {
    /// Approved bundle.
    pub sha256: Sha256,
    /// Its end.
    pub expires_at: jiff::Timestamp,
    /// The installation that it is for; a reset begins another one.
    pub install_id: InstallId,
    /// Objects of former bundles that were still there when it was given.
    pub leftovers: u32,
}

/// Where the platform update stands. A sync counts as running once its checks are passed.
#[must_use]
pub fn platform_status(state: &State, approval: Option<&ApprovalSeen>, now: jiff::Timestamp) -> PlatformStatus {
    let Some(pending) = &state.platform.pending else { return PlatformStatus::None };
    if state.sync.as_ref().is_some_and(|sync| sync.stage() == Stage::Applying) {
        return PlatformStatus::Syncing;
    }
    let valid = approval.filter(|approval| approval.sha256 == pending.sha256 && now < approval.expires_at);
    let elsewhere = |approval: &ApprovalSeen| state.platform.installation.is_some_and(|applied| applied != approval.install_id);
    if state.platform.applied.as_ref() == Some(&pending.sha256) && !valid.is_some_and(elsewhere) {
        return PlatformStatus::Synced;
    }
    if valid.is_none() {
        return PlatformStatus::ApprovalRequired;
    }
    if state.platform.failure.as_ref().is_some_and(|failure| failure.sha256 == pending.sha256) {
        return PlatformStatus::Failed;
    }
    PlatformStatus::Approved
}
