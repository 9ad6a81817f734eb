//! From what a socket or an answer gave to a frame, or to the reason why the connection ends.

use agent_api::frame::{Down, MAX_BYTES};
use serde::Deserialize;
use tokio_tungstenite::tungstenite::error::{Error, ProtocolError};
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::{Message, Utf8Bytes};
use tracing::info;

/// Types that this version reads.
const KNOWN: [&str; 3] = ["welcome", "command", "result_ack"];

/// What a message is.
#[derive(Debug)]
pub(super) enum Read {
    /// A frame.
    Frame(Down),
    /// A frame of a type that is not known here.
    Unknown,
    /// A pong.
    Pong,
    /// Nothing to act on.
    Nothing,
    /// The connection is to be closed for this.
    Broken(Broken),
    /// The peer closed it: code and its words.
    Closed(Option<(u16, String)>),
    /// The link failed.
    Failed(Error),
}

/// Why we close a connection.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Broken {
    /// WebSocket close code.
    pub(crate) code: CloseCode,
    /// For the peer's log; under 123 bytes.
    pub(crate) reason: &'static str,
}

/// The order of frames was not kept.
pub(super) const OUT_OF_ORDER: Broken = Broken { code: CloseCode::Protocol, reason: "welcome comes once, and first" };
const TOO_LARGE: Broken = Broken { code: CloseCode::Size, reason: "a frame has at most 4 MiB" };
const UNREADABLE: Broken = Broken { code: CloseCode::Invalid, reason: "the frame is not readable" };
const BINARY: Broken = Broken { code: CloseCode::Unsupported, reason: "frames are text" };
const NO_WEBSOCKET: Broken = Broken { code: CloseCode::Protocol, reason: "this is not WebSocket" };

/// Reads what the socket gave.
pub(super) fn message(message: Option<Result<Message, Error>>) -> Read {
    match message {
        Some(Ok(Message::Text(text))) => frame(&text),
        Some(Ok(Message::Pong(_))) => Read::Pong,
        Some(Ok(Message::Ping(_) | Message::Frame(_))) => Read::Nothing,
        Some(Ok(Message::Binary(_))) => Read::Broken(BINARY),
        Some(Ok(Message::Close(close))) => Read::Closed(close.map(|close| (close.code.into(), words(&close.reason)))),
        None => Read::Closed(None),
        Some(Err(Error::Capacity(_))) => Read::Broken(TOO_LARGE),
        Some(Err(Error::Utf8(_))) => Read::Broken(UNREADABLE),
        Some(Err(error @ Error::Protocol(ProtocolError::ResetWithoutClosingHandshake))) => Read::Failed(error),
        Some(Err(Error::Protocol(_))) => Read::Broken(NO_WEBSOCKET),
        Some(Err(error)) => Read::Failed(error),
    }
}

/// Reads a frame. A type of a later version is told from a damaged frame.
pub(super) fn frame(text: &str) -> Read {
    #[derive(Deserialize)]
    struct Tagged {
        r#type: String,
    }
    if text.len() > MAX_BYTES {
        return Read::Broken(TOO_LARGE);
    }
    match serde_json::from_str::<Down>(text) {
        Ok(down) => Read::Frame(down),
        Err(error) => match serde_json::from_str::<Tagged>(text) {
            Ok(tagged) if !KNOWN.contains(&tagged.r#type.as_str()) => {
                info!("channel: a frame of unknown type `{}` was skipped", tagged.r#type.escape_debug());
                Read::Unknown
            }
            Ok(_) | Err(_) => {
                tracing::warn!("channel: a frame is not readable: {error}");
                Read::Broken(UNREADABLE)
            }
        },
    }
}

/// A peer's text, fit for one line of a log.
fn words(text: &Utf8Bytes) -> String {
    text.chars().take(200).collect::<String>().escape_debug().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(given: Message, expected: &str) {
        let seen = match message(Some(Ok(given))) {
            Read::Frame(_) => "frame".to_owned(),
            Read::Unknown => "unknown".to_owned(),
            Read::Pong | Read::Nothing => "nothing".to_owned(),
            Read::Broken(broken) => u16::from(broken.code).to_string(),
            Read::Closed(_) => "closed".to_owned(),
            Read::Failed(error) => error.to_string(),
        };
        assert_eq!(seen, expected);
    }

    #[test]
    fn messages() {
        check(Message::text(r#"{"type":"result_ack","id":"01936f5e-0000-7000-8000-000000000000","later":1}"#), "frame");
        check(Message::text(r#"{"type":"of_a_later_version","x":1}"#), "unknown");
        check(Message::text(r#"{"type":"result_ack"}"#), "1007");
        check(Message::text(r#"{"id":1}"#), "1007");
        check(Message::text(r#"{"type":"result_ack","id":"019"#), "1007");
        check(Message::text("[".repeat(100_000)), "1007");
        check(Message::text(" ".repeat(MAX_BYTES + 1)), "1009");
        check(Message::binary(vec![1]), "1003");
        check(Message::Close(None), "closed");
        check(Message::Ping(Vec::new().into()), "nothing");
    }
}
