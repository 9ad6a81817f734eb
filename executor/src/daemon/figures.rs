//! How the daemon is, in figures: for the service manager's status line, the health port and its metrics.

use std::path::Path;

use agent_api::command::CommandStatus;
use agent_api::heartbeat::{AccessInfo, PlatformStatus};
use executor_core::platform_status;

use super::Running;
use crate::channel::{Channel, Counters, Link};
use crate::heartbeat;

/// What a record needs at most, beside its bundle: 64 KiB. With less than that, nothing is promised.
const ROOM: u64 = 64 << 10;

/// The daemon at one moment. It holds no name, digest or address.
#[derive(Clone, Debug)]
pub(crate) struct Figures {
    /// Commands in the journal.
    pub(crate) commands: [(CommandStatus, u64); 4],
    /// Results that the manager has not stored.
    pub(crate) undelivered: u64,
    /// The channel.
    pub(crate) channel: ChannelFigures,
    /// Heartbeats handed to a channel that was up.
    pub(crate) heartbeats: u64,
    /// Where the platform update stands.
    pub(crate) platform: PlatformStatus,
    /// When the approval at hand ends.
    pub(crate) approval_expires_at: Option<jiff::Timestamp>,
    /// Live workload objects that are not as they were approved, where that is known.
    pub(crate) drift: Option<u64>,
    /// Access bundles.
    pub(crate) access: AccessInfo,
    /// Size of the journal's files.
    pub(crate) journal_bytes: u64,
    /// Whether the journal takes records.
    pub(crate) journal_writable: bool,
    /// Whether the last read of the cluster succeeded.
    pub(crate) cluster_reachable: bool,
    /// When the cluster was last read.
    pub(crate) observed_at: Option<jiff::Timestamp>,
    /// Start of the process.
    pub(crate) started_at: jiff::Timestamp,
}

/// The channel to the manager at one moment; counts since the daemon started.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ChannelFigures {
    /// Whether the manager has welcomed us on a link that is still up.
    pub(crate) connected: bool,
    /// Whether it does not take our certificate or key.
    pub(crate) credentials_refused: bool,
    /// Connections that the manager has welcomed.
    pub(crate) connections: u64,
    /// Attempts and connections that failed.
    pub(crate) failures: u64,
    /// Frames of a type that is not known here.
    pub(crate) frames_skipped: u64,
    /// Connections that we closed because of what was received.
    pub(crate) frames_refused: u64,
    /// Frames that were not queued, since the manager takes them too slowly.
    pub(crate) frames_dropped: u64,
    /// Results that the manager did not take.
    pub(crate) results_held: u64,
}

impl ChannelFigures {
    fn of(channel: &Channel) -> Self {
        let counters = channel.counters();
        let (connected, credentials_refused) = match channel.standing().link {
            Link::Up(_) => (true, false),
            Link::Down(_) => (false, false),
            Link::CredentialsRefused(_) => (false, true),
        };
        Self {
            connected,
            credentials_refused,
            connections: Counters::get(&counters.welcomed),
            failures: Counters::get(&counters.failed),
            frames_skipped: Counters::get(&counters.skipped),
            frames_refused: Counters::get(&counters.refused),
            frames_dropped: Counters::get(&counters.dropped),
            results_held: Counters::get(&counters.held),
        }
    }
}

impl Running {
    /// The daemon as of now.
    pub(crate) fn figures(&self) -> Figures {
        let now = jiff::Timestamp::now();
        let (seen, observed, journal) = (self.seen.borrow(), self.observed.borrow(), self.journal.condition());
        let count = |status| self.state.commands.values().filter(|entry| entry.status == status).count() as u64;
        Figures {
            commands: CommandStatus::ALL.map(|status| (status, count(status))),
            undelivered: self.state.undelivered().count() as u64,
            channel: ChannelFigures::of(&self.channel),
            heartbeats: self.heartbeats,
            platform: platform_status(&self.state, seen.as_ref(), now),
            approval_expires_at: seen.as_ref().map(|seen| seen.expires_at),
            drift: observed.drift(self.state.platform.applied.as_ref()).map(|drifted| drifted.count() as u64),
            access: AccessInfo {
                cluster: heartbeat::cluster_access(&observed, now),
                platform: heartbeat::platform_access(seen.as_ref(), now),
            },
            journal_bytes: journal.bytes,
            journal_writable: !self.journal.is_in_trouble() && has_room(self.fixed.config.state_dir()),
            cluster_reachable: observed.cluster.reachable,
            observed_at: observed.observed_at,
            started_at: self.fixed.started_at,
        }
    }
}

/// Whether a record fits into the folder's file system.
fn has_room(dir: &Path) -> bool {
    rustix::fs::statvfs(dir)
        .is_ok_and(|fs| !fs.f_flag.contains(rustix::fs::StatVfsMountFlags::RDONLY) && fs.f_bavail.saturating_mul(fs.f_frsize) >= ROOM)
}

impl Figures {
    /// One line for `systemctl status`.
    pub(crate) fn status_line(&self) -> String {
        let channel = match self.channel {
            ChannelFigures { connected: true, .. } => "up",
            ChannelFigures { credentials_refused: true, .. } => "down, the manager refuses the credentials: enrol again",
            ChannelFigures { .. } => "down",
        };
        let journal = if self.journal_writable { "" } else { "; the journal takes no records" };
        let cluster = if self.cluster_reachable { "reachable" } else { "not reachable" };
        format!("platform: {}; channel: {channel}; cluster: {cluster}{journal}", self.platform.as_str())
    }
}

#[cfg(test)]
impl Figures {
    /// A daemon in the middle of its life.
    pub(crate) fn sample() -> Self {
        use agent_api::heartbeat::AccessState;
        let at = |millisecond| jiff::Timestamp::from_millisecond(millisecond).unwrap();
        Self {
            commands: CommandStatus::ALL.map(|status| (status, if status == CommandStatus::Completed { 7 } else { 0 })),
            undelivered: 1,
            channel: ChannelFigures {
                connected: true,
                credentials_refused: false,
                connections: 3,
                failures: 2,
                frames_skipped: 2,
                frames_refused: 0,
                frames_dropped: 0,
                results_held: 0,
            },
            heartbeats: 90,
            platform: PlatformStatus::Synced,
            approval_expires_at: Some(at(1_700_000_000_500)),
            drift: Some(2),
            access: AccessInfo { cluster: AccessState::Ok, platform: AccessState::Expiring },
            journal_bytes: 4096,
            journal_writable: true,
            cluster_reachable: true,
            observed_at: Some(at(1_700_000_000_000)),
            started_at: at(1_600_000_000_000),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_status_line_says_platform_channel_and_cluster() {
        let check = |connected, credentials_refused, journal_writable, expected: &str| {
            let channel = ChannelFigures { connected, credentials_refused, ..Figures::sample().channel };
            assert_eq!(Figures { channel, journal_writable, ..Figures::sample() }.status_line(), expected);
        };
        check(true, false, true, "platform: synced; channel: up; cluster: reachable");
        check(false, false, false, "platform: synced; channel: down; cluster: reachable; the journal takes no records");
        let enrol = "platform: synced; channel: down, the manager refuses the credentials: enrol again; cluster: reachable";
        check(false, true, true, enrol);
    }
}
