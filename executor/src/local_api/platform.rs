//! `GET /v1/platform` and `GET /v1/platform/pending`.

use agent_api::frame::CommandProgress;
use agent_api::heartbeat::{AccessInfo, ClusterInfo, CommandCounts, ComponentState, ExecutorInfo, Platform};
use agent_api::name::CommandId;
use agent_api::pending::PendingBundle;
use agent_api::problem::Problem;
use axum::Json;
use axum::extract::State;
use executor_core::difference::FieldChange;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use super::LocalError;
use crate::channel::{Link, Standing};
use crate::daemon::{Daemon, pending_document};
use crate::observe::Drifted;

/// What the heartbeat says of the platform. What was read from the cluster says when.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct PlatformView {
    /// The platform update.
    platform: Platform,
    /// How far the sync that runs is; null while none does.
    sync: Option<SyncView>,
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
    /// Its way to the manager.
    channel: ChannelView,
}

/// A sync that runs.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct SyncView {
    /// Its command.
    pub(crate) command: CommandId,
    /// `checking`, `rendering` or `applying`.
    pub(crate) stage: String,
    /// Step, from 1: six of checks, then one a component.
    pub(crate) step: u32,
    /// Steps in all.
    pub(crate) of: u32,
    /// The component that is applied.
    pub(crate) component: Option<String>,
}

impl From<CommandProgress> for SyncView {
    fn from(CommandProgress { id, stage, step, of, object }: CommandProgress) -> Self {
        Self { command: id, stage, step, of, component: object }
    }
}

/// The command channel, as the executor sees it.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct ChannelView {
    /// How it stands.
    pub(crate) state: ChannelState,
    /// Since when.
    pub(crate) since: jiff::Timestamp,
    /// While it is connected: by what.
    pub(crate) transport: Option<String>,
    /// Otherwise the stable name of what the last try met; null before the first.
    pub(crate) code: Option<String>,
    /// The same for a person.
    pub(crate) message: Option<String>,
}

/// How the channel stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ChannelState {
    /// The manager has welcomed the executor.
    Connected,
    /// The connection is tried again and again.
    Disconnected,
    /// The manager does not take the executor's certificate or key: a person has to enrol it again.
    Refused,
}

impl From<Standing> for ChannelView {
    fn from(Standing { link, since }: Standing) -> Self {
        let (state, transport, trouble) = match link {
            Link::Up(transport) => (ChannelState::Connected, Some(transport.to_owned()), None),
            Link::Down(trouble) => (ChannelState::Disconnected, None, trouble),
            Link::CredentialsRefused(trouble) => (ChannelState::Refused, None, Some(trouble)),
        };
        let (code, message) = trouble.map(|trouble| (trouble.code, trouble.why)).unzip();
        Self { state, since, transport, code, message }
    }
}

/// An object that is not as it was approved.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct DriftedObject {
    /// `Kind.group namespace/name`.
    pub(crate) object: String,
    /// It is not there at all; then there are no fields.
    pub(crate) missing: bool,
    /// The fields that differ.
    pub(crate) fields: Vec<DriftedField>,
}

/// A field of it; a side is absent where the field is not there, and `[secret]` where it could be one (environment variables, arguments,
/// annotations).
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct DriftedField {
    /// As in a plan: `spec.template.spec.containers[name=main].image`.
    pub(crate) path: String,
    /// As a person approved it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) approved: Option<Value>,
    /// As it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) live: Option<Value>,
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
    let answers = daemon.ask(|running| (running.heartbeat(), running.drift(), running.channel(), running.state().sync_progress())).await;
    let (heartbeat, drift, channel, sync) = answers.ok_or(LocalError::Stopping)?;
    Ok(Json(PlatformView {
        platform: heartbeat.platform,
        sync: sync.map(Into::into),
        drift: drift.map(|drifted| drifted.iter().map(Into::into).collect()),
        components: heartbeat.components,
        cluster: heartbeat.cluster,
        access: heartbeat.access,
        executor: heartbeat.executor,
        commands: heartbeat.commands,
        channel: channel.into(),
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
