//! A booted Debian with the built binaries in it: systemd is its first process, with a journal, accounts and units of its own.
//!
//! Its root is read from the cache folder (`tools/debian/build`) and what is written goes to memory. It has no network but loopback.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};

use super::{MountNamespace, SOON};
use crate::binaries::{binaries, chart_engine};
use crate::eventually::until;
use crate::folder::TempFolder;
use crate::process::{Finished, Process, Program};

/// Runs nspawn with its own libraries, one at a time: all would use the same control groups. The marks that it leaves in `/run` go to a
/// folder that nobody else sees.
const SCRIPT: &str = "mount -t tmpfs tmpfs /run && exec flock --no-fork \"$1\" \
                      \"$1/lib64/ld-linux-x86-64.so.2\" --library-path \"$1/usr/lib/$2:$1/usr/lib/$2/systemd\" \
                      \"$1/usr/bin/systemd-nspawn\" --quiet --directory=\"$1\" --boot --register=no --keep-unit --console=pipe \
                      --volatile=overlay --private-network --bind-ro=\"$3:/usr/local/bin/clicklink\" \
                      --bind-ro=\"$4:/usr/local/bin/clicklink-render\"";
/// Where Debian keeps the libraries of this machine's kind.
const LIBRARIES: &str = "x86_64-linux-gnu";
/// Its orderly end.
const GRACE: Duration = Duration::from_secs(20);

/// All that it takes to boot one.
#[derive(Debug, Clone)]
pub struct Debian {
    root: PathBuf,
    mounts: MountNamespace,
}

impl Debian {
    /// Whether one can be booted here.
    ///
    /// # Errors
    /// It cannot; the error says why.
    pub fn find() -> Result<Self> {
        ensure!(cfg!(target_arch = "x86_64"), "the loader's name is known for x86-64 only");
        ensure!(rustix::process::geteuid().is_root(), "booting a system takes root");
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tools/debian/build");
        let said = Command::new(&script).arg("--where").output().with_context(|| format!("asking {}", script.display()))?;
        let root = PathBuf::from(String::from_utf8(said.stdout)?.trim());
        ensure!(root.join("usr/bin/systemd-nspawn").is_file(), "the Debian to boot is not built; `make tools` says why");
        Ok(Self { root, mounts: MountNamespace::of_root()? })
    }

    /// Boots one, and waits until all of its units are up.
    ///
    /// # Errors
    /// It does not come up.
    pub async fn boot(&self) -> Result<Booted> {
        let home = TempFolder::new("booted")?;
        let program = self.mounts.program("debian", SCRIPT).arg(&self.root).arg(LIBRARIES).arg(binaries().clicklink).arg(chart_engine());
        let process = program.env("SYSTEMD_NSPAWN_LOCK", "0").grace(GRACE).start(&home)?;
        let init = until("the system's first process", SOON, || async {
            match process.ensure_running() {
                Err(ended) => Ok(Err(ended)),
                Ok(()) => first_process(process.pid()).map(Ok),
            }
        });
        let init = init.await??;
        let booted = Booted { home, process, init };
        let up = until("the system to be up", SOON, || async {
            if let Err(ended) = booted.process.ensure_running() {
                return Ok(Err(ended));
            }
            let state = booted.run(&["systemctl", "is-system-running"]).await?.stdout;
            ensure!(state.trim() == "running", "it is {state}");
            Ok(Ok(()))
        });
        up.await??;
        Ok(booted)
    }
}

/// The child of nspawn that is process 1 in its own namespace.
fn first_process(nspawn: i32) -> Result<i32> {
    let children = std::fs::read_to_string(format!("/proc/{nspawn}/task/{nspawn}/children"))?;
    let of_itself = |pid: &i32| {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let ids = status.lines().find_map(|line| line.strip_prefix("NSpid:")).unwrap_or_default();
        ids.split_whitespace().nth(1) == Some("1")
    };
    children.split_whitespace().flat_map(str::parse).find(of_itself).context("nspawn has no such child yet")
}

/// A system that runs. It ends when this value is dropped, or with the test process.
pub struct Booted {
    home: TempFolder,
    process: Process,
    init: i32,
}

impl Booted {
    /// Runs a command in it as root.
    ///
    /// # Errors
    /// It cannot be started or hangs. Its own failure is in [`Finished`].
    pub async fn run(&self, command: &[&str]) -> Result<Finished> {
        let program = Program::new("inside", "nsenter").only_given_env().folder("/");
        program.args(["--target", &self.init.to_string(), "--all", "--"]).args(command).run(&self.home, SOON).await
    }

    /// Writes a file in it, its folder made if it is not there, readable by everybody.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn write(&self, path: &str, content: impl AsRef<[u8]>) -> Result<()> {
        let file = PathBuf::from(format!("/proc/{}/root{path}", self.init));
        let folder = file.parent().context("a path has a folder")?;
        std::fs::create_dir_all(folder).with_context(|| format!("making the folder of {path}"))?;
        std::fs::write(&file, content).with_context(|| format!("writing {path}"))?;
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).with_context(|| format!("the mode of {path}"))
    }
}
