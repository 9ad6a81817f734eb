//! A journal whose content survives crashes and which may be full.

use std::collections::{BTreeMap, BTreeSet};

use agent_api::command::CommandStatus;
use agent_api::name::{CommandId, InstallId};
use agent_api::object::ObjectKey;
use executor_core::{Entry, Journal, PlatformRecord, Record, Site, State};

/// What is on the disk.
#[derive(Default)]
pub(crate) struct Disk {
    pub(crate) platform: PlatformRecord,
    pub(crate) commands: BTreeMap<CommandId, Entry>,
    jobs_done: BTreeSet<(InstallId, ObjectKey)>,
    pub(crate) full: bool,
}

impl Disk {
    /// What a daemon finds at its start.
    pub(crate) fn load(&self) -> State {
        let mut state = State::new(Site::default());
        state.platform = self.platform.clone();
        state.commands = self.commands.clone();
        state.jobs_done = self.jobs_done.clone();
        state
    }

    fn entry(&mut self, id: CommandId) -> &mut Entry {
        self.commands.get_mut(&id).unwrap_or_else(|| panic!("a record about command {id}, which was never accepted"))
    }
}

impl Journal for Disk {
    type Error = ();

    async fn append(&mut self, record: &Record, after: &PlatformRecord) -> Result<(), ()> {
        if self.full {
            return Err(());
        }
        match record {
            Record::Accepted { command, at, .. } => {
                let new = self.commands.insert(command.id, Entry::new(command.clone(), *at));
                assert!(new.is_none(), "command {} accepted twice", command.id);
            }
            Record::Started { id } => {
                let entry = self.entry(*id);
                assert_eq!(entry.status, CommandStatus::Pending, "only a pending command begins");
                entry.status = CommandStatus::Running;
            }
            Record::Attempted { id, sha256 } => {
                let entry = self.entry(*id);
                assert_eq!(
                    (entry.status, entry.sha256.as_ref()),
                    (CommandStatus::Running, Some(sha256)),
                    "an attempt is of a running command"
                );
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
        }
        self.platform = after.clone();
        Ok(())
    }
}
