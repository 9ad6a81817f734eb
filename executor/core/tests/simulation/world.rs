//! The world: one queue of happenings, the daemon in the middle, and what must hold after each of them.

mod people;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use agent_api::command::CommandStatus;
use agent_api::digest::Sha256;
use agent_api::frame::{ObjectOutcome, Outcome};
use agent_api::heartbeat::PlatformStatus;
use agent_api::name::CommandId;
use executor_core::{
    ApplyError, ApprovalSeen, Approved, Effect, Event, Expired, Fact, Read, ReadError, Retention, Site, State, TokenBundleError,
    UnpullableImages, platform_status, step,
};

use crate::bundles::Made;
use crate::journal::Disk;
use crate::link::{Frame, Link};
use crate::outside::{Cluster, Manager, Token};
use crate::rng::Rng;

/// Happenings with faults, before the quiet end.
const EVENTFUL: u32 = 400;
/// Happenings of the quiet end, at most.
const QUIET: u32 = 4_000;
/// How often the daemon delivers again, and the manager sends again, in milliseconds.
const AGAIN: u64 = 15_000;

#[derive(Clone, Debug)]
enum Happening {
    Up(Frame),
    Down(Frame),
    Fact { life: u64, id: CommandId, fact: Fact },
    Write { life: u64, id: CommandId, approved: Arc<Approved>, component: usize, done: usize, token: usize },
    Tick,
    ManagerTick,
    Fault,
    Restart,
}

/// What happened, in numbers: a simulation in which nothing happens proves nothing.
#[derive(Clone, Debug, Default)]
pub(crate) struct Totals {
    commands: u64,
    writes: u64,
    crashes: u64,
    full_disks: u64,
    refusals: u64,
    synced: u64,
    expired_in_the_middle: u64,
    replaced: u64,
    lost: u64,
    doubled: u64,
    forgotten: u64,
    dismissed: u64,
    resurfaced: u64,
}

impl Totals {
    pub(crate) fn add(&mut self, other: &Self) {
        let sums = [&mut self.commands, &mut self.writes, &mut self.crashes, &mut self.full_disks, &mut self.refusals, &mut self.synced];
        let more = [other.commands, other.writes, other.crashes, other.full_disks, other.refusals, other.synced];
        sums.into_iter().zip(more).for_each(|(sum, more)| *sum += more);
        self.expired_in_the_middle += other.expired_in_the_middle;
        self.replaced += other.replaced;
        self.lost += other.lost;
        self.doubled += other.doubled;
        self.forgotten += other.forgotten;
        self.dismissed += other.dismissed;
        self.resurfaced += other.resurfaced;
    }

    pub(crate) fn assert_that_faults_happened(&self) {
        let all = [
            self.commands,
            self.writes,
            self.crashes,
            self.full_disks,
            self.refusals,
            self.synced,
            self.expired_in_the_middle,
            self.replaced,
            self.lost,
            self.doubled,
            self.forgotten,
            self.dismissed,
            self.resurfaced,
        ];
        assert!(all.iter().all(|count| *count >= 10), "too little happens: {self:?}");
    }
}

pub(crate) struct World<'a> {
    rng: Rng,
    bundles: &'a [Made],
    now: u64,
    tie: u64,
    queue: BTreeMap<(u64, u64), Happening>,
    disk: Disk,
    /// `None` while the daemon is down.
    state: Option<State>,
    life: u64,
    /// The daemon's clock against the true one, in milliseconds.
    skew: i64,
    link: Link,
    retention: Retention,
    manager: Manager,
    cluster: Cluster,
    /// Tokens that syncs have read.
    tokens: Vec<Token>,
    reading: BTreeMap<CommandId, usize>,
    /// Commands that have written something after they ended: must stay empty.
    ended: BTreeSet<CommandId>,
    quiet: bool,
    aloud: bool,
    log: VecDeque<String>,
    pub(crate) totals: Totals,
}

fn now_or_never<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("the simulated journal never waits"),
    }
}

impl<'a> World<'a> {
    pub(crate) fn new(seed: u64, bundles: &'a [Made], aloud: bool) -> Self {
        let mut rng = Rng::new(seed);
        let link = Link { lose: rng.below(30), double: rng.below(30), delay: 50 + rng.below(20_000) };
        let age = jiff::SignedDuration::from_millis(i64::try_from(5_000 + rng.below(100_000)).unwrap());
        let retention = Retention { age, count: usize::try_from(rng.below(8)).unwrap() };
        Self {
            rng,
            bundles,
            now: 0,
            tie: 0,
            queue: BTreeMap::new(),
            disk: Disk::default(),
            state: None,
            life: 0,
            skew: 0,
            link,
            retention,
            manager: Manager::default(),
            cluster: Cluster::default(),
            tokens: Vec::new(),
            reading: BTreeMap::new(),
            ended: BTreeSet::new(),
            quiet: false,
            aloud,
            log: VecDeque::new(),
            totals: Totals::default(),
        }
    }

    pub(crate) fn last_events(&self) -> String {
        self.log.iter().cloned().collect::<Vec<_>>().join("\n")
    }

    fn say(&mut self, line: impl FnOnce() -> String) {
        let line = format!("{:>9} ms  {}", self.now, line());
        if self.aloud {
            println!("{line}");
        }
        self.log.push_back(line);
        if self.log.len() > 60 {
            self.log.pop_front();
        }
    }

    fn later(&mut self, delay: u64, happening: Happening) {
        self.tie += 1;
        self.queue.insert((self.now + delay, self.tie), happening);
    }

    fn at(&self, skew: i64) -> jiff::Timestamp {
        let now = 1_800_000_000_000 + i64::try_from(self.now).unwrap() + skew;
        jiff::Timestamp::from_millisecond(now).unwrap()
    }

    pub(crate) fn play(&mut self) {
        self.restart();
        self.later(AGAIN, Happening::Tick);
        self.later(AGAIN, Happening::ManagerTick);
        self.propose();
        for _ in 0..4 {
            let delay = self.rng.below(5_000);
            self.later(delay, Happening::Fault);
        }
        for _ in 0..EVENTFUL {
            self.next();
        }
        self.calm();
        for _ in 0..QUIET {
            if self.is_done() {
                return;
            }
            self.next();
        }
        panic!("the story has not ended: {:?}", self.state.as_ref().map(|state| &state.platform));
    }

    /// The faults stop: the disk has room, the link is good, the clock right, and the person approves what is pending.
    fn calm(&mut self) {
        self.quiet = true;
        self.link = Link { lose: 0, double: 0, delay: 20 };
        self.disk.full = false;
        self.skew = 0;
        self.say(|| "the faults stop".into());
        if self.state.is_none() {
            self.restart();
        }
    }

    fn is_done(&mut self) -> bool {
        let all_told = self.manager.sent.values().all(|sent| sent.acknowledged && sent.result.is_some());
        let Some(state) = &self.state else { return false };
        let none_waits = state.undelivered().next().is_none();
        let newest = self.manager.proposal.map(|i| &self.bundles[i].sha256);
        all_told && none_waits && state.platform.applied.as_ref() == newest && self.status() == Some(PlatformStatus::Synced)
    }

    fn next(&mut self) {
        let Some(((time, _), happening)) = self.queue.pop_first() else { panic!("nothing is under way") };
        self.now = time;
        match happening {
            Happening::Up(frame) => self.on_up(frame),
            Happening::Down(frame) => self.on_down(frame),
            Happening::Fact { life, id, fact } if life == self.life => self.take(Event::Sync(id, fact)),
            Happening::Write { life, id, approved, component, done, token } if life == self.life => {
                self.write(id, approved, component, done, token);
            }
            Happening::Fact { .. } | Happening::Write { .. } => {}
            Happening::Tick => {
                self.later(AGAIN, Happening::Tick);
                self.take(Event::Tick);
                self.retain();
                self.beat();
            }
            Happening::ManagerTick => self.manager_tick(),
            Happening::Fault => self.fault(),
            Happening::Restart => self.restart(),
        }
        self.check();
    }

    // ---- the daemon ----

    fn restart(&mut self) {
        if self.state.is_some() {
            return;
        }
        self.say(|| "the daemon starts".into());
        self.life += 1;
        let resurfaces = self.rng.percent(50);
        if self.disk.settle(resurfaces) {
            self.say(|| "a record that was said to have failed is there".into());
            self.totals.resurfaced += 1;
        }
        self.state = Some(self.disk.load(Site { retention: self.retention, ..Site::default() }));
        self.take(Event::Started);
        self.take(Event::Connected);
    }

    /// The daemon forgets; what is left is within the retention, or waits for its acknowledgement.
    fn retain(&mut self) {
        let (before, lives) = (self.disk.commands.len(), self.life);
        self.take(Event::Retain);
        self.totals.forgotten += u64::try_from(before - self.disk.commands.len()).unwrap();
        if self.state.is_some() && self.life == lives && !self.disk.full {
            let told = self.disk.commands.values().filter(|entry| entry.acknowledged);
            let ended = self.disk.commands.values().filter(|entry| entry.result.is_some()).count();
            let kept = told.clone().count();
            assert!(ended <= self.retention.count || kept == 0, "{ended} ended commands are kept, {kept} of them told");
            let (now, age) = (self.at(self.skew), self.retention.age);
            assert!(told.filter_map(|entry| entry.finished_at).all(|at| now.duration_since(at) <= age), "kept for too long");
        }
    }

    fn crash(&mut self) {
        if self.state.take().is_some() {
            self.say(|| "the daemon crashes".into());
            self.totals.crashes += 1;
            self.life += 1;
            let delay = self.rng.below(10_000);
            self.later(delay, Happening::Restart);
        }
    }

    /// One event with all that follows; a crash may come before the record, after it, or between effects.
    fn take(&mut self, event: Event) {
        let mut events = vec![event];
        while let Some(event) = events.pop() {
            let Some(state) = &mut self.state else { return };
            let retry = match &event {
                Event::Sync(id, fact) => Some((*id, fact.clone())),
                Event::Started
                | Event::Connected
                | Event::Command(_)
                | Event::Acknowledged(_)
                | Event::Continue
                | Event::Tick
                | Event::Retain => None,
            };
            let crash_at = (!self.quiet && self.rng.percent(2)).then(|| self.rng.below(5));
            let now = 1_800_000_000_000 + i64::try_from(self.now).unwrap() + self.skew;
            let transition = step(state, event, jiff::Timestamp::from_millisecond(now).unwrap());
            if crash_at == Some(0) {
                return self.crash();
            }
            let Ok(effects) = now_or_never(transition.commit(state, &mut self.disk)) else {
                self.say(|| "the disk is full".into());
                if let Some((id, fact)) = retry {
                    let life = self.life;
                    self.later(1_000, Happening::Fact { life, id, fact });
                }
                continue;
            };
            for (i, effect) in effects.into_iter().enumerate() {
                if crash_at == Some(1 + i as u64) {
                    return self.crash();
                }
                events.extend(self.perform(effect));
            }
        }
    }

    fn perform(&mut self, effect: Effect) -> Option<Event> {
        match effect {
            Effect::Acknowledge(id) => {
                assert!(self.disk.commands.contains_key(&id), "acknowledged before it is on disk: {id}");
                self.up(Frame::Ack(id));
            }
            Effect::Deliver(id) => {
                let on_disk = self.disk.commands.get(&id).and_then(|entry| entry.result.clone());
                let result = on_disk.unwrap_or_else(|| panic!("a result is delivered before it is on disk: {id}"));
                self.up(Frame::Result(result));
            }
            Effect::Beat => self.beat(),
            Effect::Continue => return Some(Event::Continue),
            Effect::Publish | Effect::Progress(_) => {}
            Effect::Read(id, what) => self.read(id, what),
            Effect::Apply { id, approved, component, .. } => {
                let token = *self.reading.get(&id).expect("a sync that applies has read its token bundle");
                let life = self.life;
                self.later(1, Happening::Write { life, id, approved, component, done: 0, token });
            }
        }
        None
    }

    fn read(&mut self, id: CommandId, what: Read) {
        let token = self.reading.get(&id).map(|i| self.tokens[*i].clone());
        let taken = token.as_ref().is_some_and(|token| self.cluster.takes(token, self.now));
        let replaced = token.as_ref().is_some_and(|token| self.cluster.replaced(token));
        self.totals.replaced += u64::from(replaced && !matches!(what, Read::TokenBundle | Read::Render(..) | Read::Images(_)));
        let denied = || if replaced { ReadError::Replaced } else { ReadError::Unauthorized };
        let broken = !self.quiet && self.rng.percent(3);
        let unreachable = || ReadError::Other("the API server cannot be reached".into());
        let fact = match what {
            Read::TokenBundle => Fact::TokenBundle(match &self.cluster.token {
                None => Err(TokenBundleError::Absent),
                Some(_) if broken => Err(TokenBundleError::Damaged("half written".into())),
                Some(token) => {
                    self.tokens.push(token.clone());
                    self.reading.insert(id, self.tokens.len() - 1);
                    Ok(token.bundle.clone())
                }
            }),
            Read::Account(_) if broken => Fact::Account(Err(unreachable())),
            Read::Account(_) if !taken => Fact::Account(Err(denied())),
            Read::Account(_) => Fact::Account(Ok(self.cluster.account())),
            Read::Render(bundle, _, _) => Fact::Rendered(match self.bundles.iter().find(|made| made.sha256 == *bundle.sha256()) {
                Some(_) if broken => Err("the registry cannot be reached".into()),
                Some(made) => Ok(Arc::clone(&made.judged)),
                None => Err("unknown bundle".into()),
            }),
            Read::Permissions(_) if broken => Fact::Permissions(Err(unreachable())),
            Read::Permissions(_) if !taken => Fact::Permissions(Err(denied())),
            Read::Permissions(judged) => {
                Fact::Permissions(Ok(judged.permissions().iter().map(|object| self.cluster.permission(&object.key())).collect()))
            }
            Read::Images(_) if broken => Fact::Images(Err("the registry cannot be reached".into())),
            Read::Images(_) => Fact::Images(Ok(UnpullableImages::default())),
            Read::DryRun { .. } if broken => Fact::DryRun(Ok(vec!["an object that the API server would not take".into()])),
            Read::DryRun { .. } if !taken => Fact::DryRun(Err(denied())),
            Read::DryRun { .. } => Fact::DryRun(Ok(Vec::new())),
        };
        let (life, delay) = (self.life, 1 + self.rng.below(if self.quiet { 10 } else { 2_000 }));
        self.later(delay, Happening::Fact { life, id, fact });
    }

    /// One write of a component, then the next, each with its own look at the clock.
    fn write(&mut self, id: CommandId, approved: Arc<Approved>, component: usize, done: usize, token: usize) {
        let life = self.life;
        let name = approved.bundle().manifest().components[component].name.to_string();
        let keys: Vec<_> = approved
            .judged()
            .workload()
            .iter()
            .filter(|object| object.component.as_deref() == Some(&name))
            .map(|object| object.key())
            .collect();
        if done == keys.len() {
            let outcomes = keys.into_iter().map(|key| ObjectOutcome { key, outcome: Outcome::Changed }).collect();
            return self.later(1, Happening::Fact { life, id, fact: Fact::Applied(outcomes, Ok(())) });
        }
        let here = self.at(self.skew);
        let replaced = self.cluster.replaced(&self.tokens[token]);
        let ended = match approved.writable(here) {
            Err(Expired) => {
                self.totals.expired_in_the_middle += 1;
                Some(if replaced { ApplyError::Replaced } else { ApplyError::Expired })
            }
            Ok(_) if replaced => {
                self.totals.replaced += 1;
                Some(ApplyError::Replaced)
            }
            Ok(_) if !self.cluster.takes(&self.tokens[token], self.now) => Some(ApplyError::Unauthorized),
            Ok(_) if !self.quiet && self.rng.percent(2) => Some(ApplyError::Other("the API server gave up".into())),
            Ok(writable) => {
                let object = writable.object(&keys[done]).expect("the object is part of what was approved");
                self.wrote(id, approved.bundle().sha256(), token, here);
                self.cluster.workload.insert(keys[done].clone(), object.object.clone());
                None
            }
        };
        let delay = 1 + self.rng.below(if self.quiet { 5 } else { 3_000 });
        match ended {
            Some(error) => self.later(delay, Happening::Fact { life, id, fact: Fact::Applied(Vec::new(), Err(error)) }),
            None => self.later(delay, Happening::Write { life, id, approved, component, done: done + 1, token }),
        }
    }

    /// The heart: what was written was approved, by a token of that very bundle which had not ended.
    fn wrote(&mut self, id: CommandId, sha256: &Sha256, token: usize, here: jiff::Timestamp) {
        self.totals.writes += 1;
        let token = &self.tokens[token];
        assert_eq!(&token.bundle.approval.bundle_sha256, sha256, "written under the approval of another bundle");
        assert!(here < token.bundle.expires_at(), "written after the approval's end");
        let entry = &self.disk.commands[&id];
        assert_eq!(entry.sha256.as_ref(), Some(sha256), "a command writes its own bundle");
        assert!(entry.status == CommandStatus::Running && !self.ended.contains(&id), "only a running command writes");
    }

    // ---- the link ----

    fn up(&mut self, frame: Frame) {
        for delay in self.arrivals() {
            self.later(delay, Happening::Up(frame.clone()));
        }
    }

    fn down(&mut self, frame: Frame) {
        for delay in self.arrivals() {
            self.later(delay, Happening::Down(frame.clone()));
        }
    }

    fn arrivals(&mut self) -> Vec<u64> {
        let arrivals = self.link.arrivals(&mut self.rng);
        self.totals.lost += u64::from(arrivals.is_empty());
        self.totals.doubled += u64::from(arrivals.len() > 1);
        arrivals
    }

    fn status(&self) -> Option<PlatformStatus> {
        let token = self.cluster.token.as_ref();
        let seen = token.map(|token| ApprovalSeen {
            sha256: token.bundle.approval.bundle_sha256.clone(),
            expires_at: token.bundle.expires_at(),
            install_id: token.bundle.approval.install_id,
            leftovers: 0,
        });
        self.state.as_ref().map(|state| platform_status(state, seen.as_ref(), self.at(self.skew)))
    }

    fn beat(&mut self) {
        let (Some(status), Some(state)) = (self.status(), &self.state) else { return };
        let pending = state.platform.pending.as_ref().map(|pending| pending.sha256.clone());
        let approved = self.cluster.token.as_ref().map(|token| token.bundle.approval.bundle_sha256.clone());
        self.up(Frame::Beat { status, pending, approved });
    }

    fn on_down(&mut self, frame: Frame) {
        match frame {
            Frame::Command(command) => {
                self.say(|| format!("command {} arrives", command.sequence));
                self.take(Event::Command(command));
            }
            Frame::ResultAck(id) => self.take(Event::Acknowledged(id)),
            Frame::Ack(_) | Frame::Result(_) | Frame::Beat { .. } => panic!("not a frame down"),
        }
    }

    // ---- the faults ----

    fn fault(&mut self) {
        if self.quiet {
            return;
        }
        let (again, which) = (self.rng.below(8_000), self.rng.below(10));
        self.later(again, Happening::Fault);
        match which {
            0 | 1 => self.crash(),
            2 => {
                self.disk.full = !self.disk.full;
                self.disk.leaves_traces = self.rng.percent(50);
                self.totals.full_disks += u64::from(self.disk.full);
            }
            3 => self.skew += i64::try_from(self.rng.below(400_000)).unwrap() - 200_000,
            4 => self.propose(),
            5 => self.cluster.tamper(),
            6 => self.cluster.revoke(),
            7 => {
                // The manager forgets that commands were acknowledged, and sends them again.
                self.say(|| "the manager forgets".into());
                self.manager.sent.values_mut().for_each(|sent| sent.acknowledged = false);
            }
            _ => {
                let ttl = 1_000 + self.rng.below(60_000);
                self.approve_pending(ttl);
            }
        }
    }

    // ---- what must hold ----

    fn check(&mut self) {
        for (id, entry) in &self.disk.commands {
            if entry.result.is_some() {
                self.ended.insert(*id);
            }
            assert!(self.manager.sent.contains_key(id), "a command that nobody sent");
        }
        let running = self.disk.commands.values().filter(|entry| entry.status == CommandStatus::Running).count();
        assert!(running <= 1, "{running} commands run on one target");
        if let Some(state) = &self.state {
            assert_eq!(state.platform, self.disk.platform, "memory and disk differ");
            assert_eq!(state.commands, self.disk.commands, "memory and disk differ");
        }
        // The pending bundle is that of the newest whole proposal that was taken.
        let taken = self.manager.sent.values().filter(|sent| self.disk.accepted.contains(&sent.command.id));
        let taken = taken.filter_map(|sent| Some((sent.command.sequence, sent.bundle.as_ref()?)));
        let newest = taken.max_by_key(|(sequence, _)| *sequence).map(|(_, sha256)| sha256);
        let pending = self.disk.platform.pending.as_ref().map(|pending| &pending.sha256);
        assert_eq!(pending, newest, "pending is the newest proposal");
        if let (Some(applied), Some(approved)) = (&self.disk.platform.applied, self.cluster.approved()) {
            assert!(self.bundles.iter().any(|made| made.sha256 == *applied) && !approved.is_empty());
        }
    }
}
