//! Disks that fail under the executor: a small one that can be filled, one that is read-only, one whose `fsync` fails.

use std::io::{ErrorKind, Write as _};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use super::{Connector, MountNamespace, SOON};
use crate::binaries::binaries;
use crate::eventually::until;
use crate::process::{Process, Program};

/// A state folder of its own, in memory and small.
const SMALL: &str = "mount -t tmpfs -o size=2m,mode=700 tmpfs \"$1\" && shift && exec \"$@\"";
/// The state folder as it is, but nothing can be written.
const READ_ONLY: &str = "mount --bind \"$1\" \"$1\" && mount -o remount,bind,ro \"$1\" && shift && exec \"$@\"";
/// The file that fills the small disk.
const FILLING: &str = "filling";

impl Connector {
    /// Starts the daemon with a new state folder on a disk of 2 MiB.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn start_executor_on_small_disk(&mut self, mounts: MountNamespace) -> Result<()> {
        std::fs::create_dir_all(self.state_dir()).context("making the state folder")?;
        self.start(&self.with_mount("executor", mounts, SMALL))
    }

    /// The daemon, whose state folder is read-only.
    #[must_use]
    pub fn executor_on_read_only_disk(&self, mounts: MountNamespace) -> Program {
        self.with_mount("read-only", mounts, READ_ONLY)
    }

    fn with_mount(&self, name: &str, mounts: MountNamespace, script: &str) -> Program {
        let program = mounts.program(name, script).arg(self.state_dir());
        program.arg(binaries().clicklink).args(["executor", "--config"]).arg(self.config())
    }

    /// Fills the small disk to its last byte.
    ///
    /// # Errors
    /// The executor does not run on one.
    pub fn fill_disk(&self) -> Result<()> {
        let mut file = std::fs::File::create(self.filling()).context("making a file on the executor's disk")?;
        for size in [4096, 512, 1] {
            loop {
                match file.write_all(&vec![0x2e; size]) {
                    Ok(()) => {}
                    Err(error) if error.kind() == ErrorKind::StorageFull => break,
                    Err(error) => return Err(error).context("filling the executor's disk"),
                }
            }
        }
        Ok(())
    }

    /// Makes room on it again.
    ///
    /// # Errors
    /// It was not filled.
    pub fn empty_disk(&self) -> Result<()> {
        std::fs::remove_file(self.filling()).context("making room on the executor's disk")
    }

    /// The executor's mount namespace is seen through its process.
    fn filling(&self) -> PathBuf {
        let state = self.state_dir().join(FILLING);
        let inside = state.strip_prefix("/").unwrap_or(&state);
        PathBuf::from(format!("/proc/{}/root", self.executor().pid())).join(inside)
    }

    /// Lets every `fsync` of the running executor fail until the value is dropped, or [`Process::terminate`] ends it.
    ///
    /// # Errors
    /// There is no `strace`, or it may not look into another process.
    pub async fn fail_fsync(&self) -> Result<Process> {
        let (pid, inject) = (self.executor().pid().to_string(), "inject=fsync,fdatasync:error=EIO");
        let args = ["-f", "-o", "/dev/null", "-e", "trace=fsync,fdatasync", "-e", inject, "-p", &pid];
        let Some(strace) = find("strace") else { bail!("strace is not installed") };
        let process = Program::new("strace", strace).args(args).start(self.folder())?;
        until("strace to be attached", SOON, || async {
            if process.exit().is_some() {
                return Ok(false);
            }
            anyhow::ensure!(process.log_tail(40).contains("attached"), "{}", process.log_tail(40));
            Ok(true)
        })
        .await?
        .then_some(())
        .with_context(|| format!("strace has ended: {}", process.log_tail(5)))?;
        Ok(process)
    }
}

/// A program on the path.
fn find(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(name)).find(|file| file.is_file())
}

/// Ends what [`Connector::fail_fsync`] began.
///
/// # Panics
/// It does not end.
pub async fn let_fsync_succeed(strace: Process) {
    strace.terminate();
    strace.wait(Duration::from_secs(10)).await.expect("strace ends when it is told to");
}
