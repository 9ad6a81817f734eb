//! One of several operators leads, by a Lease. A leader writes only for so long after its last renewal that its writes are over before another may
//! begin: [`fence`] holds every write against that, and cuts off what is under way.

pub mod fence;
mod rule;

use std::time::Duration;

use cluster::{Client, ClusterError, exact, object};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout_at};
use tracing::{info, warn};

use self::rule::{Observed, Step, step};
use crate::generate::OPERATOR;
use crate::health::{Readiness, Waits};
use crate::reconcile::FIELD_MANAGER;

/// A Lease that was not renewed for so long is another's to take.
const LEASE: Duration = Duration::from_secs(15);
/// So long after the beginning of its last good renewal a leader writes. The rest of [`LEASE`] is for what the API server is still about.
const WRITES: Duration = Duration::from_secs(10);
/// Pause between renewals, and between looks of those that wait.
const PAUSE: Duration = Duration::from_secs(2);

/// Until when writes may be sent; `None` while another leads.
pub type Deadline = Option<Instant>;

/// An operator that leads or wants to.
pub struct Leader {
    client: Client,
    namespace: String,
    identity: String,
    deadline: watch::Sender<Deadline>,
    observed: Option<Observed>,
    /// The Lease as it was last put.
    held: Option<Value>,
}

impl Leader {
    /// One that does not lead yet. `client` must not be fenced.
    #[must_use]
    pub fn new(client: Client, namespace: &str, identity: String) -> Self {
        Self { client, namespace: namespace.to_owned(), identity, deadline: watch::Sender::new(None), observed: None, held: None }
    }

    /// Until when writes may be sent.
    #[must_use]
    pub fn deadline(&self) -> watch::Receiver<Deadline> {
        self.deadline.subscribe()
    }

    /// Waits until this operator leads. It is ready while it stands by, and not while the Lease cannot be had.
    pub async fn lead(&mut self, readiness: &Readiness) {
        loop {
            let begun = Instant::now();
            match self.try_to_lead(begun).await {
                Ok(true) => {
                    info!(identity = self.identity, "this operator leads");
                    self.deadline.send_replace(Some(begun + WRITES));
                    return;
                }
                Ok(false) => readiness.is_there(),
                Err(error) => {
                    warn!("the Lease cannot be had: {error}");
                    readiness.waits(Waits::Lease);
                }
            }
            sleep(PAUSE).await;
        }
    }

    async fn try_to_lead(&mut self, now: Instant) -> Result<bool, ClusterError> {
        let live = object::get(&self.client, &self.lease(Value::Null)).await?;
        self.observed = Observed::of(live.as_ref(), self.observed.take(), now);
        let taken = match step(self.observed.as_ref(), &self.identity, now) {
            Step::Create => {
                object::create(&self.client, &self.lease(self.spec(0)), object::Apply { manager: FIELD_MANAGER, dry_run: false }).await
            }
            Step::Take { transitions } => self.put(live.unwrap_or_default(), self.spec(transitions)).await,
            Step::Wait => return Ok(false),
        };
        match taken {
            Ok(lease) => {
                self.observed = Observed::of(Some(&lease), None, now);
                self.held = Some(lease);
                Ok(true)
            }
            // Another was faster.
            Err(error) if exact::is_late(&error) || matches!(error, ClusterError::AlreadyExists { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Renews until that fails for too long, or another leads.
    pub async fn hold(&mut self) {
        let mut until = self.deadline.borrow().unwrap_or_else(Instant::now);
        loop {
            sleep(PAUSE).await;
            let begun = Instant::now();
            match timeout_at(until, self.renew(begun)).await {
                Ok(Ok(true)) => {
                    until = begun + WRITES;
                    self.deadline.send_replace(Some(until));
                }
                Ok(Ok(false)) => break warn!("another operator leads"),
                Ok(Err(error)) => warn!("the Lease is not renewed: {error}"),
                Err(_elapsed) => {}
            }
            if Instant::now() >= until {
                break warn!("the Lease was not renewed in time: this operator leads no more");
            }
        }
        self.deadline.send_replace(None);
    }

    /// Puts the Lease over what was last put; where somebody else touched it, it is read, and may be another's.
    async fn renew(&mut self, now: Instant) -> Result<bool, ClusterError> {
        let held = self.held.take();
        let read = held.is_none();
        let live = match held {
            Some(held) => held,
            None => match object::get(&self.client, &self.lease(Value::Null)).await? {
                Some(live) => live,
                None => return Ok(false),
            },
        };
        let Some(observed) = Observed::of(Some(&live), None, now).filter(|observed| observed.holder == self.identity) else {
            return Ok(false);
        };
        let mut spec = self.spec(observed.transitions);
        spec["acquireTime"] = live.pointer("/spec/acquireTime").cloned().unwrap_or_default();
        match self.put(live, spec).await {
            Ok(put) => {
                self.held = Some(put);
                Ok(true)
            }
            Err(error) if exact::is_late(&error) && !read => Box::pin(self.renew(now)).await,
            Err(error) if exact::is_late(&error) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Lets another lead at once. Nothing may be under way any more.
    pub async fn release(&mut self) {
        self.deadline.send_replace(None);
        let released = async {
            let Some(live) = object::get(&self.client, &self.lease(Value::Null)).await? else { return Ok(()) };
            match Observed::of(Some(&live), None, Instant::now()) {
                Some(observed) if observed.holder == self.identity => {
                    let mut spec = self.spec(observed.transitions);
                    spec["holderIdentity"] = "".into();
                    spec["leaseDurationSeconds"] = 1.into();
                    self.put(live, spec).await.map(drop)
                }
                Some(_) | None => Ok(()),
            }
        };
        if let Err(error) = released.await {
            warn!("the Lease is not released, and runs out by itself: {error}");
        }
    }

    async fn put(&self, live: Value, spec: Value) -> Result<Value, ClusterError> {
        let mut lease = live;
        lease["spec"] = spec;
        exact::update(&self.client, &lease, None, FIELD_MANAGER).await
    }

    fn spec(&self, transitions: i64) -> Value {
        let now = format!("{:.6}", jiff::Timestamp::now());
        json!({"holderIdentity": self.identity, "leaseDurationSeconds": LEASE.as_secs(), "acquireTime": now, "renewTime": now,
            "leaseTransitions": transitions})
    }

    fn lease(&self, spec: Value) -> Value {
        json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": OPERATOR, "namespace": self.namespace},
            "spec": spec})
    }
}
