//! A journal whose content survives crashes, which may be full, and which may have kept what it said it could not write.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Deref;

use agent_api::command::CommandStatus;
use agent_api::name::{CommandId, InstallId};
use agent_api::object::ObjectKey;
use executor_core::{Entry, Journal, PlatformRecord, Record, Site, State};

/// The file.
#[derive(Default)]
pub(crate) struct Disk {
    content: Content,
    /// What the next start may find instead: a record that failed and was not overwritten since.
    trace: Option<Content>,
    pub(crate) full: bool,
    /// Whether what fails is on the disk all the same, as after an `fsync` that failed.
    pub(crate) leaves_traces: bool,
}

/// What is in it, and what ever was.
#[derive(Clone, Default)]
pub(crate) struct Content {
    pub(crate) platform: PlatformRecord,
    pub(crate) commands: BTreeMap<CommandId, Entry>,
    jobs_done: BTreeSet<(InstallId, ObjectKey)>,
    /// Commands that were ever accepted, forgotten ones included: none of them is accepted again.
    pub(crate) accepted: BTreeSet<CommandId>,
    /// Commands that were answered without being taken.
    pub(crate) dismissed: BTreeSet<CommandId>,
}

impl Deref for Disk {
    type Target = Content;

    fn deref(&self) -> &Content {
        &self.content
    }
}

impl Disk {
    /// What a daemon finds at its start.
    pub(crate) fn load(&self, site: Site) -> State {
        let mut state = State::new(site);
        state.platform = self.platform.clone();
        state.commands = self.commands.clone();
        state.jobs_done = self.jobs_done.clone();
        state
    }

    /// Decides what became of a record that failed; says whether it is there after all.
    pub(crate) fn settle(&mut self, resurfaces: bool) -> bool {
        match self.trace.take() {
            Some(trace) if resurfaces => {
                self.content = trace;
                true
            }
            Some(_) | None => false,
        }
    }
}

impl Content {
    fn entry(&mut self, id: CommandId) -> &mut Entry {
        self.commands.get_mut(&id).unwrap_or_else(|| panic!("a record about command {id}, which is not there"))
    }

    fn apply(&mut self, record: &Record, after: &PlatformRecord) {
        match record {
            Record::Accepted { command, at, .. } => {
                let new = self.accepted.insert(command.id);
                assert!(new, "command {} accepted twice", command.id);
                self.commands.insert(command.id, Entry::new(command.clone(), *at));
            }
            Record::Started { id } => {
                let entry = self.entry(*id);
                assert_eq!(entry.status, CommandStatus::Pending, "only a pending command begins");
                entry.status = CommandStatus::Running;
            }
            Record::Attempted { id, sha256, install_id } => {
                let entry = self.entry(*id);
                assert_eq!(
                    (entry.status, entry.sha256.as_ref()),
                    (CommandStatus::Running, Some(sha256)),
                    "an attempt is of a running command"
                );
                self.jobs_done.retain(|(installation, _)| installation == install_id);
            }
            Record::JobDone { install_id, job } => drop(self.jobs_done.insert((*install_id, job.clone()))),
            Record::Finished { result, at, .. } => {
                let entry = self.entry(result.id);
                assert!(entry.result.is_none(), "command {} ends twice", result.id);
                assert!(matches!(result.status, CommandStatus::Completed | CommandStatus::Failed));
                assert!(entry.status == CommandStatus::Running || result.status == CommandStatus::Failed, "what completes has run");
                entry.status = result.status;
                entry.finished_at = Some(*at);
                entry.result = Some(result.clone());
                entry.command.payload = serde_json::Value::Null;
            }
            Record::Acknowledged { id } => {
                let entry = self.entry(*id);
                assert!(entry.result.is_some(), "only a result is acknowledged");
                entry.acknowledged = true;
            }
            Record::Forgotten { commands, through } => {
                for id in commands {
                    let entry = self.commands.remove(id).unwrap_or_else(|| panic!("command {id} is forgotten twice"));
                    assert!(entry.result.is_some() && entry.acknowledged, "forgotten before its result was told");
                    assert!(entry.command.sequence <= *through && *through <= after.forgotten_through, "nothing remains of {id}");
                }
            }
            Record::Dismissed { command, result, at } => {
                self.dismissed.insert(command.id);
                let new = self.commands.insert(command.id, Entry::dismissed(command.clone(), result.clone(), *at));
                assert!(new.is_none(), "a command that is known is dismissed");
            }
        }
        self.platform = after.clone();
    }
}

impl Journal for Disk {
    type Error = ();

    async fn append(&mut self, record: &Record, after: &PlatformRecord) -> Result<(), ()> {
        if self.full && !self.leaves_traces {
            return Err(());
        }
        if self.full {
            let mut content = self.content.clone();
            content.apply(record, after);
            self.trace = Some(content);
            return Err(());
        }
        self.content.apply(record, after);
        self.trace = None;
        Ok(())
    }
}
