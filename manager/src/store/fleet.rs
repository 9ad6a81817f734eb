//! What the resend rules decide on: an environment's newest proposal, its executors' reports, and the syncs that matter.

use agent_api::heartbeat::Heartbeat;
use jiff::Timestamp;

use super::executor::read_heartbeat;
use super::proposal::Proposal;
use super::{Store, StoreError, damaged, parse, time, times};
use crate::domain::delivery::Status;
use crate::domain::resend::{End, Executor, Phase, Report, State, Sync};

impl Store {
    /// The newest proposal of an environment with all that the resend rules look at; none while nothing was proposed. Who is
    /// connected is not the store's to know: `connected` is false here.
    ///
    /// # Errors
    /// The database.
    pub async fn resend_state(&self, environment: &str) -> Result<Option<(Proposal, State)>, StoreError> {
        let Some(proposal) = self.newest_proposal(environment).await? else { return Ok(None) };
        let executors: Vec<(String, Option<i64>, Option<String>)> = sqlx::query_as(
            "SELECT x.id, x.last_seen, x.heartbeat FROM executors x JOIN environments e ON e.cluster_id = x.cluster_id \
             WHERE e.name = $1 AND x.revoked_at IS NULL ORDER BY x.enrolled_at, x.id",
        )
        .bind(environment)
        .fetch_all(&self.pool)
        .await?;
        let syncs: Vec<SyncRow> = sqlx::query_as(
            "SELECT c.executor_id, p.sha256, c.purpose, c.approval_expires_at, c.status, c.wants_approval, c.created_at, c.acked_at, \
             c.ended_at FROM commands c JOIN proposals p ON p.id = c.proposal_id \
             WHERE p.environment = $1 AND (p.id = $2 OR c.status = 'delivered') ORDER BY c.created_at, c.sequence",
        )
        .bind(environment)
        .bind(&proposal.id)
        .fetch_all(&self.pool)
        .await?;
        let state = State {
            sha256: proposal.sha256.clone(),
            armed_at: proposal.armed_at,
            executors: executors.into_iter().map(executor).collect::<Result<_, _>>()?,
            syncs: syncs.into_iter().map(SyncRow::read).collect::<Result<_, _>>()?,
        };
        Ok(Some((proposal, state)))
    }
}

fn executor((id, last_seen, heartbeat): (String, Option<i64>, Option<String>)) -> Result<Executor, StoreError> {
    let heartbeat = heartbeat.and_then(|text| read_heartbeat(&text));
    let report = match (last_seen, heartbeat) {
        (Some(at), Some(heartbeat)) => Some(report(time(at)?, &heartbeat)),
        _ => None,
    };
    Ok(Executor { id: parse("executor id", &id)?, connected: false, report })
}

fn report(at: Timestamp, heartbeat: &Heartbeat) -> Report {
    Report {
        at,
        status: heartbeat.platform.status,
        approved_sha256: heartbeat.platform.approved_sha256.clone(),
        approval_expires_at: heartbeat.platform.approval_expires_at,
    }
}

#[derive(sqlx::FromRow)]
struct SyncRow {
    executor_id: String,
    sha256: String,
    purpose: String,
    approval_expires_at: Option<i64>,
    status: String,
    wants_approval: i64,
    created_at: i64,
    acked_at: Option<i64>,
    ended_at: Option<i64>,
}

impl SyncRow {
    fn read(self) -> Result<Sync, StoreError> {
        let acked = || time(self.acked_at.unwrap_or(self.created_at));
        let ended = |end| Ok::<_, StoreError>(Phase::Ended { at: time(self.ended_at.ok_or_else(|| damaged("command", "no end"))?)?, end });
        let phase = match parse("status", &self.status)? {
            Status::Queued => Phase::Queued,
            Status::Delivered => Phase::Delivered { at: acked()? },
            Status::Completed => ended(End::Completed)?,
            Status::Failed if self.wants_approval != 0 => ended(End::WantsApproval)?,
            Status::Failed => ended(End::Failed)?,
            Status::Undelivered => ended(End::Undelivered)?,
            Status::Superseded => ended(End::Superseded)?,
        };
        Ok(Sync {
            executor: parse("executor id", &self.executor_id)?,
            sha256: parse("digest", &self.sha256)?,
            purpose: parse("purpose", &self.purpose)?,
            approval_expires_at: times(self.approval_expires_at)?,
            created_at: time(self.created_at)?,
            phase,
        })
    }
}
