//! What the channel has seen since the daemon started, in figures. Only counts: what they mean is shown elsewhere.

use std::sync::atomic::{AtomicU64, Ordering};

/// Grows only; read at any time.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    /// Connections and poll sessions that were welcomed.
    pub(crate) welcomed: AtomicU64,
    /// Attempts and connections that failed.
    pub(crate) failed: AtomicU64,
    /// Frames received and passed on.
    pub(crate) received: AtomicU64,
    /// Frames of a type that is not known here.
    pub(crate) skipped: AtomicU64,
    /// Connections that we closed because of what was received: too large, not readable, binary, out of order.
    pub(crate) refused: AtomicU64,
    /// Frames that were not queued because the manager takes them too slowly.
    pub(crate) dropped: AtomicU64,
    /// Results that the manager did not take and that others went past.
    pub(crate) held: AtomicU64,
}

impl Counters {
    /// Counts one.
    pub(super) fn add(counter: &AtomicU64) {
        counter.fetch_add(1, Ordering::Relaxed);
    }

    /// Reads one.
    pub(crate) fn get(counter: &AtomicU64) -> u64 {
        counter.load(Ordering::Relaxed)
    }
}
