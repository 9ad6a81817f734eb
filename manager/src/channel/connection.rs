//! One WebSocket connection of one executor, from `hello` to its end.

use agent_api::frame::{Down, on_the_way};
use agent_api::name::ExecutorId;
use axum::extract::ws::{CloseFrame, Message, WebSocket, close_code};
use futures::stream::{SplitSink, SplitStream};
use futures::{Sink, SinkExt as _, StreamExt as _};
use tokio::sync::{Notify, mpsc};
use tokio::time::{MissedTickBehavior, interval, timeout};
use tokio_util::sync::CancellationToken;

use super::connections::{Connections, Registered};
use super::counters::Counters;
use super::deliveries::Deliveries;
use super::heard::Heard;
use super::inbound::{Conversation, Inbound, InboundError};
use super::read::{Read, close, read};
use crate::config;
use crate::store::{Store, StoreError};

/// Close code: a newer connection of the same executor took over.
const REPLACED: u16 = 4001;
/// Close code: the executor was revoked.
const REVOKED: u16 = 4003;

/// What is said at the end, if there is somebody to say it to.
type End = Option<CloseFrame>;

/// Holds a connection until it ends.
pub async fn run(
    mut socket: WebSocket,
    executor: ExecutorId,
    heard: Heard,
    inbound: Inbound,
    connections: Connections,
    stop: CancellationToken,
) {
    let counters = inbound.counters.clone();
    let end = match open(&mut socket, executor, inbound).await {
        Ok(conversation) => {
            let registered = connections.register(executor);
            tracing::info!(%executor, "connected");
            hold(&mut socket, conversation, &registered, &heard, &counters, &stop).await
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

async fn open(socket: &mut WebSocket, executor: ExecutorId, inbound: Inbound) -> Result<Conversation, End> {
    let counters = inbound.counters.clone();
    let first = async {
        loop {
            match read(socket.recv().await) {
                Read::Frame(frame) => return Ok(*frame),
                Read::Skip => {}
                Read::Unknown => counters.skip(),
                Read::Close(frame) => return Err(refused(&counters, frame)),
                Read::Ended => return Err(None),
            }
        }
    };
    let first = timeout(config::HELLO_WITHIN, first).await.map_err(|_| Some(close(close_code::PROTOCOL, "no hello came")))??;
    let (conversation, welcome) =
        Conversation::begin(inbound, executor, first).await.map_err(|error| Some(ending(executor, &counters, error)))?;
    send(socket, executor, &welcome).await.map(|()| conversation)
}

/// Frames both ways. Reading never waits for a write, so that a slow line is not taken for a dead one.
async fn hold(
    socket: &mut WebSocket,
    conversation: Conversation,
    registered: &Registered,
    heard: &Heard,
    counters: &Counters,
    stop: &CancellationToken,
) -> Option<CloseFrame> {
    let executor = conversation.executor();
    if let Err(error) = conversation.registered().await {
        return Some(ending(executor, counters, error));
    }
    // What was queued before is delivered without anybody waking us.
    registered.wake.notify_one();
    let store = conversation.store().clone();
    let (sink, stream) = socket.split();
    let (answers, answered) = mpsc::channel(config::ANSWER_QUEUE);
    tokio::select! {
        end = receive(stream, conversation, answers, counters) => end,
        end = transmit(sink, executor, store, &registered.wake, answered) => end,
        () = heard.silence() => {
            tracing::warn!(%executor, "nothing was heard; the link is dead");
            None
        }
        () = registered.replaced.cancelled() => Some(close(REPLACED, "a newer connection took over")),
        () = registered.revoked.cancelled() => Some(revoked()),
        () = stop.cancelled() => Some(close(close_code::AWAY, "the manager stops")),
    }
}

async fn receive(
    mut stream: SplitStream<&mut WebSocket>,
    mut conversation: Conversation,
    answers: mpsc::Sender<Down>,
    counters: &Counters,
) -> End {
    loop {
        let frame = match read(stream.next().await) {
            Read::Frame(frame) => *frame,
            Read::Skip => continue,
            Read::Unknown => {
                counters.skip();
                continue;
            }
            Read::Close(frame) => return refused(counters, frame),
            Read::Ended => return None,
        };
        match conversation.take(frame).await {
            // Nobody takes it only where the connection ends.
            Ok(Some(answer)) => drop(answers.send(answer).await),
            Ok(None) => {}
            Err(error) => return Some(ending(conversation.executor(), counters, error)),
        }
    }
}

/// Answers, what is to be delivered, and pings.
async fn transmit(
    mut sink: SplitSink<&mut WebSocket, Message>,
    executor: ExecutorId,
    store: Store,
    wake: &Notify,
    mut answers: mpsc::Receiver<Down>,
) -> End {
    let mut deliveries = Deliveries::new(executor);
    let mut ticks = interval(config::PING_EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let sent = tokio::select! {
            Some(answer) = answers.recv() => send(&mut sink, executor, &answer).await,
            () = wake.notified() => deliver(&mut sink, &mut deliveries, executor, &store).await,
            _ = ticks.tick() => match send_message(&mut sink, Message::Ping(Vec::new().into())).await {
                Ok(()) => deliver(&mut sink, &mut deliveries, executor, &store).await,
                ended => ended,
            },
        };
        if let Err(end) = sent {
            return end;
        }
    }
}

/// Sends what is to be delivered now.
async fn deliver(
    sink: &mut SplitSink<&mut WebSocket, Message>,
    deliveries: &mut Deliveries,
    executor: ExecutorId,
    store: &Store,
) -> Result<(), End> {
    loop {
        match deliveries.next(store).await {
            Ok(Some(command)) => send(sink, executor, &Down::Command(command)).await?,
            Ok(None) => return Ok(()),
            Err(error) => return Err(Some(store_failed(executor, &error))),
        }
    }
}

async fn send(sink: &mut (impl Sink<Message> + Unpin), executor: ExecutorId, frame: &Down) -> Result<(), End> {
    match serde_json::to_string(frame) {
        Ok(text) => send_message(sink, Message::text(text)).await,
        Err(error) => {
            tracing::error!(%executor, %error, "a frame could not be written");
            Err(Some(close(close_code::ERROR, "internal error")))
        }
    }
}

async fn send_message(sink: &mut (impl Sink<Message> + Unpin), message: Message) -> Result<(), End> {
    let bytes = if let Message::Text(text) = &message { text.len() } else { 0 };
    match timeout(config::WRITE_WITHIN + on_the_way(bytes), sink.send(message)).await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(_)) | Err(_) => Err(None),
    }
}

/// A frame that ends the connection is counted.
fn refused(counters: &Counters, frame: CloseFrame) -> End {
    counters.refuse(frame.code);
    Some(frame)
}

fn ending(executor: ExecutorId, counters: &Counters, error: InboundError) -> CloseFrame {
    match error {
        InboundError::Protocol(frame) => {
            counters.refuse(frame.code);
            frame
        }
        InboundError::Revoked => revoked(),
        InboundError::Store(error) => store_failed(executor, &error),
    }
}

fn revoked() -> CloseFrame {
    close(REVOKED, "executor_revoked: enrol it anew")
}

fn store_failed(executor: ExecutorId, error: &StoreError) -> CloseFrame {
    tracing::error!(%executor, error = %agent_api::chain::chain(error), "the store failed");
    close(close_code::ERROR, "internal error")
}
