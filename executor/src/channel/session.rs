//! One WebSocket connection: upgrade, hello, welcome, then frames both ways until the link is closed or dead.

use std::time::Duration;

use agent_api::enrolment::CHANNEL_PATH;
use agent_api::frame::{Down, Hello, MAX_BYTES, SUBPROTOCOL, Up, Welcome, on_the_way};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures::stream::{SplitSink, SplitStream};
use futures::{SinkExt, StreamExt};
use reqwest::{Method, Upgraded, header};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::{Instant, MissedTickBehavior, interval_at, timeout};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role, WebSocketConfig};
use tokio_util::io::InspectReader;

use super::counters::Counters;
use super::ended::{Ended, SessionError};
use super::pulse::{PING, Pulse};
use super::read::{self, Broken, OUT_OF_ORDER, Read};
use super::{Ends, answer};
use crate::signed::Signed;

/// How long the upgrade and the welcome may take.
const OPENING: Duration = Duration::from_secs(20);
/// One write may take so long while the peer shows signs of life, and what its bytes take on the slowest line.
const WRITE: Duration = Duration::from_secs(20);
/// The peer may take so long to answer our close frame.
const CLOSE: Duration = Duration::from_secs(2);
/// Where reading a frame stops. Above the contract's size, so that a frame that is somewhat too large is read to its end and its sender
/// gets the close code.
const READ_AT_MOST: usize = 2 * MAX_BYTES;
/// We leave, to come back with another certificate.
const LEAVING: Broken = Broken { code: CloseCode::Normal, reason: "coming back with a new certificate" };

/// Connects and stays until the end.
pub(super) async fn run(signed: &Signed, hello: Hello, ends: &Ends) -> Ended {
    match timeout(OPENING, upgrade(signed)).await.unwrap_or(Err(SessionError::Opening)) {
        Ok(stream) => hold(stream, hello, ends).await,
        Err(error) => Ended::failed(error),
    }
}

async fn upgrade(signed: &Signed) -> Result<Upgraded, SessionError> {
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
    if response.status() != reqwest::StatusCode::SWITCHING_PROTOCOLS {
        return Err(SessionError::Refused(answer::read(response).await));
    }
    response.upgrade().await.map_err(SessionError::Connect)
}

async fn socket<S: AsyncRead + AsyncWrite + Unpin>(stream: S) -> WebSocketStream<S> {
    let limits = WebSocketConfig::default().max_message_size(Some(READ_AT_MOST)).max_frame_size(Some(READ_AT_MOST));
    WebSocketStream::from_raw_socket(stream, Role::Client, Some(limits)).await
}

/// From the upgrade to the end.
async fn hold<S: AsyncRead + AsyncWrite + Unpin>(stream: S, hello: Hello, ends: &Ends) -> Ended {
    let pulse = Pulse::new();
    let mut socket = socket(InspectReader::new(stream, |_: &[u8]| pulse.received())).await;
    let welcomed = match timeout(OPENING, greet(&mut socket, hello, ends)).await.unwrap_or(Err(SessionError::Opening)) {
        Ok(welcome) => ends.welcome(welcome, "WebSocket").await,
        Err(error) => {
            refuse(&mut socket, &error).await;
            return Ended::failed(error);
        }
    };
    let error = exchange(&mut socket, ends, &pulse).await.err();
    if let Some(error) = &error {
        refuse(&mut socket, error).await;
    }
    Ended { welcomed: Some(welcomed), error }
}

/// Says why we close, where that is it.
async fn refuse<S: AsyncRead + AsyncWrite + Unpin>(socket: &mut WebSocketStream<S>, error: &SessionError) {
    let broken = match error {
        SessionError::Broken(broken) => broken.clone(),
        SessionError::Leaving => LEAVING,
        _ => return,
    };
    let goodbye = async {
        // The peer may be gone already; there is nobody to tell then.
        let _ = socket.close(Some(CloseFrame { code: broken.code, reason: broken.reason.into() })).await;
        while let Some(Ok(_)) = socket.next().await {}
    };
    let _ = timeout(CLOSE, goodbye).await;
}

async fn greet<S: AsyncRead + AsyncWrite + Unpin>(
    socket: &mut WebSocketStream<S>,
    hello: Hello,
    ends: &Ends,
) -> Result<Welcome, SessionError> {
    let hello = serde_json::to_string(&Up::Hello(hello)).unwrap_or_default();
    socket.send(Message::text(hello)).await.map_err(SessionError::Socket)?;
    loop {
        match read::message(socket.next().await) {
            Read::Frame(Down::Welcome(welcome)) => return Ok(welcome),
            Read::Frame(Down::Command(_) | Down::ResultAck(_)) => return Err(ends.broken(OUT_OF_ORDER)),
            Read::Unknown => Counters::add(&ends.counters.skipped),
            Read::Pong | Read::Nothing => {}
            Read::Broken(broken) => return Err(ends.broken(broken)),
            Read::Closed(Some((code, reason))) => return Err(SessionError::Closed { code, reason }),
            Read::Closed(None) => return Err(SessionError::NoWelcome),
            Read::Failed(error) => return Err(SessionError::Socket(error)),
        }
    }
}

/// Frames both ways. Reading never waits for a write, so that a slow line is not taken for a dead one.
async fn exchange<S>(socket: &mut WebSocketStream<S>, ends: &Ends, pulse: &Pulse) -> Result<(), SessionError>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let (mut sink, mut stream) = socket.split();
    let mut leave = ends.leave.clone();
    tokio::select! {
        ended = receive(&mut stream, ends, pulse) => ended,
        ended = transmit(&mut sink, ends, pulse) => ended,
        () = pulse.stopped() => Err(SessionError::Dead),
        Ok(()) = leave.changed() => Err(SessionError::Leaving),
    }
}

async fn receive<S>(stream: &mut SplitStream<&mut WebSocketStream<S>>, ends: &Ends, pulse: &Pulse) -> Result<(), SessionError>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    loop {
        let read = read::message(stream.next().await);
        pulse.whole();
        match read {
            Read::Frame(frame) => ends.pass(frame).await?,
            Read::Unknown => Counters::add(&ends.counters.skipped),
            Read::Pong => pulse.answered(),
            Read::Nothing => {}
            Read::Broken(broken) => return Err(ends.broken(broken)),
            Read::Closed(Some((code, reason))) => return Err(SessionError::Closed { code, reason }),
            Read::Closed(None) => return Ok(()),
            Read::Failed(error) => return Err(SessionError::Socket(error)),
        }
    }
}

async fn transmit<S>(sink: &mut SplitSink<&mut WebSocketStream<S>, Message>, ends: &Ends, pulse: &Pulse) -> Result<(), SessionError>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let mut pings = interval_at(Instant::now() + PING, PING);
    pings.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let (message, ping) = tokio::select! {
            text = ends.outgoing.next() => (Message::text(text), false),
            _ = pings.tick() => (Message::Ping(Vec::new().into()), true),
        };
        let bytes = message.len();
        timeout(WRITE + on_the_way(bytes), sink.send(message)).await.map_err(|_| SessionError::Dead)?.map_err(SessionError::Socket)?;
        pulse.sent(bytes);
        if ping {
            pulse.asked();
        }
    }
}

#[cfg(test)]
mod tests;
