//! What systemd, or whoever else started the daemon with a `NOTIFY_SOCKET`, is told: READY, STATUS, WATCHDOG, RELOADING, STOPPING.
//!
//! Where there is no such socket, nothing is said. Deliberately absent: any judgement of how the daemon is; [`alive`] passes on what
//! its main loop answers.

mod alive;
mod signals;

use sd_notify::NotifyState;
use tracing::warn;

pub(crate) use alive::prove_alive;
pub(crate) use signals::{GRACE, Signals, bounded};

/// The daemon is up: journal open, ports bound, the main loop running.
pub(crate) fn ready() {
    tell(&[NotifyState::Ready]);
}

/// The configuration is being read again; [`ready`] ends it.
pub(crate) fn reloading() {
    match NotifyState::monotonic_usec_now() {
        Ok(now) => tell(&[NotifyState::Reloading, now]),
        Err(_) => tell(&[NotifyState::Reloading]),
    }
}

/// The daemon ends.
pub(crate) fn stopping() {
    tell(&[NotifyState::Stopping, NotifyState::Status("stopping; what runs goes on after the next start")]);
}

fn tell(states: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        warn!("the service manager's socket does not take a notification: {error}");
    }
}
