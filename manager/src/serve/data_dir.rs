//! The data folder: who may read what in it, and that only one server uses it.

use std::fs::{DirBuilder, File, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

/// The database.
pub const STORE: &str = "manager.db";
/// PEM of the certificate authority, to be handed to clients.
pub const CA_CERT: &str = "ca.crt";
/// Its key.
pub const CA_KEY: &str = "ca.key";
/// PEM of the server's certificate.
pub const SERVER_CERT: &str = "server.crt";
/// Its key.
pub const SERVER_KEY: &str = "server.key";
/// The key that seals executors' signing keys.
pub const SEAL_KEY: &str = "seal.key";
/// The token that makes the first bearer token.
pub const BOOTSTRAP_TOKEN: &str = "bootstrap-token";
const LOCK: &str = "lock";

/// The folder, locked for this process.
#[derive(Debug)]
pub struct DataDir {
    path: PathBuf,
    _lock: File,
}

/// Why the folder cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum DataDirError {
    /// The operating system said no.
    #[error("{doing} {path}")]
    Io {
        /// What was being done.
        doing: &'static str,
        /// Where.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It is somebody's ordinary folder.
    #[error("{0} can be read by others and holds other files; give an empty folder, or `chmod 700` it")]
    Open(PathBuf),
    /// Two servers.
    #[error("{0} is in use by another `navin-manager serve`")]
    InUse(PathBuf),
}

impl DataDir {
    /// Creates the folder (0700) where there is none, and locks it.
    ///
    /// # Errors
    /// It cannot be created, is readable by others, or is in use.
    pub fn open(path: &Path) -> Result<Self, DataDirError> {
        let failed = |doing| move |source| DataDirError::Io { doing, path: path.to_owned(), source };
        DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(failed("could not create the folder"))?;
        let mode = path.metadata().map_err(failed("could not look at the folder"))?.permissions().mode();
        if mode & 0o077 != 0 {
            let mut entries = path.read_dir().map_err(failed("could not list the folder"))?;
            if entries.next().is_some() && !path.join(STORE).exists() {
                return Err(DataDirError::Open(path.to_owned()));
            }
            std::fs::set_permissions(path, Permissions::from_mode(0o700)).map_err(failed("could not restrict the folder"))?;
        }
        let lock = File::options().create(true).truncate(false).write(true).open(path.join(LOCK)).map_err(failed("could not lock"))?;
        lock.try_lock().map_err(|_| DataDirError::InUse(path.to_owned()))?;
        let dir = Self { path: path.to_owned(), _lock: lock };
        if !dir.path(STORE).exists() {
            dir.write(STORE, b"", 0o600)?;
        }
        Ok(dir)
    }

    /// The path of a file.
    #[must_use]
    pub fn path(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// A file's content, none where it is not there.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn read(&self, name: &str) -> Result<Option<String>, DataDirError> {
        match std::fs::read_to_string(self.path(name)) {
            Ok(text) => Ok(Some(text)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(DataDirError::Io { doing: "could not read", path: self.path(name), source }),
        }
    }

    /// Replaces a file in one step; it never was readable by more than `mode` says.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn write(&self, name: &str, content: &[u8], mode: u32) -> Result<(), DataDirError> {
        let write = || -> io::Result<()> {
            let mut file = tempfile::Builder::new().permissions(Permissions::from_mode(mode)).tempfile_in(&self.path)?;
            file.write_all(content)?;
            file.as_file().set_permissions(Permissions::from_mode(mode))?;
            file.as_file().sync_all()?;
            file.persist(self.path(name))?;
            File::open(&self.path)?.sync_all()
        };
        write().map_err(|source| DataDirError::Io { doing: "could not write", path: self.path(name), source })
    }

    /// Removes a file, if it is there.
    ///
    /// # Errors
    /// It cannot be removed.
    pub fn remove(&self, name: &str) -> Result<(), DataDirError> {
        match std::fs::remove_file(self.path(name)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(DataDirError::Io { doing: "could not remove", path: self.path(name), source: error })
            }
            Ok(()) | Err(_) => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_server_and_nobody_else_reads() {
        let parent = tempfile::tempdir().unwrap();
        let path = parent.path().join("data");
        let dir = DataDir::open(&path).unwrap();
        dir.write("x", b"secret", 0o600).unwrap();
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o700);
        assert_eq!(path.join("x").metadata().unwrap().permissions().mode() & 0o777, 0o600);
        assert!(matches!(DataDir::open(&path), Err(DataDirError::InUse(_))));
        drop(dir);
        assert!(DataDir::open(&path).is_ok());
    }

    #[test]
    fn an_ordinary_folder_is_left_alone() {
        let parent = tempfile::tempdir().unwrap();
        std::fs::set_permissions(parent.path(), Permissions::from_mode(0o755)).unwrap();
        std::fs::write(parent.path().join("letter.txt"), "").unwrap();
        assert!(matches!(DataDir::open(parent.path()), Err(DataDirError::Open(_))));
    }
}
