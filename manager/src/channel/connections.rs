//! Who is connected now: one connection for each executor, the newest.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use agent_api::name::ExecutorId;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// A clonable handle.
#[derive(Clone, Debug, Default)]
pub struct Connections(Arc<Mutex<Inner>>);

#[derive(Debug, Default)]
struct Inner {
    next: u64,
    by_executor: HashMap<ExecutorId, Entry>,
}

#[derive(Debug)]
struct Entry {
    number: u64,
    wake: Arc<Notify>,
    replaced: CancellationToken,
    revoked: CancellationToken,
}

/// A connection's place in the list; leaving scope takes it out.
#[derive(Debug)]
pub struct Registered {
    connections: Connections,
    executor: ExecutorId,
    number: u64,
    /// Told when there may be something to deliver.
    pub wake: Arc<Notify>,
    /// Cancelled when a newer connection of the same executor came.
    pub replaced: CancellationToken,
    /// Cancelled when the executor was revoked.
    pub revoked: CancellationToken,
}

impl Connections {
    /// Puts a connection in place of the executor's former one.
    #[must_use]
    pub fn register(&self, executor: ExecutorId) -> Registered {
        let mut inner = self.lock();
        inner.next += 1;
        let (number, wake) = (inner.next, Arc::new(Notify::new()));
        let (replaced, revoked) = (CancellationToken::new(), CancellationToken::new());
        let entry = Entry { number, wake: Arc::clone(&wake), replaced: replaced.clone(), revoked: revoked.clone() };
        if let Some(former) = inner.by_executor.insert(executor, entry) {
            former.replaced.cancel();
        }
        Registered { connections: self.clone(), executor, number, wake, replaced, revoked }
    }

    /// Whether an executor is connected.
    #[must_use]
    pub fn has(&self, executor: ExecutorId) -> bool {
        self.lock().by_executor.contains_key(&executor)
    }

    /// How many are connected.
    #[must_use]
    pub fn count(&self) -> usize {
        self.lock().by_executor.len()
    }

    /// Ends a connection, if there is one, of an executor that was revoked.
    pub fn revoke(&self, executor: ExecutorId) {
        if let Some(entry) = self.lock().by_executor.get(&executor) {
            entry.revoked.cancel();
        }
    }

    /// Tells a connection, if there is one, to look for commands.
    pub fn wake(&self, executor: ExecutorId) {
        if let Some(entry) = self.lock().by_executor.get(&executor) {
            entry.wake.notify_one();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        let mut inner = self.connections.lock();
        if inner.by_executor.get(&self.executor).is_some_and(|entry| entry.number == self.number) {
            inner.by_executor.remove(&self.executor);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_connection_stays() {
        let connections = Connections::default();
        let id = ExecutorId(uuid::Uuid::nil());
        let first = connections.register(id);
        let second = connections.register(id);
        assert!(first.replaced.is_cancelled() && !second.replaced.is_cancelled());
        drop(first);
        assert!(connections.has(id));
        connections.revoke(id);
        assert!(second.revoked.is_cancelled() && connections.count() == 1);
        drop(second);
        assert!(!connections.has(id));
    }
}
