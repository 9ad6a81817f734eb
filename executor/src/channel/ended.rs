//! How a connection or a poll session ended, and what that means for the next one.

use tokio::time::Instant;

use super::answer::{self, Answer, Meaning};
use super::outgoing::End;
use super::pulse::DEAD;
use super::read::Broken;
use crate::error_code::Code;

/// Close code of a manager that stops.
const GOING_AWAY: u16 = 1001;
/// Close code for a newer connection of the same executor.
const REPLACED: u16 = 4001;
/// Close code for an executor that was revoked.
const REVOKED: u16 = 4003;

/// How it ended.
#[derive(Debug)]
pub(crate) struct Ended {
    /// When it had been welcomed.
    pub(crate) welcomed: Option<Instant>,
    /// Why; `None` for an orderly close.
    pub(crate) error: Option<SessionError>,
}

/// Why it ended.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SessionError {
    /// No answer, or TLS failed.
    #[error("the manager cannot be reached")]
    Connect(#[source] reqwest::Error),
    /// Another answer than the wanted one.
    #[error("the manager, or what stands before it, answered {}: {}", .0.status, .0.detail)]
    Refused(Answer),
    /// The opening took too long.
    #[error("the manager did not answer in time")]
    Opening,
    /// No sign of life.
    #[error("no sign of life for {DEAD:?}; the link is dead")]
    Dead,
    /// The manager closed it.
    #[error("the manager closed the connection: {code} {reason}")]
    Closed {
        /// WebSocket close code.
        code: u16,
        /// The manager's words.
        reason: String,
    },
    /// The link ended without a welcome.
    #[error("the link ended before the manager's welcome")]
    NoWelcome,
    /// What was received breaks the protocol.
    #[error("what the manager sent breaks the protocol ({}): {}", u16::from(.0.code), .0.reason)]
    Broken(Broken),
    /// The WebSocket failed.
    #[error("the link failed")]
    Socket(#[source] tokio_tungstenite::tungstenite::Error),
    /// There is a new certificate.
    #[error("there is a new certificate")]
    Leaving,
    /// It is time to see whether WebSocket can be had again.
    #[error("the poll session is over; WebSocket is tried again")]
    Return,
    /// The manager does not know the poll session any more.
    #[error("the manager does not know this poll session any more")]
    Forgotten,
    /// The daemon's loop is gone.
    #[error("the daemon stops")]
    Gone,
}

impl Ended {
    pub(super) fn failed(error: SessionError) -> Self {
        Self { welcomed: None, error: Some(error) }
    }

    /// Whether the manager ended it, or something in between.
    pub(super) fn end(&self) -> End {
        match &self.error {
            Some(SessionError::Closed { code: GOING_AWAY | REPLACED, .. }) => End::Cut,
            None | Some(SessionError::Closed { .. } | SessionError::Refused(_)) => End::Closed,
            Some(
                SessionError::Connect(_)
                | SessionError::Opening
                | SessionError::Dead
                | SessionError::NoWelcome
                | SessionError::Broken(_)
                | SessionError::Socket(_)
                | SessionError::Leaving
                | SessionError::Return
                | SessionError::Forgotten
                | SessionError::Gone,
            ) => End::Cut,
        }
    }

    /// What it means for the next try.
    pub(super) fn meaning(&self) -> Meaning {
        match &self.error {
            Some(SessionError::Refused(answer)) => answer.meaning,
            Some(SessionError::Connect(error)) if answer::certificate_alert(error).is_some() => Meaning::Credentials,
            Some(SessionError::Closed { code: REVOKED, .. }) => Meaning::Credentials,
            // An upgrade that was granted and leads nowhere.
            Some(SessionError::Opening | SessionError::NoWelcome) if self.welcomed.is_none() => Meaning::NoTransport,
            Some(_) | None => Meaning::Later,
        }
    }
}

impl SessionError {
    /// The error's stable name, for a log: the manager's own where it gave one.
    pub(super) fn code(&self) -> &str {
        match self {
            Self::Refused(answer) => answer.code.as_deref().unwrap_or(Code::ManagerRefused.name()),
            Self::Connect(_) | Self::Opening | Self::Dead | Self::Socket(_) => Code::ManagerUnreachable.name(),
            Self::NoWelcome | Self::Broken(_) => Code::ManagerAnswer.name(),
            Self::Closed { .. } | Self::Leaving | Self::Return | Self::Forgotten | Self::Gone => Code::ChannelClosed.name(),
        }
    }
}
