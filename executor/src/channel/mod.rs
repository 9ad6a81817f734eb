//! The command channel: one outbound WebSocket, kept up for ever.
//!
//! The channel decides nothing. Frames down become events of the daemon's loop; frames up come from it. What is not sent because the
//! link is down is not kept here: results are delivered again from the journal, everything else is repeated by its nature.

mod backoff;
mod session;

use std::sync::Arc;

use agent_api::command::Command;
use agent_api::frame::{Hello, Up, Welcome};
use agent_api::name::CommandId;
use tokio::sync::{mpsc, watch};
use tracing::{info, warn};

use crate::signed::Signed;
use crate::terminal::chain;

/// Frames that wait to be sent; more are dropped, since all of them are repeated.
const OUTGOING: usize = 256;

/// What the channel tells the daemon's loop.
#[derive(Debug)]
pub(crate) enum Incoming {
    /// The manager has welcomed us.
    Connected(Welcome),
    /// The link is gone.
    Disconnected,
    /// A command.
    Command(Command),
    /// A result is stored.
    ResultAck(CommandId),
}

/// The daemon's end of the channel.
#[derive(Clone)]
pub(crate) struct Channel {
    outgoing: mpsc::Sender<Up>,
}

impl Channel {
    /// Starts the channel. `hello` is what the next connection begins with.
    pub(crate) fn spawn(signed: Signed, hello: watch::Receiver<Hello>, incoming: mpsc::Sender<Incoming>) -> Self {
        let (outgoing, frames) = mpsc::channel(OUTGOING);
        tokio::spawn(run(Arc::new(signed), hello, incoming, frames));
        Self { outgoing }
    }

    /// Sends a frame if the link is up and has room.
    pub(crate) fn send(&self, frame: Up) {
        let _ = self.outgoing.try_send(frame);
    }
}

async fn run(signed: Arc<Signed>, hello: watch::Receiver<Hello>, incoming: mpsc::Sender<Incoming>, mut frames: mpsc::Receiver<Up>) {
    let mut backoff = backoff::Backoff::default();
    loop {
        let first = hello.borrow().clone();
        let ended = session::run(&signed, first, &incoming, &mut frames).await;
        if ended.welcomed {
            backoff.reset();
            if incoming.send(Incoming::Disconnected).await.is_err() {
                return;
            }
        }
        let delay = backoff.next();
        match &ended.error {
            Some(error) => warn!(retry_in = ?delay, "channel: {}", chain(error)),
            None => info!(retry_in = ?delay, "channel: closed by the manager"),
        }
        if incoming.is_closed() {
            return;
        }
        tokio::time::sleep(delay).await;
        while frames.try_recv().is_ok() {}
    }
}
