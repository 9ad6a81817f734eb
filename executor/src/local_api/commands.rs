//! `GET /v1/commands?status=&action=` and `GET /v1/commands/{id}`.

use agent_api::command::{ACTIONS, CommandStatus, CommandView, Origin};
use agent_api::name::CommandId;
use agent_api::problem::Problem;
use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Path, Query, State};
use serde::Deserialize;
use utoipa::IntoParams;

use super::LocalError;
use crate::daemon::{Daemon, Running};

/// What `list` is narrowed to.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct Filter {
    /// Only commands that stand here.
    status: Option<CommandStatus>,
    /// Only commands of this action, e.g. `sync_platform`.
    action: Option<String>,
}

/// All commands in the journal, newest first.
#[utoipa::path(get, path = "/v1/commands", operation_id = "list_commands", tag = "commands", params(Filter), responses(
    (status = 200, description = "Newest first", body = Vec<CommandView>),
    (status = 400, description = "A filter that cannot be read", body = Problem, content_type = "application/problem+json"),
    (status = 403, description = "Not from loopback, or from a web page", body = Problem, content_type = "application/problem+json"),
    (status = 503, description = "The executor is stopping", body = Problem, content_type = "application/problem+json"),
))]
pub(super) async fn list(
    State(daemon): State<Daemon>,
    filter: Result<Query<Filter>, QueryRejection>,
) -> Result<Json<Vec<CommandView>>, LocalError> {
    let Query(filter) = filter.map_err(|error| LocalError::BadRequest(error.body_text()))?;
    let all = daemon.ask(move |running| {
        // A newer manager may have sent an action that this version refused without knowing it.
        let in_journal = || running.state().commands.values().any(|entry| Some(&entry.command.action) == filter.action.as_ref());
        if let Some(action) = filter.action.as_deref().filter(|action| !ACTIONS.contains(action) && !in_journal()) {
            return Err(LocalError::BadRequest(format!("`{action}` is no action; there are: {}", ACTIONS.join(", "))));
        }
        let wanted = |view: &CommandView| {
            filter.status.is_none_or(|status| view.status == status) && filter.action.as_ref().is_none_or(|action| view.action == *action)
        };
        let mut views: Vec<CommandView> = running.state().commands.keys().filter_map(|id| view(running, *id)).filter(wanted).collect();
        views.sort_by_key(|view| std::cmp::Reverse((view.created_at, view.id)));
        Ok(views)
    });
    all.await.ok_or(LocalError::Stopping)?.map(Json)
}

/// One command.
#[utoipa::path(get, path = "/v1/commands/{id}", operation_id = "get_command", tag = "commands", params(("id" = CommandId, Path, description = "Id of the command")), responses(
    (status = 200, description = "The command", body = CommandView),
    (status = 400, description = "Not an id", body = Problem, content_type = "application/problem+json"),
    (status = 403, description = "Not from loopback, or from a web page", body = Problem, content_type = "application/problem+json"),
    (status = 404, description = "No such command", body = Problem, content_type = "application/problem+json"),
    (status = 503, description = "The executor is stopping", body = Problem, content_type = "application/problem+json"),
))]
pub(super) async fn show(State(daemon): State<Daemon>, Path(id): Path<String>) -> Result<Json<CommandView>, LocalError> {
    let parsed: CommandId = id.parse().map_err(|_| LocalError::BadRequest(format!("`{id}` is not a command id (a UUID)")))?;
    let found = daemon.ask(move |running| view(running, parsed)).await.ok_or(LocalError::Stopping)?;
    found.map(Json).ok_or_else(|| LocalError::NotFound(format!("there is no command {id}")))
}

fn view(running: &Running, id: CommandId) -> Option<CommandView> {
    let entry = running.state().commands.get(&id)?;
    Some(CommandView {
        id,
        action: entry.command.action.clone(),
        target: entry.command.target.clone(),
        sha256: entry.sha256.clone(),
        status: entry.status,
        stage: running.state().stage(id).map(|stage| stage.as_str().to_owned()),
        origin: Origin::Cloud,
        created_at: entry.created_at,
        finished_at: entry.finished_at,
        result: entry.result.as_ref().map(|result| result.result.clone()),
        code: entry.result.as_ref().and_then(|result| result.code.clone()),
    })
}
