//! The journal's files: the folder and its lock, private modes, a look at the file before SQLite has it, and how a new one is begun.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{ErrorKind, Read as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use super::JournalError;

/// SQLite's `application_id` of a journal; files of schema 1 have none.
const APPLICATION_ID: u32 = 0x636c_6e6b;
/// SQLite's header.
const HEADER: usize = 100;
/// How every SQLite file begins.
const MAGIC: &[u8] = b"SQLite format 3\0";

/// What lies at the journal's place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// Nothing: the first start.
    Nothing,
    /// A file that SQLite may look at.
    Database,
}

/// Makes the folder (0700) and locks it; the lock lives as long as the file is open, whatever becomes of the process.
pub(super) fn lock(dir: &Path) -> Result<File, JournalError> {
    let fail = |source| JournalError::Folder { path: dir.to_owned(), source };
    fs::DirBuilder::new().recursive(true).mode(0o700).create(dir).map_err(fail)?;
    // A folder that is ours was perhaps made by something else; one that is not (a mounted volume) is as its owner wants it.
    let _ = fs::set_permissions(dir, Permissions::from_mode(0o700));
    let file = OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(dir.join("executor.lock")).map_err(fail)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(fs::TryLockError::WouldBlock) => Err(JournalError::InUse(dir.to_owned())),
        Err(fs::TryLockError::Error(source)) => Err(fail(source)),
    }
}

/// The file beside the journal with this suffix, e.g. `-wal`.
pub(super) fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// Where a damaged journal is kept. While this folder is there no journal is opened or begun.
fn aside(path: &Path) -> PathBuf {
    beside(path, ".damaged")
}

/// Refuses while a damaged journal is kept.
pub(super) fn nothing_aside(path: &Path) -> Result<(), JournalError> {
    let folder = aside(path);
    match folder.try_exists() {
        Ok(false) => Ok(()),
        Ok(true) => Err(JournalError::KeptAside(path.to_owned())),
        Err(source) => Err(JournalError::Folder { path: folder, source }),
    }
}

/// Moves the journal's files aside: each start would only read them again, and SQLite may write while it reads.
pub(super) fn set_aside(path: &Path) -> Result<(), JournalError> {
    let folder = aside(path);
    let fail = |source| JournalError::Folder { path: folder.clone(), source };
    fs::DirBuilder::new().mode(0o700).create(&folder).map_err(fail)?;
    for suffix in ["", "-wal"] {
        let file = beside(path, suffix);
        match fs::rename(&file, folder.join(file.file_name().unwrap_or_default())) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(fail(error)),
            Ok(()) | Err(_) => {}
        }
    }
    sync(&folder).and_then(|()| sync(path.parent().unwrap_or(Path::new(".")))).map_err(fail)
}

fn sync(folder: &Path) -> std::io::Result<()> {
    File::open(folder)?.sync_all()
}

/// Looks at the file without SQLite, which would take an empty one for new and turn another program's to its own ways.
pub(super) fn look(path: &Path) -> Result<Found, JournalError> {
    let fail = |path: &Path| {
        let path = path.to_owned();
        move |source| JournalError::Folder { path, source }
    };
    let damaged = |problem: &str| Err(JournalError::Damaged { path: path.to_owned(), problem: problem.into() });
    let mut file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let wal = fs::metadata(beside(path, "-wal")).is_ok_and(|wal| wal.len() > 0);
            return if wal { damaged("the file is not there, but its -wal file is") } else { Ok(Found::Nothing) };
        }
        Err(error) => return Err(fail(path)(error)),
    };
    let mut header = [0; HEADER];
    match file.read_exact(&mut header) {
        Ok(()) => {}
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => return damaged("it is too short"),
        Err(error) => return Err(fail(path)(error)),
    }
    if !header.starts_with(MAGIC) {
        return damaged("it is no database");
    }
    // SQLite would open a file of an unknown format for reading only.
    if header[18..20].iter().any(|format| !matches!(format, 1 | 2)) {
        return damaged("its format is not known");
    }
    match u32::from_be_bytes([header[68], header[69], header[70], header[71]]) {
        0 | APPLICATION_ID => {}
        _ => return Err(JournalError::Foreign(path.to_owned())),
    }
    for suffix in ["", "-wal"] {
        let file = beside(path, suffix);
        match fs::set_permissions(&file, Permissions::from_mode(0o600)) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(fail(&file)(error)),
            Ok(()) | Err(_) => {}
        }
    }
    Ok(Found::Database)
}

/// The place where a new journal is made whole before it gets its name: a crash leaves none or a whole one, so that an empty file is
/// never ours.
pub(super) fn begin(path: &Path) -> Result<PathBuf, JournalError> {
    let new = beside(path, ".new");
    let fail = |source| JournalError::Folder { path: new.clone(), source };
    for suffix in ["", "-wal", "-journal"] {
        match fs::remove_file(beside(&new, suffix)) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(fail(error)),
            Ok(()) | Err(_) => {}
        }
    }
    // SQLite gives the files beside it the same mode.
    OpenOptions::new().create_new(true).write(true).mode(0o600).open(&new).map_err(fail)?;
    Ok(new)
}

/// Gives a new journal its name.
pub(super) fn put(new: &Path, path: &Path) -> Result<(), JournalError> {
    let fail = |source| JournalError::Folder { path: path.to_owned(), source };
    fs::rename(new, path).map_err(fail)?;
    sync(path.parent().unwrap_or(Path::new("."))).map_err(fail)
}

/// Size of the journal's files, in bytes.
pub(super) fn bytes(path: &Path) -> u64 {
    ["", "-wal"].iter().map(|suffix| fs::metadata(beside(path, suffix)).map_or(0, |file| file.len())).sum()
}
