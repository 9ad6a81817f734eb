//! `/api/v1/executors`: what each last reported, and its commands.

use agent_api::frame::CommandProgress;
use agent_api::heartbeat::Heartbeat;
use agent_api::name::{CommandId, ExecutorId};
use axum::extract::{Path, State};
use axum::routing::{get, post};
use axum::{Json, Router};
use jiff::Timestamp;
use serde::Serialize;

use super::Shared;
use super::problem::ApiError;
use crate::channel::progress::Noted;
use crate::store::command::StoredCommand;
use crate::store::executor::Executor;

/// The routes.
pub fn routes() -> Router<Shared> {
    Router::new()
        .route("/api/v1/executors", get(list))
        .route("/api/v1/executors/{id}", get(show))
        .route("/api/v1/executors/{id}/commands", get(commands))
        .route("/api/v1/executors/{id}/revoke", post(revoke))
}

#[derive(Debug, Serialize)]
struct View {
    id: ExecutorId,
    cluster: String,
    version: Option<String>,
    connected: bool,
    enrolled_at: Timestamp,
    certificate_expires_at: Option<Timestamp>,
    revoked_at: Option<Timestamp>,
    last_seen: Option<Timestamp>,
    age_s: Option<i64>,
    heartbeat: Option<Heartbeat>,
}

#[derive(Debug, Serialize)]
struct CommandView {
    id: CommandId,
    sequence: u64,
    action: String,
    target: String,
    sha256: Option<String>,
    purpose: &'static str,
    status: &'static str,
    /// How often it went out.
    attempts: i64,
    /// Deliveries that nobody was there for.
    missed: i64,
    result: Option<String>,
    code: Option<String>,
    objects: Option<serde_json::Value>,
    progress: Option<CommandProgress>,
    progress_at: Option<Timestamp>,
    created_at: Timestamp,
    sent_at: Option<Timestamp>,
    delivered_at: Option<Timestamp>,
    finished_at: Option<Timestamp>,
}

async fn list(State(app): State<Shared>) -> Result<Json<Vec<View>>, ApiError> {
    let executors = app.inbound.store.executors(None).await?;
    Ok(Json(executors.into_iter().map(|executor| view(&app, executor)).collect()))
}

async fn show(State(app): State<Shared>, Path(id): Path<String>) -> Result<Json<View>, ApiError> {
    Ok(Json(view(&app, find(&app, &id).await?)))
}

async fn commands(State(app): State<Shared>, Path(id): Path<String>) -> Result<Json<Vec<CommandView>>, ApiError> {
    let executor = find(&app, &id).await?;
    let running = app.inbound.progress.of(executor.id);
    let stored = app.inbound.store.commands(executor.id).await?;
    Ok(Json(stored.into_iter().map(|command| command_view(command, &running)).collect()))
}

/// Refuses the executor's key and certificates from now on, and ends its connection. In this order: a connection that comes meanwhile
/// finds the one or is found by the other.
async fn revoke(State(app): State<Shared>, Path(id): Path<String>) -> Result<Json<View>, ApiError> {
    let executor = find(&app, &id).await?.id;
    app.inbound.store.revoke_executor(executor, Timestamp::now()).await?;
    app.connections.revoke(executor);
    tracing::info!(%executor, "revoked");
    if let Some(environment) = app.inbound.store.environment_of(executor).await? {
        app.inbound.fleet.poke(environment).await;
    }
    Ok(Json(view(&app, find(&app, &id).await?)))
}

async fn find(app: &Shared, id: &str) -> Result<Executor, ApiError> {
    let not_found = || ApiError::NotFound { noun: "executor", name: id.to_owned() };
    let parsed: ExecutorId = id.parse().map_err(|_| not_found())?;
    app.inbound.store.executor(parsed).await?.ok_or_else(not_found)
}

fn view(app: &Shared, executor: Executor) -> View {
    View {
        id: executor.id,
        cluster: executor.cluster,
        version: executor.version,
        connected: app.connections.has(executor.id),
        enrolled_at: executor.enrolled_at,
        certificate_expires_at: executor.cert_not_after,
        revoked_at: executor.revoked_at,
        last_seen: executor.last_seen,
        age_s: executor.last_seen.map(|at| Timestamp::now().duration_since(at).as_secs()),
        heartbeat: executor.heartbeat,
    }
}

fn command_view(command: StoredCommand, running: &[Noted]) -> CommandView {
    let noted = running.iter().find(|noted| noted.progress.id == command.id);
    CommandView {
        id: command.id,
        sequence: command.sequence,
        action: command.action,
        target: command.target,
        sha256: command.sha256,
        purpose: command.purpose.as_str(),
        status: command.status.as_str(),
        attempts: command.sent,
        missed: command.missed,
        result: command.result,
        code: command.code,
        objects: command.objects,
        progress: noted.map(|noted| noted.progress.clone()),
        progress_at: noted.map(|noted| noted.at),
        created_at: command.created_at,
        sent_at: command.sent_at,
        delivered_at: command.acked_at,
        finished_at: command.ended_at,
    }
}
