//! `/api/v1/environments`: what was proposed to each, how far it is, and what its executors report.

use agent_api::heartbeat::{ComponentState, ExecutorKind, Platform};
use agent_api::manifest::Registry;
use agent_api::name::{CommandId, DnsLabel, ExecutorId};
use axum::extract::{Path, Query, State};
use axum::http::{HeaderName, StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::{get, post};
use axum::{Json, Router};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::body::Body;
use super::problem::ApiError;
use super::{Shared, cluster, release};
use crate::config;
use crate::domain::release::generate;
use crate::domain::resend::{self, Decision, RestReason, WaitReason};
use crate::store::approval::Reported;
use crate::store::environment::Environment;
use crate::store::executor::Executor;

/// The routes.
pub fn routes() -> Router<Shared> {
    Router::new()
        .route("/api/v1/environments", get(list).post(create))
        .route("/api/v1/environments/{name}", get(show))
        .route("/api/v1/environments/{name}/rearm", post(rearm))
        .route("/api/v1/environments/{name}/proposals", post(propose))
        .route("/api/v1/environments/{name}/manifest", get(manifest))
        .route("/api/v1/environments/{name}/approvals", get(approvals))
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct NewEnvironment {
    name: DnsLabel,
    cluster: String,
    registry: Registry,
}

#[derive(Debug, Serialize)]
struct View {
    name: DnsLabel,
    cluster: DnsLabel,
    registry: Registry,
    created_at: Timestamp,
    proposal: Option<ProposalView>,
    resend: Option<ResendView>,
    executors: Vec<ExecutorView>,
}

#[derive(Debug, Serialize)]
struct ProposalView {
    release: String,
    sha256: String,
    created_at: Timestamp,
    armed_at: Timestamp,
}

#[derive(Debug, Serialize)]
struct ResendView {
    /// `send`, `wait` or `rest`.
    state: &'static str,
    reason: &'static str,
    until: Option<Timestamp>,
    attempts: usize,
    max_attempts: usize,
}

#[derive(Debug, Serialize)]
struct ExecutorView {
    id: ExecutorId,
    kind: Option<ExecutorKind>,
    version: Option<String>,
    connected: bool,
    last_seen: Option<Timestamp>,
    age_s: Option<i64>,
    platform: Option<Platform>,
    components: Vec<ComponentState>,
}

async fn create(State(app): State<Shared>, Body(new): Body<NewEnvironment>) -> Result<(StatusCode, Json<View>), ApiError> {
    let cluster = cluster::find(&app, &new.cluster).await?;
    if let Some(environment) = cluster.environment {
        return Err(ApiError::ClusterHasEnvironment { cluster: new.cluster, environment });
    }
    app.inbound.store.create_environment(&new.name, &cluster.id, &new.registry, Timestamp::now()).await?;
    Ok((StatusCode::CREATED, Json(view(&app, find(&app, new.name.as_str()).await?).await?)))
}

async fn list(State(app): State<Shared>) -> Result<Json<Vec<View>>, ApiError> {
    let mut views = Vec::new();
    for environment in app.inbound.store.environments().await? {
        views.push(view(&app, environment).await?);
    }
    Ok(Json(views))
}

async fn show(State(app): State<Shared>, Path(name): Path<String>) -> Result<Json<View>, ApiError> {
    Ok(Json(view(&app, find(&app, &name).await?).await?))
}

async fn rearm(State(app): State<Shared>, Path(name): Path<String>) -> Result<Json<View>, ApiError> {
    let environment = find(&app, &name).await?;
    let newest = app.inbound.store.newest_proposal(&name).await?;
    let proposal = newest.ok_or_else(|| ApiError::NothingProposed(name.clone(), None))?;
    app.inbound.store.rearm(&proposal.id, Timestamp::now()).await?;
    app.inbound.fleet.decide(&name).await?;
    Ok(Json(view(&app, environment).await?))
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct NewProposal {
    release: String,
    /// A new manifest also when the newest proposal is of this release already.
    #[serde(default)]
    new: bool,
}

#[derive(Debug, Serialize)]
struct Proposed {
    environment: String,
    release: String,
    sha256: String,
    /// Whether a manifest was generated now.
    created: bool,
    /// The first of `command_ids`.
    command_id: Option<CommandId>,
    /// Commands that were queued now, one for each executor.
    command_ids: Vec<CommandId>,
}

async fn propose(
    State(app): State<Shared>,
    Path(name): Path<String>,
    Body(new): Body<NewProposal>,
) -> Result<(StatusCode, Json<Proposed>), ApiError> {
    let environment = find(&app, &name).await?;
    let stored = release::find(&app, &new.release).await?;
    let newest = app.inbound.store.newest_proposal(&name).await?;
    let same = newest.filter(|proposal| proposal.release == new.release && !new.new);
    let created = same.is_none();
    let sha256 = match same {
        Some(proposal) => proposal.sha256,
        None => {
            let now = Timestamp::now();
            let bundle = generate(&stored.release, &environment.name, &environment.registry, now)?;
            app.inbound.store.create_proposal(&name, &new.release, &bundle, now).await?;
            bundle.sha256().clone()
        }
    };
    let command_ids = app.inbound.fleet.decide(&name).await?;
    let status = if created { StatusCode::CREATED } else { StatusCode::OK };
    let (command_id, sha256) = (command_ids.first().copied(), sha256.to_string());
    Ok((status, Json(Proposed { environment: name, release: new.release, sha256, created, command_id, command_ids })))
}

#[derive(Debug, Deserialize)]
struct OfRelease {
    release: Option<String>,
}

/// The exact bytes that were proposed last, of one release if one is named.
async fn manifest(State(app): State<Shared>, Path(name): Path<String>, Query(of): Query<OfRelease>) -> Result<impl IntoResponse, ApiError> {
    find(&app, &name).await?;
    let found = app.inbound.store.proposed_manifest(&name, of.release.as_deref()).await?;
    let (sha256, text) = found.ok_or(ApiError::NothingProposed(name, of.release))?;
    let headers = [(header::CONTENT_TYPE, "application/json".to_owned()), (HeaderName::from_static("x-bundle-sha256"), sha256)];
    Ok((headers, text))
}

/// What people consented to in this environment's cluster, as its executors report it.
async fn approvals(State(app): State<Shared>, Path(name): Path<String>) -> Result<Json<Vec<Reported>>, ApiError> {
    find(&app, &name).await?;
    Ok(Json(app.inbound.store.approvals(&name).await?))
}

async fn find(app: &Shared, name: &str) -> Result<Environment, ApiError> {
    let found = app.inbound.store.environment(name).await?;
    found.ok_or_else(|| ApiError::NotFound { noun: "environment", name: name.to_owned() })
}

async fn view(app: &Shared, environment: Environment) -> Result<View, ApiError> {
    let now = Timestamp::now();
    let executors = app.inbound.store.executors(Some(environment.cluster.as_str())).await?;
    let (proposal, resend) = match app.inbound.store.resend_state(environment.name.as_str()).await? {
        Some((proposal, mut state)) => {
            for executor in &mut state.executors {
                executor.connected = app.connections.has(executor.id);
            }
            let view = ProposalView {
                release: proposal.release,
                sha256: proposal.sha256.to_string(),
                created_at: proposal.created_at,
                armed_at: proposal.armed_at,
            };
            (Some(view), Some(resend_view(&resend::decide(&state, now), state.attempts())))
        }
        None => (None, None),
    };
    Ok(View {
        name: environment.name,
        cluster: environment.cluster,
        registry: environment.registry,
        created_at: environment.created_at,
        proposal,
        resend,
        executors: executors.into_iter().map(|executor| executor_view(app, executor, now)).collect(),
    })
}

fn resend_view(decision: &Decision, attempts: usize) -> ResendView {
    let (state, reason, until) = match decision {
        Decision::Send { purpose, .. } => ("send", purpose.as_str(), None),
        Decision::Wait { until, reason: WaitReason::Running } => ("wait", "running", Some(*until)),
        Decision::Wait { until, reason: WaitReason::Retry } => ("wait", "retry", Some(*until)),
        Decision::Rest(RestReason::Applied) => ("rest", "applied", None),
        Decision::Rest(RestReason::NoExecutor) => ("rest", "no_executor", None),
        Decision::Rest(RestReason::ApprovalRequired) => ("rest", "approval_required", None),
        Decision::Rest(RestReason::ExecutorSilent) => ("rest", "executor_silent", None),
        Decision::Rest(RestReason::Exhausted) => ("rest", "exhausted", None),
    };
    ResendView { state, reason, until, attempts, max_attempts: config::MAX_ATTEMPTS }
}

fn executor_view(app: &Shared, executor: Executor, now: Timestamp) -> ExecutorView {
    let heartbeat = executor.heartbeat;
    ExecutorView {
        id: executor.id,
        kind: heartbeat.as_ref().map(|heartbeat| heartbeat.executor.kind),
        version: executor.version,
        connected: app.connections.has(executor.id),
        last_seen: executor.last_seen,
        age_s: executor.last_seen.map(|at| now.duration_since(at).as_secs()),
        platform: heartbeat.as_ref().map(|heartbeat| heartbeat.platform.clone()),
        components: heartbeat.map(|heartbeat| heartbeat.components).unwrap_or_default(),
    }
}
