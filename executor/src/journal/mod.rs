//! The journal: SQLite, one writer, a record and the state that follows from it in one transaction, durable before anything is done.

use std::collections::BTreeMap;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use agent_api::command::CommandStatus;
use agent_api::name::CommandId;
use executor_core::{Entry, PlatformRecord, Record, Site, State};
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection, SqliteJournalMode, SqliteRow, SqliteSynchronous};
use sqlx::{ConnectOptions as _, Connection as _, Row as _};

/// The open journal; holds the folder's lock while it lives.
pub(crate) struct Journal {
    connection: SqliteConnection,
    path: PathBuf,
    _lock: std::fs::File,
}

/// Why the journal can't be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum JournalError {
    /// The folder can't be made or locked.
    #[error("state folder {path}: {source}", path = path.display())]
    Folder {
        /// Folder.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// Another daemon has it.
    #[error("state folder {path} is in use by another executor; only one may run", path = .0.display())]
    InUse(PathBuf),
    /// SQLite says no.
    #[error("journal {path}: {action}", path = path.display())]
    Database {
        /// File.
        path: PathBuf,
        /// What was being done.
        action: &'static str,
        /// Why.
        source: sqlx::Error,
    },
    /// A row does not read back.
    #[error("journal {path} is damaged: {problem}; the file is kept as it is: move it aside to begin anew", path = path.display())]
    Damaged {
        /// File.
        path: PathBuf,
        /// Which row.
        problem: String,
    },
}

impl Journal {
    /// Opens or makes the journal and reads the state from it. The folder is 0700, files 0600.
    pub(crate) async fn open(path: &Path, site: Site) -> Result<(Self, State), JournalError> {
        let dir = path.parent().unwrap_or(Path::new("."));
        let lock = lock(dir)?;
        let fail = |action| move |source| JournalError::Database { path: path.to_owned(), action, source };
        let options = SqliteConnectOptions::new()
            .filename(path)
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(SqliteSynchronous::Full);
        let mut connection = options.connect().await.map_err(fail("open"))?;
        sqlx::migrate!("src/journal/migrations")
            .run(&mut connection)
            .await
            .map_err(|error| fail("migrate")(sqlx::Error::Migrate(Box::new(error))))?;
        for suffix in ["", "-wal", "-shm"] {
            let file = PathBuf::from(format!("{}{suffix}", path.display()));
            if file.exists() {
                std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600))
                    .map_err(|source| JournalError::Folder { path: file, source })?;
            }
        }
        let mut journal = Self { connection, path: path.to_owned(), _lock: lock };
        let state = journal.load(site).await?;
        Ok((journal, state))
    }

    /// Size of the journal's files, in bytes.
    pub(crate) fn bytes(path: &Path) -> u64 {
        let size = |suffix: &str| std::fs::metadata(format!("{}{suffix}", path.display())).map_or(0, |m| m.len());
        size("") + size("-wal")
    }

    fn fail(&self, action: &'static str) -> impl Fn(sqlx::Error) -> JournalError + use<> {
        let path = self.path.clone();
        move |source| JournalError::Database { path: path.clone(), action, source }
    }

    async fn load(&mut self, site: Site) -> Result<State, JournalError> {
        let fail = self.fail("read");
        let path = self.path.clone();
        let damaged = |problem: String| JournalError::Damaged { path: path.clone(), problem };
        let mut state = State::new(site);
        if let Some(row) = sqlx::query("SELECT body FROM platform").fetch_optional(&mut self.connection).await.map_err(&fail)? {
            state.platform = json(&row, "body").map_err(|e| damaged(format!("platform: {e}")))?;
        }
        if let Some(row) = sqlx::query("SELECT body FROM pending").fetch_optional(&mut self.connection).await.map_err(&fail)? {
            state.platform.pending = Some(Arc::new(json(&row, "body").map_err(|e| damaged(format!("pending: {e}")))?));
        }
        let mut commands = BTreeMap::new();
        for row in sqlx::query("SELECT * FROM commands").fetch_all(&mut self.connection).await.map_err(&fail)? {
            let (id, entry) = entry(&row).map_err(|e| damaged(format!("commands: {e}")))?;
            commands.insert(id, entry);
        }
        state.commands = commands;
        for row in sqlx::query("SELECT install_id, job FROM jobs_done").fetch_all(&mut self.connection).await.map_err(&fail)? {
            let install_id = row.get::<String, _>("install_id").parse().map_err(|e| damaged(format!("jobs_done: {e}")))?;
            let job = json(&row, "job").map_err(|e| damaged(format!("jobs_done: {e}")))?;
            state.jobs_done.insert((install_id, job));
        }
        Ok(state)
    }

    async fn write(&mut self, record: &Record, after: &PlatformRecord) -> Result<(), sqlx::Error> {
        let mut transaction = self.connection.begin().await?;
        let db = &mut *transaction;
        match record {
            Record::Accepted { command, staged, at } => {
                let entry = Entry::new(command.clone(), *at);
                sqlx::query("INSERT INTO commands (id, sequence, command, sha256, status, created_at) VALUES (?, ?, ?, ?, ?, ?)")
                    .bind(command.id.to_string())
                    .bind(i64::try_from(command.sequence).unwrap_or(i64::MAX))
                    .bind(text(command))
                    .bind(entry.sha256.map(String::from))
                    .bind(entry.status.as_str())
                    .bind(at.to_string())
                    .execute(&mut *db)
                    .await?;
                if let Some(staged) = staged {
                    sqlx::query("INSERT OR REPLACE INTO pending (id, body) VALUES (1, ?)").bind(text(&**staged)).execute(&mut *db).await?;
                }
            }
            Record::Started { id } => {
                sqlx::query("UPDATE commands SET status = ? WHERE id = ?")
                    .bind(CommandStatus::Running.as_str())
                    .bind(id.to_string())
                    .execute(&mut *db)
                    .await?;
            }
            Record::Attempted { .. } => {}
            Record::JobDone { install_id, job } => {
                sqlx::query("INSERT OR IGNORE INTO jobs_done (install_id, job) VALUES (?, ?)")
                    .bind(install_id.to_string())
                    .bind(text(job))
                    .execute(&mut *db)
                    .await?;
            }
            Record::Finished { result, at, .. } => {
                sqlx::query(
                    "UPDATE commands SET status = ?, finished_at = ?, result = ?, command = json_set(command, '$.payload', NULL) WHERE id = ?",
                )
                .bind(result.status.as_str())
                .bind(at.to_string())
                .bind(text(result))
                .bind(result.id.to_string())
                .execute(&mut *db)
                .await?;
            }
            Record::Acknowledged { id } => {
                sqlx::query("UPDATE commands SET acknowledged = 1 WHERE id = ?").bind(id.to_string()).execute(&mut *db).await?;
            }
        }
        // The pending bundle has a row of its own: it is large and seldom changes.
        let body = text(&PlatformRecord { pending: None, ..after.clone() });
        sqlx::query("INSERT OR REPLACE INTO platform (id, body) VALUES (1, ?)").bind(body).execute(&mut *db).await?;
        transaction.commit().await
    }
}

impl executor_core::Journal for Journal {
    type Error = JournalError;

    async fn append(&mut self, record: &Record, after: &PlatformRecord) -> Result<(), JournalError> {
        let fail = self.fail("write");
        self.write(record, after).await.map_err(fail)
    }
}

fn lock(dir: &Path) -> Result<std::fs::File, JournalError> {
    let fail = |source| JournalError::Folder { path: dir.to_owned(), source };
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(dir).map_err(fail)?;
    let file = std::fs::OpenOptions::new().create(true).truncate(false).write(true).open(dir.join("executor.lock")).map_err(fail)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(std::fs::TryLockError::WouldBlock) => Err(JournalError::InUse(dir.to_owned())),
        Err(std::fs::TryLockError::Error(source)) => Err(fail(source)),
    }
}

fn text<T: serde::Serialize>(value: &T) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

fn json<T: serde::de::DeserializeOwned>(row: &SqliteRow, column: &str) -> Result<T, String> {
    serde_json::from_str(row.get::<&str, _>(column)).map_err(|error| error.to_string())
}

fn entry(row: &SqliteRow) -> Result<(CommandId, Entry), String> {
    let timestamp = |text: String| text.parse::<jiff::Timestamp>().map_err(|error| error.to_string());
    let command: agent_api::command::Command = json(row, "command")?;
    let status = serde_json::from_value(row.get::<&str, _>("status").into()).map_err(|error| error.to_string())?;
    let sha256 = row.get::<Option<String>, _>("sha256").map(|text| text.parse()).transpose().map_err(|e| format!("{e}"))?;
    let entry = Entry {
        sha256,
        status,
        created_at: timestamp(row.get("created_at"))?,
        finished_at: row.get::<Option<String>, _>("finished_at").map(timestamp).transpose()?,
        result: row.get::<Option<&str>, _>("result").map(serde_json::from_str).transpose().map_err(|error| error.to_string())?,
        acknowledged: row.get::<i64, _>("acknowledged") != 0,
        command,
    };
    Ok((entry.command.id, entry))
}

#[cfg(test)]
mod tests;
