//! `GET /v1/platform` and `GET /v1/platform/pending`.

use agent_api::pending::PendingBundle;
use axum::Json;
use axum::extract::State;
use serde_json::{Value, json};

use super::LocalError;
use crate::daemon::{Daemon, pending_document};

/// The heartbeat's platform and components.
pub(super) async fn show(State(daemon): State<Daemon>) -> Result<Json<Value>, LocalError> {
    let heartbeat = daemon.ask(|running| running.heartbeat()).await.ok_or(LocalError::Stopping)?;
    Ok(Json(
        json!({"platform": heartbeat.platform, "components": heartbeat.components, "cluster": heartbeat.cluster, "access": heartbeat.access}),
    ))
}

/// The staged bundle.
pub(super) async fn pending(State(daemon): State<Daemon>) -> Result<Json<PendingBundle>, LocalError> {
    let pending =
        daemon.ask(|running| (running.state().platform.pending.clone(), running.cluster_uid())).await.ok_or(LocalError::Stopping)?;
    match pending {
        (Some(pending), uid) => Ok(Json(pending_document(&pending, uid))),
        (None, _) => Err(LocalError::NotFound("no platform bundle is staged".into())),
    }
}
