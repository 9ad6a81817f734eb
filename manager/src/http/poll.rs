//! `POST /v1/commands/poll/executor`: the channel over long poll.

use agent_api::frame::{PollRequest, PollResponse};
use axum::extract::State;
use axum::{Extension, Json};

use super::Shared;
use super::body::Body;
use super::problem::ApiError;
use super::signed::Signed;
use crate::channel::poll::Polls;

/// Takes frames, and answers with frames.
///
/// # Errors
/// There is no room for a new session, the session is not known, or its frames are not right.
pub async fn poll(
    State(app): State<Shared>,
    Extension(signed): Extension<Signed>,
    Body(poll): Body<PollRequest>,
) -> Result<Json<PollResponse>, ApiError> {
    let executor = signed.executor;
    if !Polls::begins(&poll) {
        return Ok(Json(app.polls.go_on(executor, poll).await?));
    }
    app.door.admit()?;
    let (answer, task) = app.polls.begin(executor, poll, app.inbound.clone(), &app.connections, app.stop.clone()).await?;
    app.tasks.spawn(task);
    Ok(Json(answer))
}
