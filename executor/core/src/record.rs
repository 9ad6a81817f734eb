//! What is durable: one record a transition, written before any of its effects.

use std::sync::Arc;

use agent_api::command::Command;
use agent_api::digest::Sha256;
use agent_api::frame::CommandResult;
use agent_api::name::{CommandId, InstallId};
use agent_api::object::ObjectKey;
use serde::{Deserialize, Serialize};

use crate::state::{Failure, Pending};

/// A durable fact.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "record", rename_all = "snake_case")]
pub enum Record {
    /// A command was taken; with it, perhaps, a newer bundle was staged.
    Accepted {
        /// The command.
        command: Command,
        /// The bundle that is pending from now on.
        staged: Option<Arc<Pending>>,
        /// When.
        at: jiff::Timestamp,
    },
    /// A command began.
    Started {
        /// Command.
        id: CommandId,
    },
    /// A sync passed its checks: an attempt under a valid approval.
    Attempted {
        /// Command.
        id: CommandId,
        /// Bundle.
        sha256: Sha256,
        /// The installation that was approved; Jobs of any other are not asked for again.
        install_id: InstallId,
    },
    /// A Job completed and is done for this installation.
    JobDone {
        /// Installation.
        install_id: InstallId,
        /// The Job; its name holds the digest of its content.
        job: ObjectKey,
    },
    /// A command ended.
    Finished {
        /// What is sent to the manager.
        result: CommandResult,
        /// When.
        at: jiff::Timestamp,
        /// What it means for the platform.
        outcome: Outcome,
    },
    /// The manager has stored a result.
    Acknowledged {
        /// Command.
        id: CommandId,
    },
    /// Ended and acknowledged commands went beyond the retention.
    Forgotten {
        /// Commands.
        commands: Vec<CommandId>,
        /// The highest of their sequences.
        through: u64,
    },
    /// A command was answered without being taken: it may be one that is forgotten.
    Dismissed {
        /// The command.
        command: Command,
        /// What is sent to the manager.
        result: CommandResult,
        /// When.
        at: jiff::Timestamp,
    },
}

/// What a command's end means for the platform.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Nothing, e.g. a damaged command.
    None,
    /// The bundle is applied whole.
    Synced(Sha256),
    /// A person has to approve first; this is no failure of the bundle.
    Refused,
    /// The bundle failed.
    Failed(Failure),
}

/// How far a running sync is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// The approval is checked.
    Checking,
    /// The charts are rendered.
    Rendering,
    /// The checks are passed, components are applied.
    Applying,
}

impl Stage {
    /// As in `command_progress` and `commands list`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Checking => "checking",
            Self::Rendering => "rendering",
            Self::Applying => "applying",
        }
    }
}
