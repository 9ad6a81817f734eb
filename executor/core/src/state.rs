//! The executor's state: what the journal holds, and the sync that runs.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use agent_api::approval::Versions;
use agent_api::command::{Command, CommandStatus};
use agent_api::digest::Sha256;
use agent_api::frame::{CommandProgress, CommandResult};
use agent_api::name::{CommandId, InstallId};
use agent_api::object::ObjectKey;
use serde::{Deserialize, Serialize};

use crate::record::{Outcome, Record, Stage};
use crate::retention::Retention;
use crate::sync::Sync;

/// Where this executor runs; fixed while it lives.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Site {
    /// In a pod: the connector's namespace, which the hint names.
    pub connector_namespace: Option<String>,
    /// Versions that render here.
    pub versions: Versions,
    /// How long ended commands are kept.
    pub retention: Retention,
}

/// The whole state.
#[derive(Clone, Debug, Default)]
pub struct State {
    /// Where.
    pub site: Site,
    /// The platform update.
    pub platform: PlatformRecord,
    /// Commands by id (UUIDv7: by age).
    pub commands: BTreeMap<CommandId, Entry>,
    /// Jobs that completed. Those of other installations go when a sync of this one passes its checks: an installation's id is never
    /// given again.
    pub jobs_done: BTreeSet<(InstallId, ObjectKey)>,
    /// The sync that runs; not durable, begun anew after a restart.
    pub(crate) sync: Option<Sync>,
}

/// What is durable about the platform update; cheap to copy.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlatformRecord {
    /// Highest sequence journaled.
    pub last_sequence: u64,
    /// Highest sequence forgotten; 0 while nothing is.
    #[serde(default)]
    pub forgotten_through: u64,
    /// The staged bundle.
    pub pending: Option<Arc<Pending>>,
    /// The bundle that was last applied whole.
    pub applied: Option<Sha256>,
    /// The installation of the last sync that passed its checks.
    #[serde(default)]
    pub installation: Option<InstallId>,
    /// How the last sync failed, unless it was for want of approval.
    pub failure: Option<Failure>,
    /// How the last sync ended, for a person.
    pub message: Option<String>,
    /// Syncs of the pending bundle that began under an approval.
    pub attempts: u32,
}

/// A bundle that waits for approval, or was last approved.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pending {
    /// Identity.
    pub sha256: Sha256,
    /// Exact text.
    pub manifest: String,
    /// When it was staged.
    pub received_at: jiff::Timestamp,
    /// Sequence of the newest command that carried it.
    pub sequence: u64,
}

/// A failed sync.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// Bundle.
    pub sha256: Sha256,
    /// Why.
    pub message: String,
}

/// A command in the journal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// The command; its payload is dropped (null) once it has ended.
    pub command: Command,
    /// The bundle of a `sync_platform`.
    pub sha256: Option<Sha256>,
    /// Where it stands.
    pub status: CommandStatus,
    /// When it was taken.
    pub created_at: jiff::Timestamp,
    /// When it ended.
    pub finished_at: Option<jiff::Timestamp>,
    /// How it ended.
    pub result: Option<CommandResult>,
    /// Whether the manager has stored the result.
    pub acknowledged: bool,
}

impl State {
    /// An executor that has not seen anything yet.
    #[must_use]
    pub fn new(site: Site) -> Self {
        Self { site, ..Self::default() }
    }

    /// The stage of a command that runs.
    #[must_use]
    pub fn stage(&self, id: CommandId) -> Option<Stage> {
        self.sync.as_ref().filter(|sync| sync.id == id).map(Sync::stage)
    }

    /// How far the sync that runs is; the object is the component that is applied.
    #[must_use]
    pub fn sync_progress(&self) -> Option<CommandProgress> {
        self.sync.as_ref().map(Sync::standing)
    }

    /// Ended commands whose result the manager has not stored, oldest first.
    pub fn undelivered(&self) -> impl Iterator<Item = CommandId> + '_ {
        self.commands.iter().filter(|(_, entry)| entry.result.is_some() && !entry.acknowledged).map(|(id, _)| *id)
    }

    /// The command that runs, or else the next to begin: in the manager's order.
    pub(crate) fn next(&self) -> Option<(&CommandId, &Entry)> {
        let open =
            |status| self.commands.iter().filter(move |(_, entry)| entry.status == status).min_by_key(|(_, entry)| entry.command.sequence);
        open(CommandStatus::Running).or_else(|| open(CommandStatus::Pending))
    }

    /// Lets a durable record take effect.
    pub(crate) fn apply(&mut self, record: &Record) {
        self.platform.apply(record);
        match record {
            Record::Accepted { command, at, .. } => drop(self.commands.insert(command.id, Entry::new(command.clone(), *at))),
            Record::Started { id } => self.with(*id, |entry| entry.status = CommandStatus::Running),
            Record::JobDone { install_id, job } => drop(self.jobs_done.insert((*install_id, job.clone()))),
            Record::Finished { result, at, .. } => self.with(result.id, |entry| {
                entry.status = result.status;
                entry.finished_at = Some(*at);
                entry.result = Some(result.clone());
                entry.command.payload = serde_json::Value::Null;
            }),
            Record::Acknowledged { id } => self.with(*id, |entry| entry.acknowledged = true),
            Record::Attempted { install_id, .. } => self.jobs_done.retain(|(installation, _)| installation == install_id),
            Record::Forgotten { commands, .. } => commands.iter().for_each(|id| drop(self.commands.remove(id))),
            Record::Dismissed { command, result, at } => {
                drop(self.commands.insert(command.id, Entry::dismissed(command.clone(), result.clone(), *at)));
            }
        }
    }

    fn with(&mut self, id: CommandId, change: impl FnOnce(&mut Entry)) {
        if let Some(entry) = self.commands.get_mut(&id) {
            change(entry);
        }
    }
}

impl Entry {
    /// A command that was just taken.
    #[must_use]
    pub fn new(command: Command, at: jiff::Timestamp) -> Self {
        let sha256 = command.payload.get("sha256").and_then(serde_json::Value::as_str).and_then(|text| text.parse().ok());
        Self { command, sha256, status: CommandStatus::Pending, created_at: at, finished_at: None, result: None, acknowledged: false }
    }

    /// A command that was answered at once.
    #[must_use]
    pub fn dismissed(command: Command, result: CommandResult, at: jiff::Timestamp) -> Self {
        let mut entry = Self::new(command, at);
        entry.command.payload = serde_json::Value::Null;
        Self { status: result.status, finished_at: Some(at), result: Some(result), ..entry }
    }
}

impl PlatformRecord {
    /// Lets a durable record take effect.
    pub(crate) fn apply(&mut self, record: &Record) {
        match record {
            Record::Accepted { command, staged, .. } => {
                self.last_sequence = self.last_sequence.max(command.sequence);
                if let Some(staged) = staged {
                    self.stage(staged);
                }
            }
            Record::Attempted { sha256, install_id, .. } => {
                if self.installation.replace(*install_id).is_some_and(|former| former != *install_id) {
                    // What was applied before a reset is not there any more.
                    self.applied = None;
                }
                if self.pending.as_ref().is_some_and(|pending| pending.sha256 == *sha256) {
                    self.attempts += 1;
                }
            }
            Record::Finished { result, outcome, .. } => self.finish(&result.result, outcome),
            Record::Forgotten { through, .. } => self.forgotten_through = self.forgotten_through.max(*through),
            Record::Started { .. } | Record::JobDone { .. } | Record::Acknowledged { .. } | Record::Dismissed { .. } => {}
        }
    }

    fn stage(&mut self, staged: &Arc<Pending>) {
        if self.pending.as_ref().is_none_or(|pending| pending.sha256 != staged.sha256) {
            self.attempts = 0;
            self.message = None;
        }
        self.pending = Some(Arc::clone(staged));
    }

    fn finish(&mut self, message: &str, outcome: &Outcome) {
        match outcome {
            Outcome::None => return,
            Outcome::Synced(sha256) => {
                self.applied = Some(sha256.clone());
                self.failure = None;
            }
            Outcome::Refused => {}
            Outcome::Failed(failure) => self.failure = Some(failure.clone()),
        }
        self.message = Some(message.to_owned());
    }
}
