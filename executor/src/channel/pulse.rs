//! Whether a link is alive, told by what is received: any data at all, and the answers to our own pings, which prove both ways.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

/// How often we ask for a sign of life.
pub(super) const PING: Duration = Duration::from_secs(10);
/// A link on which nothing was received for so long is dead.
pub(super) const DEAD: Duration = Duration::from_secs(30);
/// So long a ping may stay unanswered. With the longest wait for the next ping it is [`DEAD`], also where only our own direction is
/// swallowed.
const UNANSWERED: Duration = Duration::from_secs(20);

/// The signs of life of one link.
#[derive(Debug)]
pub(super) struct Pulse(Mutex<Signs>);

#[derive(Clone, Copy, Debug)]
struct Signs {
    received: Instant,
    /// The oldest ping without an answer.
    asked: Option<Instant>,
}

impl Pulse {
    pub(super) fn new() -> Self {
        Self(Mutex::new(Signs { received: Instant::now(), asked: None }))
    }

    /// Something was received.
    pub(super) fn received(&self) {
        self.with(|signs| signs.received = Instant::now());
    }

    /// A ping went out.
    pub(super) fn asked(&self) {
        self.with(|signs| signs.asked = signs.asked.or(Some(Instant::now())));
    }

    /// A pong came.
    pub(super) fn answered(&self) {
        self.with(|signs| signs.asked = None);
    }

    /// Returns when the link is dead.
    pub(super) async fn stopped(&self) {
        loop {
            let (now, end) = (Instant::now(), self.end());
            if now >= end {
                return;
            }
            // A ping that goes out meanwhile cannot be overdue before this.
            sleep_until(end.min(now + UNANSWERED)).await;
        }
    }

    fn end(&self) -> Instant {
        self.with(|signs| {
            let silent = signs.received + DEAD;
            signs.asked.map_or(silent, |asked| silent.min(asked + UNANSWERED))
        })
    }

    fn with<T>(&self, act: impl FnOnce(&mut Signs) -> T) -> T {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
