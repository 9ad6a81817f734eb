//! The state, read from the file; what does not hold together is damage.

use std::sync::Arc;

use agent_api::name::CommandId;
use executor_core::{Entry, Site, State};
use sqlx::Row as _;
use sqlx::sqlite::{SqliteConnection, SqliteRow};

use super::checksum::{COMMANDS, JOBS_DONE, PENDING, PLATFORM, Sealed, Table, check, seal};

/// Why the state can't be read.
pub(super) enum LoadError {
    /// SQLite says no.
    Database(sqlx::Error),
    /// A row is not what was written.
    Damaged(String),
}

/// SQLite's own structure, whole.
pub(super) async fn verify(db: &mut SqliteConnection) -> Result<(), LoadError> {
    let row = sqlx::query("PRAGMA integrity_check(1)").fetch_one(db).await.map_err(LoadError::Database)?;
    match row.try_get::<String, _>(0).map_err(LoadError::Database)? {
        answer if answer == "ok" => Ok(()),
        problem => Err(LoadError::Damaged(problem)),
    }
}

/// All rows, each checked; those of a file of schema 1 are sealed now.
pub(super) async fn state(db: &mut SqliteConnection, site: Site) -> Result<State, LoadError> {
    let mut state = State::new(site);
    let platform = rows(db, &PLATFORM).await?;
    for row in &platform {
        state.platform = json(row, "body").map_err(damaged("platform"))?;
    }
    for row in rows(db, &PENDING).await? {
        state.platform.pending = Some(Arc::new(json(&row, "body").map_err(damaged("pending"))?));
    }
    for row in rows(db, &COMMANDS).await? {
        let (id, entry) = entry(&row).map_err(damaged("commands"))?;
        state.commands.insert(id, entry);
    }
    for row in rows(db, &JOBS_DONE).await? {
        let install_id = column::<String>(&row, "install_id").and_then(|text| text.parse().map_err(|error| format!("{error}")));
        state.jobs_done.insert((install_id.map_err(damaged("jobs_done"))?, json(&row, "job").map_err(damaged("jobs_done"))?));
    }
    if platform.is_empty() && !state.commands.is_empty() {
        return Err(LoadError::Damaged("platform: there are commands, but the platform's row is gone".into()));
    }
    if state.commands.values().any(|entry| entry.command.sequence > state.platform.last_sequence) {
        return Err(LoadError::Damaged("platform: it is older than a command".into()));
    }
    Ok(state)
}

fn damaged(table: &'static str) -> impl Fn(String) -> LoadError {
    move |problem| LoadError::Damaged(format!("{table}: {problem}"))
}

async fn rows(db: &mut SqliteConnection, table: &Table) -> Result<Vec<SqliteRow>, LoadError> {
    let rows = sqlx::query(table.all).fetch_all(&mut *db).await.map_err(LoadError::Database)?;
    for row in &rows {
        match check(table, row).map_err(LoadError::Damaged)? {
            Sealed::Yes => {}
            Sealed::NotYet(rowid) => seal(db, table, rowid).await.map_err(LoadError::Database)?,
        }
    }
    Ok(rows)
}

fn column<'r, T: sqlx::Decode<'r, sqlx::Sqlite> + sqlx::Type<sqlx::Sqlite>>(row: &'r SqliteRow, name: &str) -> Result<T, String> {
    row.try_get(name).map_err(|error| error.to_string())
}

fn json<T: serde::de::DeserializeOwned>(row: &SqliteRow, name: &str) -> Result<T, String> {
    serde_json::from_str(column(row, name)?).map_err(|error| error.to_string())
}

fn entry(row: &SqliteRow) -> Result<(CommandId, Entry), String> {
    let timestamp = |text: String| text.parse::<jiff::Timestamp>().map_err(|error| error.to_string());
    let command: agent_api::command::Command = json(row, "command")?;
    let status = serde_json::from_value(column::<&str>(row, "status")?.into()).map_err(|error| error.to_string())?;
    let sha256 = column::<Option<String>>(row, "sha256")?.map(|text| text.parse()).transpose().map_err(|error| format!("{error}"))?;
    let result = column::<Option<&str>>(row, "result")?;
    let entry = Entry {
        sha256,
        status,
        created_at: timestamp(column(row, "created_at")?)?,
        finished_at: column::<Option<String>>(row, "finished_at")?.map(timestamp).transpose()?,
        result: result.map(serde_json::from_str).transpose().map_err(|error| error.to_string())?,
        acknowledged: column::<i64>(row, "acknowledged")? != 0,
        command,
    };
    Ok((entry.command.id, entry))
}
