//! The link between executor and manager: it may lose, double, delay and reorder frames.

use agent_api::command::Command;
use agent_api::digest::Sha256;
use agent_api::frame::CommandResult;
use agent_api::heartbeat::PlatformStatus;
use agent_api::name::CommandId;

use crate::rng::Rng;

/// A frame under way.
#[derive(Clone, Debug)]
pub(crate) enum Frame {
    Command(Command),
    ResultAck(CommandId),
    Ack(CommandId),
    Result(CommandResult),
    Beat { status: PlatformStatus, pending: Option<Sha256>, approved: Option<Sha256> },
}

/// How bad the link is, in hundredths.
pub(crate) struct Link {
    pub(crate) lose: u64,
    pub(crate) double: u64,
    /// Longest delay, in milliseconds.
    pub(crate) delay: u64,
}

impl Link {
    /// When the copies of a frame arrive, from now; none if it is lost.
    pub(crate) fn arrivals(&self, rng: &mut Rng) -> Vec<u64> {
        let mut arrivals = Vec::new();
        if !rng.percent(self.lose) {
            arrivals.push(1 + rng.below(self.delay));
        }
        if rng.percent(self.double) {
            arrivals.push(1 + rng.below(self.delay * 3));
        }
        arrivals
    }
}
