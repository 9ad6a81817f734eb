//! Carries out the reads and writes that the core asks for, each in a task of its own, and feeds back what was learned.
//!
//! The token bundle is read once for a sync; its client serves that sync's later reads and writes and is then forgotten.

mod account;
mod apply;
mod dry_run;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use agent_api::manifest::Bundle;
use agent_api::name::CommandId;
use agent_api::names::PCM_PLATFORM;
use agent_api::object::ObjectKey;
use cluster::object::Found;
use executor_core::bundle::{Judged, Scope, Trusted, judge};
use executor_core::{ApplyError, ApprovalSeen, Approved, Fact, Read, ReadError, TokenBundle, TokenBundleError, UnpullableImages};
use futures::{StreamExt, TryStreamExt};
use render::Renderer;
use serde_json::{Value, json};
use tokio::sync::{Mutex, mpsc, watch};

use self::account::Account;
pub(crate) use self::apply::Task;

use crate::approval;
use crate::channel::Channel;
use crate::observe::Observed;
use crate::terminal::chain;

/// Requests to the API server at a time, for reads and inside a wave of writes.
pub(crate) const CONCURRENCY: usize = 8;

/// What the worker works with; cheap to clone.
#[derive(Clone)]
pub(crate) struct Worker {
    /// Access bundles.
    pub(crate) access_dir: PathBuf,
    /// The service prefix.
    pub(crate) namespace_prefix: String,
    /// Charts.
    pub(crate) renderer: Arc<Renderer>,
    /// What `pcm-executor` sees.
    pub(crate) observed: watch::Receiver<Observed>,
    /// The approval at hand.
    pub(crate) seen: watch::Receiver<Option<ApprovalSeen>>,
    /// For progress.
    pub(crate) channel: Channel,
    /// Where facts go.
    pub(crate) facts: mpsc::Sender<(CommandId, Fact)>,
    /// The running sync.
    platform: Arc<Mutex<Option<Running>>>,
}

/// What a sync keeps between its steps.
struct Running {
    id: CommandId,
    account: Account,
    found: Arc<BTreeMap<ObjectKey, Found>>,
}

impl Worker {
    /// A worker without a sync.
    pub(crate) fn new(
        access_dir: PathBuf,
        namespace_prefix: String,
        renderer: Renderer,
        observed: watch::Receiver<Observed>,
        seen: watch::Receiver<Option<ApprovalSeen>>,
        channel: Channel,
        facts: mpsc::Sender<(CommandId, Fact)>,
    ) -> Self {
        let platform = Arc::default();
        Self { access_dir, namespace_prefix, renderer: Arc::new(renderer), observed, seen, channel, facts, platform }
    }

    /// Starts a read.
    pub(crate) fn read(&self, id: CommandId, what: Read) {
        let worker = self.clone();
        tokio::spawn(async move {
            let fact = match what {
                Read::TokenBundle => Fact::TokenBundle(worker.token_bundle(id).await),
                Read::Account(home) => Fact::Account(worker.account(id, &home).await),
                Read::Render(bundle, capabilities, home) => Fact::Rendered(worker.render(&bundle, &capabilities, &home).await),
                Read::Permissions(judged) => Fact::Permissions(worker.permissions(id, &judged).await),
                Read::Images(bundle) => Fact::Images(worker.images(&bundle).await),
                Read::DryRun { approved, jobs_done } => Fact::DryRun(worker.dry_run(id, &approved, &jobs_done).await),
            };
            let _ = worker.facts.send((id, fact)).await;
        });
    }

    /// Starts to apply a component.
    pub(crate) fn apply(&self, task: Task) {
        let worker = self.clone();
        tokio::spawn(async move {
            let id = task.id;
            let mut written = Vec::new();
            let result = match worker.running(id).await {
                Ok((account, found)) => apply::component(&worker, account, &found, task, &mut written).await,
                Err(problem) => Err(ApplyError::Other(problem)),
            };
            let _ = worker.facts.send((id, Fact::Applied(written, result))).await;
        });
    }

    async fn token_bundle(&self, id: CommandId) -> Result<TokenBundle, TokenBundleError> {
        let found = approval::read(&self.access_dir)?;
        let connection = cluster::connect::bearer(&found.server, &found.ca, &found.token)
            .await
            .map_err(|error| TokenBundleError::Damaged(chain(&error)))?;
        let account = Account::new(connection.client, found.token, self.access_dir.clone());
        *self.platform.lock().await = Some(Running { id, account, found: Arc::default() });
        Ok(found.bundle)
    }

    async fn running(&self, id: CommandId) -> Result<(Account, Arc<BTreeMap<ObjectKey, Found>>), String> {
        let platform = self.platform.lock().await;
        let of_this_sync = platform.as_ref().filter(|running| running.id == id);
        let kept = of_this_sync.map(|running| (running.account.clone(), Arc::clone(&running.found)));
        kept.ok_or_else(|| "the sync's token bundle was not read".into())
    }

    async fn platform_account(&self, id: CommandId) -> Result<Account, ReadError> {
        self.running(id).await.map(|(account, _)| account).map_err(ReadError::Other)
    }

    async fn dry_run(&self, id: CommandId, approved: &Approved, jobs_done: &BTreeSet<ObjectKey>) -> Result<Vec<String>, ReadError> {
        let dry_run::DryRun { refused, found } = dry_run::of(&self.platform_account(id).await?, approved, jobs_done).await?;
        if let Some(running) = self.platform.lock().await.as_mut().filter(|running| running.id == id) {
            running.found = Arc::new(found);
        }
        Ok(refused)
    }

    async fn account(&self, id: CommandId, home: &str) -> Result<Option<Value>, ReadError> {
        let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": PCM_PLATFORM, "namespace": home}});
        get(&self.platform_account(id).await?, &account).await
    }

    async fn render(&self, bundle: &Bundle, capabilities: &agent_api::approval::Capabilities, home: &str) -> Result<Arc<Judged>, String> {
        let rendered = self.renderer.render(bundle.manifest(), capabilities).await.map_err(|error| chain(&error))?;
        let scope = Scope { namespace_prefix: &self.namespace_prefix, home_namespace: home };
        judge(bundle, rendered.objects, rendered.placeholders, &scope, &Trusted).map(Arc::new).map_err(|refusals| refusals.to_string())
    }

    async fn permissions(&self, id: CommandId, judged: &Judged) -> Result<Vec<Option<Value>>, ReadError> {
        let account = self.platform_account(id).await?;
        let objects: Vec<Value> = judged.permissions().iter().map(|object| object.object.clone()).collect();
        let reads = futures::stream::iter(objects).map(|object| {
            let account = account.clone();
            async move { get(&account, &object).await }
        });
        reads.buffered(CONCURRENCY).try_collect().await
    }

    async fn images(&self, bundle: &Bundle) -> Result<UnpullableImages, String> {
        let report = self.renderer.check_images(bundle.manifest()).await.map_err(|error| chain(&error))?;
        if !report.unchecked.is_empty() {
            tracing::info!(images = report.unchecked.len(), "images of other registries are not checked");
        }
        Ok(UnpullableImages { missing: report.missing, denied: report.denied.iter().map(|denied| chain(&denied.why)).collect() })
    }
}

/// A read as `pcm-platform`; a denial is asked again while rights may still be on their way.
async fn get(account: &Account, object: &Value) -> Result<Option<Value>, ReadError> {
    let began = Instant::now();
    loop {
        match cluster::object::get(&account.client, object).await {
            Ok(live) => return Ok(live),
            Err(error) => account.try_again(error, began).await?,
        }
    }
}
