//! Which engine it is that lies at a path now: the digest of its program.

use std::fs::File;
use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use agent_api::digest::Sha256;

/// How much of a program is read at once.
const PART: u64 = 256 << 10;

/// What a file has that changes with its content: device, inode, size, and when content and inode were last written.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Seen([u64; 3], [i64; 4]);

/// The digest of the program that was seen last, so that tens of megabytes are not read for each chart.
#[derive(Clone, Debug, Default)]
pub(super) struct Identity(Arc<Mutex<Option<(Seen, Sha256)>>>);

impl Identity {
    /// The digest of the program there; `None` where it cannot be read, or changed meanwhile.
    pub(super) fn of(&self, path: &Path) -> Option<Sha256> {
        let seen = seen(path)?;
        // The lock is held while it is read, so that those who ask at the same time wait for one reading.
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((then, digest)) = &*known
            && *then == seen
        {
            return Some(digest.clone());
        }
        let digest = digest(path).ok()?;
        (self::seen(path)? == seen).then(|| {
            *known = Some((seen, digest.clone()));
            digest
        })
    }
}

/// In parts: the program is many times larger than all that the executor holds.
fn digest(path: &Path) -> std::io::Result<Sha256> {
    let mut file = File::open(path)?;
    let mut failed = None;
    let parts = std::iter::from_fn(|| {
        let mut part = Vec::new();
        match file.by_ref().take(PART).read_to_end(&mut part) {
            Ok(0) => None,
            Ok(_) => Some(part),
            Err(error) => {
                failed = Some(error);
                None
            }
        }
    });
    let digest = Sha256::of_all(parts);
    failed.map_or(Ok(digest), Err)
}

fn seen(path: &Path) -> Option<Seen> {
    let file = std::fs::metadata(path).ok()?;
    Some(Seen([file.dev(), file.ino(), file.size()], [file.mtime(), file.mtime_nsec(), file.ctime(), file.ctime_nsec()]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_program_at_the_same_path_is_another() {
        let folder = tempfile::tempdir().unwrap();
        let (path, other) = (folder.path().join("engine"), folder.path().join("other"));
        let identity = Identity::default();
        assert_eq!(identity.of(&path), None);
        std::fs::write(&path, "one").unwrap();
        assert_eq!(identity.of(&path), Some(Sha256::of(b"one")));
        assert_eq!(identity.of(&path), Some(Sha256::of(b"one")));
        let large = vec![7; 3 * 256 * 1024 + 1];
        std::fs::write(&other, &large).unwrap();
        std::fs::rename(&other, &path).unwrap();
        assert_eq!(identity.of(&path), Some(Sha256::of(&large)));
    }
}
