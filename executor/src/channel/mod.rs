//! The command channel: one outbound connection, kept up for ever. WebSocket first, long poll where it cannot be had.
//!
//! The channel decides nothing. Frames down become events of the daemon's loop; frames up come from it. What is not sent because the
//! link is down is not kept here: results are delivered again from the journal, everything else is repeated by its nature.

mod answer;
mod backoff;
mod counters;
mod ended;
mod outgoing;
mod poll;
mod pulse;
mod read;
mod renewal;
mod session;
mod transport;

use std::sync::Arc;

use agent_api::command::Command;
use agent_api::frame::{Down, Hello, Up, Welcome};
use agent_api::name::CommandId;
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;
use tracing::info;

pub(crate) use counters::Counters;

use crate::signed::Signed;
use ended::SessionError;
use outgoing::Outgoing;
use read::Broken;

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

/// How the channel stands.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Link {
    /// Not welcomed yet; why the last try failed.
    Down(Option<Trouble>),
    /// Welcomed, over this transport.
    Up(&'static str),
    /// The manager does not take our certificate or key: a person has to enrol again. Tried once a minute.
    CredentialsRefused(Trouble),
}

/// Why a try failed, or a connection ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Trouble {
    /// The error's stable name: the manager's own where it gave one.
    pub(crate) code: String,
    /// For a person.
    pub(crate) why: String,
}

/// How the channel stands, and since when: trying again changes nothing of that.
#[derive(Clone, Debug)]
pub(crate) struct Standing {
    pub(crate) link: Link,
    pub(crate) since: jiff::Timestamp,
}

impl Standing {
    fn new() -> Self {
        Self { link: Link::Down(None), since: jiff::Timestamp::now() }
    }
}

/// The daemon's end of the channel.
#[derive(Clone)]
pub(crate) struct Channel {
    outgoing: Arc<Outgoing>,
    counters: Arc<Counters>,
    standing: watch::Receiver<Standing>,
}

impl Channel {
    /// Starts the channel. `hello` is what the next connection begins with.
    pub(crate) fn spawn(signed: Signed, hello: watch::Receiver<Hello>, incoming: mpsc::Sender<Incoming>) -> Self {
        let counters = Arc::<Counters>::default();
        let outgoing = Arc::new(Outgoing::new(Arc::clone(&counters)));
        let (renewed, leave) = watch::channel(());
        let (state, standing) = watch::channel(Standing::new());
        let ends = Ends { incoming, outgoing: Arc::clone(&outgoing), counters: Arc::clone(&counters), state, leave };
        tokio::spawn(renewal::keep(signed.clone(), renewed));
        tokio::spawn(transport::keep(signed, hello, ends));
        Self { outgoing, counters, standing }
    }

    /// Queues a frame if there is room.
    pub(crate) fn send(&self, frame: Up) {
        self.outgoing.push(&frame);
    }

    /// How the channel stands.
    pub(crate) fn standing(&self) -> Standing {
        self.standing.borrow().clone()
    }

    /// What it has seen.
    pub(crate) fn counters(&self) -> &Counters {
        &self.counters
    }
}

/// What a connection works with.
struct Ends {
    incoming: mpsc::Sender<Incoming>,
    outgoing: Arc<Outgoing>,
    counters: Arc<Counters>,
    state: watch::Sender<Standing>,
    /// Changes when there is a new certificate to come back with.
    leave: watch::Receiver<()>,
}

impl Ends {
    /// A connection was welcomed: when.
    async fn welcome(&self, welcome: Welcome, transport: &'static str) -> Instant {
        info!(transport, heartbeat_interval_s = welcome.heartbeat_interval_s, "channel: connected");
        Counters::add(&self.counters.welcomed);
        self.stands(Link::Up(transport));
        // Gone means that the daemon stops; the next frame finds that out.
        let _ = self.incoming.send(Incoming::Connected(welcome)).await;
        Instant::now()
    }

    /// Says how the channel stands; answers whether that is news.
    fn stands(&self, link: Link) -> bool {
        self.state.send_if_modified(|standing| {
            if std::mem::discriminant(&standing.link) != std::mem::discriminant(&link) {
                standing.since = jiff::Timestamp::now();
            }
            let news = standing.link != link;
            standing.link = link;
            news
        })
    }

    /// Hands a frame to the daemon's loop.
    async fn pass(&self, frame: Down) -> Result<(), SessionError> {
        let incoming = match frame {
            Down::Welcome(_) => return Err(self.broken(read::OUT_OF_ORDER)),
            Down::Command(command) => Incoming::Command(command),
            Down::ResultAck(ack) => {
                self.outgoing.acknowledged(ack.id);
                Incoming::ResultAck(ack.id)
            }
        };
        Counters::add(&self.counters.received);
        self.incoming.send(incoming).await.map_err(|_| SessionError::Gone)
    }

    fn broken(&self, broken: Broken) -> SessionError {
        Counters::add(&self.counters.refused);
        SessionError::Broken(broken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trying_again_is_no_new_standing_and_another_reason_is_news() {
        let (state, standing) = watch::channel(Standing { since: jiff::Timestamp::UNIX_EPOCH, ..Standing::new() });
        let (incoming, _frames) = mpsc::channel(1);
        let counters = Arc::<Counters>::default();
        let (outgoing, leave) = (Arc::new(Outgoing::new(Arc::clone(&counters))), watch::channel(()).1);
        let ends = Ends { incoming, outgoing, counters, state, leave };
        let down = |why: &str| Link::Down(Some(Trouble { code: "manager_unreachable".into(), why: why.into() }));
        let since = || standing.borrow().since;
        assert!(ends.stands(down("a")) && since() == jiff::Timestamp::UNIX_EPOCH);
        assert!(!ends.stands(down("a")));
        assert!(ends.stands(down("b")) && since() == jiff::Timestamp::UNIX_EPOCH);
        assert!(ends.stands(Link::Up("WebSocket")) && since() > jiff::Timestamp::UNIX_EPOCH);
        assert_eq!(standing.borrow().link, Link::Up("WebSocket"));
    }
}
