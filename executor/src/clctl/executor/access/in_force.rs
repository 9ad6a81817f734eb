//! Seeing the prefix guard deny, before the binding gives any right.

use std::time::Duration;

use agent_api::names::{FIELD_MANAGER_EXECUTOR, PCM_EXECUTOR, PREFIX_GUARD};
use cluster::ClusterError;
use cluster::connect::{ConnectError, Connection};
use cluster::object::{self, Apply};
use serde_json::json;
use tokio::time::Instant;

use crate::error_code::{Code, Coded};

/// How long a policy may take until it is in force.
const IN_FORCE: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(200);

/// What was seen instead.
#[derive(Debug, thiserror::Error)]
pub(super) enum InForceError {
    /// No connection as the account.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// A forbidden write passes.
    #[error("the admission policy {PREFIX_GUARD} does not deny a forbidden write after {} s; no right was given", IN_FORCE.as_secs())]
    Not,
    /// It failed, but not by the guard.
    #[error("the admission policy {PREFIX_GUARD} could not be seen to deny; no right was given: {0}")]
    Other(#[from] ClusterError),
}

impl Coded for InForceError {
    fn code(&self) -> Code {
        match self {
            Self::Connect(error) => error.code(),
            Self::Not => Code::GuardNotInForce,
            Self::Other(_) => Code::GuardUnclear,
        }
    }
}

/// Tries, in a dry run and on fresh connections, a write outside the prefix until the guard denies it.
pub(super) async fn wait(connection: &Connection, home: &str) -> Result<(), InForceError> {
    let deadline = Instant::now() + IN_FORCE;
    let account = format!("system:serviceaccount:{home}:{PCM_EXECUTOR}");
    let forbidden = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "clicklink-probe", "namespace": home}});
    loop {
        // The group gives the right to try, since the account has none yet; the guard goes by the name.
        let client = connection.impersonating(&account, &["system:masters"], None)?;
        let how = Apply { manager: FIELD_MANAGER_EXECUTOR, dry_run: true };
        match object::apply_over(&client, &forbidden, None, how).await {
            Err(error) if error.denied_by(PREFIX_GUARD) => return Ok(()),
            Ok(_) if Instant::now() < deadline => tokio::time::sleep(PAUSE).await,
            Ok(_) => return Err(InForceError::Not),
            Err(error) => return Err(error.into()),
        }
    }
}
