//! `GET /v1/platform` and `GET /v1/platform/pending`.

use agent_api::heartbeat::{AccessInfo, ClusterInfo, CommandCounts, ComponentState, ExecutorInfo, Platform};
use agent_api::pending::PendingBundle;
use agent_api::problem::Problem;
use axum::Json;
use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;

use super::LocalError;
use crate::daemon::{Daemon, pending_document};

/// What the heartbeat says of the platform. What was read from the cluster says when.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct PlatformView {
    /// The platform update.
    platform: Platform,
    /// The pending bundle's components, in its order.
    components: Vec<ComponentState>,
    /// The cluster.
    cluster: ClusterInfo,
    /// The access bundles.
    access: AccessInfo,
    /// The daemon.
    executor: ExecutorInfo,
    /// Its journal.
    commands: CommandCounts,
}

/// The heartbeat's platform and components.
#[utoipa::path(get, path = "/v1/platform", operation_id = "get_platform", tag = "platform", responses(
    (status = 200, description = "As the next heartbeat would say it", body = PlatformView),
    (status = 403, description = "Not from loopback, or from a web page", body = Problem, content_type = "application/problem+json"),
    (status = 503, description = "The executor is stopping", body = Problem, content_type = "application/problem+json"),
))]
pub(super) async fn show(State(daemon): State<Daemon>) -> Result<Json<PlatformView>, LocalError> {
    let heartbeat = daemon.ask(|running| running.heartbeat()).await.ok_or(LocalError::Stopping)?;
    Ok(Json(PlatformView {
        platform: heartbeat.platform,
        components: heartbeat.components,
        cluster: heartbeat.cluster,
        access: heartbeat.access,
        executor: heartbeat.executor,
        commands: heartbeat.commands,
    }))
}

/// The staged bundle.
#[utoipa::path(get, path = "/v1/platform/pending", operation_id = "get_pending_bundle", tag = "platform", responses(
    (status = 200, description = "The bundle that waits for approval, or was last approved", body = PendingBundle),
    (status = 403, description = "Not from loopback, or from a web page", body = Problem, content_type = "application/problem+json"),
    (status = 404, description = "Nothing is staged", body = Problem, content_type = "application/problem+json"),
    (status = 503, description = "The executor is stopping", body = Problem, content_type = "application/problem+json"),
))]
pub(super) async fn pending(State(daemon): State<Daemon>) -> Result<Json<PendingBundle>, LocalError> {
    let pending =
        daemon.ask(|running| (running.state().platform.pending.clone(), running.cluster_uid())).await.ok_or(LocalError::Stopping)?;
    match pending {
        (Some(pending), uid) => Ok(Json(pending_document(&pending, uid))),
        (None, _) => Err(LocalError::NotFound("no platform bundle is staged".into())),
    }
}
