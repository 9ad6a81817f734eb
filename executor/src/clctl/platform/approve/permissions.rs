//! The permissions half, applied in its order: definitions are waited for, so that what needs them comes after.

use std::time::Duration;

use agent_api::digest::Sha256;
use agent_api::names::FIELD_MANAGER_APPROVE;
use agent_api::object::ObjectKey;
use cluster::object::{self, Apply};
use cluster::readiness::{self, WaitError};
use cluster::{Client, ClusterError};
use executor_core::bundle::{Judged, stamped};
use serde_json::{Value, json};

use crate::clctl::requests;
use crate::error_code::{Code, Coded};
use crate::terminal::talk;

/// A definition is established in well under a second.
const ESTABLISHED: Duration = Duration::from_secs(60);
/// A kind is served a moment after its definition is established, by a second API server later.
const SERVED: Duration = Duration::from_secs(10);

const APPLY: Apply = Apply { manager: FIELD_MANAGER_APPROVE, dry_run: false };

/// Where applying stopped.
#[derive(Debug, thiserror::Error)]
pub(in crate::clctl::platform) enum PermissionsError {
    /// An object was not taken.
    #[error("stopped after {done} of {all} permission objects: {source}; the token bundle is untouched, and approve can be run again")]
    Apply {
        /// How many are applied.
        done: usize,
        /// Of how many.
        all: usize,
        /// Why.
        source: ClusterError,
    },
    /// Definitions did not become established.
    #[error("a CustomResourceDefinition is not established: {0}")]
    Definition(#[from] WaitError),
    /// The home namespace, or a Secret that somebody else fills.
    #[error(transparent)]
    Cluster(#[from] ClusterError),
}

impl Coded for PermissionsError {
    fn code(&self) -> Code {
        match self {
            Self::Apply { .. } => Code::PermissionsStopped,
            Self::Definition(error) => error.code(),
            Self::Cluster(error) => error.code(),
        }
    }

    fn hints(&self) -> Vec<String> {
        match self {
            Self::Apply { source, .. } => source.hints(),
            Self::Definition(error) => error.hints(),
            Self::Cluster(error) => error.hints(),
        }
    }
}

/// Makes the home namespace where it is missing; a live one is not ours to change.
pub(in crate::clctl::platform) async fn home(client: &Client, home: &str) -> Result<(), PermissionsError> {
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": home}});
    if object::get(client, &namespace).await?.is_none() {
        object::apply_over(client, &namespace, None, APPLY).await?;
    }
    Ok(())
}

/// Applies the half, kind after kind, each object with the bundle's stamp, and makes the missing Secrets that somebody else fills.
pub(super) async fn apply(client: &Client, judged: &Judged, bundle: &Sha256) -> Result<(), PermissionsError> {
    let all = judged.permissions().len();
    let mut done = 0;
    for kind in judged.permissions().chunk_by(|one, next| one.key().kind == next.key().kind) {
        let objects: Vec<Value> = kind.iter().map(|rendered| stamped(rendered, bundle)).collect();
        let results = requests::each(objects.iter().map(|object| patiently(client, object))).await;
        done += results.iter().filter(|result| result.is_ok()).count();
        results.into_iter().collect::<Result<(), _>>().map_err(|source| PermissionsError::Apply { done, all, source })?;
        if objects.iter().any(|object| ObjectKey::of(object).kind == "CustomResourceDefinition") {
            established(client, &objects).await?;
        }
    }
    for placeholder in judged.placeholders() {
        let Err(refused) = object::create(client, &placeholder.object, APPLY).await else { continue };
        // A full quota is told before what is there. Whoever may not read it is told nothing of it.
        match (refused, object::get(client, &placeholder.object).await.ok().flatten()) {
            (_, Some(live)) => object::going(&live).map_or(Ok(()), Err)?,
            (ClusterError::AlreadyExists { .. }, None) => {}
            (refused, None) => return Err(refused.into()),
        }
    }
    Ok(())
}

/// Waits until definitions are established.
pub(super) async fn established(client: &Client, definitions: &[Value]) -> Result<(), PermissionsError> {
    let waiting = |key: &ObjectKey, news: &str| {
        if news != "ready" {
            talk(format_args!("  {key}: {news}"));
        }
    };
    Ok(readiness::wait(client, definitions, ESTABLISHED, waiting).await?)
}

/// An object whose kind was only just defined may be answered "not found" for a moment.
pub(in crate::clctl::platform) async fn patiently(client: &Client, value: &Value) -> Result<(), ClusterError> {
    let deadline = tokio::time::Instant::now() + SERVED;
    loop {
        match object::apply_over(client, value, None, APPLY).await {
            Err(ClusterError::NotFound { .. }) if tokio::time::Instant::now() < deadline => {
                tokio::time::sleep(Duration::from_millis(250)).await;
            }
            other => return other.map(drop),
        }
    }
}
