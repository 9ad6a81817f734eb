//! The executor's access folder. A person (often root) writes whole bundles into it, and the executor may own it, so nothing is
//! trusted; the daemon replaces single files of a bundle ([`Bundle`]).
//!
//! Every step goes through open handles and follows no link. A bundle is built in a folder of an unpredictable name that only the
//! writer can enter, handed over to the folder's owner by handle, and put in place by one rename. Deliberately absent: what a
//! bundle holds.

mod bundle;

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Dir, FileType, Gid, Mode, OFlags, RenameFlags, Uid};
use rustix::io::Errno;

pub(crate) use bundle::Bundle;

use crate::error_code::{Code, Coded};

/// How deep a replaced bundle is removed; ours has no folders.
const MAX_DEPTH: u32 = 8;

/// Why a file was not read or a bundle not put in place.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AccessFolderError {
    /// The folder itself.
    #[error("{}: {doing}: {source}", path.display())]
    Folder {
        /// The folder, or an entry of it.
        path: PathBuf,
        /// What was being done.
        doing: &'static str,
        /// Why not.
        source: Errno,
    },
    /// Reading or writing a file's content.
    #[error("{}: {doing}: {source}", path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// What was being done.
        doing: &'static str,
        /// Why not.
        source: std::io::Error,
    },
    /// A link, a folder or a device where a regular file is expected.
    #[error("{} is not a regular file; links are not followed", .0.display())]
    NotRegular(PathBuf),
    /// A file over its limit.
    #[error("{} has more than {limit} bytes", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// The limit.
        limit: u64,
    },
}

impl Coded for AccessFolderError {
    fn code(&self) -> Code {
        match self {
            Self::Folder { .. } | Self::Content { .. } => Code::AccessFolder,
            Self::NotRegular(_) => Code::NotRegularFile,
            Self::TooLarge { .. } => Code::FileTooLarge,
        }
    }

    fn hints(&self) -> Vec<String> {
        match self {
            Self::Folder { path, source: Errno::ACCESS | Errno::PERM, .. } => {
                vec![format!("run it as the owner of {} or as root", path.display())]
            }
            Self::Folder { source: Errno::NOENT, .. } => {
                vec!["name the executor's access folder with --output-dir DIR; on Kubernetes use --secret-namespace NAMESPACE".into()]
            }
            Self::Folder { .. } | Self::Content { .. } | Self::NotRegular(_) | Self::TooLarge { .. } => Vec::new(),
        }
    }
}

/// An open access folder.
pub(crate) struct AccessFolder {
    path: PathBuf,
    dir: OwnedFd,
    owner: (Uid, Gid),
}

impl AccessFolder {
    /// Opens the folder; the folder itself may not be a link.
    pub(crate) fn open(path: &Path) -> Result<Self, AccessFolderError> {
        let folder = |doing| move |source| AccessFolderError::Folder { path: path.to_owned(), doing, source };
        let dir = rustix::fs::open(path, DIRECTORY, Mode::empty()).map_err(folder("cannot be opened as a folder"))?;
        let stat = rustix::fs::fstat(&dir).map_err(folder("cannot be examined"))?;
        Ok(Self { path: path.to_owned(), dir, owner: (Uid::from_raw(stat.st_uid), Gid::from_raw(stat.st_gid)) })
    }

    /// Opens the folder, after making it (and what is above it) where it is missing.
    pub(crate) fn open_or_create(path: &Path) -> Result<Self, AccessFolderError> {
        if !path.exists() {
            let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path);
            made.map_err(|source| AccessFolderError::Content { path: path.to_owned(), doing: "cannot be created", source })?;
        }
        Self::open(path)
    }

    /// Reads a regular file of at most `limit` bytes, at `name` or inside the folder `inside`; `None` where it is not there.
    pub(crate) fn read(&self, inside: Option<&str>, name: &str, limit: u64) -> Result<Option<Vec<u8>>, AccessFolderError> {
        match inside {
            None => read_file(&self.dir, &self.path.join(name), name, limit),
            Some(folder) => match rustix::fs::openat(&self.dir, folder, DIRECTORY, Mode::empty()) {
                Ok(dir) => read_file(&dir, &self.path.join(folder).join(name), name, limit),
                Err(Errno::NOENT) => Ok(None),
                Err(source) => {
                    Err(AccessFolderError::Folder { path: self.path.join(folder), doing: "cannot be opened as a folder", source })
                }
            },
        }
    }

    /// Puts a folder `name` with exactly these files in place, whole or not at all; answers with what could not be cleaned up.
    pub(crate) fn exchange(&self, name: &str, files: &[(&str, &[u8])]) -> Result<Option<String>, AccessFolderError> {
        let temporary = format!(".{name}-{}", uuid::Uuid::new_v4().simple());
        let at = |doing| {
            let path = self.path.join(&temporary);
            move |source| AccessFolderError::Folder { path: path.clone(), doing, source }
        };
        rustix::fs::mkdirat(&self.dir, &*temporary, Mode::RWXU).map_err(at("cannot be created"))?;
        let placed = self.fill(&temporary, files).and_then(|()| self.put_in_place(&temporary, name).map_err(at("cannot be renamed")));
        // After an exchange the former bundle has the temporary name.
        let cleaned = remove(&self.dir, &temporary, 0);
        placed?;
        Ok(match cleaned {
            Ok(()) | Err(Errno::NOENT) => None,
            Err(error) => Some(format!("{}: what was replaced could not be removed: {error}", self.path.join(&temporary).display())),
        })
    }

    /// Takes a bundle away, by one rename, and removes it. One that is not there is away.
    pub(crate) fn withdraw(&self, name: &str) -> Result<(), AccessFolderError> {
        let temporary = format!(".{name}-{}", uuid::Uuid::new_v4().simple());
        let at = |doing| move |source| AccessFolderError::Folder { path: self.path.join(name), doing, source };
        match rustix::fs::renameat(&self.dir, name, &self.dir, &*temporary) {
            Ok(()) => remove(&self.dir, &temporary, 0).map_err(at("cannot be removed")),
            Err(Errno::NOENT) => Ok(()),
            Err(source) => Err(at("cannot be taken away")(source)),
        }
    }

    /// Sees that a bundle `name` could be built here, and leaves nothing.
    pub(crate) fn probe(&self, name: &str) -> Result<(), AccessFolderError> {
        let temporary = format!(".{name}-{}", uuid::Uuid::new_v4().simple());
        let at = |doing| {
            let path = self.path.join(&temporary);
            move |source| AccessFolderError::Folder { path, doing, source }
        };
        rustix::fs::mkdirat(&self.dir, &*temporary, Mode::RWXU).map_err(at("cannot be created"))?;
        rustix::fs::unlinkat(&self.dir, &*temporary, AtFlags::REMOVEDIR).map_err(at("cannot be removed"))
    }

    fn fill(&self, temporary: &str, files: &[(&str, &[u8])]) -> Result<(), AccessFolderError> {
        let folder = self.path.join(temporary);
        let failed = |doing| {
            let path = folder.clone();
            move |source| AccessFolderError::Folder { path: path.clone(), doing, source }
        };
        let dir = rustix::fs::openat(&self.dir, temporary, DIRECTORY, Mode::empty()).map_err(failed("cannot be opened"))?;
        // The folder's owner may put another one in its place at any moment; theirs is not filled and not handed over.
        let stat = rustix::fs::fstat(&dir).map_err(failed("cannot be examined"))?;
        if Uid::from_raw(stat.st_uid) != rustix::process::geteuid() {
            return Err(failed("somebody put another folder in its place")(Errno::PERM));
        }
        for (name, content) in files {
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let file = rustix::fs::openat(&dir, *name, flags, Mode::RUSR | Mode::WUSR).map_err(failed("a file cannot be created"))?;
            let mut file = File::from(file);
            let written = file.write_all(content).and_then(|()| file.sync_all());
            written.map_err(|source| AccessFolderError::Content { path: folder.join(name), doing: "cannot be written", source })?;
            self.hand_over(&file).map_err(failed("a file's owner cannot be set"))?;
        }
        rustix::fs::fsync(&dir).map_err(failed("cannot be synced"))?;
        self.hand_over(&dir).map_err(failed("the owner cannot be set"))
    }

    fn hand_over(&self, handle: impl std::os::fd::AsFd) -> Result<(), Errno> {
        let stat = rustix::fs::fstat(&handle)?;
        if (Uid::from_raw(stat.st_uid), Gid::from_raw(stat.st_gid)) == self.owner {
            return Ok(());
        }
        rustix::fs::fchown(handle, Some(self.owner.0), Some(self.owner.1))
    }

    fn put_in_place(&self, temporary: &str, name: &str) -> Result<(), Errno> {
        let rename = |flags| rustix::fs::renameat_with(&self.dir, temporary, &self.dir, name, flags);
        match rename(RenameFlags::NOREPLACE) {
            Err(Errno::EXIST) => rename(RenameFlags::EXCHANGE)?,
            other => other?,
        }
        rustix::fs::fsync(&self.dir)
    }
}

const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

fn read_file(dir: &OwnedFd, path: &Path, name: &str, limit: u64) -> Result<Option<Vec<u8>>, AccessFolderError> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let handle = match rustix::fs::openat(dir, name, flags, Mode::empty()) {
        Ok(handle) => handle,
        Err(Errno::NOENT) => return Ok(None),
        Err(Errno::LOOP) => return Err(AccessFolderError::NotRegular(path.to_owned())),
        Err(source) => return Err(AccessFolderError::Folder { path: path.to_owned(), doing: "cannot be opened", source }),
    };
    let examined = rustix::fs::fstat(&handle);
    let stat = examined.map_err(|source| AccessFolderError::Folder { path: path.to_owned(), doing: "cannot be examined", source })?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Err(AccessFolderError::NotRegular(path.to_owned()));
    }
    let mut content = Vec::new();
    let read = File::from(handle).take(limit + 1).read_to_end(&mut content);
    read.map_err(|source| AccessFolderError::Content { path: path.to_owned(), doing: "cannot be read", source })?;
    if content.len() as u64 > limit {
        return Err(AccessFolderError::TooLarge { path: path.to_owned(), limit });
    }
    Ok(Some(content))
}

/// Removes an entry; a folder with its content, without following a link.
fn remove(parent: &OwnedFd, name: &str, depth: u32) -> Result<(), Errno> {
    let dir = match rustix::fs::openat(parent, name, DIRECTORY, Mode::empty()) {
        Ok(dir) => dir,
        Err(Errno::NOTDIR | Errno::LOOP) => return rustix::fs::unlinkat(parent, name, AtFlags::empty()),
        Err(error) => return Err(error),
    };
    let mut names = Vec::new();
    for entry in Dir::read_from(&dir)? {
        let entry = entry?;
        match entry.file_name().to_str() {
            Ok("." | "..") => {}
            Ok(name) => names.push(name.to_owned()),
            Err(_not_text) => return Err(Errno::NOTEMPTY),
        }
    }
    for name in names {
        match rustix::fs::unlinkat(&dir, &*name, AtFlags::empty()) {
            Ok(()) => {}
            Err(Errno::ISDIR | Errno::PERM) if depth < MAX_DEPTH => remove(&dir, &name, depth + 1)?,
            Err(error) => return Err(error),
        }
    }
    rustix::fs::unlinkat(parent, name, AtFlags::REMOVEDIR)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    fn mode(path: &Path) -> u32 {
        std::fs::symlink_metadata(path).unwrap().permissions().mode() & 0o777
    }

    fn entries(path: &Path) -> Vec<String> {
        let mut names: Vec<String> =
            std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_bundle_is_put_in_place_and_exchanged_whole() {
        let root = tempfile::tempdir().unwrap();
        let folder = AccessFolder::open(root.path()).unwrap();
        assert_eq!(folder.exchange("_platform", &[("token", b"one"), ("server", b"s")]).unwrap(), None);
        let live = root.path().join("_platform");
        assert_eq!((mode(&live), mode(&live.join("token"))), (0o700, 0o600));
        std::fs::create_dir(live.join("stray")).unwrap();
        std::fs::write(live.join("stray/file"), "x").unwrap();
        assert_eq!(folder.exchange("_platform", &[("token", b"two")]).unwrap(), None);
        assert_eq!(entries(&live), ["token"]);
        assert_eq!(entries(root.path()), ["_platform"], "nothing is left beside it");
        assert_eq!(folder.read(Some("_platform"), "token", 10).unwrap(), Some(b"two".to_vec()));
    }

    #[test]
    fn a_link_in_its_place_is_replaced_and_never_followed() {
        let (root, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        std::fs::write(elsewhere.path().join("token"), "theirs").unwrap();
        symlink(elsewhere.path(), root.path().join("_platform")).unwrap();
        let folder = AccessFolder::open(root.path()).unwrap();
        assert!(folder.read(Some("_platform"), "token", 10).is_err());
        assert_eq!(folder.exchange("_platform", &[("token", b"ours")]).unwrap(), None);
        assert_eq!(std::fs::read(elsewhere.path().join("token")).unwrap(), b"theirs");
        assert!(std::fs::symlink_metadata(root.path().join("_platform")).unwrap().is_dir());
        assert_eq!(entries(root.path()), ["_platform"]);
    }

    #[test]
    fn a_failure_leaves_the_live_bundle_and_nothing_else() {
        let root = tempfile::tempdir().unwrap();
        let folder = AccessFolder::open(root.path()).unwrap();
        folder.exchange("_platform", &[("token", b"one")]).unwrap();
        assert!(folder.exchange("_platform", &[("token", b"two"), ("a/b", b"")]).is_err());
        assert!(folder.exchange("_platform", &[("token", b"two"), ("token", b"three")]).is_err());
        assert_eq!(entries(root.path()), ["_platform"]);
        assert_eq!(folder.read(Some("_platform"), "token", 10).unwrap(), Some(b"one".to_vec()));
    }

    #[test]
    fn a_folder_that_takes_nothing_is_seen_before() {
        let root = tempfile::tempdir().unwrap();
        AccessFolder::open(root.path()).unwrap().probe("_platform").unwrap();
        assert!(entries(root.path()).is_empty(), "nothing is left");
        let gone = root.path().join("gone");
        std::fs::create_dir(&gone).unwrap();
        let folder = AccessFolder::open(&gone).unwrap();
        std::fs::remove_dir(&gone).unwrap();
        assert!(folder.probe("_platform").is_err());
        assert!(AccessFolder::open_or_create(Path::new("/proc/clicklink/access")).is_err());
    }

    #[test]
    fn only_regular_files_of_a_stated_size_are_read() {
        let root = tempfile::tempdir().unwrap();
        std::fs::write(root.path().join("file"), "12345").unwrap();
        symlink("file", root.path().join("link")).unwrap();
        std::fs::create_dir(root.path().join("dir")).unwrap();
        rustix::fs::mknodat(rustix::fs::CWD, root.path().join("pipe"), FileType::Fifo, Mode::RUSR, 0).unwrap();
        let folder = AccessFolder::open(root.path()).unwrap();
        assert_eq!(folder.read(None, "file", 5).unwrap(), Some(b"12345".to_vec()));
        assert!(matches!(folder.read(None, "file", 4), Err(AccessFolderError::TooLarge { .. })));
        assert!(folder.read(None, "missing", 5).unwrap().is_none());
        for name in ["link", "dir", "pipe"] {
            assert!(matches!(folder.read(None, name, 5), Err(AccessFolderError::NotRegular(_))), "{name}");
        }
        symlink(root.path(), root.path().join("dir/self")).unwrap();
        assert!(AccessFolder::open(&root.path().join("dir/self")).is_err());
    }

    /// The access folder is the executor's own. While root writes into it, that user moves and replaces whatever they can get hold of; nothing that
    /// is not theirs is written, removed or given to them.
    #[test]
    fn its_owner_cannot_lead_root_elsewhere() {
        use std::os::unix::fs::{MetadataExt as _, chown};

        const NOBODY: u32 = 65534;
        if !rustix::process::geteuid().is_root() {
            eprintln!("skipped: it takes two users, and so root");
            return;
        }
        let root = tempfile::tempdir().unwrap();
        std::fs::set_permissions(root.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        let (folder, victim) = (root.path().join("executor"), root.path().join("victim"));
        std::fs::create_dir(&folder).unwrap();
        std::fs::create_dir(&victim).unwrap();
        std::fs::write(victim.join("token"), "of somebody else").unwrap();
        std::fs::set_permissions(victim.join("token"), std::fs::Permissions::from_mode(0o600)).unwrap();
        chown(&folder, Some(NOBODY), Some(NOBODY)).unwrap();
        let done = std::sync::atomic::AtomicBool::new(false);
        let tricks = || {
            rustix::thread::set_thread_gid(Gid::from_raw(NOBODY)).unwrap();
            rustix::thread::set_thread_uid(Uid::from_raw(NOBODY)).unwrap();
            assert!(std::fs::read(victim.join("token")).is_err(), "the owner is nobody special");
            for n in 0_u64.. {
                if done.load(std::sync::atomic::Ordering::Relaxed) {
                    return;
                }
                for name in entries(&folder).iter().filter(|name| name.starts_with(".bundle-")) {
                    let (path, stolen) = (folder.join(name), folder.join(format!("stolen-{n}")));
                    if std::fs::rename(&path, &stolen).is_ok() {
                        let _ = if n % 2 == 0 { symlink(&victim, &path) } else { std::fs::create_dir(&path) };
                    }
                }
                let _ = std::fs::rename(folder.join("bundle"), folder.join(format!("moved-{n}")));
                let _ = symlink(&victim, folder.join("bundle"));
            }
        };
        let access = AccessFolder::open(&folder).unwrap();
        let (mut placed, mut refused) = (0, 0);
        std::thread::scope(|scope| {
            scope.spawn(tricks);
            for _ in 0..5000 {
                if placed > 20 && refused > 50 {
                    break;
                }
                match access.exchange("bundle", &[("token", b"ours"), ("server", b"s")]) {
                    Ok(_) => placed += 1,
                    Err(_) => refused += 1,
                }
                let _ = access.withdraw("bundle");
            }
            done.store(true, std::sync::atomic::Ordering::Relaxed);
        });
        assert_eq!(entries(&victim), ["token"], "{placed} placed, {refused} refused");
        assert_eq!(std::fs::read(victim.join("token")).unwrap(), b"of somebody else");
        for path in [victim.as_path(), &victim.join("token"), root.path()] {
            assert_eq!(std::fs::symlink_metadata(path).unwrap().uid(), 0, "{}", path.display());
        }
        assert!(placed > 0 && refused > 0, "{placed} placed, {refused} refused: nobody was in the way");
        assert_eq!(access.exchange("bundle", &[("token", b"ours")]).map(|_| ()).map_err(|error| error.to_string()), Ok(()));
    }
}
