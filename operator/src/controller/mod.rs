//! What runs while this operator leads: watches fill the store, the store's news put components in line, workers take them.
//!
//! All of it ends with the leadership, and begins with lists from the API server's own truth when it comes again.

pub mod capabilities;
mod pass;
pub mod queue;
mod read;
pub mod rendering;
pub mod secrets;
pub mod store;
pub mod turns;
pub mod watch;
mod write;

use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use agent_api::name::DnsLabel;
use cluster::{Client, ClusterError, exact};
use futures::FutureExt as _;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::{error, info, warn};

use self::capabilities::Discovery;
use self::pass::{Memory, Next, pause};
use self::queue::{Name, Queue};
use self::rendering::Renderings;
use self::store::Store;
use self::turns::Turns;
use self::watch::Watches;
use crate::health::figures::{Ended, Figures};
use crate::health::{Readiness, Waits};

/// Components that are looked at at the same time. Most of a pass waits for the API server.
const WORKERS: usize = 16;
/// How often figures that are counted here and not where they change are read.
const FIGURES: Duration = Duration::from_secs(1);
/// How long the list of a kind that was just found to be served may take.
const NEW_KIND: Duration = Duration::from_secs(10);

/// What the workers share.
pub struct Operator {
    client: Client,
    store: Arc<Store>,
    queue: Arc<Queue>,
    turns: Turns,
    discovery: Discovery,
    renderings: Arc<Renderings>,
    watches: Mutex<Watches>,
    memories: Mutex<HashMap<Name, Memory>>,
    figures: Figures,
}

impl Operator {
    /// Begins to watch. `client` is behind the fence.
    ///
    /// # Errors
    /// The API server does not say what it serves.
    pub async fn start(
        client: Client,
        namespaces: &[DnsLabel],
        renderings: Arc<Renderings>,
        figures: Figures,
    ) -> Result<Arc<Self>, ClusterError> {
        let discovery = Discovery::new(client.clone());
        let keda = discovery.fresh().await?.keda;
        let (store, queue) = (Arc::new(Store::default()), Arc::new(Queue::default()));
        let watches = Watches::start(client.clone(), namespaces, Arc::clone(&store), Arc::clone(&queue), keda);
        let (memories, turns) = (Mutex::default(), Turns::new(Arc::clone(&queue)));
        let watches = Mutex::new(watches);
        Ok(Arc::new(Self { client, store, queue, turns, discovery, renderings, watches, memories, figures }))
    }

    /// Works until `stop`, and then until what is under way has ended.
    pub async fn run(self: Arc<Self>, readiness: Readiness, stop: CancellationToken) {
        let mut synced = self.watches().synced();
        readiness.waits(Waits::Lists);
        tokio::select! {
            () = stop.cancelled() => return,
            () = synced.all() => {}
        }
        readiness.is_there();
        info!(components = self.store.components(), "every list is read");
        let mut workers = JoinSet::new();
        for _ in 0..WORKERS {
            workers.spawn(Arc::clone(&self).work(stop.clone()));
        }
        let counting = async {
            loop {
                self.count();
                tokio::time::sleep(FIGURES).await;
            }
        };
        tokio::select! {
            () = async { while workers.join_next().await.is_some() {} } => {}
            () = counting => {}
        }
    }

    fn count(&self) {
        self.figures.queue.set(i64::try_from(self.queue.length()).unwrap_or(i64::MAX));
        self.figures.components.set(i64::try_from(self.store.components()).unwrap_or(i64::MAX));
    }

    async fn work(self: Arc<Self>, stop: CancellationToken) {
        loop {
            let name = tokio::select! {
                biased;
                () = stop.cancelled() => return,
                name = self.queue.take() => name,
            };
            self.look_at(&name).await;
            self.queue.done(&name);
        }
    }

    async fn look_at(&self, name: &Name) {
        let mut memory = self.memories().remove(name).unwrap_or_default();
        let passed = AssertUnwindSafe(self.pass(name, &mut memory)).catch_unwind().await;
        let (next, ended) = match passed {
            Ok(Ok(next)) => (next, Ended::Told),
            Ok(Err(error)) if exact::is_late(&error) => (Next::Again, Ended::Again),
            Ok(Err(error)) => {
                warn!(component = %name, "a pass ends early: {error}");
                (Next::Retry, Ended::Failed)
            }
            Err(_panic) => {
                // Others are unharmed.
                error!(component = %name, "a pass broke off; this is a fault of the operator");
                (Next::Retry, Ended::Failed)
            }
        };
        self.turns.end(name);
        self.figures.ended(ended);
        memory.failures = match next {
            Next::Retry => memory.failures.saturating_add(1),
            Next::Turn => memory.failures,
            Next::Event | Next::After(_) | Next::Again | Next::Gone => 0,
        };
        if let Some(pause) = pause(next, memory.failures) {
            self.queue.add_after(name.clone(), pause);
        }
        if next != Next::Gone {
            self.memories().insert(name.clone(), memory);
        }
    }

    /// Whether KEDA's kind is served, asked again where a pass failed before. Where it has come, its objects are read before anything is planned
    /// with it.
    async fn keda_served(&self, failed_before: bool) -> Result<bool, ClusterError> {
        let served = if failed_before { self.discovery.fresh().await? } else { self.discovery.last().await? }.keda;
        let synced = {
            let mut watches = self.watches();
            if watches.keda() == served {
                None
            } else if served {
                watches.add_keda();
                Some(watches.synced())
            } else {
                watches.remove_keda();
                None
            }
        };
        if let Some(mut synced) = synced
            && tokio::time::timeout(NEW_KIND, synced.all()).await.is_err()
        {
            let message = format!("not listed within {} s: {}", NEW_KIND.as_secs(), synced.missing().join(", "));
            return Err(ClusterError::Unreachable { about: "scaledobjects.keda.sh".into(), message });
        }
        Ok(served)
    }

    fn watches(&self) -> std::sync::MutexGuard<'_, Watches> {
        self.watches.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn memories(&self) -> std::sync::MutexGuard<'_, HashMap<Name, Memory>> {
        self.memories.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
