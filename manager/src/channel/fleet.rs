//! The one task that decides what is sent: it asks the rules at each event and when a time they named has come.
//!
//! A clonable handle, a private request, and a task that owns the rest; decisions of one manager are made one after the other.

use std::collections::HashMap;
use std::time::Duration;

use agent_api::name::CommandId;
use jiff::Timestamp;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use super::connections::Connections;
use crate::config;
use crate::domain::{delivery, resend};
use crate::store::command::NewSync;
use crate::store::{Store, StoreError};

/// The handle.
#[derive(Clone, Debug)]
pub struct Fleet(mpsc::Sender<Request>);

#[derive(Debug)]
struct Request {
    environment: String,
    done: Option<oneshot::Sender<Result<Vec<CommandId>, StoreError>>>,
}

/// Why no decision was made.
#[derive(Debug, thiserror::Error)]
pub enum FleetError {
    /// The server is stopping.
    #[error("the server is stopping")]
    Gone,
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Fleet {
    /// Decides for an environment now: the commands that were queued.
    ///
    /// # Errors
    /// See [`FleetError`].
    pub async fn decide(&self, environment: &str) -> Result<Vec<CommandId>, FleetError> {
        let (done, answer) = oneshot::channel();
        let request = Request { environment: environment.to_owned(), done: Some(done) };
        self.0.send(request).await.map_err(|_| FleetError::Gone)?;
        Ok(answer.await.map_err(|_| FleetError::Gone)??)
    }

    /// Decides for an environment soon.
    pub async fn poke(&self, environment: String) {
        // Gone means that the server stops; the next start decides for every environment.
        let _ = self.0.send(Request { environment, done: None }).await;
    }

    /// The handle, and the task to run until `stop`.
    pub fn new(store: Store, connections: Connections, stop: CancellationToken) -> (Self, impl Future<Output = ()>) {
        let (sender, requests) = mpsc::channel(config::FLEET_QUEUE);
        let task = Task { store, connections, due: HashMap::new() };
        (Self(sender), task.run(requests, stop))
    }
}

struct Task {
    store: Store,
    connections: Connections,
    /// When an environment is to be decided again without an event.
    due: HashMap<String, Timestamp>,
}

impl Task {
    async fn run(mut self, mut requests: mpsc::Receiver<Request>, stop: CancellationToken) {
        match self.store.environments().await {
            Ok(all) => self.due = all.into_iter().map(|environment| (environment.name.to_string(), Timestamp::now())).collect(),
            Err(error) => tracing::error!(error = %agent_api::chain::chain(&error), "environments could not be listed"),
        }
        loop {
            tokio::select! {
                request = requests.recv() => match request {
                    Some(request) => self.answer(request).await,
                    None => return,
                },
                environment = next_due(&self.due) => {
                    let _ = self.decide_and_note(&environment).await;
                }
                () = stop.cancelled() => return,
            }
        }
    }

    async fn answer(&mut self, request: Request) {
        let decided = self.decide_and_note(&request.environment).await;
        if let Some(done) = request.done {
            // Who asked may have gone; the decision stands.
            let _ = done.send(decided);
        }
    }

    async fn decide_and_note(&mut self, environment: &str) -> Result<Vec<CommandId>, StoreError> {
        self.due.remove(environment);
        let decided = self.decide(environment, Timestamp::now()).await;
        let (next, result) = match decided {
            Ok((commands, next)) => (next, Ok(commands)),
            Err(error) => {
                tracing::error!(environment, error = %agent_api::chain::chain(&error), "no decision");
                (Some(Timestamp::now() + config::DELIVERY_EVERY), Err(error))
            }
        };
        if let Some(next) = next {
            self.due.insert(environment.to_owned(), next);
        }
        result
    }

    /// Carries out the rules' answers until they have nothing to send: the new commands, and when to ask again.
    async fn decide(&self, environment: &str, now: Timestamp) -> Result<(Vec<CommandId>, Option<Timestamp>), StoreError> {
        let mut commands = Vec::new();
        let mut next = self.deliveries(environment, now).await?;
        while let Some((proposal, mut state)) = self.store.resend_state(environment).await? {
            for executor in &mut state.executors {
                executor.connected = self.connections.has(executor.id);
            }
            match resend::decide(&state, now) {
                resend::Decision::Send { executor, purpose, approval_expires_at } => {
                    let new = NewSync { executor, proposal_id: &proposal.id, purpose, approval_expires_at };
                    let id = self.store.create_sync(&new, now).await?;
                    tracing::info!(environment, %executor, command = %id, sha256 = %proposal.sha256, purpose = purpose.as_str(), "sync queued");
                    self.connections.wake(executor);
                    commands.push(id);
                    next = earlier(next, Some(now + config::DELIVERY_EVERY));
                }
                resend::Decision::Wait { until, .. } => {
                    next = earlier(next, Some(until));
                    break;
                }
                resend::Decision::Rest(_) => break,
            }
        }
        Ok((commands, next))
    }

    /// Counts deliveries that nobody was there for: when to look again.
    async fn deliveries(&self, environment: &str, now: Timestamp) -> Result<Option<Timestamp>, StoreError> {
        let mut next = None;
        for command in self.store.undelivered(environment).await? {
            match delivery::decide(&command, self.connections.has(command.executor), now) {
                delivery::Decision::Leave => next = earlier(next, Some(now + config::DELIVERY_EVERY)),
                delivery::Decision::Wait(until) => next = earlier(next, Some(until)),
                delivery::Decision::Miss => {
                    self.store.missed(command.id, false, now).await?;
                    next = earlier(next, Some(now + config::DELIVERY_EVERY));
                }
                delivery::Decision::GiveUp => {
                    self.store.missed(command.id, true, now).await?;
                    tracing::warn!(environment, command = %command.id, executor = %command.executor, "given up: no executor was there");
                }
            }
        }
        Ok(next)
    }
}

fn earlier(one: Option<Timestamp>, other: Option<Timestamp>) -> Option<Timestamp> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}

/// Waits for the next due environment; for ever while there is none.
async fn next_due(due: &HashMap<String, Timestamp>) -> String {
    match due.iter().min_by_key(|(_, at)| **at) {
        Some((environment, at)) => {
            let left = Duration::try_from(at.duration_since(Timestamp::now())).unwrap_or_default();
            tokio::time::sleep(left).await;
            environment.clone()
        }
        None => std::future::pending().await,
    }
}
