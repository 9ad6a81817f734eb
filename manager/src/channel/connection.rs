//! One WebSocket connection of one executor, from `hello` to its end.

use std::ops::ControlFlow;

use agent_api::frame::Down;
use agent_api::name::ExecutorId;
use axum::extract::ws::{CloseFrame, Message, WebSocket, close_code};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use super::connections::{Connections, Registered};
use super::deliveries::Deliveries;
use super::inbound::{Conversation, Inbound, InboundError};
use super::read::{Read, close, read};
use crate::config;

/// Close code: a newer connection of the same executor took over.
const REPLACED: u16 = 4001;

type Step = ControlFlow<Option<CloseFrame>>;

/// Holds a connection until it ends.
pub async fn run(mut socket: WebSocket, executor: ExecutorId, inbound: Inbound, connections: Connections, stop: CancellationToken) {
    let end = match open(&mut socket, executor, inbound).await {
        Ok(conversation) => {
            let registered = connections.register(executor);
            tracing::info!(%executor, "connected");
            let mut connection = Connection { socket: &mut socket, executor, conversation, deliveries: Deliveries::new(executor) };
            connection.hold(&registered, &stop).await
        }
        Err(end) => end,
    };
    tracing::info!(%executor, code = end.as_ref().map(|frame| frame.code), reason = end.as_ref().map(|f| f.reason.as_str()), "disconnected");
    if let Some(frame) = end {
        let goodbye = async {
            // The peer may be gone already; there is nobody to tell then.
            let _ = socket.send(Message::Close(Some(frame))).await;
            while let Some(Ok(_)) = socket.recv().await {}
        };
        let _ = timeout(config::CLOSE_WITHIN, goodbye).await;
    }
}

async fn open(socket: &mut WebSocket, executor: ExecutorId, inbound: Inbound) -> Result<Conversation, Option<CloseFrame>> {
    let first = async {
        loop {
            match read(socket.recv().await) {
                Read::Frame(frame) => return Ok(*frame),
                Read::Skip => {}
                Read::Close(frame) => return Err(Some(frame)),
                Read::Ended => return Err(None),
            }
        }
    };
    let first = timeout(config::HELLO_WITHIN, first).await.map_err(|_| Some(close(close_code::PROTOCOL, "no hello came")))??;
    let (conversation, welcome) = Conversation::begin(inbound, executor, first).await.map_err(|error| Some(ending(executor, error)))?;
    match send(socket, executor, &welcome).await {
        Step::Continue(()) => Ok(conversation),
        Step::Break(end) => Err(end),
    }
}

struct Connection<'a> {
    socket: &'a mut WebSocket,
    executor: ExecutorId,
    conversation: Conversation,
    deliveries: Deliveries,
}

impl Connection<'_> {
    async fn hold(&mut self, registered: &Registered, stop: &CancellationToken) -> Option<CloseFrame> {
        if let Err(error) = self.conversation.decide().await {
            return Some(ending(self.executor, error.into()));
        }
        // What was queued before is delivered without anybody waking us.
        registered.wake.notify_one();
        let mut heard = Instant::now();
        let mut ticks = interval(config::PING_EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let step = tokio::select! {
                message = self.socket.recv() => {
                    heard = Instant::now();
                    self.receive(message).await
                }
                () = registered.wake.notified() => self.deliver().await,
                _ = ticks.tick() => self.tick().await,
                () = sleep_until(heard + config::DEAD_AFTER) => {
                    tracing::warn!(executor = %self.executor, "nothing was heard; the link is dead");
                    Step::Break(None)
                }
                () = registered.replaced.cancelled() => Step::Break(Some(close(REPLACED, "a newer connection took over"))),
                () = stop.cancelled() => Step::Break(Some(close(close_code::AWAY, "the manager stops"))),
            };
            if let Step::Break(end) = step {
                return end;
            }
        }
    }

    async fn receive(&mut self, message: Option<Result<Message, axum::Error>>) -> Step {
        let frame = match read(message) {
            Read::Frame(frame) => *frame,
            Read::Skip => return Step::Continue(()),
            Read::Close(frame) => return Step::Break(Some(frame)),
            Read::Ended => return Step::Break(None),
        };
        match self.conversation.take(frame).await {
            Ok(Some(answer)) => send(self.socket, self.executor, &answer).await,
            Ok(None) => Step::Continue(()),
            Err(error) => Step::Break(Some(ending(self.executor, error))),
        }
    }

    async fn tick(&mut self) -> Step {
        send_message(self.socket, Message::Ping(Vec::new().into())).await?;
        self.deliver().await
    }

    /// Sends what is to be delivered now.
    async fn deliver(&mut self) -> Step {
        let store = self.conversation.store().clone();
        loop {
            match self.deliveries.next(&store).await {
                Ok(Some(command)) => send(self.socket, self.executor, &Down::Command(command)).await?,
                Ok(None) => return Step::Continue(()),
                Err(error) => return Step::Break(Some(ending(self.executor, error.into()))),
            }
        }
    }
}

async fn send(socket: &mut WebSocket, executor: ExecutorId, frame: &Down) -> Step {
    match serde_json::to_string(frame) {
        Ok(text) => send_message(socket, Message::text(text)).await,
        Err(error) => {
            tracing::error!(%executor, %error, "a frame could not be written");
            Step::Break(Some(close(close_code::ERROR, "internal error")))
        }
    }
}

async fn send_message(socket: &mut WebSocket, message: Message) -> Step {
    match timeout(config::WRITE_WITHIN, socket.send(message)).await {
        Ok(Ok(())) => Step::Continue(()),
        Ok(Err(_)) | Err(_) => Step::Break(None),
    }
}

fn ending(executor: ExecutorId, error: InboundError) -> CloseFrame {
    match error {
        InboundError::Protocol(frame) => frame,
        InboundError::Store(error) => {
            tracing::error!(%executor, error = %crate::cli::chain(&error), "the store failed");
            close(close_code::ERROR, "internal error")
        }
    }
}
