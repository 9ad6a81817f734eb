//! Temporary folders that are gone after the test, also when the test process was killed: a supervisor removes them.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, ensure};

use crate::binaries::supervisor;

/// A temporary folder of mode 0700. It is removed after this value, and every program started with it, is gone.
#[derive(Debug)]
pub struct TempFolder {
    path: PathBuf,
    lock: PathBuf,
    /// Its stdin is the pipe whose end means "remove the folder".
    watcher: Child,
}

impl TempFolder {
    /// Makes a new folder whose name begins with `clicklink-test-` and `label`.
    ///
    /// # Errors
    /// The folder cannot be made, or the supervisor binary does not lie beside the test executable.
    pub fn new(label: &str) -> Result<Self> {
        let supervisor = supervisor()?;
        let path = tempfile::Builder::new()
            .prefix(&format!("clicklink-test-{label}-"))
            .permissions(fs::Permissions::from_mode(0o700))
            .tempdir()
            .context("making a temporary folder")?
            .keep();
        let lock = path.join(".in-use");
        File::create(&lock).with_context(|| format!("making {}", lock.display()))?;
        let mut watcher = Command::new(supervisor)
            .arg("folder")
            .args([&path, &lock])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // Ctrl-C on a terminal goes to its foreground's process group.
            .process_group(0)
            .spawn()
            .context("starting the folder's supervisor")?;
        let mut said = String::new();
        if let Some(stdout) = watcher.stdout.take() {
            BufReader::new(stdout).read_line(&mut said)?;
        }
        ensure!(said.starts_with("started"), "the folder's supervisor: {said}");
        Ok(Self { path, lock, watcher })
    }

    /// Where the folder is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The place of a file or folder in it.
    #[must_use]
    pub fn join(&self, name: impl AsRef<Path>) -> PathBuf {
        self.path.join(name)
    }

    /// A folder in it, made with its parents if it is not there.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn folder(&self, name: impl AsRef<Path>) -> Result<PathBuf> {
        let path = self.join(name);
        fs::create_dir_all(&path).with_context(|| format!("making {}", path.display()))?;
        Ok(path)
    }

    /// Writes a file in it with mode 0600 and says where it is.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn write(&self, name: impl AsRef<Path>, content: impl AsRef<[u8]>) -> Result<PathBuf> {
        let path = self.join(name);
        let mut file = fs::OpenOptions::new()
            .create(true)
            .write(true)
            .truncate(true)
            .mode(0o600)
            .open(&path)
            .with_context(|| format!("making {}", path.display()))?;
        std::io::Write::write_all(&mut file, content.as_ref()).with_context(|| format!("writing {}", path.display()))?;
        Ok(path)
    }

    /// The file that supervisors lock while they use the folder.
    pub(crate) fn lock(&self) -> &Path {
        &self.lock
    }
}

impl Drop for TempFolder {
    fn drop(&mut self) {
        drop(self.watcher.stdin.take());
        // The watcher ends by itself; it is only reaped if it has already.
        let _ = self.watcher.try_wait();
    }
}
