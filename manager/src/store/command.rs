//! Commands: in the order of their sequence for each executor, until acknowledged; then their results, once.

use agent_api::command::{self, SyncPlatform};
use agent_api::frame::CommandResult;
use agent_api::name::{CommandId, ExecutorId};
use jiff::Timestamp;

use super::{Store, StoreError, damaged, from_json, millis, parse, time, times, to_json};
use crate::domain::delivery::{Status, Undelivered};
use crate::domain::refusal;
use crate::domain::resend::Purpose;

/// A command as people see it.
#[derive(Clone, Debug)]
pub struct StoredCommand {
    /// Its id.
    pub id: CommandId,
    /// Its place in the executor's order.
    pub sequence: u64,
    /// Its action.
    pub action: String,
    /// Its target.
    pub target: String,
    /// The bundle it carries.
    pub sha256: Option<String>,
    /// Why it was sent.
    pub purpose: Purpose,
    /// Where it stands.
    pub status: Status,
    /// How often it went out.
    pub sent: i64,
    /// How often it should have gone out and nobody was there.
    pub missed: i64,
    /// How it ended.
    pub result: Option<String>,
    /// Why without success, as a stable name.
    pub code: Option<String>,
    /// Objects that were written, as JSON.
    pub objects: Option<serde_json::Value>,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it last went out.
    pub sent_at: Option<Timestamp>,
    /// When the executor had it on disk.
    pub acked_at: Option<Timestamp>,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
}

/// A new `sync_platform`.
#[derive(Clone, Debug)]
pub struct NewSync<'a> {
    /// For whom.
    pub executor: ExecutorId,
    /// Of which proposal.
    pub proposal_id: &'a str,
    /// Why.
    pub purpose: Purpose,
    /// End of the approval that it builds on.
    pub approval_expires_at: Option<Timestamp>,
}

impl Store {
    /// Queues a sync behind the executor's other commands.
    ///
    /// # Errors
    /// The database.
    pub async fn create_sync(&self, new: &NewSync<'_>, now: Timestamp) -> Result<CommandId, StoreError> {
        let id = CommandId(uuid::Uuid::now_v7());
        let mut write = self.write().await?;
        let sequence: i64 =
            sqlx::query_scalar("UPDATE executors SET last_sequence = last_sequence + 1 WHERE id = $1 RETURNING last_sequence")
                .bind(new.executor.to_string())
                .fetch_one(&mut *write)
                .await?;
        sqlx::query(
            "INSERT INTO commands (id, executor_id, sequence, action, target, proposal_id, purpose, approval_expires_at, status, created_at) \
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, 'queued', $9)",
        )
        .bind(id.to_string())
        .bind(new.executor.to_string())
        .bind(sequence)
        .bind(command::SYNC_PLATFORM)
        .bind(command::TARGET_PLATFORM)
        .bind(new.proposal_id)
        .bind(new.purpose.as_str())
        .bind(new.approval_expires_at.map(millis))
        .bind(millis(now))
        .execute(&mut *write)
        .await?;
        write.commit().await?;
        Ok(id)
    }

    /// Ids of an executor's unacknowledged commands, in their order.
    ///
    /// # Errors
    /// The database.
    pub async fn queued(&self, executor: ExecutorId) -> Result<Vec<CommandId>, StoreError> {
        let ids: Vec<String> = sqlx::query_scalar("SELECT id FROM commands WHERE executor_id = $1 AND status = 'queued' ORDER BY sequence")
            .bind(executor.to_string())
            .fetch_all(&self.pool)
            .await?;
        ids.iter().map(|id| parse("command id", id)).collect()
    }

    /// A command as it goes over the wire, noted as sent; none if it was acknowledged or superseded meanwhile.
    ///
    /// # Errors
    /// The database.
    pub async fn send(&self, id: CommandId, now: Timestamp) -> Result<Option<command::Command>, StoreError> {
        let mut write = self.write().await?;
        let found: Option<(i64, String, String, String, String)> = sqlx::query_as(
            "SELECT c.sequence, c.action, c.target, p.sha256, p.manifest FROM commands c JOIN proposals p ON p.id = c.proposal_id \
             WHERE c.id = $1 AND c.status = 'queued'",
        )
        .bind(id.to_string())
        .fetch_optional(&mut *write)
        .await?;
        let Some((sequence, action, target, sha256, manifest)) = found else { return Ok(None) };
        sqlx::query("UPDATE commands SET sent = sent + 1, sent_at = $1 WHERE id = $2")
            .bind(millis(now))
            .bind(id.to_string())
            .execute(&mut *write)
            .await?;
        write.commit().await?;
        let payload = SyncPlatform { sha256: parse("digest", &sha256)?, manifest };
        Ok(Some(command::Command {
            id,
            sequence: u64::try_from(sequence).map_err(|error| damaged("sequence", error))?,
            action,
            target,
            deadline: None,
            payload: serde_json::to_value(payload).map_err(|error| damaged("payload", error))?,
        }))
    }

    /// The executor has the command on disk.
    ///
    /// # Errors
    /// The database.
    pub async fn ack(&self, executor: ExecutorId, id: CommandId, now: Timestamp) -> Result<(), StoreError> {
        sqlx::query(
            "UPDATE commands SET status = 'delivered', acked_at = $1, ended_at = NULL \
             WHERE id = $2 AND executor_id = $3 AND status IN ('queued', 'undelivered', 'superseded')",
        )
        .bind(millis(now))
        .bind(id.to_string())
        .bind(executor.to_string())
        .execute(&self.pool)
        .await?;
        Ok(())
    }

    /// Keeps a result; false if it was there already, or the command is not this executor's.
    ///
    /// # Errors
    /// The database.
    pub async fn store_result(&self, executor: ExecutorId, result: &CommandResult, now: Timestamp) -> Result<bool, StoreError> {
        let status = match result.status {
            command::CommandStatus::Completed => Status::Completed,
            command::CommandStatus::Pending | command::CommandStatus::Running | command::CommandStatus::Failed => Status::Failed,
        };
        let wants_approval = refusal::wants_approval(result);
        let stored = sqlx::query(
            "UPDATE commands SET status = $1, result = $2, objects = $3, wants_approval = $4, ended_at = $5, \
             acked_at = COALESCE(acked_at, $5), code = $8 WHERE id = $6 AND executor_id = $7 AND status NOT IN ('completed', 'failed')",
        )
        .bind(status.as_str())
        .bind(&result.result)
        .bind(to_json("outcome", &result.objects)?)
        .bind(i64::from(wants_approval))
        .bind(millis(now))
        .bind(result.id.to_string())
        .bind(executor.to_string())
        .bind(&result.code)
        .execute(&self.pool)
        .await?;
        Ok(stored.rows_affected() == 1)
    }

    /// Unacknowledged commands of an environment's executors.
    ///
    /// # Errors
    /// The database.
    pub async fn undelivered(&self, environment: &str) -> Result<Vec<Undelivered>, StoreError> {
        let rows: Vec<(String, String, i64, i64, Option<i64>)> = sqlx::query_as(
            "SELECT c.id, c.executor_id, c.created_at, c.missed, c.missed_at FROM commands c JOIN executors x ON x.id = c.executor_id \
             JOIN environments e ON e.cluster_id = x.cluster_id WHERE e.name = $1 AND c.status = 'queued'",
        )
        .bind(environment)
        .fetch_all(&self.pool)
        .await?;
        let undelivered = |(id, executor, created_at, missed, missed_at): (String, String, i64, i64, Option<i64>)| {
            Ok(Undelivered {
                id: parse("command id", &id)?,
                executor: parse("executor id", &executor)?,
                missed: u32::try_from(missed).map_err(|error| damaged("counter", error))?,
                tried_at: time(missed_at.unwrap_or(created_at))?,
            })
        };
        rows.into_iter().map(undelivered).collect()
    }

    /// Notes that a command should have gone out and nobody was there; with `give_up` it never will.
    ///
    /// # Errors
    /// The database.
    pub async fn missed(&self, id: CommandId, give_up: bool, now: Timestamp) -> Result<(), StoreError> {
        sqlx::query(
            "UPDATE commands SET missed = missed + 1, missed_at = $1, status = CASE WHEN $2 = 1 THEN 'undelivered' ELSE status END, \
             ended_at = CASE WHEN $2 = 1 THEN $1 ELSE ended_at END WHERE id = $3 AND status = 'queued'",
        )
        .bind(millis(now))
        .bind(i64::from(give_up))
        .bind(id.to_string())
        .execute(&self.pool)
        .await?;
        Ok(())
    }

    /// All commands of an executor, oldest first.
    ///
    /// # Errors
    /// The database.
    pub async fn commands(&self, executor: ExecutorId) -> Result<Vec<StoredCommand>, StoreError> {
        let rows: Vec<Row> = sqlx::query_as(
            "SELECT c.id, c.sequence, c.action, c.target, p.sha256, c.purpose, c.status, c.sent, c.missed, c.result, c.code, \
             c.objects, c.created_at, c.sent_at, c.acked_at, c.ended_at FROM commands c LEFT JOIN proposals p ON p.id = c.proposal_id \
             WHERE c.executor_id = $1 ORDER BY c.sequence",
        )
        .bind(executor.to_string())
        .fetch_all(&self.pool)
        .await?;
        rows.into_iter().map(Row::read).collect()
    }
}

#[derive(sqlx::FromRow)]
struct Row {
    id: String,
    sequence: i64,
    action: String,
    target: String,
    sha256: Option<String>,
    purpose: String,
    status: String,
    sent: i64,
    missed: i64,
    result: Option<String>,
    code: Option<String>,
    objects: Option<String>,
    created_at: i64,
    sent_at: Option<i64>,
    acked_at: Option<i64>,
    ended_at: Option<i64>,
}

impl Row {
    fn read(self) -> Result<StoredCommand, StoreError> {
        Ok(StoredCommand {
            id: parse("command id", &self.id)?,
            sequence: u64::try_from(self.sequence).map_err(|error| damaged("sequence", error))?,
            action: self.action,
            target: self.target,
            sha256: self.sha256,
            purpose: parse("purpose", &self.purpose)?,
            status: parse("status", &self.status)?,
            sent: self.sent,
            missed: self.missed,
            result: self.result,
            code: self.code,
            objects: self.objects.map(|text| from_json("outcome", &text)).transpose()?,
            created_at: time(self.created_at)?,
            sent_at: times(self.sent_at)?,
            acked_at: times(self.acked_at)?,
            ended_at: times(self.ended_at)?,
        })
    }
}
