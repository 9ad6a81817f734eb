//! The token bundle as folder `_platform` of the access folder.

use std::path::Path;

use agent_api::names::PLATFORM_DIR;
use rustix::io::Errno;

use crate::access_folder::{AccessFolder, AccessFolderError};

/// Whether the access folder is there, or can be.
pub(super) fn check(path: &Path) -> Result<(), AccessFolderError> {
    if path.exists() { AccessFolder::open(path).map(drop) } else { Ok(()) }
}

/// Makes the access folder where it is missing, and sees that something can be made in it.
pub(super) fn prepare(path: &Path) -> Result<(), AccessFolderError> {
    AccessFolder::open_or_create(path)?.probe(PLATFORM_DIR)
}

/// Builds the folder beside the live one and exchanges the two.
pub(super) fn write(path: &Path, files: &[(&str, &[u8])]) -> Result<Option<String>, AccessFolderError> {
    AccessFolder::open_or_create(path)?.exchange(PLATFORM_DIR, files)
}

/// Takes the folder away.
pub(super) fn remove(path: &Path) -> Result<(), AccessFolderError> {
    match AccessFolder::open(path) {
        Ok(folder) => folder.withdraw(PLATFORM_DIR),
        Err(AccessFolderError::Folder { source: Errno::NOENT, .. }) => Ok(()),
        Err(error) => Err(error),
    }
}
