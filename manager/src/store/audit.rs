//! The append-only record: who called which writing route with which result, and which approvals executors reported.
//!
//! The schema refuses every change of an entry; see the migration.

use agent_api::heartbeat::ApprovalRecord;
use agent_api::name::ExecutorId;
use jiff::Timestamp;
use serde::Serialize;

use super::{Store, StoreError, damaged, millis, parse, time};

/// One entry.
#[derive(Clone, Debug, Serialize)]
pub struct Entry {
    /// Its place, from 1, without gaps.
    pub number: i64,
    /// When it was written.
    pub at: Timestamp,
    /// `token:<name>`, `executor:<id>`, or `-` for somebody unknown.
    pub who: String,
    /// What they did, or reported.
    #[serde(flatten)]
    pub what: What,
}

/// What an entry is about.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "what", rename_all = "snake_case")]
pub enum What {
    /// A call of a route.
    Call {
        /// HTTP method.
        method: String,
        /// Path, without query.
        path: String,
        /// HTTP status.
        status: u16,
    },
    /// An approval that an executor saw in its cluster, or another end of one.
    Approval {
        /// Who saw it.
        executor: ExecutorId,
        /// The approval.
        #[serde(flatten)]
        approval: ApprovalRecord,
    },
}

#[derive(sqlx::FromRow)]
struct Row {
    number: i64,
    at: i64,
    who: String,
    what: String,
    method: Option<String>,
    path: Option<String>,
    status: Option<i64>,
    executor_id: Option<String>,
    #[sqlx(flatten)]
    approval: ApprovalRow,
}

/// An approval's columns.
#[derive(sqlx::FromRow)]
pub(super) struct ApprovalRow {
    sha256: Option<String>,
    approved_by: Option<String>,
    approved_at: Option<i64>,
    expires_at: Option<i64>,
    objects: Option<i64>,
}

impl ApprovalRow {
    /// The approval.
    pub(super) fn read(self) -> Result<ApprovalRecord, StoreError> {
        let objects = u32::try_from(present(self.objects)?).map_err(|error| damaged("audit entry", error))?;
        Ok(ApprovalRecord {
            sha256: parse("digest", &present(self.sha256)?)?,
            approved_by: present(self.approved_by)?,
            approved_at: time(present(self.approved_at)?)?,
            expires_at: time(present(self.expires_at)?)?,
            objects,
        })
    }
}

fn present<T>(column: Option<T>) -> Result<T, StoreError> {
    column.ok_or_else(|| damaged("audit entry", "a column is empty"))
}

impl Row {
    fn read(self) -> Result<Entry, StoreError> {
        let what = match self.what.as_str() {
            "call" => What::Call {
                method: present(self.method)?,
                path: present(self.path)?,
                status: u16::try_from(present(self.status)?).map_err(|error| damaged("audit entry", error))?,
            },
            "approval" => What::Approval { executor: parse("executor id", &present(self.executor_id)?)?, approval: self.approval.read()? },
            other => return Err(damaged("audit entry", format!("`{other}` is of another version"))),
        };
        Ok(Entry { number: self.number, at: time(self.at)?, who: self.who, what })
    }
}

impl Store {
    /// Appends a call.
    ///
    /// # Errors
    /// The database.
    pub async fn append_call(&self, who: &str, method: &str, path: &str, status: u16, now: Timestamp) -> Result<(), StoreError> {
        sqlx::query(
            "INSERT INTO audit (number, at, who, what, method, path, status) \
             SELECT COALESCE(MAX(number), 0) + 1, $1, $2, 'call', $3, $4, $5 FROM audit",
        )
        .bind(millis(now))
        .bind(who)
        .bind(method)
        .bind(path)
        .bind(i64::from(status))
        .execute(&self.pool)
        .await?;
        Ok(())
    }

    /// Entries behind a number and not older than a time, in their order, `limit` at most.
    ///
    /// # Errors
    /// The database.
    pub async fn audit(&self, after: i64, since: Option<Timestamp>, limit: u32) -> Result<Vec<Entry>, StoreError> {
        let rows: Vec<Row> = sqlx::query_as(
            "SELECT number, at, who, what, method, path, status, executor_id, sha256, approved_by, approved_at, expires_at, objects \
             FROM audit WHERE number > $1 AND at >= $2 ORDER BY number LIMIT $3",
        )
        .bind(after)
        .bind(since.map_or(i64::MIN, millis))
        .bind(limit)
        .fetch_all(&self.pool)
        .await?;
        rows.into_iter().map(Row::read).collect()
    }
}
