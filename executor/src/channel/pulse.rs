//! Whether a link is alive, told by what is received: any bytes at all, and the answers to our own pings, which prove both ways.
//!
//! A large frame on a slow line is no silence: its bytes count as they come, and a ping may wait behind what was sent before it.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use agent_api::frame::on_the_way;
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
    /// When bytes were received.
    received: Instant,
    /// Whether they were part of a message that is not whole yet; a pong would have to wait for its end.
    partial: bool,
    /// When the oldest ping without an answer is overdue.
    overdue: Option<Instant>,
    /// Bytes that went out since the last answer.
    unconfirmed: usize,
}

impl Pulse {
    pub(super) fn new() -> Self {
        Self(Mutex::new(Signs { received: Instant::now(), partial: false, overdue: None, unconfirmed: 0 }))
    }

    /// Bytes were received.
    pub(super) fn received(&self) {
        self.with(|signs| (signs.received, signs.partial) = (Instant::now(), true));
    }

    /// A message is whole.
    pub(super) fn whole(&self) {
        self.with(|signs| signs.partial = false);
    }

    /// A message of so many bytes went out.
    pub(super) fn sent(&self, bytes: usize) {
        self.with(|signs| signs.unconfirmed += bytes);
    }

    /// A ping went out.
    pub(super) fn asked(&self) {
        self.with(|signs| {
            let patience = UNANSWERED + on_the_way(signs.unconfirmed);
            signs.overdue = signs.overdue.or(Some(Instant::now() + patience));
        });
    }

    /// A pong came.
    pub(super) fn answered(&self) {
        self.with(|signs| (signs.overdue, signs.unconfirmed) = (None, 0));
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
            match signs.overdue {
                Some(overdue) if signs.partial => silent.min(overdue.max(signs.received + UNANSWERED)),
                Some(overdue) => silent.min(overdue),
                None => silent,
            }
        })
    }

    fn with<T>(&self, act: impl FnOnce(&mut Signs) -> T) -> T {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
