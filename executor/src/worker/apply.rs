//! Applies one component of an approved bundle: wave after wave, hooks to completion, then until it is ready.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use agent_api::frame::{CommandProgress, ObjectOutcome, Up};
use agent_api::name::CommandId;
use agent_api::names::FIELD_MANAGER_EXECUTOR;
use agent_api::object::ObjectKey;
use cluster::object::{Apply, Found};
use cluster::readiness::{self, WaitError};
use cluster::{Client, ClusterError};
use executor_core::bundle::{Phase, Wave};
use executor_core::{ApplyError, ApprovalSeen, Approved, CHECKS, Expired, Fact};
use futures::StreamExt;
use serde_json::Value;
use tokio::sync::mpsc;

use super::account::Account;
use super::{CONCURRENCY, Worker};
use crate::terminal::chain;

/// How long a component may take to get ready, and a hook to complete.
const READY: Duration = Duration::from_secs(15 * 60);
/// `command_progress` frames are sent at most so often.
const PROGRESS: Duration = Duration::from_secs(1);

/// One component to apply.
pub(crate) struct Task {
    /// Command.
    pub(crate) id: CommandId,
    /// The checked bundle.
    pub(crate) approved: Arc<Approved>,
    /// Index into the manifest's components.
    pub(crate) component: usize,
    /// Jobs that are done for this installation.
    pub(crate) jobs_done: BTreeSet<ObjectKey>,
}

/// Applies and waits; `written` holds what was written, also where it fails.
/// `found` is what a dry run told to be in the objects' places.
pub(super) async fn component(
    worker: &Worker,
    account: Account,
    found: &BTreeMap<ObjectKey, Found>,
    task: Task,
    written: &mut Vec<ObjectOutcome>,
) -> Result<(), ApplyError> {
    let components = &task.approved.bundle().manifest().components;
    let name = components.get(task.component).map(|component| component.name.to_string()).unwrap_or_default();
    let mut progress = Progress::new(worker, &task, components.len());
    let mut to_watch = Vec::new();
    for wave in task.approved.judged().waves(&name) {
        let todo: Vec<ObjectKey> = wave.objects.iter().map(|object| object.key()).filter(|key| !task.jobs_done.contains(key)).collect();
        let live = write_all(&account, &task.approved, found, todo, written).await?;
        if is_hook(&wave) {
            wait(worker, &account, &task, &live, &mut progress).await?;
        } else {
            to_watch.extend(live);
        }
    }
    wait(worker, &account, &task, &to_watch, &mut progress).await
}

/// The writes of a wave, side by side. After a failure no further one begins; what is under way ends and is told. Answers with the live
/// objects whose readiness is waited for.
async fn write_all(
    account: &Account,
    approved: &Arc<Approved>,
    found: &BTreeMap<ObjectKey, Found>,
    keys: Vec<ObjectKey>,
    written: &mut Vec<ObjectOutcome>,
) -> Result<Vec<Value>, ApplyError> {
    let failed = AtomicBool::new(false);
    let writes: Vec<_> = keys
        .into_iter()
        .map(|key| async {
            if failed.load(Ordering::Relaxed) {
                return Ok(None);
            }
            let before = found.get(&key).unwrap_or(&Found::Nothing);
            let result = write(account, approved, before, key).await;
            failed.fetch_or(result.is_err(), Ordering::Relaxed);
            result.map(Some)
        })
        .collect();
    let mut results = futures::stream::iter(writes).buffered(CONCURRENCY);
    let (mut live, mut first_error) = (Vec::new(), None);
    while let Some(result) = results.next().await {
        match result {
            Ok(None) => {}
            Ok(Some((outcome, object))) => {
                if matches!(outcome.key.kind.as_str(), "Deployment" | "Job") {
                    live.push(object);
                }
                written.push(outcome);
            }
            Err(error) => drop(first_error.get_or_insert(error)),
        }
    }
    first_error.map_or(Ok(live), Err)
}

fn is_hook(wave: &Wave) -> bool {
    match wave.phase {
        Phase::PreHook(_) | Phase::PostHook(_) => true,
        Phase::Configuration | Phase::Services | Phase::Workloads | Phase::Disruption => false,
    }
}

/// One write. The approval's end is asked before each try, and ends a try that is under way; a denial is tried again while rights may
/// still be on their way.
async fn write(account: &Account, approved: &Approved, found: &Found, key: ObjectKey) -> Result<(ObjectOutcome, Value), ApplyError> {
    let began = Instant::now();
    loop {
        let now = jiff::Timestamp::now();
        let writable = approved.writable(now).map_err(|Expired| expired(account))?;
        let left = Duration::try_from(approved.expires_at().duration_since(now)).unwrap_or_default();
        let object = writable.object(&key).ok_or_else(|| ApplyError::Other(format!("{key} is not part of the approved bundle")))?;
        let how = Apply { manager: FIELD_MANAGER_EXECUTOR, dry_run: false };
        let tried = tokio::time::timeout(left, cluster::object::apply(&account.client, &object.object, found, how)).await;
        match tried.map_err(|_elapsed| expired(account))? {
            Ok(applied) => {
                tracing::info!(object = %key, outcome = ?applied.outcome, "applied");
                return Ok((ObjectOutcome { key, outcome: applied.outcome }, applied.object));
            }
            Err(error) => account.try_again(error, began).await?,
        }
    }
}

/// The approval that the sync began with has ended; another one may have taken its place.
fn expired(account: &Account) -> ApplyError {
    if account.is_replaced() { ApplyError::Replaced } else { ApplyError::Expired }
}

/// Waits for readiness as `pcm-executor` where it can look, else as `pcm-platform`; no longer than the bundle is the approved one.
async fn wait(worker: &Worker, account: &Account, task: &Task, objects: &[Value], progress: &mut Progress<'_>) -> Result<(), ApplyError> {
    let waiting = async {
        let eyes = worker.observed.borrow().client.clone();
        let ready = wait_as(worker, eyes.unwrap_or_else(|| account.client.clone()), task, objects, progress).await;
        // The standing access may have ended; that says nothing about the approval.
        let denied = |error: &ClusterError| matches!(error, ClusterError::Unauthorized { .. } | ClusterError::Forbidden { .. });
        match ready {
            Err(WaitError::Cluster(error)) if denied(&error) => wait_as(worker, account.client.clone(), task, objects, progress).await,
            ready => ready,
        }
    };
    let ready = tokio::select! {
        ready = waiting => ready,
        () = withdrawn(worker, task) => return Err(ApplyError::Replaced),
    };
    ready.map_err(|error| match error {
        WaitError::Cluster(ClusterError::Unauthorized { .. }) if account.is_replaced() => ApplyError::Replaced,
        WaitError::Cluster(ClusterError::Unauthorized { .. }) => ApplyError::Unauthorized,
        WaitError::Failed { key, reason } if key.kind == "Job" => {
            let again = format!("kubectl -n {} delete job {}", key.namespace, key.name);
            ApplyError::Other(format!("{key}: {reason}; it is not run again by itself: mend the cause, then `{again}` and approve again"))
        }
        error => ApplyError::Other(chain(&error)),
    })
}

/// Until the approval at hand is none of this bundle: it was revoked, or another bundle was approved, which waits for this one's end. One that
/// merely ends leaves what is applied, and its readiness is worth knowing.
async fn withdrawn(worker: &Worker, task: &Task) {
    let other = |seen: &Option<ApprovalSeen>| seen.as_ref().is_none_or(|seen| seen.sha256 != *task.approved.bundle().sha256());
    if worker.seen.clone().wait_for(other).await.is_err() {
        // The daemon ends.
        std::future::pending().await
    }
}

/// As one identity. A Job that completes is recorded as done at once: other objects may take long, and meanwhile its time-to-live may
/// remove it.
async fn wait_as(worker: &Worker, eyes: Client, task: &Task, objects: &[Value], progress: &mut Progress<'_>) -> Result<(), WaitError> {
    let (done, mut ended) = mpsc::unbounded_channel();
    let waiting = async move {
        let news = |key: &ObjectKey, news: &str| {
            if news == "ready" && key.kind == "Job" {
                let _ = done.send(key.clone());
            }
            progress.say(format!("{key}: {news}"));
        };
        readiness::wait(&eyes, objects, READY, news).await
    };
    let recording = async {
        while let Some(job) = ended.recv().await {
            let _ = worker.facts.send((task.id, Fact::JobDone(job))).await;
        }
    };
    let (ready, ()) = tokio::join!(waiting, recording);
    ready
}

/// Sends progress, not too often.
struct Progress<'a> {
    worker: &'a Worker,
    frame: CommandProgress,
    last: Option<Instant>,
}

impl<'a> Progress<'a> {
    fn new(worker: &'a Worker, task: &Task, components: usize) -> Self {
        let number = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        let frame = CommandProgress {
            id: task.id,
            stage: "applying".into(),
            step: number(CHECKS + 1 + task.component),
            of: number(CHECKS + components),
            object: None,
        };
        Self { worker, frame, last: None }
    }

    fn say(&mut self, object: String) {
        tracing::info!("waiting: {object}");
        if self.last.is_none_or(|last| last.elapsed() >= PROGRESS) {
            self.last = Some(Instant::now());
            self.worker.channel.send(Up::CommandProgress(CommandProgress { object: Some(object), ..self.frame.clone() }));
        }
    }
}
