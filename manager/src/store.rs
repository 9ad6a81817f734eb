//! The store: one SQLite file, one writer process, one file here for each table.
//!
//! Rows become types here and nowhere else; what a row means is `domain`'s. Queries keep to what PostgreSQL understands too.

pub mod approval;
pub mod audit;
pub mod cluster;
pub mod command;
pub mod enrolment;
pub mod environment;
pub mod executor;
pub mod fleet;
pub mod proposal;
pub mod release;
pub mod setting;
pub mod token;

use std::path::Path;

use jiff::Timestamp;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous};
use sqlx::{Sqlite, SqlitePool, Transaction};

use crate::config;

/// A clonable handle.
#[derive(Clone, Debug)]
pub struct Store {
    pool: SqlitePool,
}

/// Why the store did not do it.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The database said no.
    #[error("the store could not be read or written")]
    Database(#[from] sqlx::Error),
    /// The schema could not be brought up to date.
    #[error("the store's schema could not be brought up to date")]
    Migrate(#[from] sqlx::migrate::MigrateError),
    /// A name is in use.
    #[error("{noun} `{name}` is there already")]
    Taken {
        /// What.
        noun: &'static str,
        /// Its name.
        name: String,
    },
    /// A row that this program would not have written.
    #[error("the store holds a {what} that is not readable: {problem}")]
    Damaged {
        /// What.
        what: &'static str,
        /// How.
        problem: String,
    },
}

impl Store {
    /// Opens the file, creating it, and brings its schema up to date.
    ///
    /// # Errors
    /// The file cannot be opened, or belongs to a newer version.
    pub async fn open(path: &Path) -> Result<Self, StoreError> {
        let options = SqliteConnectOptions::new()
            .filename(path)
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(SqliteSynchronous::Full)
            .foreign_keys(true)
            .busy_timeout(config::STORE_BUSY);
        let pool = SqlitePoolOptions::new().max_connections(config::STORE_POOL).connect_with(options).await?;
        sqlx::migrate!("./migrations").run(&pool).await?;
        Ok(Self { pool })
    }

    /// Writes what is left and closes the file.
    pub async fn close(&self) {
        self.pool.close().await;
    }

    /// A transaction that holds the write lock from its beginning, so that it cannot fail half-way for want of it.
    async fn write(&self) -> Result<Transaction<'static, Sqlite>, StoreError> {
        Ok(self.pool.begin_with("BEGIN IMMEDIATE").await?)
    }
}

fn millis(at: Timestamp) -> i64 {
    at.as_millisecond()
}

fn time(millis: i64) -> Result<Timestamp, StoreError> {
    Timestamp::from_millisecond(millis).map_err(|error| damaged("time", error))
}

fn times(millis: Option<i64>) -> Result<Option<Timestamp>, StoreError> {
    millis.map(time).transpose()
}

fn damaged(what: &'static str, problem: impl std::fmt::Display) -> StoreError {
    StoreError::Damaged { what, problem: problem.to_string() }
}

fn parse<T: std::str::FromStr<Err: std::fmt::Display>>(what: &'static str, text: &str) -> Result<T, StoreError> {
    text.parse().map_err(|error| damaged(what, error))
}

fn from_json<T: serde::de::DeserializeOwned>(what: &'static str, text: &str) -> Result<T, StoreError> {
    serde_json::from_str(text).map_err(|error| damaged(what, error))
}

fn to_json<T: serde::Serialize>(what: &'static str, value: &T) -> Result<String, StoreError> {
    serde_json::to_string(value).map_err(|error| damaged(what, error))
}

/// Turns the database's "not unique" into [`StoreError::Taken`].
fn taken<'a>(noun: &'static str, name: &'a str) -> impl FnOnce(sqlx::Error) -> StoreError + 'a {
    move |error| match &error {
        sqlx::Error::Database(inner) if inner.is_unique_violation() => StoreError::Taken { noun, name: name.to_owned() },
        _ => StoreError::Database(error),
    }
}

#[cfg(test)]
mod tests;
