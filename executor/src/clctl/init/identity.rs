//! Who this deployment is, and its key: both on disk before the first request, so that a second run is the same executor.

use std::path::Path;

use agent_api::name::ExecutorId;

use super::error::InitError;
use super::write;

/// Holds the identity until the configuration does.
const FILE: &str = "pcm_infra_uuid";

/// The configuration's, else that of an interrupted run, else the one that was given, else a new one.
pub(super) fn settle(config: &Path, dir: &Path, given: Option<ExecutorId>) -> Result<ExecutorId, InitError> {
    let file = dir.join(FILE);
    let interrupted = || std::fs::read_to_string(&file).ok().and_then(|text| text.trim().parse().ok());
    match (configured(config).or_else(interrupted), given) {
        (Some(own), Some(given)) if own != given => return Err(InitError::OtherIdentity { given, own }),
        (Some(own), _) => return Ok(own),
        (None, _) => {}
    }
    let id = given.unwrap_or_else(|| ExecutorId(uuid::Uuid::now_v7()));
    write::file(&file, &format!("{id}\n"))?;
    Ok(id)
}

/// The private key; it never leaves this machine, and no run replaces it.
pub(super) fn key(path: &Path) -> Result<rcgen::KeyPair, InitError> {
    match std::fs::read_to_string(path) {
        Ok(pem) => rcgen::KeyPair::from_pem(&pem).map_err(|_| InitError::Key(path.to_owned())),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let key = rcgen::KeyPair::generate()?;
            write::file(path, &key.serialize_pem())?;
            Ok(key)
        }
        Err(source) => Err(InitError::Unreadable { path: path.to_owned(), source }),
    }
}

/// The configuration has it now.
pub(super) fn clear(dir: &Path) -> Result<(), InitError> {
    write::remove(&dir.join(FILE))
}

fn configured(config: &Path) -> Option<ExecutorId> {
    let text = std::fs::read_to_string(config).ok()?;
    let id = text.lines().find_map(|line| line.strip_prefix("pcm_infra_uuid:"))?;
    id.trim().trim_matches(['"', '\'']).parse().ok()
}
