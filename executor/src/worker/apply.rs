//! Applies one component of an approved bundle: wave after wave, hooks to completion, then until it is ready.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use agent_api::frame::{CommandProgress, ObjectOutcome, Up};
use agent_api::name::CommandId;
use agent_api::names::{FIELD_MANAGER_EXECUTOR, SCOPE_GUARD};
use agent_api::object::ObjectKey;
use cluster::object::Apply;
use cluster::readiness;
use cluster::{Client, ClusterError};
use executor_core::bundle::{Phase, Wave};
use executor_core::{ApplyError, Approved, Expired, Fact};
use futures::{StreamExt, TryStreamExt};
use serde_json::Value;

use super::{CONCURRENCY, Worker};
use crate::terminal::chain;

/// How long a component may take to get ready, and a hook to complete.
const READY: Duration = Duration::from_secs(15 * 60);
/// How long a denial is taken for rights that have not reached every API server yet.
const PROPAGATION: Duration = Duration::from_secs(30);
/// Pause between tries of a denied write.
const PAUSE: Duration = Duration::from_secs(1);
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

pub(super) async fn component(worker: &Worker, client: Client, task: Task) -> Result<Vec<ObjectOutcome>, ApplyError> {
    let components = &task.approved.bundle().manifest().components;
    let name = components.get(task.component).map(|component| component.name.to_string()).unwrap_or_default();
    let mut progress = Progress::new(worker, &task, components.len());
    let mut outcomes = Vec::new();
    let mut to_watch = Vec::new();
    for wave in task.approved.judged().waves(&name) {
        let todo: Vec<ObjectKey> = wave.objects.iter().map(|object| object.key()).filter(|key| !task.jobs_done.contains(key)).collect();
        let applied: Vec<(ObjectOutcome, Value)> = futures::stream::iter(todo)
            .map(|key| write(client.clone(), Arc::clone(&task.approved), key))
            .buffered(CONCURRENCY)
            .try_collect()
            .await?;
        let watched = applied.iter().filter(|(outcome, _)| outcome.key.kind == "Deployment" || outcome.key.kind == "Job");
        let live: Vec<Value> = watched.map(|(_, live)| live.clone()).collect();
        outcomes.extend(applied.into_iter().map(|(outcome, _)| outcome));
        if is_hook(&wave) {
            wait(worker, &client, &task, &live, &mut progress).await?;
        } else {
            to_watch.extend(live);
        }
    }
    wait(worker, &client, &task, &to_watch, &mut progress).await?;
    Ok(outcomes)
}

fn is_hook(wave: &Wave) -> bool {
    match wave.phase {
        Phase::PreHook(_) | Phase::PostHook(_) => true,
        Phase::Configuration | Phase::Services | Phase::Workloads | Phase::Disruption => false,
    }
}

/// One write. The approval's end is asked before each try; a denial is tried again while rights may still be on their way.
async fn write(client: Client, approved: Arc<Approved>, key: ObjectKey) -> Result<(ObjectOutcome, Value), ApplyError> {
    let started = Instant::now();
    loop {
        let writable = approved.writable(jiff::Timestamp::now()).map_err(|Expired| ApplyError::Expired)?;
        let object = writable.object(&key).ok_or_else(|| ApplyError::Other(format!("{key} is not part of the approved bundle")))?;
        match cluster::object::apply(&client, &object.object, Apply { manager: FIELD_MANAGER_EXECUTOR, dry_run: false }).await {
            Ok(applied) => {
                tracing::info!(object = %key, outcome = ?applied.outcome, "applied");
                return Ok((ObjectOutcome { key, outcome: applied.outcome }, applied.object));
            }
            Err(ClusterError::Unauthorized { .. }) => return Err(ApplyError::Unauthorized),
            Err(error) if may_propagate(&error) && started.elapsed() < PROPAGATION => tokio::time::sleep(PAUSE).await,
            Err(error) => return Err(ApplyError::Other(chain(&error))),
        }
    }
}

fn may_propagate(error: &ClusterError) -> bool {
    error.denied_by(SCOPE_GUARD) || matches!(error, ClusterError::Forbidden { .. })
}

/// Waits for readiness as `pcm-executor` where it can look, else as `pcm-platform`. A Job that completes is recorded as done.
async fn wait(worker: &Worker, client: &Client, task: &Task, objects: &[Value], progress: &mut Progress<'_>) -> Result<(), ApplyError> {
    let eyes = worker.observed.borrow().client.clone().unwrap_or_else(|| client.clone());
    let mut done = Vec::new();
    let ready = readiness::wait(&eyes, objects, READY, |key, news| {
        if news == "ready" && key.kind == "Job" {
            done.push(key.clone());
        }
        progress.say(format!("{key}: {news}"));
    })
    .await;
    for job in done {
        let _ = worker.facts.send((task.id, Fact::JobDone(job))).await;
    }
    ready.map_err(|error| match error {
        readiness::WaitError::Cluster(ClusterError::Unauthorized { .. }) => ApplyError::Unauthorized,
        error => ApplyError::Other(chain(&error)),
    })
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
            step: number(6 + task.component),
            of: number(5 + components),
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
