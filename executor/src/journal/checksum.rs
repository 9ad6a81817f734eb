//! A checksum for each row, over all of its other columns.

use agent_api::digest::Sha256;
use sqlx::sqlite::{SqliteConnection, SqliteRow};
use sqlx::{Row as _, ValueRef as _};

/// A table whose rows have checksums.
pub(super) struct Table {
    /// Its rows, with their `rowid` as `number`.
    pub(super) all: &'static str,
    one: &'static str,
    set: &'static str,
    name: &'static str,
    columns: &'static [&'static str],
}

macro_rules! table {
    ($name:literal, $columns:literal, $list:expr) => {
        Table {
            all: concat!("SELECT rowid AS number, checksum, ", $columns, " FROM ", $name),
            one: concat!("SELECT rowid AS number, checksum, ", $columns, " FROM ", $name, " WHERE rowid = ?"),
            set: concat!("UPDATE ", $name, " SET checksum = ? WHERE rowid = ?"),
            name: $name,
            columns: $list,
        }
    };
}

/// Commands.
pub(super) const COMMANDS: Table = table!(
    "commands",
    "id, sequence, command, sha256, status, created_at, finished_at, result, acknowledged",
    &["id", "sequence", "command", "sha256", "status", "created_at", "finished_at", "result", "acknowledged"]
);
/// The platform's record.
pub(super) const PLATFORM: Table = table!("platform", "id, body", &["id", "body"]);
/// The pending bundle.
pub(super) const PENDING: Table = table!("pending", "id, body", &["id", "body"]);
/// Jobs that are done.
pub(super) const JOBS_DONE: Table = table!("jobs_done", "install_id, job", &["install_id", "job"]);

/// Gives a row the checksum of what it holds now.
pub(super) async fn seal(db: &mut SqliteConnection, table: &Table, rowid: i64) -> Result<(), sqlx::Error> {
    let row = sqlx::query(table.one).bind(rowid).fetch_one(&mut *db).await?;
    let sum = of(table, &row)?;
    sqlx::query(table.set).bind(sum).bind(rowid).execute(&mut *db).await?;
    Ok(())
}

/// Whether a row holds what it was sealed with; a row of a file of schema 1 is not sealed yet.
pub(super) fn check(table: &Table, row: &SqliteRow) -> Result<Sealed, String> {
    let fail = |error: sqlx::Error| format!("{}: {error}", table.name);
    match row.try_get::<Option<&str>, _>("checksum").map_err(fail)? {
        None => Ok(Sealed::NotYet(row.try_get("number").map_err(fail)?)),
        Some(sum) if sum == of(table, row).map_err(fail)? => Ok(Sealed::Yes),
        Some(_) => Err(format!("{}: a row does not hold what was written", table.name)),
    }
}

/// Whether a row has a checksum.
pub(super) enum Sealed {
    /// It has, and the right one.
    Yes,
    /// It has none; its rowid.
    NotYet(i64),
}

/// Each value with its length, so that no two rows give the same bytes.
fn of(table: &Table, row: &SqliteRow) -> Result<String, sqlx::Error> {
    let mut bytes = table.name.as_bytes().to_vec();
    for column in table.columns {
        if row.try_get_raw(*column)?.is_null() {
            bytes.push(0);
            continue;
        }
        let text = match row.try_get::<&str, _>(*column) {
            Ok(text) => text.to_owned(),
            Err(_) => row.try_get::<i64, _>(*column)?.to_string(),
        };
        bytes.push(1);
        bytes.extend_from_slice(&text.len().to_le_bytes());
        bytes.extend_from_slice(text.as_bytes());
    }
    Ok(Sha256::of(&bytes).to_string())
}
