//! Files of mode 0600 and folders of mode 0700, each written whole or not at all.

use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;

use super::error::InitError;

/// Makes a folder, and what is above it, where it is missing.
pub(super) fn folder(path: &Path) -> Result<(), InitError> {
    if path.as_os_str().is_empty() || path.is_dir() {
        return Ok(());
    }
    let above = path.parent().unwrap_or(Path::new("."));
    folder(above)?;
    let above = if above.as_os_str().is_empty() { Path::new(".") } else { above };
    let made = std::fs::DirBuilder::new().mode(0o700).create(path).and_then(|()| to_owner_of(above, &std::fs::File::open(path)?));
    made.map_err(|source| InitError::Write { path: path.to_owned(), source })
}

/// Written beside its place, then renamed there, and the folder's entry is on disk before this returns.
pub(super) fn file(path: &Path, text: &str) -> Result<(), InitError> {
    let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let beside = dir.join(format!(".{}.{}", path.file_name().unwrap_or_default().display(), uuid::Uuid::new_v4()));
    let attempt = || -> std::io::Result<()> {
        let mut file = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&beside)?;
        file.write_all(text.as_bytes())?;
        to_owner_of(dir, &file)?;
        file.sync_all()?;
        std::fs::rename(&beside, path)?;
        std::fs::File::open(dir)?.sync_all()
    };
    attempt().inspect_err(|_| drop(std::fs::remove_file(&beside))).map_err(|source| InitError::Write { path: path.to_owned(), source })
}

/// Root writes for the executor's user: what it makes belongs to whom the folder belongs to, set by handle.
fn to_owner_of(dir: &Path, file: &std::fs::File) -> std::io::Result<()> {
    use std::os::unix::fs::MetadataExt as _;
    let folder = std::fs::metadata(dir)?;
    let made = file.metadata()?;
    if !rustix::process::geteuid().is_root() || (folder.uid(), folder.gid()) == (made.uid(), made.gid()) {
        return Ok(());
    }
    let owner = (rustix::fs::Uid::from_raw(folder.uid()), rustix::fs::Gid::from_raw(folder.gid()));
    Ok(rustix::fs::fchown(file, Some(owner.0), Some(owner.1))?)
}

/// Removes a file that may not be there.
pub(super) fn remove(path: &Path) -> Result<(), InitError> {
    match std::fs::remove_file(path) {
        Err(source) if source.kind() != ErrorKind::NotFound => Err(InitError::Write { path: path.to_owned(), source }),
        Ok(()) | Err(_) => Ok(()),
    }
}
