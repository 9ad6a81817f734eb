//! A record as SQL, inside a transaction that the caller begins and ends.

use agent_api::command::CommandStatus;
use agent_api::name::CommandId;
use executor_core::{Entry, PlatformRecord, Record};
use sqlx::Row as _;
use sqlx::sqlite::{SqliteConnection, SqliteRow};

use super::checksum::{COMMANDS, JOBS_DONE, PENDING, PLATFORM, Table, seal};

/// Room that a record may take beside its texts.
const OVERHEAD: usize = 16 * 1024;

/// How much room a record needs, about: what must be there again before it is worth another try.
pub(super) fn size(record: &Record) -> usize {
    let command = |command: &agent_api::command::Command| command.payload.to_string().len();
    OVERHEAD
        + match record {
            Record::Accepted { command: taken, staged, .. } => command(taken) + staged.as_ref().map_or(0, |staged| staged.manifest.len()),
            Record::Dismissed { command: answered, .. } => command(answered),
            Record::Finished { result, .. } => text(result).len(),
            Record::Started { .. }
            | Record::Attempted { .. }
            | Record::JobDone { .. }
            | Record::Acknowledged { .. }
            | Record::Forgotten { .. } => 0,
        }
}

/// The record, and the platform's state that follows from it.
pub(super) async fn record(db: &mut SqliteConnection, record: &Record, after: &PlatformRecord) -> Result<(), sqlx::Error> {
    match record {
        Record::Accepted { command, staged, at } => {
            insert(db, &Entry::new(command.clone(), *at)).await?;
            if let Some(staged) = staged {
                let query = sqlx::query("INSERT OR REPLACE INTO pending (id, body) VALUES (1, ?) RETURNING rowid").bind(text(&**staged));
                sealed(query.fetch_one(&mut *db).await, db, &PENDING).await?;
            }
        }
        Record::Dismissed { command, result, at } => insert(db, &Entry::dismissed(command.clone(), result.clone(), *at)).await?,
        Record::Started { id } => {
            let query = sqlx::query("UPDATE commands SET status = ? WHERE id = ? RETURNING rowid");
            let row = query.bind(CommandStatus::Running.as_str()).bind(id.to_string()).fetch_one(&mut *db).await;
            sealed(row, db, &COMMANDS).await?;
        }
        Record::Attempted { install_id, .. } => {
            sqlx::query("DELETE FROM jobs_done WHERE install_id <> ?").bind(install_id.to_string()).execute(&mut *db).await?;
        }
        Record::JobDone { install_id, job } => {
            let query = sqlx::query("INSERT OR REPLACE INTO jobs_done (install_id, job) VALUES (?, ?) RETURNING rowid");
            let row = query.bind(install_id.to_string()).bind(text(job)).fetch_one(&mut *db).await;
            sealed(row, db, &JOBS_DONE).await?;
        }
        Record::Finished { result, at, .. } => {
            let query = sqlx::query(
                "UPDATE commands SET status = ?, finished_at = ?, result = ?, command = json_set(command, '$.payload', NULL) \
                 WHERE id = ? RETURNING rowid",
            );
            let query = query.bind(result.status.as_str()).bind(at.to_string()).bind(text(result)).bind(result.id.to_string());
            sealed(query.fetch_one(&mut *db).await, db, &COMMANDS).await?;
        }
        Record::Acknowledged { id } => {
            let query = sqlx::query("UPDATE commands SET acknowledged = 1 WHERE id = ? RETURNING rowid");
            sealed(query.bind(id.to_string()).fetch_one(&mut *db).await, db, &COMMANDS).await?;
        }
        Record::Forgotten { commands, .. } => forget(db, commands).await?,
    }
    // The pending bundle has a row of its own: it is large and seldom changes.
    let body = text(&PlatformRecord { pending: None, ..after.clone() });
    let query = sqlx::query("INSERT OR REPLACE INTO platform (id, body) VALUES (1, ?) RETURNING rowid").bind(body);
    sealed(query.fetch_one(&mut *db).await, db, &PLATFORM).await
}

async fn insert(db: &mut SqliteConnection, entry: &Entry) -> Result<(), sqlx::Error> {
    let query = sqlx::query(
        "INSERT INTO commands (id, sequence, command, sha256, status, created_at, finished_at, result) \
         VALUES (?, ?, ?, ?, ?, ?, ?, ?) RETURNING rowid",
    );
    let row = query
        .bind(entry.command.id.to_string())
        .bind(i64::try_from(entry.command.sequence).unwrap_or(i64::MAX))
        .bind(text(&entry.command))
        .bind(entry.sha256.as_ref().map(ToString::to_string))
        .bind(entry.status.as_str())
        .bind(entry.created_at.to_string())
        .bind(entry.finished_at.map(|at| at.to_string()))
        .bind(entry.result.as_ref().map(text))
        .fetch_one(&mut *db)
        .await;
    sealed(row, db, &COMMANDS).await
}

async fn forget(db: &mut SqliteConnection, commands: &[CommandId]) -> Result<(), sqlx::Error> {
    for id in commands {
        sqlx::query("DELETE FROM commands WHERE id = ?").bind(id.to_string()).execute(&mut *db).await?;
    }
    Ok(())
}

/// Seals the row that was written. There being none is an error: the file is not what the state was read from.
async fn sealed(written: Result<SqliteRow, sqlx::Error>, db: &mut SqliteConnection, table: &Table) -> Result<(), sqlx::Error> {
    seal(db, table, written?.try_get(0)?).await
}

fn text<T: serde::Serialize>(value: &T) -> String {
    serde_json::to_string(value).unwrap_or_default()
}
