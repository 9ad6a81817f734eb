//! The last progress of running commands. In memory only: it may be lost, and is worth nothing once the result is there.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use agent_api::frame::CommandProgress;
use agent_api::name::{CommandId, ExecutorId};
use jiff::Timestamp;

use crate::config;

/// A clonable handle.
#[derive(Clone, Debug, Default)]
pub struct Progress(Arc<Mutex<HashMap<ExecutorId, Vec<Noted>>>>);

/// Progress, and when it came.
#[derive(Clone, Debug)]
pub struct Noted {
    /// When.
    pub at: Timestamp,
    /// What.
    pub progress: CommandProgress,
}

impl Progress {
    /// Keeps the newest progress of a command; the oldest command goes when an executor reports too many.
    pub fn note(&self, executor: ExecutorId, progress: CommandProgress, now: Timestamp) {
        let mut all = self.lock();
        let noted = all.entry(executor).or_default();
        noted.retain(|other| other.progress.id != progress.id);
        if noted.len() >= config::MAX_PROGRESS {
            noted.remove(0);
        }
        noted.push(Noted { at: now, progress });
    }

    /// The command is over.
    pub fn forget(&self, executor: ExecutorId, id: CommandId) {
        let mut all = self.lock();
        if let Some(noted) = all.get_mut(&executor) {
            noted.retain(|other| other.progress.id != id);
        }
    }

    /// What is known of an executor's commands.
    #[must_use]
    pub fn of(&self, executor: ExecutorId) -> Vec<Noted> {
        self.lock().get(&executor).cloned().unwrap_or_default()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ExecutorId, Vec<Noted>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounded_and_the_newest_wins() {
        let (progress, executor) = (Progress::default(), ExecutorId(uuid::Uuid::nil()));
        let note = |n: u128, step| {
            let id = CommandId(uuid::Uuid::from_u128(n));
            let frame = CommandProgress { id, stage: "applying".into(), step, of: 9, object: None };
            progress.note(executor, frame, Timestamp::UNIX_EPOCH);
        };
        for n in 0..40 {
            note(n, 1);
        }
        note(39, 2);
        let kept = progress.of(executor);
        assert_eq!((kept.len(), kept.last().unwrap().progress.step), (config::MAX_PROGRESS, 2));
        progress.forget(executor, kept[0].progress.id);
        assert_eq!(progress.of(executor).len(), config::MAX_PROGRESS - 1);
    }
}
