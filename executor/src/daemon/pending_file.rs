//! The staged bundle as a file; rewritten from the journal at start, and where somebody removed it.

use std::io::Write as _;
use std::path::Path;

use agent_api::pending::PendingBundle;
use executor_core::Pending;

/// Writes the document beside its place and renames it there; nothing is written while nothing is pending.
pub(super) fn write(path: &Path, pending: Option<&Pending>, cluster_uid: Option<String>) -> std::io::Result<()> {
    let Some(pending) = pending else { return Ok(()) };
    let dir = path.parent().unwrap_or(Path::new("."));
    let mut file = tempfile::Builder::new().prefix(".platform-pending-").tempfile_in(dir)?;
    file.write_all(serde_json::to_string_pretty(&document(pending, cluster_uid))?.as_bytes())?;
    file.as_file().sync_all()?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}

/// Whether nothing lies at its place.
pub(super) fn is_missing(path: &Path) -> bool {
    path.symlink_metadata().is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound)
}

/// The document, also as the local API answers it.
pub(crate) fn document(pending: &Pending, cluster_uid: Option<String>) -> PendingBundle {
    PendingBundle { sha256: pending.sha256.clone(), received_at: pending.received_at, cluster_uid, manifest: pending.manifest.clone() }
}
