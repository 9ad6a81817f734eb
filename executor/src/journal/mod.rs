//! The journal: SQLite, one writer, a record and the state that follows from it in one transaction, durable before anything is done.
//!
//! What can't be trusted is refused at start; what is damaged is kept aside. While nothing can be written the journal says why, and tries by itself
//! whether there is room again.

mod checksum;
mod error;
mod file;
mod load;
mod write;

use std::path::{Path, PathBuf};

use executor_core::{PlatformRecord, Record, Site, State};
use sqlx::migrate::MigrateError;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection, SqliteJournalMode, SqliteLockingMode, SqliteSynchronous};
use sqlx::{ConnectOptions as _, Connection as _, raw_sql};

pub(crate) use error::JournalError;

use crate::terminal::chain;
use file::Found;
use load::LoadError;

static MIGRATIONS: sqlx::migrate::Migrator = sqlx::migrate!("src/journal/migrations");

/// The `-wal` file is cut back to this after it was larger.
const WAL_BYTES: &str = "4194304";

/// The open journal; holds the folder's lock while it lives.
pub(crate) struct Journal {
    connection: SqliteConnection,
    path: PathBuf,
    trouble: Option<Trouble>,
    _lock: std::fs::File,
}

/// How the journal is, for those who look from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Condition<'a> {
    /// Size of its files.
    pub(crate) bytes: u64,
    /// Why nothing can be written; `None` while the last write succeeded.
    pub(crate) trouble: Option<&'a str>,
}

/// Why nothing can be written at present.
struct Trouble {
    reason: String,
    /// Room that the record would have needed.
    bytes: usize,
}

impl Journal {
    /// Opens or makes the journal and reads the state from it. The folder is 0700, files 0600.
    pub(crate) async fn open(path: &Path, site: Site) -> Result<(Self, State), JournalError> {
        let lock = file::lock(path.parent().unwrap_or(Path::new(".")))?;
        file::nothing_aside(path)?;
        match Self::read(path, site, lock).await {
            Err(damaged @ JournalError::Damaged { .. }) => {
                file::set_aside(path)?;
                Err(damaged)
            }
            read => read,
        }
    }

    async fn read(path: &Path, site: Site, lock: std::fs::File) -> Result<(Self, State), JournalError> {
        if file::look(path)? == Found::Nothing {
            begin(path).await?;
            file::look(path)?;
        }
        let mut connection = connect(path).await?;
        match read(&mut connection, path, site).await {
            Ok(state) => Ok((Self { connection, path: path.to_owned(), trouble: None, _lock: lock }, state)),
            Err(error) => {
                let _ = connection.close().await;
                Err(error)
            }
        }
    }

    /// How it is at present.
    pub(crate) fn condition(&self) -> Condition<'_> {
        Condition { bytes: file::bytes(&self.path), trouble: self.trouble.as_ref().map(|trouble| trouble.reason.as_str()) }
    }

    /// Whether nothing can be written at present.
    pub(crate) fn is_in_trouble(&self) -> bool {
        self.trouble.is_some()
    }

    /// After a failed write: tries whether as much can be written again.
    pub(crate) async fn retry(&mut self) {
        let Some(bytes) = self.trouble.as_ref().map(|trouble| trouble.bytes) else { return };
        let tried = match self.take_room(bytes).await {
            Ok(()) => Ok(()),
            Err(error) => Err(self.failed(error, bytes).await),
        };
        if tried.is_ok() {
            self.trouble = None;
        }
    }

    async fn take_room(&mut self, bytes: usize) -> Result<(), sqlx::Error> {
        let db = &mut self.connection;
        raw_sql("BEGIN IMMEDIATE").execute(&mut *db).await?;
        let zeros = "INSERT OR REPLACE INTO room (id, body) VALUES (1, zeroblob(?))";
        sqlx::query(zeros).bind(i64::try_from(bytes).unwrap_or(i64::MAX)).execute(&mut *db).await?;
        raw_sql("COMMIT").execute(&mut *db).await?;
        raw_sql("DELETE FROM room").execute(&mut *db).await?;
        Ok(())
    }

    async fn write(&mut self, record: &Record, after: &PlatformRecord) -> Result<(), sqlx::Error> {
        raw_sql("BEGIN IMMEDIATE").execute(&mut self.connection).await?;
        write::record(&mut self.connection, record, after).await?;
        raw_sql("COMMIT").execute(&mut self.connection).await?;
        Ok(())
    }

    /// Ends the transaction, whether SQLite has already or not (it does after some errors), and keeps the reason.
    async fn failed(&mut self, source: sqlx::Error, bytes: usize) -> JournalError {
        let _ = raw_sql("ROLLBACK").execute(&mut self.connection).await;
        let error = JournalError::Database { path: self.path.clone(), action: "write", source };
        self.trouble = Some(Trouble { reason: chain(&error), bytes });
        error
    }
}

impl executor_core::Journal for Journal {
    type Error = JournalError;

    async fn append(&mut self, record: &Record, after: &PlatformRecord) -> Result<(), JournalError> {
        match self.write(record, after).await {
            Ok(()) => {
                self.trouble = None;
                Ok(())
            }
            Err(error) => Err(self.failed(error, write::size(record)).await),
        }
    }
}

/// Only this process reads and writes while it runs: no index in shared memory is needed beside the file.
async fn connect(path: &Path) -> Result<SqliteConnection, JournalError> {
    let options = SqliteConnectOptions::new()
        .filename(path)
        .locking_mode(SqliteLockingMode::Exclusive)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Full)
        .pragma("journal_size_limit", WAL_BYTES);
    options.connect().await.map_err(|source| JournalError::opening(path, "open", source))
}

async fn begin(path: &Path) -> Result<(), JournalError> {
    let new = file::begin(path)?;
    let mut connection = connect(&new).await?;
    migrate(&mut connection, &new).await?;
    // Everything is in the one file after this.
    connection.close().await.map_err(|source| JournalError::opening(&new, "begin", source))?;
    file::put(&new, path)
}

/// The state, once everything about the file is as it must be.
async fn read(connection: &mut SqliteConnection, path: &Path, site: Site) -> Result<State, JournalError> {
    let unloaded = |action| {
        move |error| match error {
            LoadError::Database(source) => JournalError::opening(path, action, source),
            LoadError::Damaged(problem) => JournalError::Damaged { path: path.to_owned(), problem },
        }
    };
    load::verify(connection).await.map_err(unloaded("check"))?;
    let tables = sqlx::query_scalar::<_, i64>("SELECT count(*) FROM sqlite_schema WHERE name IN ('_sqlx_migrations', 'commands')");
    if tables.fetch_one(&mut *connection).await.map_err(|source| JournalError::opening(path, "check", source))? != 2 {
        return Err(JournalError::Foreign(path.to_owned()));
    }
    migrate(connection, path).await?;
    load::state(connection, site).await.map_err(unloaded("read"))
}

async fn migrate(connection: &mut SqliteConnection, path: &Path) -> Result<(), JournalError> {
    let known = MIGRATIONS.iter().map(|migration| migration.version).max().unwrap_or_default();
    MIGRATIONS.run(connection).await.map_err(|error| match error {
        MigrateError::VersionMissing(found) => JournalError::Newer { path: path.to_owned(), found, known },
        MigrateError::VersionMismatch(version) | MigrateError::Dirty(version) => {
            JournalError::Damaged { path: path.to_owned(), problem: format!("schema {version} is not the one of that number") }
        }
        MigrateError::Execute(source) | MigrateError::ExecuteMigration(source, _) => JournalError::opening(path, "migrate", source),
        other => JournalError::Database { path: path.to_owned(), action: "migrate", source: sqlx::Error::Migrate(Box::new(other)) },
    })
}

#[cfg(test)]
mod tests;
