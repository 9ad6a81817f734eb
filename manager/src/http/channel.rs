//! `GET /v1/commands/ws/executor`: the channel over WebSocket.

use agent_api::frame;
use axum::Extension;
use axum::extract::State;
use axum::extract::ws::WebSocketUpgrade;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::response::Response;

use super::Shared;
use super::problem::ApiError;
use super::signed::Signed;
use crate::channel::connection;
use crate::channel::heard::Heard;
use crate::config;

/// Upgrades the connection.
///
/// # Errors
/// It is no upgrade, does not offer our subprotocol, or there is no room for a new connection now.
pub async fn websocket(
    State(app): State<Shared>,
    Extension(signed): Extension<Signed>,
    Extension(heard): Extension<Heard>,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Result<Response, ApiError> {
    let upgrade = upgrade.map_err(|rejection| ApiError::Upgrade(rejection.body_text()))?;
    let upgrade = upgrade.max_frame_size(config::MAX_FRAME_READ).max_message_size(config::MAX_FRAME_READ).protocols([frame::SUBPROTOCOL]);
    if upgrade.selected_protocol().is_none() {
        return Err(ApiError::Upgrade(format!("the WebSocket subprotocol `{}` must be offered", frame::SUBPROTOCOL)));
    }
    app.door.admit()?;
    let (inbound, connections, tasks, stop) = (app.inbound.clone(), app.connections.clone(), app.tasks.clone(), app.stop.clone());
    let executor = signed.executor;
    Ok(upgrade.on_upgrade(move |socket| tasks.track_future(connection::run(socket, executor, heard, inbound, connections, stop))))
}
