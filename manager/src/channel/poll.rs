//! Poll sessions: one task for each, which has the conversation, as a WebSocket connection has it.
//!
//! What an answer brought that was lost comes again by its nature, so that nothing is kept for it. A later request ends an earlier one.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use agent_api::frame::{Down, MAX_BYTES, POLL_HOLD_S, PollRequest, PollResponse, Up};
use agent_api::name::ExecutorId;
use axum::extract::ws::CloseFrame;
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::connections::{Connections, Registered};
use super::counters::Counters;
use super::deliveries::Deliveries;
use super::inbound::{Conversation, Inbound, InboundError};
use super::read::{Read, frame};
use crate::config;
use crate::store::StoreError;

/// Who polls now: the newest session of each executor. A clonable handle.
#[derive(Clone, Debug, Default)]
pub struct Polls(Arc<Mutex<HashMap<ExecutorId, Session>>>);

#[derive(Debug)]
struct Session {
    id: Uuid,
    requests: mpsc::Sender<Request>,
}

#[derive(Debug)]
struct Request {
    poll: PollRequest,
    answer: oneshot::Sender<Result<PollResponse, PollError>>,
}

/// Why a poll is not answered with frames.
#[derive(Debug, thiserror::Error)]
pub enum PollError {
    /// The session began with another process, ended, or was replaced.
    #[error("this poll session is not known; begin a new one with hello")]
    Unknown,
    /// A newer request of the session, or a newer connection, took its place.
    #[error("a newer request took the place of this one")]
    Overtaken,
    /// The frames broke the protocol.
    #[error("{reason} ({code})")]
    Protocol {
        /// The WebSocket close code of this fault.
        code: u16,
        /// In words.
        reason: String,
    },
    /// The executor's key and certificates are refused from now on.
    #[error("this executor was revoked")]
    Revoked,
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The server is stopping.
    #[error("the server is stopping")]
    Stopping,
}

impl From<CloseFrame> for PollError {
    fn from(frame: CloseFrame) -> Self {
        Self::Protocol { code: frame.code, reason: frame.reason.to_string() }
    }
}

impl From<InboundError> for PollError {
    fn from(error: InboundError) -> Self {
        match error {
            InboundError::Protocol(frame) => frame.into(),
            InboundError::Revoked => Self::Revoked,
            InboundError::Store(error) => error.into(),
        }
    }
}

impl Polls {
    /// Whether a request begins a session.
    #[must_use]
    pub fn begins(poll: &PollRequest) -> bool {
        poll.sequence == 1
    }

    /// Begins a session with its first request, whose first frame must be `hello`: the answer, and the task to run.
    ///
    /// # Errors
    /// See [`PollError`].
    pub async fn begin(
        &self,
        executor: ExecutorId,
        poll: PollRequest,
        inbound: Inbound,
        connections: &Connections,
        stop: CancellationToken,
    ) -> Result<(PollResponse, impl Future<Output = ()> + use<>), PollError> {
        let counters = inbound.counters.clone();
        let mut frames = poll.frames.into_iter();
        let first = frames.next().unwrap_or_default();
        let first = match frame(&first.to_string()) {
            Read::Frame(first) => *first,
            Read::Close(close) => return Err(counted(&counters, close.into())),
            Read::Unknown | Read::Skip | Read::Ended => {
                return Err(counted(&counters, super::read::close(1002, "the first frame must be hello").into()));
            }
        };
        let begun = Conversation::begin(inbound, executor, first).await;
        let (conversation, welcome) = begun.map_err(|error| counted(&counters, error.into()))?;
        let registered = connections.register(executor);
        let (requests, received) = mpsc::channel(config::POLL_QUEUE);
        self.lock().insert(executor, Session { id: poll.session, requests });
        tracing::info!(%executor, "polls");
        let mut task = Task {
            conversation,
            registered,
            deliveries: Deliveries::new(executor),
            counters,
            sequence: poll.sequence,
            said: vec![value(&welcome)],
        };
        let mut took = Ok(());
        for next in frames {
            took = task.take(&next, false).await;
            if took.is_err() {
                break;
            }
        }
        took?;
        task.conversation.registered().await?;
        let answer = task.answer();
        let polls = self.clone();
        Ok((answer, async move {
            let session = poll.session;
            task.run(received, stop).await;
            polls.end(executor, session);
            tracing::info!(%executor, "polls no more");
        }))
    }

    /// A later request of a session: answered when there is something to say, or after its time.
    ///
    /// # Errors
    /// See [`PollError`].
    pub async fn go_on(&self, executor: ExecutorId, poll: PollRequest) -> Result<PollResponse, PollError> {
        let requests = match self.lock().get(&executor) {
            Some(session) if session.id == poll.session => session.requests.clone(),
            Some(_) | None => return Err(PollError::Unknown),
        };
        let (answer, answered) = oneshot::channel();
        requests.send(Request { poll, answer }).await.map_err(|_| PollError::Unknown)?;
        answered.await.map_err(|_| PollError::Overtaken)?
    }

    fn end(&self, executor: ExecutorId, session: Uuid) {
        let mut all = self.lock();
        if all.get(&executor).is_some_and(|known| known.id == session) {
            all.remove(&executor);
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ExecutorId, Session>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Task {
    conversation: Conversation,
    registered: Registered,
    deliveries: Deliveries,
    counters: Counters,
    /// Of the newest request.
    sequence: u64,
    /// Frames for the next answer.
    said: Vec<Value>,
}

/// A request that waits for its answer.
struct Held {
    answer: oneshot::Sender<Result<PollResponse, PollError>>,
    until: Instant,
}

impl Task {
    /// Until no request has come for as long as makes a link dead.
    async fn run(mut self, mut requests: mpsc::Receiver<Request>, stop: CancellationToken) {
        let mut held: Option<Held> = None;
        let mut quiet = Instant::now() + config::DEAD_AFTER;
        let mut ticks = tokio::time::interval(config::PING_EVERY);
        let wake = Arc::clone(&self.registered.wake);
        loop {
            let until = held.as_ref().map_or(quiet, |held| held.until);
            let mut overdue = false;
            tokio::select! {
                request = requests.recv() => {
                    let Some(request) = request else { return };
                    // Dropping the former one's sender answers it.
                    held = match self.request(request).await {
                        Ok(next) => next.or(held),
                        Err(()) => return,
                    };
                }
                () = wake.notified() => {}
                _ = ticks.tick(), if held.is_some() => {}
                () = sleep_until(until) => overdue = true,
                () = self.registered.replaced.cancelled() => return,
                () = self.registered.revoked.cancelled() => {
                    if let Some(held) = held {
                        let _ = held.answer.send(Err(PollError::Revoked));
                    }
                    return;
                }
                () = stop.cancelled() => {
                    if let Some(held) = held {
                        let _ = held.answer.send(Err(PollError::Stopping));
                    }
                    return;
                }
            }
            let Some(waiting) = held.take() else {
                if overdue {
                    return;
                }
                continue;
            };
            match self.deliver().await {
                // Whoever asked may be gone; what was said comes again by its nature.
                Err(error) => drop(waiting.answer.send(Err(error.into()))),
                Ok(()) if overdue || !self.said.is_empty() => drop(waiting.answer.send(Ok(self.answer()))),
                Ok(()) => {
                    held = Some(waiting);
                    continue;
                }
            }
            quiet = Instant::now() + config::DEAD_AFTER;
        }
    }

    /// Takes a request's frames; it is held then. One that comes after a newer one is answered at once.
    async fn request(&mut self, request: Request) -> Result<Option<Held>, ()> {
        let Request { poll, answer } = request;
        let overtaken = poll.sequence <= self.sequence;
        self.sequence = self.sequence.max(poll.sequence);
        for given in &poll.frames {
            if let Err(error) = self.take(given, overtaken).await {
                let ends = matches!(error, PollError::Protocol { .. });
                let _ = answer.send(Err(error));
                return if ends { Err(()) } else { Ok(None) };
            }
        }
        if overtaken {
            let _ = answer.send(Err(PollError::Overtaken));
            return Ok(None);
        }
        let hold = Duration::from_secs(poll.wait_s.min(POLL_HOLD_S).into());
        Ok(Some(Held { answer, until: Instant::now() + hold }))
    }

    /// Takes a frame. In an overtaken request, what was observed is older than what is known; everything else counts whenever it comes.
    async fn take(&mut self, given: &Value, overtaken: bool) -> Result<(), PollError> {
        match frame(&given.to_string()) {
            Read::Frame(frame) if overtaken && matches!(*frame, Up::Heartbeat(_) | Up::CommandProgress(_)) => Ok(()),
            Read::Frame(frame) => {
                let answer = self.conversation.take(*frame).await.map_err(|error| counted(&self.counters, error.into()))?;
                self.said.extend(answer.as_ref().map(value));
                Ok(())
            }
            Read::Close(close) => Err(counted(&self.counters, close.into())),
            Read::Unknown => {
                self.counters.skip();
                Ok(())
            }
            Read::Skip | Read::Ended => Ok(()),
        }
    }

    /// Adds what is to be delivered, as much as an answer holds.
    async fn deliver(&mut self) -> Result<(), StoreError> {
        let store = self.conversation.store().clone();
        while self.said.iter().map(|frame| frame.to_string().len()).sum::<usize>() < MAX_BYTES / 2 {
            match self.deliveries.next(&store).await? {
                Some(command) => self.said.push(value(&Down::Command(command))),
                None => break,
            }
        }
        Ok(())
    }

    fn answer(&mut self) -> PollResponse {
        PollResponse { frames: std::mem::take(&mut self.said) }
    }
}

/// A frame that ends the session is counted.
fn counted(counters: &Counters, error: PollError) -> PollError {
    if let PollError::Protocol { code, .. } = &error {
        counters.refuse(*code);
    }
    error
}

fn value(frame: &Down) -> Value {
    serde_json::to_value(frame).unwrap_or_else(|error| {
        tracing::error!(%error, "a frame could not be written");
        Value::Null
    })
}
