//! What a one-time token was worth, kept in `handoff.yaml` (0600) until the connector is configured: a token is good once.

use std::path::Path;

use agent_api::enrolment::EnrollResponse;
use agent_api::name::ExecutorId;
use agent_api::secret::Secret;
use serde::{Deserialize, Serialize};

use super::error::InitError;
use super::write;

/// Beside the configuration.
pub(super) const FILE: &str = "handoff.yaml";
/// Largest file that is read: 1 MiB.
const MAX_BYTES: u64 = 1 << 20;

/// A redeemed enrolment.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Handoff {
    /// The executor that it is for.
    pub(super) pcm_infra_uuid: ExecutorId,
    /// Organisation id, the common name of certificates.
    pub(super) organisation: String,
    /// `https://host[:port]`.
    pub(super) endpoint: String,
    /// Name of the signing key.
    pub(super) access_key: String,
    /// The signing key.
    pub(super) secret_key: Secret,
    /// PEM.
    pub(super) ca: String,
}

impl Handoff {
    pub(super) fn of(pcm_infra_uuid: ExecutorId, response: EnrollResponse) -> Self {
        let EnrollResponse { organisation, endpoint, access_key, secret_key, ca } = response;
        Self { pcm_infra_uuid, organisation, endpoint, access_key, secret_key, ca }
    }
}

/// Reads one; the parser's words could quote a secret, so that only the place is told.
pub(super) fn read(path: &Path) -> Result<Handoff, InitError> {
    let unreadable = |source| InitError::Unreadable { path: path.to_owned(), source };
    let wrong = |problem: String| InitError::Handoff { path: path.to_owned(), problem };
    if std::fs::metadata(path).map_err(unreadable)?.len() > MAX_BYTES {
        return Err(wrong(format!("more than {MAX_BYTES} bytes")));
    }
    let text = std::fs::read_to_string(path).map_err(unreadable)?;
    let fields = "pcm_infra_uuid, organisation, endpoint, access_key, secret_key and ca are expected, each once";
    serde_saphyr::from_str(&text).map_err(|_| wrong(format!("not a handoff: {fields}")))
}

/// The one of a run that was interrupted.
pub(super) fn resume(dir: &Path, own: ExecutorId) -> Result<Option<Handoff>, InitError> {
    let path = dir.join(FILE);
    if !path.exists() {
        return Ok(None);
    }
    let found = read(&path)?;
    if found.pcm_infra_uuid != own {
        return Err(InitError::OtherIdentity { given: found.pcm_infra_uuid, own });
    }
    Ok(Some(found))
}

/// Puts it on disk before anything is done with it.
pub(super) fn keep(dir: &Path, handoff: &Handoff) -> Result<(), InitError> {
    let path = dir.join(FILE);
    let text = serde_saphyr::to_string(handoff).map_err(|error| InitError::Handoff { path: path.clone(), problem: error.to_string() })?;
    write::file(&path, &text)
}

/// Removes it: it holds the signing key.
pub(super) fn clear(dir: &Path) -> Result<(), InitError> {
    write::remove(&dir.join(FILE))
}
