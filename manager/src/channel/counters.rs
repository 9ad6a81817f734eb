//! Frames that were not taken, since this process started: a rise says that executors and manager do not understand each other.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A clonable handle.
#[derive(Clone, Debug, Default)]
pub struct Counters(Arc<Mutex<Counts>>);

/// The counts.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// Frames that ended their connection, by its close code.
    pub refused: BTreeMap<u16, u64>,
    /// Frames of an unknown type, which were skipped.
    pub skipped: u64,
}

impl Counters {
    /// A frame ends its connection with this code.
    pub fn refuse(&self, code: u16) {
        *self.lock().refused.entry(code).or_default() += 1;
    }

    /// A frame's type is not known.
    pub fn skip(&self) {
        self.lock().skipped += 1;
    }

    /// As of now.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, Counts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
