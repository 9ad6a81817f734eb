//! From a WebSocket message to a frame, or to the reason why the connection ends.

use agent_api::frame::{MAX_BYTES, Up};
use axum::extract::ws::{CloseFrame, Message, close_code};
use serde::Deserialize;
use tokio_tungstenite::tungstenite;

/// What a message is.
#[derive(Debug)]
pub enum Read {
    /// A frame.
    Frame(Box<Up>),
    /// Nothing to act on: ping or pong.
    Skip,
    /// A frame of a type of a later version; nothing to act on either.
    Unknown,
    /// The connection ends with this.
    Close(CloseFrame),
    /// The connection is over.
    Ended,
}

/// A close frame. `reason` is for the peer's log and stays under 123 bytes.
#[must_use]
pub fn close(code: u16, reason: &'static str) -> CloseFrame {
    CloseFrame { code, reason: reason.into() }
}

/// Reads what the socket gave.
#[must_use]
pub fn read(message: Option<Result<Message, axum::Error>>) -> Read {
    match message {
        Some(Ok(Message::Text(text))) => frame(&text),
        Some(Ok(Message::Binary(_))) => Read::Close(close(close_code::UNSUPPORTED, "frames are text")),
        Some(Ok(Message::Ping(_) | Message::Pong(_))) => Read::Skip,
        Some(Ok(Message::Close(_))) | None => Read::Ended,
        Some(Err(error)) => failed(error),
    }
}

/// Reads a frame.
#[must_use]
pub fn frame(text: &str) -> Read {
    #[derive(Deserialize)]
    struct Tagged {
        r#type: String,
    }
    if text.len() > MAX_BYTES {
        return too_large();
    }
    match serde_json::from_str::<Up>(text) {
        Ok(up) => Read::Frame(Box::new(up)),
        Err(error) => match serde_json::from_str::<Tagged>(text) {
            Ok(tagged) if !known(&tagged.r#type) => {
                tracing::info!(r#type = tagged.r#type.escape_debug().to_string(), "a frame of unknown type was skipped");
                Read::Unknown
            }
            Ok(_) | Err(_) => {
                tracing::warn!(%error, "a frame is not readable");
                Read::Close(close(close_code::INVALID, "the frame is not readable"))
            }
        },
    }
}

fn too_large() -> Read {
    Read::Close(close(close_code::SIZE, "a frame has at most 4 MiB"))
}

fn known(r#type: &str) -> bool {
    ["hello", "heartbeat", "command_ack", "command_progress", "command_result"].contains(&r#type)
}

fn failed(error: axum::Error) -> Read {
    match error.into_inner().downcast_ref::<tungstenite::Error>() {
        Some(tungstenite::Error::Capacity(_)) => too_large(),
        Some(tungstenite::Error::Utf8(_)) => Read::Close(close(close_code::INVALID, "text is not UTF-8")),
        Some(tungstenite::Error::Protocol(tungstenite::error::ProtocolError::ResetWithoutClosingHandshake)) => Read::Ended,
        Some(tungstenite::Error::Protocol(_)) => Read::Close(close(close_code::PROTOCOL, "this is not WebSocket")),
        Some(_) | None => Read::Ended,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &str) {
        let read = read(Some(Ok(Message::text(text))));
        let seen = match &read {
            Read::Frame(_) => "frame".to_owned(),
            Read::Skip => "skip".to_owned(),
            Read::Unknown => "unknown".to_owned(),
            Read::Close(frame) => frame.code.to_string(),
            Read::Ended => "ended".to_owned(),
        };
        assert_eq!(seen, expected, "{text}");
    }

    #[test]
    fn messages() {
        check(r#"{"type":"command_ack","id":"01936f5e-0000-7000-8000-000000000000","later":1}"#, "frame");
        check(r#"{"type":"of_a_later_version","x":1}"#, "unknown");
        check(r#"{"type":"command_ack"}"#, "1007");
        check(r#"{"type":"command_ack","id":"x"}"#, "1007");
        check(r#"{"id":"x"}"#, "1007");
        check("[1]", "1007");
        check("{", "1007");
        check(&"[".repeat(100_000), "1007");
        check(&" ".repeat(MAX_BYTES), "1007");
        check(&" ".repeat(MAX_BYTES + 1), "1009");
    }
}
