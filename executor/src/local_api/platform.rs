//! `GET /v1/platform` and `GET /v1/platform/pending`.

use agent_api::heartbeat::{AccessInfo, ClusterInfo, CommandCounts, ComponentState, ExecutorInfo, Platform};
use agent_api::pending::PendingBundle;
use agent_api::problem::Problem;
use axum::Json;
use axum::extract::State;
use executor_core::difference::FieldChange;
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::LocalError;
use crate::daemon::{Daemon, pending_document};
use crate::observe::Drifted;

/// What the heartbeat says of the platform. What was read from the cluster says when.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct PlatformView {
    /// The platform update.
    platform: Platform,
    /// Live workload objects that are not as they were approved; null while that is not known.
    drift: Option<Vec<DriftedObject>>,
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

/// An object that is not as it was approved.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct DriftedObject {
    /// `Kind.group namespace/name`.
    object: String,
    /// It is not there at all; then there are no fields.
    missing: bool,
    /// The fields that differ.
    fields: Vec<DriftedField>,
}

/// A field of it; a side is absent where the field is not there.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct DriftedField {
    /// As in a plan: `spec.template.spec.containers[name=main].image`.
    path: String,
    /// As a person approved it.
    #[serde(skip_serializing_if = "Option::is_none")]
    approved: Option<Value>,
    /// As it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    live: Option<Value>,
}

impl From<&Drifted> for DriftedObject {
    fn from(drifted: &Drifted) -> Self {
        let field = |field: &FieldChange| DriftedField { path: field.path.clone(), approved: field.old.clone(), live: field.new.clone() };
        Self { object: drifted.object.to_string(), missing: drifted.fields.is_empty(), fields: drifted.fields.iter().map(field).collect() }
    }
}

/// The heartbeat's platform and components, and what drifted.
#[utoipa::path(get, path = "/v1/platform", operation_id = "get_platform", tag = "platform", responses(
    (status = 200, description = "As the next heartbeat would say it", body = PlatformView),
    (status = 403, description = "Not from loopback, or from a web page", body = Problem, content_type = "application/problem+json"),
    (status = 503, description = "The executor is stopping", body = Problem, content_type = "application/problem+json"),
))]
pub(super) async fn show(State(daemon): State<Daemon>) -> Result<Json<PlatformView>, LocalError> {
    let (heartbeat, drift) = daemon.ask(|running| (running.heartbeat(), running.drift())).await.ok_or(LocalError::Stopping)?;
    Ok(Json(PlatformView {
        platform: heartbeat.platform,
        drift: drift.map(|drifted| drifted.iter().map(Into::into).collect()),
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
