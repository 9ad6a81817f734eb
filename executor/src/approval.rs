//! The token bundle in `_platform/`: read whole through one handle, and noticed when it is replaced.

use std::fs::File;
use std::io::Read as _;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use agent_api::access;
use agent_api::approval::Approval;
use agent_api::names::PLATFORM_DIR;
use agent_api::secret::Secret;
use executor_core::{ApprovalSeen, TokenBundle, TokenBundleError};
use notify::event::{AccessKind, AccessMode, EventKind};
use notify::{Event, RecommendedWatcher, RecursiveMode, Watcher as _};
use rustix::fs::{Mode, OFlags, openat};
use tokio::sync::{mpsc, watch};

/// Largest file of a token bundle: 1 MiB.
const MAX_FILE: u64 = 1 << 20;
/// How often the folder is read where no notification comes.
const SLOW_POLL: Duration = Duration::from_secs(30);

/// All four keys of a token bundle.
pub(crate) struct Credentials {
    /// What it says without its secret.
    pub(crate) bundle: TokenBundle,
    /// `https://host[:port]`.
    pub(crate) server: String,
    /// PEM.
    pub(crate) ca: Vec<u8>,
    /// The platform token.
    pub(crate) token: Secret,
}

/// Opens the folder once (in a mounted Secret: its `..data`), and reads all keys through that handle, so that they are of one bundle.
pub(crate) fn read(access_dir: &Path) -> Result<Credentials, TokenBundleError> {
    let dir = open_dir(&access_dir.join(PLATFORM_DIR))?;
    let token = Secret::new(text(&dir, access::TOKEN)?.trim().to_owned());
    let approval: Approval = serde_json::from_str(&text(&dir, access::APPROVAL)?)
        .map_err(|error| TokenBundleError::Damaged(format!("{}: {error}", access::APPROVAL)))?;
    let claims = cluster::token::claims(&token).map_err(|error| TokenBundleError::Damaged(format!("{}: {error}", access::TOKEN)))?;
    Ok(Credentials {
        bundle: TokenBundle { approval, token_expires_at: claims.expires_at },
        server: text(&dir, access::SERVER)?.trim().to_owned(),
        ca: text(&dir, access::CA_CRT)?.into_bytes(),
        token,
    })
}

fn open_dir(path: &Path) -> Result<OwnedFd, TokenBundleError> {
    let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC;
    let absent = |error: rustix::io::Errno| match error {
        rustix::io::Errno::NOENT => TokenBundleError::Absent,
        error => TokenBundleError::Damaged(format!("{}: {error}", path.display())),
    };
    let dir = rustix::fs::open(path, flags, Mode::empty()).map_err(absent)?;
    match openat(&dir, "..data", flags, Mode::empty()) {
        Ok(data) => Ok(data),
        Err(_) => Ok(dir),
    }
}

fn text(dir: &OwnedFd, name: &str) -> Result<String, TokenBundleError> {
    let damaged = |problem: String| TokenBundleError::Damaged(format!("{name}: {problem}"));
    let file = match openat(dir, name, OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW, Mode::empty()) {
        Ok(file) => File::from(file),
        Err(rustix::io::Errno::NOENT) if name == access::TOKEN => return Err(TokenBundleError::Absent),
        Err(error) => return Err(damaged(error.to_string())),
    };
    let mut text = String::new();
    file.take(MAX_FILE).read_to_string(&mut text).map_err(|error| damaged(error.to_string()))?;
    Ok(text)
}

/// Follows the approval at hand. A change is noticed by watching the access folder and the bundle's; where no notification comes, by a
/// slow poll. The receiver changes only when what it says changes.
pub(crate) fn follow(access_dir: PathBuf) -> watch::Receiver<Option<ApprovalSeen>> {
    let (sender, receiver) = watch::channel(seen(&access_dir));
    tokio::spawn(async move {
        loop {
            // The bundle's folder is another one after each exchange, so that it is watched anew.
            let (wake, mut woken) = mpsc::channel(1);
            let watcher = watch_changes(&[&access_dir, &access_dir.join(PLATFORM_DIR)], wake);
            let now = seen(&access_dir);
            sender.send_if_modified(|last| std::mem::replace(last, now.clone()) != now);
            let _ = tokio::time::timeout(SLOW_POLL, woken.recv()).await;
            drop(watcher);
            if sender.is_closed() {
                return;
            }
            // A writer's files come in a burst.
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    });
    receiver
}

/// Wakes on changes in folders; one that is not there is not watched. `None` where nothing can be watched.
fn watch_changes(folders: &[&Path], wake: mpsc::Sender<()>) -> Option<RecommendedWatcher> {
    let on_event = move |event: notify::Result<Event>| {
        // An error may hide a change.
        if event.map_or(true, |event| is_change(event.kind)) {
            let _ = wake.try_send(());
        }
    };
    let mut watcher = notify::recommended_watcher(on_event).ok()?;
    for folder in folders {
        let _ = watcher.watch(folder, RecursiveMode::NonRecursive);
    }
    Some(watcher)
}

/// Reading is told as well, our own too: each look would be followed by another one.
fn is_change(kind: EventKind) -> bool {
    !matches!(kind, EventKind::Access(access) if access != AccessKind::Close(AccessMode::Write))
}

fn seen(access_dir: &Path) -> Option<ApprovalSeen> {
    let bundle = read(access_dir).ok()?.bundle;
    Some(ApprovalSeen {
        expires_at: bundle.expires_at(),
        install_id: bundle.approval.install_id,
        leftovers: bundle.approval.leftovers,
        sha256: bundle.approval.bundle_sha256,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_write_wakes_and_a_look_does_not() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("token");
        std::fs::write(&file, "one").unwrap();
        let (wake, mut woken) = mpsc::channel(1);
        let _watcher = watch_changes(&[folder.path(), &folder.path().join("gone")], wake).unwrap();
        for _ in 0..3 {
            std::fs::read(&file).unwrap();
            std::fs::read_dir(folder.path()).unwrap().count();
        }
        let look = tokio::time::timeout(Duration::from_millis(300), woken.recv()).await;
        assert!(look.is_err(), "a look woke the one who looks");
        std::fs::write(folder.path().join("token.new"), "two").unwrap();
        std::fs::rename(folder.path().join("token.new"), &file).unwrap();
        tokio::time::timeout(Duration::from_secs(10), woken.recv()).await.unwrap().unwrap();
    }
}
