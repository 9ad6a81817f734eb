//! What a frame from an executor does. The same for every transport.

use agent_api::frame::{CommandResult, Down, Hello, PROTOCOL, ResultAck, Up, Welcome};
use agent_api::heartbeat::{ApprovalRecord, Heartbeat, Platform};
use agent_api::name::ExecutorId;
use axum::extract::ws::{CloseFrame, close_code};
use jiff::Timestamp;

use super::counters::Counters;
use super::fleet::Fleet;
use super::progress::Progress;
use super::read::close;
use crate::config;
use crate::store::{Store, StoreError};

/// What frames act on.
#[derive(Clone, Debug)]
pub struct Inbound {
    /// The store.
    pub store: Store,
    /// Decides what is sent.
    pub fleet: Fleet,
    /// Progress of running commands.
    pub progress: Progress,
    /// What was not taken.
    pub counters: Counters,
    /// Seconds between heartbeats that `welcome` asks for.
    pub heartbeat_interval_s: u32,
}

/// One executor's conversation.
#[derive(Debug)]
pub struct Conversation {
    inbound: Inbound,
    executor: ExecutorId,
    /// What its last heartbeat said of the platform; only a change is worth a decision.
    platform: Option<Platform>,
    /// The approvals that it last reported; only a change is looked up in the record.
    approvals: Vec<ApprovalRecord>,
    /// When its last heartbeat came.
    heard_at: Timestamp,
}

/// Why a conversation ends.
#[derive(Debug, thiserror::Error)]
pub enum InboundError {
    /// The peer broke the protocol.
    #[error("{}", .0.reason)]
    Protocol(CloseFrame),
    /// The executor's key and certificates are refused from now on.
    #[error("this executor was revoked")]
    Revoked,
    /// Ours to mend; the executor says it again on its next connection.
    #[error(transparent)]
    Store(#[from] StoreError),
}

fn broken(code: u16, reason: &'static str) -> InboundError {
    InboundError::Protocol(close(code, reason))
}

impl Conversation {
    /// Begins with the first frame, which must be `hello`.
    ///
    /// # Errors
    /// Another frame, another executor, or no common version.
    pub async fn begin(inbound: Inbound, executor: ExecutorId, first: Up) -> Result<(Self, Down), InboundError> {
        let Up::Hello(hello) = first else { return Err(broken(close_code::PROTOCOL, "the first frame must be hello")) };
        check_hello(&hello, executor)?;
        inbound.store.store_hello(&hello).await?;
        let now = Timestamp::now();
        let welcome = Welcome { protocol: PROTOCOL, heartbeat_interval_s: inbound.heartbeat_interval_s, server_time: now };
        Ok((Self { inbound, executor, platform: None, approvals: Vec::new(), heard_at: now }, Down::Welcome(welcome)))
    }

    /// Goes on once the connection is registered, and has it decided what this executor is to get. Who was revoked after the request
    /// was let in and before the connection could be found is noticed here.
    ///
    /// # Errors
    /// See [`InboundError`].
    pub async fn registered(&self) -> Result<(), InboundError> {
        if self.inbound.store.is_revoked(self.executor).await? {
            return Err(InboundError::Revoked);
        }
        Ok(self.decide().await?)
    }

    /// Has it decided what this executor is to get, after what changes the answer.
    ///
    /// # Errors
    /// The store.
    async fn decide(&self) -> Result<(), StoreError> {
        if let Some(environment) = self.inbound.store.environment_of(self.executor).await? {
            self.inbound.fleet.poke(environment).await;
        }
        Ok(())
    }

    /// Whose it is.
    #[must_use]
    pub fn executor(&self) -> ExecutorId {
        self.executor
    }

    /// The store that it acts on.
    #[must_use]
    pub fn store(&self) -> &Store {
        &self.inbound.store
    }

    /// Takes a frame; the answer, if it has one.
    ///
    /// # Errors
    /// See [`InboundError`].
    pub async fn take(&mut self, frame: Up) -> Result<Option<Down>, InboundError> {
        match frame {
            Up::Hello(_) => Err(broken(close_code::PROTOCOL, "hello comes once")),
            Up::Heartbeat(heartbeat) => self.heartbeat(&heartbeat).await.map(|()| None),
            Up::CommandAck(ack) => {
                self.inbound.store.ack(self.executor, ack.id, Timestamp::now()).await?;
                Ok(None)
            }
            Up::CommandProgress(progress) => {
                self.inbound.progress.note(self.executor, progress, Timestamp::now());
                Ok(None)
            }
            Up::CommandResult(result) => self.result(&result).await.map(Some),
        }
    }

    async fn heartbeat(&mut self, heartbeat: &Heartbeat) -> Result<(), InboundError> {
        if heartbeat.executor.id != self.executor {
            return Err(broken(close_code::POLICY, "the heartbeat is another executor's"));
        }
        let now = Timestamp::now();
        self.inbound.store.store_heartbeat(heartbeat, now).await?;
        if self.approvals != heartbeat.approvals {
            self.inbound.store.record_approvals(self.executor, &heartbeat.approvals, now).await?;
            self.approvals.clone_from(&heartbeat.approvals);
        }
        let silence = now.duration_since(std::mem::replace(&mut self.heard_at, now));
        if self.platform.as_ref() != Some(&heartbeat.platform) || silence > config::SILENCE {
            self.platform = Some(heartbeat.platform.clone());
            self.decide().await?;
        }
        Ok(())
    }

    /// Stored once; acknowledged each time, also when the command is not known here: it would be repeated for ever.
    async fn result(&self, result: &CommandResult) -> Result<Down, InboundError> {
        let stored = self.inbound.store.store_result(self.executor, result, Timestamp::now()).await?;
        self.inbound.progress.forget(self.executor, result.id);
        if stored {
            tracing::info!(executor = %self.executor, command = %result.id, status = result.status.as_str(), "result");
            self.decide().await?;
        }
        Ok(Down::ResultAck(ResultAck { id: result.id }))
    }
}

fn check_hello(hello: &Hello, executor: ExecutorId) -> Result<(), InboundError> {
    if hello.executor_id != executor {
        return Err(broken(close_code::POLICY, "hello is another executor's"));
    }
    if !hello.protocols.contains(&PROTOCOL) {
        return Err(broken(close_code::PROTOCOL, "no common protocol version; this manager speaks 1"));
    }
    Ok(())
}
