//! Approvals as executors report them: each goes on record once, and once more when something about it changes (a revoked one ends
//! earlier). What counts is the last entry.

use agent_api::heartbeat::ApprovalRecord;
use agent_api::name::ExecutorId;
use jiff::Timestamp;
use serde::Serialize;
use sqlx::SqliteExecutor;

use super::audit::ApprovalRow;
use super::{Store, StoreError, millis, parse, time};

/// An approval, and who saw it.
#[derive(Clone, Debug, Serialize)]
pub struct Reported {
    /// The approval.
    #[serde(flatten)]
    pub approval: ApprovalRecord,
    /// Who saw it in its cluster.
    pub executor: ExecutorId,
    /// When it last said something new of it.
    pub reported_at: Timestamp,
    /// When it was revoked: it ends sooner now than it was first said to. None too where nobody reported it before that.
    pub revoked_at: Option<Timestamp>,
}

/// Condition: `a` is the last entry of its approval.
macro_rules! is_last {
    () => {
        "a.what = 'approval' AND a.number = (SELECT MAX(b.number) FROM audit b \
         WHERE b.executor_id = a.executor_id AND b.sha256 = a.sha256 AND b.approved_at = a.approved_at)"
    };
}

#[derive(sqlx::FromRow)]
struct Row {
    executor_id: String,
    at: i64,
    /// The latest end that it was ever said to have.
    longest: i64,
    #[sqlx(flatten)]
    approval: ApprovalRow,
}

impl Store {
    /// Puts on record what is new in an executor's report. Of a report longer than any of ours the rest is not taken: nobody may fill
    /// the store with it.
    ///
    /// # Errors
    /// The database.
    pub async fn record_approvals(&self, executor: ExecutorId, reported: &[ApprovalRecord], now: Timestamp) -> Result<(), StoreError> {
        let reported = &reported[..reported.len().min(ApprovalRecord::MOST)];
        let news =
            |known: &[Stored]| reported.iter().filter(|approval| !known.contains(&Stored::of(approval))).cloned().collect::<Vec<_>>();
        if news(&known(&self.pool, executor).await?).is_empty() {
            return Ok(());
        }
        let mut write = self.write().await?;
        for approval in news(&known(&mut *write, executor).await?) {
            sqlx::query(
                "INSERT INTO audit (number, at, who, what, executor_id, sha256, approved_by, approved_at, expires_at, objects) \
                 SELECT COALESCE(MAX(number), 0) + 1, $1, $2, 'approval', $3, $4, $5, $6, $7, $8 FROM audit",
            )
            .bind(millis(now))
            .bind(format!("executor:{executor}"))
            .bind(executor.to_string())
            .bind(approval.sha256.as_str())
            .bind(&approval.approved_by)
            .bind(millis(approval.approved_at))
            .bind(millis(approval.expires_at))
            .bind(i64::from(approval.objects))
            .execute(&mut *write)
            .await?;
        }
        write.commit().await?;
        Ok(())
    }

    /// Approvals of an environment, as its executors last reported them, the newest first.
    ///
    /// # Errors
    /// The database.
    pub async fn approvals(&self, environment: &str) -> Result<Vec<Reported>, StoreError> {
        let rows: Vec<Row> = sqlx::query_as(concat!(
            "SELECT a.executor_id, a.at, a.sha256, a.approved_by, a.approved_at, a.expires_at, a.objects, \
             (SELECT MAX(c.expires_at) FROM audit c WHERE c.executor_id = a.executor_id AND c.sha256 = a.sha256 \
             AND c.approved_at = a.approved_at) AS longest FROM audit a \
             JOIN executors x ON x.id = a.executor_id JOIN environments e ON e.cluster_id = x.cluster_id WHERE e.name = $1 AND ",
            is_last!(),
            " ORDER BY a.approved_at DESC, a.number",
        ))
        .bind(environment)
        .fetch_all(&self.pool)
        .await?;
        let read = |row: Row| {
            let approval = row.approval.read()?;
            let revoked_at = (millis(approval.expires_at) < row.longest).then_some(approval.expires_at);
            Ok(Reported { approval, executor: parse("executor id", &row.executor_id)?, reported_at: time(row.at)?, revoked_at })
        };
        rows.into_iter().map(read).collect()
    }
}

/// An approval as precisely as it is stored.
#[derive(PartialEq)]
struct Stored(String, String, i64, i64, u32);

impl Stored {
    fn of(approval: &ApprovalRecord) -> Self {
        let (sha256, by) = (approval.sha256.to_string(), approval.approved_by.clone());
        Self(sha256, by, millis(approval.approved_at), millis(approval.expires_at), approval.objects)
    }
}

async fn known(database: impl SqliteExecutor<'_>, executor: ExecutorId) -> Result<Vec<Stored>, StoreError> {
    let rows: Vec<ApprovalRow> = sqlx::query_as(concat!(
        "SELECT a.sha256, a.approved_by, a.approved_at, a.expires_at, a.objects FROM audit a WHERE a.executor_id = $1 AND ",
        is_last!(),
    ))
    .bind(executor.to_string())
    .fetch_all(database)
    .await?;
    rows.into_iter().map(|row| Ok(Stored::of(&row.read()?))).collect()
}
