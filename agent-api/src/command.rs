//! Commands: what the manager asks for, and how the executor's journal shows it.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::digest::Sha256;
use crate::name::CommandId;

/// A command on its way to the executor. It may arrive more than once; it takes effect once.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Command {
    /// Identity.
    pub id: CommandId,
    /// Position in the manager's order for this executor, from 1, growing.
    pub sequence: u64,
    /// Action, e.g. `sync_platform`.
    pub action: String,
    /// `platform` or `instance/<name>`; commands on one target run in order.
    pub target: String,
    /// Not begun after this moment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<jiff::Timestamp>,
    /// Content, by action: [`SyncPlatform`] for `sync_platform`.
    pub payload: Value,
}

/// All actions that there are.
pub const ACTIONS: [&str; 9] = [SYNC_PLATFORM, "create_instance", "scale", "start", "stop", "restart", "backup", "delete_backup", "delete"];
/// Action that proposes, and after approval applies, a bundle.
pub const SYNC_PLATFORM: &str = "sync_platform";
/// Target of [`SYNC_PLATFORM`].
pub const TARGET_PLATFORM: &str = "platform";

/// Payload of `sync_platform`, whole each time.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct SyncPlatform {
    /// Identity of the bundle.
    pub sha256: Sha256,
    /// Its exact text.
    pub manifest: String,
}

/// Where a command stands.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "lowercase")]
pub enum CommandStatus {
    /// Journaled, not begun.
    Pending,
    /// Begun.
    Running,
    /// Done.
    Completed,
    /// Ended without success; the result says why.
    Failed,
}

impl CommandStatus {
    /// All, in the order of a command's life.
    pub const ALL: [Self; 4] = [Self::Pending, Self::Running, Self::Completed, Self::Failed];

    /// As on the wire and in `--status`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Running => "running",
            Self::Completed => "completed",
            Self::Failed => "failed",
        }
    }
}

/// Who asked.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "lowercase")]
pub enum Origin {
    /// The manager, over the channel.
    Cloud,
    /// A person, at the local API.
    Local,
}

/// A command as the local API shows it (`GET /v1/commands`).
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CommandView {
    /// Identity.
    pub id: CommandId,
    /// Action.
    pub action: String,
    /// Target.
    pub target: String,
    /// Bundle that a `sync_platform` carries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<Sha256>,
    /// Where it stands.
    pub status: CommandStatus,
    /// Stage that was last reached, e.g. `applying`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stage: Option<String>,
    /// Who asked.
    pub origin: Origin,
    /// When it was journaled.
    pub created_at: jiff::Timestamp,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<jiff::Timestamp>,
    /// How it ended, for a person; a refusal ends with the command to run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<String>,
    /// Stable name of why it ended without success; it has a page in `docs/errors/`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
}
