//! Whether referenced Secrets and their keys are there: got one by one, looked at and let go. Nothing is listed, watched, kept or logged.

use std::time::Duration;

use cluster::crd::managed_component::SecretRef;
use cluster::{Client, ClusterError, object};
use serde_json::json;
use tokio::time::Instant;

use crate::reconcile::failure;
use crate::reconcile::plan::Stopped;
use crate::reconcile::reason::Reason;

/// So long one check serves.
pub const CHECK: Duration = Duration::from_secs(300);

/// A check that found everything.
#[derive(Clone, Debug)]
pub struct Checked {
    references: Vec<SecretRef>,
    at: Instant,
}

/// Checks all references, unless these were just checked. That they may not be looked at is told like what is not there; the outer error is the API
/// server's silence.
///
/// # Errors
/// The API server does not answer.
pub async fn check(
    client: &Client,
    namespace: &str,
    references: &[SecretRef],
    checked: &mut Option<Checked>,
) -> Result<Result<(), Stopped>, ClusterError> {
    if references.is_empty() || checked.as_ref().is_some_and(|known| known.references == references && known.at.elapsed() < CHECK) {
        return Ok(Ok(()));
    }
    let mut missing = Vec::new();
    for (i, reference) in references.iter().enumerate() {
        let SecretRef { secret_name, key, .. } = reference;
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": secret_name, "namespace": namespace}});
        let live = match object::get(client, &secret).await {
            // Not for an administrator to guess: the right is part of the role.
            Err(error @ ClusterError::Forbidden { .. }) => return Ok(Err(failure::stopped(&error))),
            live => live?,
        };
        match live {
            None => missing.push(format!("secretRefs[{i}]: Secret `{secret_name}` is not there")),
            Some(live) if live.pointer("/data").and_then(|data| data.get(key)).is_none() => {
                missing.push(format!("secretRefs[{i}]: Secret `{secret_name}` has no key `{key}`"));
            }
            Some(_) => {}
        }
    }
    if missing.is_empty() {
        *checked = Some(Checked { references: references.to_vec(), at: Instant::now() });
        Ok(Ok(()))
    } else {
        *checked = None;
        Ok(Err(Stopped::new(Reason::SecretNotFound, missing.join("; "))))
    }
}
