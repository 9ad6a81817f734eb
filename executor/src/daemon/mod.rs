//! The daemon: one loop that takes events, asks the core what follows, and does it. It alone owns the state.

mod figures;
mod pending_file;
mod query;
mod reread;

use std::collections::{BTreeSet, VecDeque};
use std::path::Path;
use std::process::ExitCode;

use agent_api::approval::Versions;
use agent_api::frame::{CommandAck, Hello, PROTOCOL, Up};
use agent_api::heartbeat::Heartbeat;
use agent_api::manifest::Bundle;
use agent_api::name::CommandId;
use executor_core::{ApprovalSeen, Effect, Event, Fact, Retention, Site, State, step};
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;
use tracing::{error, info, warn};

pub(crate) use figures::{ChannelFigures, Figures};
pub(crate) use pending_file::document as pending_document;
pub(crate) use query::Daemon;

use crate::channel::{Channel, Incoming, Link, Standing};
use crate::config::{Config, ConfigError, SERVICE_ACCOUNT_DIR};
use crate::heartbeat::{self, Fixed};
use crate::journal::Journal;
use crate::observe::{self, Access, Drifted, Observed};
use crate::signed::Signed;
use crate::terminal::{chain, fail, report};
use crate::worker::{Task, Worker};
use crate::{approval, error_code, health, local_api, log, service_manager, token_renewal};

/// Events that wait; whoever sends more waits.
const EVENTS: usize = 64;
/// How often unacknowledged results are delivered again.
const REDELIVERY: std::time::Duration = std::time::Duration::from_secs(15);
/// Pause before a record that could not be written is tried again.
const JOURNAL_RETRY: std::time::Duration = std::time::Duration::from_secs(1);

/// Runs the daemon until SIGTERM or SIGINT.
pub(crate) async fn main(path: &Path) -> ExitCode {
    let config = match Config::load(path) {
        Ok(config) => config,
        Err(error) => return report(&error),
    };
    let level = log::start(config.log_level(), config.log.format);
    match run(config, path, level).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(error_code::of_start(&error), format_args!("{error:#}")),
    }
}

async fn run(config: Config, path: &Path, level: log::LevelHandle) -> anyhow::Result<()> {
    let signals = service_manager::Signals::listen()?;
    for block in config.ignored() {
        warn!("configuration: `{block}` is for other programs or versions and is ignored");
    }
    let engine = render::Engine::locate().await?;
    let versions = Versions { clicklink: env!("CARGO_PKG_VERSION").into(), engine: engine.version().into() };
    let renderer = reread::renderer(&config, engine.clone())?;
    let signed = Signed::load(&config.api)?;
    let site = Site { connector_namespace: connector_namespace(&config)?, versions, retention: Retention::default() };
    let (journal, state) = Journal::open(&config.executor.db_path, site).await?;

    let (incoming, frames) = mpsc::channel(EVENTS);
    let (facts, learned) = mpsc::channel(EVENTS);
    let (daemon, queries) = Daemon::new();
    let hello = watch::Sender::new(hello(&config, &state, None));
    let access = Access::of(&config);
    token_renewal::spawn(&access, config.token_renew);
    let observed = observe::follow(access);
    let seen = approval::follow(config.executor.access_dir.clone());
    let channel = Channel::spawn(signed, hello.subscribe(), incoming);
    let worker = Worker::new(
        config.executor.access_dir.clone(),
        config.namespace_prefix.clone(),
        renderer,
        observed.clone(),
        seen.clone(),
        channel.clone(),
        facts,
    );
    local_api::spawn(config.executor.api_port, daemon.clone()).await?;
    match config.health_port() {
        Some(port) => health::spawn(port, daemon.clone()).await?,
        None => info!("health and metrics are not served: executor.observability says so"),
    }
    let fixed = Fixed { config, started_at: jiff::Timestamp::now() };
    let mut running = Running {
        interval: fixed.config.heartbeat.interval,
        fixed,
        state,
        journal,
        worker,
        channel,
        hello,
        observed,
        seen,
        pending: None,
        unpublished: false,
        learned: VecDeque::new(),
        learn_again: Instant::now(),
        told: BTreeSet::new(),
        in_trouble: false,
        next_beat: Instant::now(),
        heartbeats: 0,
        rereadable: reread::Rereadable { path: path.to_owned(), level, engine },
    };
    service_manager::prove_alive(daemon);
    let stop = signals.stop.clone();
    match service_manager::bounded(stop, service_manager::GRACE, running.drive(frames, learned, queries, signals)).await {
        Some(ended) => ended?,
        None => warn!(grace = ?service_manager::GRACE, "the main loop did not end in time and is cut off"),
    }
    info!("executor stops; what runs goes on after the next start");
    Ok(())
}

/// In a pod: the namespace that the kubelet mounts beside the token.
fn connector_namespace(config: &Config) -> Result<Option<String>, ConfigError> {
    if !config.executor.cluster.in_cluster {
        return Ok(None);
    }
    let file = Path::new(SERVICE_ACCOUNT_DIR).join("namespace");
    match std::fs::read_to_string(&file) {
        Ok(namespace) => Ok(Some(namespace.trim().to_owned())),
        Err(error) => Err(ConfigError::NoPod(file, error)),
    }
}

fn hello(config: &Config, state: &State, cluster_uid: Option<String>) -> Hello {
    Hello {
        executor_id: config.pcm_infra_uuid,
        cluster_uid,
        version: env!("CARGO_PKG_VERSION").into(),
        protocols: vec![PROTOCOL],
        last_sequence: state.platform.last_sequence,
        unacknowledged_results: state.undelivered().collect(),
    }
}

/// The loop's own.
pub(crate) struct Running {
    fixed: Fixed,
    state: State,
    journal: Journal,
    worker: Worker,
    channel: Channel,
    hello: watch::Sender<Hello>,
    observed: watch::Receiver<Observed>,
    seen: watch::Receiver<Option<ApprovalSeen>>,
    /// The pending bundle, read once.
    pending: Option<Bundle>,
    /// Whether the pending document is older than the journal.
    unpublished: bool,
    /// What syncs have learned and is not on record yet, in order, and when it is tried again.
    learned: VecDeque<(CommandId, Fact)>,
    learn_again: Instant,
    /// Results that the log has told, until they are acknowledged.
    told: BTreeSet<CommandId>,
    /// Whether the last heartbeat said that the journal takes no records.
    in_trouble: bool,
    interval: std::time::Duration,
    next_beat: Instant,
    /// Heartbeats handed to a channel that was up.
    heartbeats: u64,
    rereadable: reread::Rereadable,
}

impl Running {
    async fn drive(
        &mut self,
        mut frames: mpsc::Receiver<Incoming>,
        mut learned: mpsc::Receiver<(CommandId, Fact)>,
        mut queries: mpsc::Receiver<query::Query>,
        mut signals: service_manager::Signals,
    ) -> anyhow::Result<()> {
        let mut redelivery = tokio::time::interval(REDELIVERY);
        info!(pending = ?self.state.platform.pending.as_ref().map(|pending| pending.sha256.short().to_owned()), "executor started");
        self.take(Event::Started).await;
        loop {
            tokio::select! {
                frame = frames.recv() => match frame {
                    Some(frame) => self.on_frame(frame).await,
                    None => anyhow::bail!("the channel's task ended"),
                },
                fact = learned.recv() => if let Some((id, fact)) = fact { self.learn(id, fact).await },
                () = tokio::time::sleep_until(self.learn_again), if !self.learned.is_empty() => self.take_learned().await,
                query = queries.recv() => if let Some(query) = query { query(self) },
                changed = self.seen.changed() => if changed.is_ok() {
                    info!(approval = ?self.seen.borrow().as_ref().map(|seen| seen.sha256.short().to_owned()), "the approval at hand changed");
                    self.beat();
                },
                changed = self.observed.changed() => if changed.is_ok() { self.on_observation() },
                _ = redelivery.tick() => {
                    self.journal.retry().await;
                    self.take(Event::Tick).await;
                    self.take(Event::Retain).await;
                    if self.unpublished || self.is_missing() {
                        self.publish();
                    }
                }
                () = tokio::time::sleep_until(self.next_beat) => self.beat(),
                _ = signals.hangup.recv() => self.reread(),
                () = signals.stop.cancelled() => return Ok(()),
            }
        }
    }

    async fn on_frame(&mut self, frame: Incoming) {
        match frame {
            Incoming::Connected(welcome) => {
                self.interval = std::time::Duration::from_secs(u64::from(welcome.heartbeat_interval_s.clamp(5, 300)));
                self.take(Event::Connected).await;
            }
            Incoming::Disconnected => {}
            Incoming::Command(command) => {
                let bundle = command.payload.get("sha256").and_then(serde_json::Value::as_str).unwrap_or_default();
                info!(command = %command.id, action = command.action, bundle, "command received");
                self.take(Event::Command(command)).await;
            }
            Incoming::ResultAck(id) => {
                self.told.remove(&id);
                self.take(Event::Acknowledged(id)).await;
            }
        }
    }

    /// A changed observation is news only where the heartbeat says something else.
    fn on_observation(&mut self) {
        let uid = self.observed.borrow_and_update().cluster.uid.clone();
        if self.hello.borrow().cluster_uid != uid {
            self.hello.send_modify(|hello| hello.cluster_uid = uid);
            self.publish();
        }
        // At most one a second, however fast a rollout goes.
        self.next_beat = self.next_beat.min(Instant::now() + std::time::Duration::from_secs(1));
    }

    /// One event, and whatever follows from it; answers whether its own record is on disk. A record that is not has no effects: the
    /// manager sends a command again, a tick tries to begin again, and for facts see [`Running::learn`].
    async fn take(&mut self, event: Event) -> bool {
        let (mut events, mut taken) = (vec![event], None);
        while let Some(event) = events.pop() {
            let transition = step(&self.state, event, jiff::Timestamp::now());
            let committed = transition.commit(&mut self.state, &mut self.journal).await;
            taken.get_or_insert(committed.is_ok());
            match committed {
                Ok(effects) => events.extend(effects.into_iter().filter_map(|effect| self.perform(effect))),
                Err(error) => error!("{}", chain(&error)),
            }
        }
        let (last_sequence, unacknowledged) = (self.state.platform.last_sequence, self.state.undelivered().collect::<Vec<_>>());
        self.hello.send_if_modified(|hello| {
            let changed = hello.last_sequence != last_sequence || hello.unacknowledged_results != unacknowledged;
            (hello.last_sequence, hello.unacknowledged_results) = (last_sequence, unacknowledged);
            changed
        });
        self.tell_of_trouble();
        taken.unwrap_or(true)
    }

    /// Whether the journal takes records is news.
    fn tell_of_trouble(&mut self) {
        if self.in_trouble != self.journal.is_in_trouble() {
            self.in_trouble = self.journal.is_in_trouble();
            if !self.in_trouble {
                info!("the journal takes records again");
            }
            self.beat();
        }
    }

    /// What a sync has learned is taken in order. One whose record is not on disk has no effects and is tried again, and nothing that was
    /// learned later overtakes it: the end of a component must not come before a Job of it that is done.
    async fn learn(&mut self, id: CommandId, fact: Fact) {
        self.learned.push_back((id, fact));
        self.take_learned().await;
    }

    async fn take_learned(&mut self) {
        while self.learn_again <= Instant::now() {
            let Some((id, fact)) = self.learned.pop_front() else { return };
            if !self.take(Event::Sync(id, fact.clone())).await {
                self.learned.push_front((id, fact));
                self.learn_again = Instant::now() + JOURNAL_RETRY;
            }
        }
    }

    fn perform(&mut self, effect: Effect) -> Option<Event> {
        match effect {
            Effect::Acknowledge(id) => self.channel.send(Up::CommandAck(CommandAck { id })),
            Effect::Deliver(id) => {
                let entry = self.state.commands.get(&id);
                if let Some((entry, result)) = entry.and_then(|entry| entry.result.clone().map(|result| (entry, result))) {
                    if self.told.insert(id) {
                        let bundle = entry.sha256.as_ref().map(tracing::field::display);
                        info!(command = %id, bundle, status = result.status.as_str(), "{}", result.result);
                    }
                    self.channel.send(Up::CommandResult(result));
                }
            }
            Effect::Publish => {
                let pending = self.state.platform.pending.as_ref();
                self.pending = pending.and_then(|pending| Bundle::parse(pending.manifest.clone()).ok());
                self.publish();
            }
            Effect::Beat => self.beat(),
            Effect::Continue => return Some(Event::Continue),
            Effect::Progress(progress) => self.channel.send(Up::CommandProgress(progress)),
            Effect::Read(id, what) => self.worker.read(id, what),
            Effect::Apply { id, approved, component, jobs_done } => self.worker.apply(Task { id, approved, component, jobs_done }),
        }
        None
    }

    /// Rewrites the pending document; a failure is told and tried again, since a person would read, and approve, the former one.
    fn publish(&mut self) {
        let uid = self.observed.borrow().cluster.uid.clone();
        let path = self.fixed.config.pending_file();
        let written = pending_file::write(&path, self.state.platform.pending.as_deref(), uid);
        if let Err(error) = &written {
            warn!("the pending bundle could not be written to {}: {error}; it is tried again", path.display());
        }
        self.unpublished = written.is_err();
    }

    /// Whether somebody removed the pending document.
    fn is_missing(&self) -> bool {
        self.state.platform.pending.is_some() && pending_file::is_missing(&self.fixed.config.pending_file())
    }

    fn beat(&mut self) {
        let heartbeat = self.heartbeat();
        // The approval's end is news, too.
        let expiry = heartbeat.platform.approval_expires_at.map(|end| end.duration_since(jiff::Timestamp::now()));
        let until_expiry = expiry.and_then(|left| std::time::Duration::try_from(left).ok()).filter(|left| !left.is_zero());
        self.channel.send(Up::Heartbeat(Box::new(heartbeat)));
        self.heartbeats += u64::from(matches!(self.channel.standing().link, Link::Up(_)));
        self.next_beat = Instant::now() + until_expiry.map_or(self.interval, |left| left.min(self.interval));
    }

    /// The heartbeat as of now.
    pub(crate) fn heartbeat(&self) -> Heartbeat {
        let (seen, observed) = (self.seen.borrow(), self.observed.borrow());
        let manifest = self.pending.as_ref().map(Bundle::manifest);
        heartbeat::compose(&self.fixed, &self.state, manifest, seen.as_ref(), &observed, self.journal.condition(), jiff::Timestamp::now())
    }

    /// Live objects that are not as they were approved.
    pub(crate) fn drift(&self) -> Option<Vec<Drifted>> {
        Some(self.observed.borrow().drift(self.state.platform.applied.as_ref())?.cloned().collect())
    }

    /// How the channel to the manager stands.
    pub(crate) fn channel(&self) -> Standing {
        self.channel.standing()
    }

    /// The state.
    pub(crate) fn state(&self) -> &State {
        &self.state
    }

    /// The cluster's uid as observed.
    pub(crate) fn cluster_uid(&self) -> Option<String> {
        self.observed.borrow().cluster.uid.clone()
    }
}
