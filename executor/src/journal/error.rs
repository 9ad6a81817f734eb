//! Why the journal can't be used, and what to do.

use std::path::{Path, PathBuf};

/// Why the journal can't be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum JournalError {
    /// The folder, or a file in it, can't be made, read or locked.
    #[error("state folder: {path}: {source}", path = path.display())]
    Folder {
        /// Folder or file.
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
    /// What is in the file can't be trusted.
    #[error(
        "journal {path} is damaged: {problem}. It is kept in {path}.damaged, and no new one is begun by itself: restore {path} from a backup, \
         or go on without memory of former commands; for either, first: mv {path}.damaged {path}.damaged-$(date +%s); then start the \
         executor again",
        path = path.display()
    )]
    Damaged {
        /// File.
        path: PathBuf,
        /// What is wrong.
        problem: String,
    },
    /// One that was damaged at an earlier start is still there.
    #[error(
        "a damaged journal is kept in {path}.damaged, and no new one is begun by itself: restore {path} from a backup, or go on without \
         memory of former commands; for either, first: mv {path}.damaged {path}.damaged-$(date +%s); then start the executor again",
        path = .0.display()
    )]
    KeptAside(PathBuf),
    /// Written by a later version.
    #[error(
        "journal {path} was written by a newer clicklink (schema {found}, this version knows up to {known}); it is left alone: install \
         that version again, or a later one",
        path = path.display()
    )]
    Newer {
        /// File.
        path: PathBuf,
        /// Its schema.
        found: i64,
        /// The last that is known here.
        known: i64,
    },
    /// Another program's database.
    #[error("{path} is no journal of clicklink but another program's database; it is left alone: name another file in executor.db_path", path = .0.display())]
    Foreign(PathBuf),
}

impl JournalError {
    /// SQLite's answer at start: damage has its own error.
    pub(super) fn opening(path: &Path, action: &'static str, source: sqlx::Error) -> Self {
        let path = path.to_owned();
        let code = source.as_database_error().and_then(|error| error.code()?.parse::<u32>().ok());
        match code {
            Some(code) if is_damage(code) => Self::Damaged { path, problem: format!("{action}: {source}") },
            Some(_) | None => Self::Database { path, action, source },
        }
    }
}

/// `SQLITE_CORRUPT` and its kinds, `SQLITE_NOTADB`, and a file that ends too early.
fn is_damage(code: u32) -> bool {
    const SHORT_READ: u32 = 522;
    matches!(code & 0xff, 11 | 26) || code == SHORT_READ
}
