//! Seeing the scope guard at work before any right is given: as the account, in a dry run, on fresh connections.
//!
//! A new policy is in force a moment after it is written, later on a second API server; admission fails open until then. So one
//! write that only the guard denies must be denied by its name, and the whole workload half must be accepted.

use std::time::Duration;

use agent_api::manifest::Manifest;
use agent_api::names::{FIELD_MANAGER_EXECUTOR, PCM_PLATFORM, SCOPE_GUARD};
use agent_api::object::RenderedObject;
use cluster::connect::{ConnectError, Connection};
use cluster::object::{self, Apply};
use cluster::{Client, ClusterError};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::error_code::{Code, Coded};

/// How long a policy may take until it is in force.
const IN_FORCE: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(200);
/// Requests side by side.
const PARALLEL: usize = 8;

/// What the probe found wrong.
#[derive(Debug, thiserror::Error)]
pub(super) enum ProbeError {
    /// No connection as the account.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// The guard lets pass what it must deny.
    #[error("the admission policy {SCOPE_GUARD} does not deny a forbidden write after {} s; no right was given", IN_FORCE.as_secs())]
    NotInForce,
    /// The forbidden write failed, but not by the guard.
    #[error("the admission policy {SCOPE_GUARD} could not be seen to deny; no right was given: {0}")]
    Other(#[source] ClusterError),
    /// What the executor is to apply is denied.
    #[error("an object of the workload half would not be accepted from {PCM_PLATFORM}; no right was given: {0}")]
    Workload(#[source] ClusterError),
}

impl Coded for ProbeError {
    fn code(&self) -> Code {
        match self {
            Self::Connect(error) => error.code(),
            Self::NotInForce => Code::GuardNotInForce,
            Self::Other(_) => Code::GuardUnclear,
            Self::Workload(_) => Code::WorkloadDenied,
        }
    }

    fn hints(&self) -> Vec<String> {
        match self {
            Self::Connect(error) => error.hints(),
            Self::NotInForce => Vec::new(),
            Self::Other(source) | Self::Workload(source) => source.hints(),
        }
    }
}

const DRY: Apply = Apply { manager: FIELD_MANAGER_EXECUTOR, dry_run: true };

/// Probes until everything is as it must be, or for [`IN_FORCE`].
pub(super) async fn probe(connection: &Connection, manifest: &Manifest, workload: &[RenderedObject], home: &str) -> Result<(), ProbeError> {
    let deadline = Instant::now() + IN_FORCE;
    let forbidden = forbidden(manifest);
    loop {
        match object::apply_over(&as_account(connection, home)?, &forbidden, None, DRY).await {
            Err(error) if error.denied_by(SCOPE_GUARD) => break,
            Ok(_) if Instant::now() < deadline => tokio::time::sleep(PAUSE).await,
            Ok(_) => return Err(ProbeError::NotInForce),
            Err(error) => return Err(ProbeError::Other(error)),
        }
    }
    let client = as_account(connection, home)?;
    stream::iter(workload.iter().map(|rendered| accepted(&client, &rendered.object, deadline)))
        .buffer_unordered(PARALLEL)
        .try_collect::<Vec<()>>()
        .await
        .map(drop)
        .map_err(ProbeError::Workload)
}

/// A denial by the guard may be by its former version.
async fn accepted(client: &Client, value: &Value, deadline: Instant) -> Result<(), ClusterError> {
    loop {
        match object::apply_over(client, value, None, DRY).await {
            Err(error) if error.denied_by(SCOPE_GUARD) && Instant::now() < deadline => tokio::time::sleep(PAUSE).await,
            other => return other.map(drop),
        }
    }
}

/// The group gives the right to try, since the account has none yet; the guard goes by the name.
fn as_account(connection: &Connection, home: &str) -> Result<Client, ConnectError> {
    connection.impersonating(&format!("system:serviceaccount:{home}:{PCM_PLATFORM}"), &["system:masters"])
}

/// Right in everything but the label that puts an object under the pins.
fn forbidden(manifest: &Manifest) -> Value {
    let namespace = manifest.namespaces.first().map(ToString::to_string).unwrap_or_default();
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "clicklink-probe", "namespace": namespace}})
}
