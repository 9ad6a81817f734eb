//! Which command goes out next to one executor: in order, what did not go out on this connection, and what went out too long ago.

use std::collections::HashMap;

use agent_api::command::Command;
use agent_api::name::{CommandId, ExecutorId};
use jiff::Timestamp;
use tokio::time::Instant;

use crate::config;
use crate::store::{Store, StoreError};

/// Commands that went out on a connection and are not acknowledged, and when.
#[derive(Debug)]
pub struct Deliveries {
    executor: ExecutorId,
    sent: HashMap<CommandId, Instant>,
}

impl Deliveries {
    /// Nothing went out yet.
    #[must_use]
    pub fn new(executor: ExecutorId) -> Self {
        Self { executor, sent: HashMap::new() }
    }

    /// The next command, noted as sent; none when all that can go out now has gone.
    ///
    /// # Errors
    /// The store.
    pub async fn next(&mut self, store: &Store) -> Result<Option<Command>, StoreError> {
        let queued = store.queued(self.executor).await?;
        self.sent.retain(|id, _| queued.contains(id));
        for id in queued {
            if self.sent.get(&id).is_some_and(|at| at.elapsed() < config::RESEND_AFTER) {
                continue;
            }
            if let Some(command) = store.send(id, Timestamp::now()).await? {
                tracing::info!(executor = %self.executor, command = %id, sequence = command.sequence, "sent");
                self.sent.insert(id, Instant::now());
                return Ok(Some(command));
            }
        }
        Ok(None)
    }
}
