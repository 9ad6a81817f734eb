//! The folder that answers are kept in: trusted only where nobody else can have written there.
//!
//! What lies in it decides what a person approves. So it is opened anew for each use, step by step without following links, and owner and
//! mode are those of what was opened. Every file is looked at the same way.

use std::ffi::{CString, OsString};
use std::fs::File;
use std::io::{ErrorKind, Read as _, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use agent_api::digest::hex;
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, Stat, fstat, mkdirat, open, openat, renameat, statat, unlinkat};
use rustix::io::Errno;
use rustix::process::geteuid;
use rustix::rand::{GetRandomFlags, getrandom};

/// How much is kept.
#[derive(Clone, Copy, Debug)]
struct Limits {
    bytes: u64,
    files: usize,
}

/// 64 MiB in 512 files; what was used longest ago goes first. Large public charts render to less than 3 MB.
const LIMITS: Limits = Limits { bytes: 64 << 20, files: 512 };

/// What others may do with the folder and its files: nothing.
const OTHERS: u32 = 0o077;
const OPEN_FOLDER: OFlags = OFlags::DIRECTORY.union(OFlags::CLOEXEC);

/// Where a user's answers are kept.
#[derive(Clone, Debug)]
pub struct CacheFolder {
    /// There already, of this user or root; may be reached through links.
    above: PathBuf,
    /// Folders below it, of this user, made where they are missing; no links.
    below: &'static [&'static str],
    /// Who uses it.
    user: u32,
    limits: Limits,
}

/// Why nothing is kept.
#[derive(Debug, thiserror::Error)]
pub(super) enum FolderError {
    #[error("{what}: {source}")]
    Call { what: String, source: Errno },
    #[error("{what} belongs to user {owner}, not to user {user}")]
    Owner { what: String, owner: u32, user: u32 },
    #[error("others may use {what}: its mode is {mode:o}")]
    Mode { what: String, mode: u32 },
    #[error("{0} is no plain file")]
    Kind(String),
    #[error("{what}: {source}")]
    Transfer { what: String, source: std::io::Error },
}

impl FolderError {
    /// Whether the disk has no room. That the folder's own limits leave none is no trouble of the disk.
    pub(super) fn is_full_disk(&self) -> bool {
        match self {
            Self::Call { source, .. } => *source == Errno::NOSPC,
            Self::Transfer { source, .. } => matches!(source.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded),
            Self::Owner { .. } | Self::Mode { .. } | Self::Kind(_) => false,
        }
    }
}

fn call<T>(what: &str, result: Result<T, Errno>) -> Result<T, FolderError> {
    result.map_err(|source| FolderError::Call { what: what.to_owned(), source })
}

impl CacheFolder {
    /// A person's, from their `XDG_CACHE_HOME` and `HOME`; none where neither names a folder.
    #[must_use]
    pub fn of_person(cache_home: Option<OsString>, home: Option<OsString>) -> Option<Self> {
        // What is relative is to be ignored, says the specification of these variables.
        let absolute = |path: Option<OsString>| path.map(PathBuf::from).filter(|path| path.is_absolute());
        match (absolute(cache_home), absolute(home)) {
            (Some(above), _) => Some(Self::new(above, &["clicklink", "renders"])),
            (None, Some(above)) => Some(Self::new(above, &[".cache", "clicklink", "renders"])),
            (None, None) => None,
        }
    }

    /// A service's: what its manager gives it in `CACHE_DIRECTORY`, else below the folder of its state.
    #[must_use]
    pub fn of_service(cache_directory: Option<OsString>, state: &Path) -> Self {
        let given = cache_directory.map(PathBuf::from).filter(|path| path.is_absolute());
        Self::new(given.unwrap_or_else(|| state.to_owned()), &["renders"])
    }

    fn new(above: PathBuf, below: &'static [&'static str]) -> Self {
        Self { above, below, user: geteuid().as_raw(), limits: LIMITS }
    }

    /// Where it is, or is to be.
    pub(super) fn path(&self) -> PathBuf {
        self.below.iter().fold(self.above.clone(), |path, name| path.join(name))
    }

    /// Opens it, made where it is missing.
    pub(super) fn open(&self) -> Result<Opened, FolderError> {
        let mut path = self.above.clone();
        let named = |path: &Path| path.display().to_string();
        let mut folder = call(&named(&path), open(&path, OPEN_FOLDER, Mode::empty()))?;
        let mut status = call(&named(&path), fstat(&folder))?;
        if status.st_uid != 0 {
            self.own(&named(&path), &status)?;
        }
        for name in self.below {
            path.push(name);
            match mkdirat(&folder, *name, Mode::RWXU) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(source) => return Err(FolderError::Call { what: named(&path), source }),
            }
            folder = call(&named(&path), openat(&folder, *name, OPEN_FOLDER | OFlags::NOFOLLOW, Mode::empty()))?;
            status = call(&named(&path), fstat(&folder))?;
            self.own(&named(&path), &status)?;
        }
        private(&named(&path), &status)?;
        Ok(Opened { folder, user: self.user, limits: self.limits })
    }

    fn own(&self, what: &str, status: &Stat) -> Result<(), FolderError> {
        owned(what, status, self.user)
    }
}

fn owned(what: &str, status: &Stat, user: u32) -> Result<(), FolderError> {
    let owner = status.st_uid;
    if owner == user { Ok(()) } else { Err(FolderError::Owner { what: what.to_owned(), owner, user }) }
}

fn private(what: &str, status: &Stat) -> Result<(), FolderError> {
    let mode = status.st_mode & 0o7777;
    if mode & OTHERS == 0 { Ok(()) } else { Err(FolderError::Mode { what: what.to_owned(), mode }) }
}

fn kind(status: &Stat) -> FileType {
    FileType::from_raw_mode(status.st_mode)
}

/// The folder, opened and found to be this user's alone.
pub(super) struct Opened {
    folder: OwnedFd,
    user: u32,
    limits: Limits,
}

impl Opened {
    /// A file's content; none where there is no file of this name. A file that is read counts as used.
    pub(super) fn read(&self, name: &str) -> Result<Option<Vec<u8>>, FolderError> {
        // Whoever put a pipe here must not make anybody wait.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let file = match openat(&self.folder, name, flags, Mode::empty()) {
            Err(Errno::NOENT) => return Ok(None),
            file => call(name, file)?,
        };
        let status = call(name, fstat(&file))?;
        if kind(&status) != FileType::RegularFile {
            return Err(FolderError::Kind(name.to_owned()));
        }
        owned(name, &status, self.user)?;
        private(name, &status)?;
        let failed = |source| FolderError::Transfer { what: name.to_owned(), source };
        let (file, mut content) = (File::from(file), Vec::new());
        (&file).take(self.limits.bytes).read_to_end(&mut content).map_err(failed)?;
        file.set_modified(SystemTime::now()).map_err(failed)?;
        Ok(Some(content))
    }

    /// Puts a file in place, whole or not at all.
    pub(super) fn write(&self, name: &str, content: &[u8]) -> Result<(), FolderError> {
        self.make_room(content.len() as u64)?;
        let mut random = [0; 16];
        call("chance", getrandom(&mut random, GetRandomFlags::empty()))?;
        let temporary = format!(".{}", hex(&random));
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = call(&temporary, openat(&self.folder, &temporary, flags, Mode::RUSR | Mode::WUSR))?;
        let written = File::from(file)
            .write_all(content)
            .map_err(|source| FolderError::Transfer { what: temporary.clone(), source })
            .and_then(|()| call(name, renameat(&self.folder, &temporary, &self.folder, name)));
        if written.is_err() {
            // What cannot be removed either goes when room is made.
            let _ = unlinkat(&self.folder, &temporary, AtFlags::empty());
        }
        written
    }

    /// Removes what was used longest ago until one more file of this size is within the limits. Whatever lies here counts, also what a
    /// process that was killed did not put in place.
    fn make_room(&self, size: u64) -> Result<(), FolderError> {
        let mut files = self.files()?;
        files.sort_by_key(|file| file.used);
        let (mut bytes, mut left) = (files.iter().map(|file| file.bytes).sum::<u64>() + size, files.len() + 1);
        for file in files {
            if bytes <= self.limits.bytes && left <= self.limits.files {
                break;
            }
            match unlinkat(&self.folder, &file.name, AtFlags::empty()) {
                Ok(()) | Err(Errno::NOENT) => (bytes, left) = (bytes - file.bytes, left - 1),
                // A folder, which nobody here has made.
                Err(_) => {}
            }
        }
        if bytes <= self.limits.bytes && left <= self.limits.files {
            Ok(())
        } else {
            Err(FolderError::Call { what: "making room".to_owned(), source: Errno::DQUOT })
        }
    }

    fn files(&self) -> Result<Vec<Kept>, FolderError> {
        let what = "listing the folder";
        let mut files = Vec::new();
        for entry in call(what, Dir::read_from(self.folder.as_fd()))? {
            let name = call(what, entry)?.file_name().to_owned();
            if [c".", c".."].contains(&name.as_c_str()) {
                continue;
            }
            match statat(&self.folder, &name, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(status) => files.push(Kept {
                    name,
                    bytes: u64::try_from(status.st_size).unwrap_or_default(),
                    used: (status.st_mtime, i64::try_from(status.st_mtime_nsec).unwrap_or_default()),
                }),
                Err(Errno::NOENT) => {}
                Err(source) => return Err(FolderError::Call { what: what.to_owned(), source }),
            }
        }
        Ok(files)
    }
}

struct Kept {
    name: CString,
    bytes: u64,
    /// Seconds and nanoseconds.
    used: (i64, i64),
}

#[cfg(test)]
mod tests;
