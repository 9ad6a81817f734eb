//! What becomes of a command while no executor is connected; and where a command stands.

use std::str::FromStr;

use agent_api::name::{CommandId, ExecutorId};
use jiff::Timestamp;

use crate::config;

/// Where a command stands, as the manager knows it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Status {
    /// Not acknowledged yet.
    Queued,
    /// On the executor's disk.
    Delivered,
    /// Done.
    Completed,
    /// Ended without success.
    Failed,
    /// Given up: no executor was there.
    Undelivered,
    /// Never sent again: a newer proposal came first.
    Superseded,
}

impl Status {
    const ALL: [Self; 6] = [Self::Queued, Self::Delivered, Self::Completed, Self::Failed, Self::Undelivered, Self::Superseded];

    /// As stored and shown.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Delivered => "delivered",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Undelivered => "undelivered",
            Self::Superseded => "superseded",
        }
    }
}

/// A text that names no state.
#[derive(Debug, thiserror::Error)]
#[error("`{0}` is not known")]
pub struct Unknown(pub String);

impl FromStr for Status {
    type Err = Unknown;

    fn from_str(text: &str) -> Result<Self, Unknown> {
        Self::ALL.into_iter().find(|status| status.as_str() == text).ok_or_else(|| Unknown(text.to_owned()))
    }
}

/// A command that no executor has acknowledged.
#[derive(Clone, Debug)]
pub struct Undelivered {
    /// Which.
    pub id: CommandId,
    /// For whom.
    pub executor: ExecutorId,
    /// Deliveries that nobody was there for.
    pub missed: u32,
    /// When the last of them was, or the command was made.
    pub tried_at: Timestamp,
}

/// What to do about it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Decision {
    /// The connection delivers it.
    Leave,
    /// Look again then.
    Wait(Timestamp),
    /// Count one more missed delivery.
    Miss,
    /// Count it, and end the command.
    GiveUp,
}

/// One delivery a minute counts while no executor is connected; after ten the command is given up. It is made anew when the executor
/// comes back.
#[must_use]
pub fn decide(command: &Undelivered, connected: bool, now: Timestamp) -> Decision {
    let due = command.tried_at + config::DELIVERY_EVERY;
    if connected {
        Decision::Leave
    } else if now < due {
        Decision::Wait(due)
    } else if command.missed + 1 < config::MAX_DELIVERIES {
        Decision::Miss
    } else {
        Decision::GiveUp
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_deliveries_then_it_is_given_up() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let command =
            |missed| Undelivered { id: CommandId(uuid::Uuid::nil()), executor: ExecutorId(uuid::Uuid::nil()), missed, tried_at: at(1000) };
        assert_eq!(decide(&command(0), true, at(9999)), Decision::Leave);
        assert_eq!(decide(&command(0), false, at(1059)), Decision::Wait(at(1060)));
        assert_eq!(decide(&command(0), false, at(1060)), Decision::Miss);
        assert_eq!(decide(&command(8), false, at(1060)), Decision::Miss);
        assert_eq!(decide(&command(9), false, at(1060)), Decision::GiveUp);
    }

    #[test]
    fn every_status_reads_back() {
        for status in Status::ALL {
            assert_eq!(status.as_str().parse::<Status>().unwrap(), status);
        }
    }
}
