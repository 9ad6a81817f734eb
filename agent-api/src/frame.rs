//! Frames of the command channel: JSON objects told apart by `type`, at most 4 MiB each, the same on every transport.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use crate::command::{Command, CommandStatus};
use crate::heartbeat::Heartbeat;
use crate::name::{CommandId, ExecutorId};
use crate::object::ObjectKey;

/// Largest frame: 4 MiB.
pub const MAX_BYTES: usize = 4 << 20;
/// The slowest line that is served, in bytes a second: the largest frame takes two minutes and eight seconds on it.
pub const SLOWEST: usize = 32 << 10;
/// WebSocket subprotocol.
pub const SUBPROTOCOL: &str = "clicklink.v1";
/// Version that [`Hello`] offers and [`Welcome`] chooses.
pub const PROTOCOL: u32 = 1;

/// How long so many bytes may be on their way, beside the time that any message is given.
#[must_use]
pub const fn on_the_way(bytes: usize) -> Duration {
    Duration::from_secs((bytes / SLOWEST) as u64)
}

/// From executor to manager.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Up {
    /// First frame of a connection.
    Hello(Hello),
    /// What was observed; its arrival is what the manager calls alive.
    Heartbeat(Box<Heartbeat>),
    /// The command is on disk.
    CommandAck(CommandAck),
    /// A running command; may be lost.
    CommandProgress(CommandProgress),
    /// How a command ended; repeated until acknowledged.
    CommandResult(CommandResult),
}

/// From manager to executor.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Down {
    /// Answer to `hello`.
    Welcome(Welcome),
    /// A command; repeated until acknowledged.
    Command(Command),
    /// The result is stored.
    ResultAck(ResultAck),
}

/// Who connects, and where its journal stands.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Hello {
    /// Executor.
    pub executor_id: ExecutorId,
    /// Uid of the `kube-system` Namespace, null while unknown.
    pub cluster_uid: Option<String>,
    /// clicklink's version.
    pub version: String,
    /// Protocol versions it speaks.
    pub protocols: Vec<u32>,
    /// Highest sequence journaled, 0 for none.
    pub last_sequence: u64,
    /// Commands whose result is not acknowledged yet.
    pub unacknowledged_results: Vec<CommandId>,
}

/// How the connection goes on.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Welcome {
    /// Chosen protocol version.
    pub protocol: u32,
    /// Seconds between heartbeats, 5–300.
    pub heartbeat_interval_s: u32,
    /// The manager's clock.
    pub server_time: jiff::Timestamp,
}

/// See [`Up::CommandAck`].
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct CommandAck {
    /// Command.
    pub id: CommandId,
}

/// See [`Up::CommandProgress`].
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct CommandProgress {
    /// Command.
    pub id: CommandId,
    /// Stage, e.g. `checking`, `rendering`, `applying`, `waiting`.
    pub stage: String,
    /// Step, from 1.
    pub step: u32,
    /// Of how many.
    pub of: u32,
    /// What it is about, for a person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object: Option<String>,
}

/// See [`Up::CommandResult`].
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct CommandResult {
    /// Command.
    pub id: CommandId,
    /// `completed` or `failed`.
    pub status: CommandStatus,
    /// How it ended, for a person.
    pub result: String,
    /// Each object that was written.
    #[serde(default)]
    pub objects: Vec<ObjectOutcome>,
    /// Why it ended without success, as a stable name that has a page in `docs/errors/`; absent from versions before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
}

/// What became of one object.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ObjectOutcome {
    /// Object.
    #[serde(flatten)]
    pub key: ObjectKey,
    /// Outcome.
    pub outcome: Outcome,
}

/// What a server-side apply did.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// It was not there.
    Created,
    /// It changed.
    Changed,
    /// It was so already.
    Unchanged,
}

/// See [`Down::ResultAck`].
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ResultAck {
    /// Command.
    pub id: CommandId,
}

/// Longest time that an answer to a poll is held back.
pub const POLL_HOLD_S: u32 = 25;

/// Frames up, of a poll: `POST` with this body. The first request of a session brings `hello` and nothing before it.
///
/// What an answer brought that was lost comes again by its nature: commands until acknowledged, acknowledgements of results with the
/// repeated result. A later request of a session ends an earlier one that is still held.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct PollRequest {
    /// Chosen by the executor, new with each `hello`.
    pub session: Uuid,
    /// Counts the session's requests from 1; a request that comes late is not taken.
    pub sequence: u64,
    /// How long the answer may be held back, in seconds; at most [`POLL_HOLD_S`].
    pub wait_s: u32,
    /// Each an [`Up`], or of a type of a later version; 4 MiB in all.
    pub frames: Vec<Value>,
}

/// Frames down, of a poll.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct PollResponse {
    /// Each a [`Down`], or of a type of a later version.
    pub frames: Vec<Value>,
}
