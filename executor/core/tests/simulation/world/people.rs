//! What the vendor's manager and the customer's person do.

use agent_api::command::CommandStatus;
use agent_api::digest::Sha256;
use agent_api::heartbeat::PlatformStatus;

use super::{AGAIN, Happening, World};
use crate::link::Frame;

impl World<'_> {
    pub(super) fn propose(&mut self) {
        let choice = usize::try_from(self.rng.below(self.bundles.len() as u64)).unwrap();
        self.manager.proposal = Some(choice);
        let damaged = !self.quiet && self.rng.percent(5);
        self.send_sync(choice, damaged);
        if damaged {
            self.send_sync(choice, false);
        }
    }

    pub(super) fn send_sync(&mut self, choice: usize, damaged: bool) {
        let command = self.manager.sync(&self.bundles[choice], damaged);
        self.say(|| format!("the manager sends command {}: bundle {choice}{}", command.sequence, if damaged { ", damaged" } else { "" }));
        self.totals.commands += 1;
        self.down(Frame::Command(command));
    }

    pub(super) fn on_up(&mut self, frame: Frame) {
        match frame {
            Frame::Ack(id) => {
                if let Some(sent) = self.manager.sent.get_mut(&id) {
                    sent.acknowledged = true;
                }
            }
            Frame::Result(result) => {
                self.say(|| format!("the manager hears of command {}: {}", result.id, result.result));
                self.totals.refusals += u64::from(result.result.contains("run: clctl platform approve"));
                self.totals.synced += u64::from(result.status == CommandStatus::Completed);
                let id = result.id;
                self.totals.dismissed += u64::from(self.disk.dismissed.contains(&id));
                self.manager.take_result(result, self.disk.dismissed.contains(&id));
                self.down(Frame::ResultAck(id));
            }
            Frame::Beat { status, pending, approved } => self.on_beat(status, pending.as_ref(), approved.as_ref()),
            Frame::Command(_) | Frame::ResultAck(_) => panic!("not a frame up"),
        }
    }

    /// An approval of the newest proposal makes the manager send the sync again.
    pub(super) fn on_beat(&mut self, status: PlatformStatus, pending: Option<&Sha256>, approved: Option<&Sha256>) {
        let Some(choice) = self.manager.proposal else { return };
        let newest = &self.bundles[choice].sha256;
        let ready = matches!(status, PlatformStatus::Approved | PlatformStatus::Failed);
        if ready && approved == Some(newest) && pending == Some(newest) && !self.manager.waits_for(newest) {
            self.send_sync(choice, false);
        }
    }

    pub(super) fn manager_tick(&mut self) {
        self.later(AGAIN, Happening::ManagerTick);
        let unacknowledged: Vec<_> =
            self.manager.sent.values().filter(|sent| !sent.acknowledged).map(|sent| sent.command.clone()).collect();
        for command in unacknowledged {
            self.down(Frame::Command(command));
        }
        if self.quiet {
            self.approve_pending(7_200_000);
        }
    }

    pub(super) fn approve_pending(&mut self, ttl_ms: u64) {
        let pending = self.disk.platform.pending.as_ref().map(|pending| pending.sha256.clone());
        let choice = self.bundles.iter().position(|made| Some(&made.sha256) == pending.as_ref());
        if let Some(choice) = choice {
            self.say(|| format!("a person approves bundle {choice} for {ttl_ms} ms"));
            let shown = self.at(0);
            self.cluster.approve(&self.bundles[choice], self.now, shown, ttl_ms);
            self.beat();
        }
    }
}
