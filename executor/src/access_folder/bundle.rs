//! One bundle of the access folder, held open: what is read from it, and what is replaced in it, is of the same bundle, also while a
//! person exchanges it for another one.

use std::fs::File;
use std::io::Write as _;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Mode, OFlags};
use rustix::io::Errno;

use super::{AccessFolderError, DIRECTORY, read_file};

/// An open bundle.
#[derive(Debug)]
pub(crate) struct Bundle {
    path: PathBuf,
    dir: OwnedFd,
}

impl Bundle {
    /// Opens the bundle, which may not be a link; `None` where it is not there.
    pub(crate) fn open(path: &Path) -> Result<Option<Self>, AccessFolderError> {
        match rustix::fs::open(path, DIRECTORY, Mode::empty()) {
            Ok(dir) => Ok(Some(Self { path: path.to_owned(), dir })),
            Err(Errno::NOENT) => Ok(None),
            Err(source) => Err(AccessFolderError::Folder { path: path.to_owned(), doing: "cannot be opened as a folder", source }),
        }
    }

    /// Reads a regular file of at most `limit` bytes; `None` where it is not there.
    pub(crate) fn read(&self, name: &str, limit: u64) -> Result<Option<Vec<u8>>, AccessFolderError> {
        read_file(&self.dir, &self.path.join(name), name, limit)
    }

    /// Whether this bundle, and no other, is the one that has its name.
    pub(crate) fn is_in_place(&self) -> bool {
        let named = rustix::fs::statat(CWD, &self.path, AtFlags::SYMLINK_NOFOLLOW);
        match (named, rustix::fs::fstat(&self.dir)) {
            (Ok(named), Ok(held)) => (named.st_dev, named.st_ino) == (held.st_dev, held.st_ino),
            (Err(_), _) | (_, Err(_)) => false,
        }
    }

    /// Replaces one file by one rename: a reader finds the former content or this, whole, and after a crash too.
    ///
    /// Only one process may do this to a bundle at a time; what an earlier one left unfinished is removed.
    pub(crate) fn replace(&self, name: &str, content: &[u8]) -> Result<(), AccessFolderError> {
        let temporary = format!(".{name}.new");
        let path = self.path.join(name);
        let failed = |doing| {
            let path = path.clone();
            move |source| AccessFolderError::Folder { path, doing, source }
        };
        match rustix::fs::unlinkat(&self.dir, &*temporary, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(source) => return Err(failed("what was left of an earlier try cannot be removed")(source)),
        }
        let written = self.write(&temporary, content).map_err(|source| AccessFolderError::Content {
            path: path.clone(),
            doing: "cannot be written anew",
            source,
        });
        let placed = written.and_then(|()| {
            rustix::fs::renameat(&self.dir, &*temporary, &self.dir, name).map_err(failed("cannot be replaced"))?;
            rustix::fs::fsync(&self.dir).map_err(failed("cannot be synced"))
        });
        if placed.is_err() {
            // It holds a secret; where even this fails, the next try removes it.
            let _ = rustix::fs::unlinkat(&self.dir, &*temporary, AtFlags::empty());
        }
        placed
    }

    fn write(&self, temporary: &str, content: &[u8]) -> std::io::Result<()> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut file = File::from(rustix::fs::openat(&self.dir, temporary, flags, Mode::RUSR | Mode::WUSR)?);
        file.write_all(content)?;
        file.sync_all()
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    fn bundle(root: &Path) -> (PathBuf, Bundle) {
        let path = root.join("_cluster");
        std::fs::create_dir(&path).unwrap();
        std::fs::write(path.join("token"), "one").unwrap();
        let bundle = Bundle::open(&path).unwrap().unwrap();
        (path, bundle)
    }

    fn names(path: &Path) -> Vec<String> {
        std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    #[test]
    fn a_file_is_replaced_and_nothing_is_left_beside_it() {
        let root = tempfile::tempdir().unwrap();
        let (path, bundle) = bundle(root.path());
        std::fs::write(path.join(".token.new"), "of a try that was cut off").unwrap();
        bundle.replace("token", b"two").unwrap();
        assert_eq!(bundle.read("token", 10).unwrap(), Some(b"two".to_vec()));
        assert_eq!(names(&path), ["token"]);
        assert_eq!(std::fs::metadata(path.join("token")).unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn no_link_is_followed() {
        let root = tempfile::tempdir().unwrap();
        let (path, bundle) = bundle(root.path());
        let theirs = root.path().join("theirs");
        std::fs::write(&theirs, "theirs").unwrap();
        std::fs::remove_file(path.join("token")).unwrap();
        for name in ["token", ".token.new"] {
            symlink(&theirs, path.join(name)).unwrap();
        }
        assert!(matches!(bundle.read("token", 10), Err(AccessFolderError::NotRegular(_))));
        bundle.replace("token", b"two").unwrap();
        assert_eq!(std::fs::read(&theirs).unwrap(), b"theirs");
        assert!(std::fs::symlink_metadata(path.join("token")).unwrap().is_file());
        symlink(&path, root.path().join("link")).unwrap();
        assert!(Bundle::open(&root.path().join("link")).is_err());
        assert!(Bundle::open(&root.path().join("gone")).unwrap().is_none());
    }

    #[test]
    fn a_failure_leaves_the_former_content_and_nothing_else() {
        let root = tempfile::tempdir().unwrap();
        let (path, bundle) = bundle(root.path());
        std::fs::create_dir(path.join("kubeconfig")).unwrap();
        assert!(bundle.replace("kubeconfig", b"two").is_err(), "a folder is in its place");
        assert_eq!(bundle.read("token", 10).unwrap(), Some(b"one".to_vec()));
        assert_eq!(names(&path).len(), 2, "{:?}", names(&path));
    }

    #[test]
    fn an_exchanged_bundle_is_seen_and_the_new_one_is_not_touched() {
        let root = tempfile::tempdir().unwrap();
        let (path, bundle) = bundle(root.path());
        assert!(bundle.is_in_place());
        std::fs::rename(&path, root.path().join("former")).unwrap();
        assert!(!bundle.is_in_place());
        std::fs::create_dir(&path).unwrap();
        assert!(!bundle.is_in_place());
        bundle.replace("token", b"two").unwrap();
        assert_eq!((names(&path).len(), names(&root.path().join("former")).len()), (0, 1));
    }
}
