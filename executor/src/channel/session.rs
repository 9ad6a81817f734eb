//! One connection: upgrade, hello, welcome, then frames both ways until the link is closed or dead.

use std::time::Duration;

use agent_api::enrolment::CHANNEL_PATH;
use agent_api::frame::{Down, Hello, MAX_BYTES, SUBPROTOCOL, Up};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures::{SinkExt, StreamExt};
use reqwest::{Method, Upgraded, header};
use tokio::sync::mpsc;
use tokio::time::{Instant, interval, timeout};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};
use tracing::{debug, info, warn};

use super::Incoming;
use crate::signed::Signed;

/// How long the upgrade and the welcome may take.
const OPENING: Duration = Duration::from_secs(20);
/// How often we ask for a sign of life.
const PING: Duration = Duration::from_secs(10);
/// A link on which nothing was received for so long is dead.
const DEAD: Duration = Duration::from_secs(30);

/// How a connection ended.
pub(crate) struct Ended {
    /// Whether it had been welcomed.
    pub(crate) welcomed: bool,
    /// Why; `None` for an orderly close.
    pub(crate) error: Option<SessionError>,
}

/// Why a connection ended.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SessionError {
    /// No answer, or TLS failed.
    #[error("the manager cannot be reached")]
    Connect(#[source] reqwest::Error),
    /// Another status than 101.
    #[error("the manager answered {status}: {detail}")]
    Refused {
        /// HTTP status.
        status: u16,
        /// Its problem document's detail, or the first characters of its body.
        detail: String,
    },
    /// The opening took longer than [`OPENING`].
    #[error("the manager did not answer within {OPENING:?}")]
    Opening,
    /// Nothing was received for [`DEAD`].
    #[error("nothing was received for {DEAD:?}; the link is dead")]
    Dead,
    /// Closed before the welcome.
    #[error("the manager closed the connection before its welcome: {code} {reason}")]
    Closed {
        /// WebSocket close code.
        code: u16,
        /// The manager's words.
        reason: String,
    },
    /// The first frame was not a welcome.
    #[error("the manager's first frame was not a welcome")]
    NoWelcome,
    /// The WebSocket failed.
    #[error("the link failed")]
    Socket(#[source] tokio_tungstenite::tungstenite::Error),
}

type Socket = WebSocketStream<Upgraded>;

pub(super) async fn run(signed: &Signed, hello: Hello, incoming: &mpsc::Sender<Incoming>, frames: &mut mpsc::Receiver<Up>) -> Ended {
    let opened = timeout(OPENING, open(signed, hello)).await.unwrap_or(Err(SessionError::Opening));
    let (mut socket, welcome) = match opened {
        Ok(opened) => opened,
        Err(error) => return Ended { welcomed: false, error: Some(error) },
    };
    info!(heartbeat_interval_s = welcome.heartbeat_interval_s, "channel: connected");
    if incoming.send(Incoming::Connected(welcome)).await.is_err() {
        return Ended { welcomed: true, error: None };
    }
    Ended { welcomed: true, error: exchange(&mut socket, incoming, frames).await.err() }
}

async fn open(signed: &Signed, hello: Hello) -> Result<(Socket, agent_api::frame::Welcome), SessionError> {
    let key = STANDARD.encode(uuid::Uuid::new_v4().as_bytes());
    let response = signed
        .request(Method::GET, CHANNEL_PATH, Vec::new())
        .header(header::CONNECTION, "Upgrade")
        .header(header::UPGRADE, "websocket")
        .header(header::SEC_WEBSOCKET_VERSION, "13")
        .header(header::SEC_WEBSOCKET_KEY, key)
        .header(header::SEC_WEBSOCKET_PROTOCOL, SUBPROTOCOL)
        .send()
        .await
        .map_err(SessionError::Connect)?;
    let status = response.status();
    if status != reqwest::StatusCode::SWITCHING_PROTOCOLS {
        let body = response.text().await.unwrap_or_default();
        let detail = serde_json::from_str::<agent_api::problem::Problem>(&body)
            .map_or_else(|_| body.chars().take(200).collect(), |problem| problem.detail);
        return Err(SessionError::Refused { status: status.as_u16(), detail });
    }
    let upgraded = response.upgrade().await.map_err(SessionError::Connect)?;
    let limits = WebSocketConfig::default().max_message_size(Some(MAX_BYTES)).max_frame_size(Some(MAX_BYTES));
    let mut socket = WebSocketStream::from_raw_socket(upgraded, Role::Client, Some(limits)).await;
    send(&mut socket, &Up::Hello(hello)).await?;
    loop {
        match socket.next().await {
            Some(Ok(Message::Text(text))) => {
                return match serde_json::from_str(&text) {
                    Ok(Down::Welcome(welcome)) => Ok((socket, welcome)),
                    Ok(Down::Command(_) | Down::ResultAck(_)) | Err(_) => Err(SessionError::NoWelcome),
                };
            }
            Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
            Some(Ok(Message::Close(Some(close)))) => {
                return Err(SessionError::Closed { code: close.code.into(), reason: close.reason.to_string() });
            }
            Some(Ok(Message::Binary(_) | Message::Close(None) | Message::Frame(_))) | None => return Err(SessionError::NoWelcome),
            Some(Err(error)) => return Err(SessionError::Socket(error)),
        }
    }
}

async fn exchange(socket: &mut Socket, incoming: &mpsc::Sender<Incoming>, frames: &mut mpsc::Receiver<Up>) -> Result<(), SessionError> {
    let mut received = Instant::now();
    let mut pings = interval(PING);
    loop {
        tokio::select! {
            message = socket.next() => {
                received = Instant::now();
                match message {
                    Some(Ok(Message::Text(text))) => {
                        let Some(frame) = read(&text) else { continue };
                        if incoming.send(frame).await.is_err() {
                            return Ok(());
                        }
                    }
                    Some(Ok(Message::Ping(_) | Message::Pong(_) | Message::Frame(_))) => {}
                    Some(Ok(Message::Binary(_))) => warn!("channel: a binary frame was skipped"),
                    Some(Ok(Message::Close(_))) | None => return Ok(()),
                    Some(Err(error)) => return Err(SessionError::Socket(error)),
                }
            }
            frame = frames.recv() => match frame {
                Some(frame) => send(socket, &frame).await?,
                None => return Ok(()),
            },
            _ = pings.tick() => {
                if received.elapsed() >= DEAD {
                    return Err(SessionError::Dead);
                }
                socket.send(Message::Ping(Vec::new().into())).await.map_err(SessionError::Socket)?;
            }
        }
    }
}

/// Unknown types are logged and skipped.
fn read(text: &str) -> Option<Incoming> {
    match serde_json::from_str(text) {
        Ok(Down::Command(command)) => Some(Incoming::Command(command)),
        Ok(Down::ResultAck(ack)) => Some(Incoming::ResultAck(ack.id)),
        Ok(Down::Welcome(_)) => {
            debug!("channel: a second welcome was skipped");
            None
        }
        Err(error) => {
            warn!("channel: a frame was skipped: {error}");
            None
        }
    }
}

async fn send(socket: &mut Socket, frame: &Up) -> Result<(), SessionError> {
    let text = serde_json::to_string(frame).unwrap_or_default();
    timeout(DEAD, socket.send(Message::text(text))).await.map_err(|_| SessionError::Dead)?.map_err(SessionError::Socket)
}
