//! One sync: checks in the contract's order, then component after component.
//!
//! A sync is not durable. After a restart it begins anew with its checks; what it applied before is found applied again. So it does where another
//! approval takes the place of its own: who approves the same bundle once more does not end it.

use std::collections::BTreeSet;
use std::sync::Arc;

use agent_api::command::CommandStatus;
use agent_api::digest::Sha256;
use agent_api::frame::{CommandProgress, CommandResult, ObjectOutcome, Outcome as ObjectResult};
use agent_api::manifest::Bundle;
use agent_api::name::CommandId;
use agent_api::object::ObjectKey;
use serde_json::Value;

use crate::bundle::Judged;
use crate::checks::{self, Approved};
use crate::effect::{Effect, Read};
use crate::event::{ApplyError, Fact, ReadError, TokenBundle, TokenBundleError, UnpullableImages};
use crate::hint;
use crate::record::{Outcome, Record, Stage};
use crate::refusal::{EndCode, Refusal};
use crate::state::{Failure, State};
use crate::transition::Transition;

/// Steps of a sync before its first component.
pub const CHECKS: usize = 6;

/// A running sync.
#[derive(Clone, Debug)]
pub(crate) struct Sync {
    pub(crate) id: CommandId,
    bundle: Arc<Bundle>,
    /// What was written, each object once.
    written: Vec<ObjectOutcome>,
    phase: Phase,
}

/// What the sync waits for.
#[derive(Clone, Debug)]
enum Phase {
    TokenBundle,
    Account { found: TokenBundle },
    Rendering { found: TokenBundle, account: Value },
    Permissions { found: TokenBundle, account: Value, judged: Arc<Judged> },
    Images { approved: Arc<Approved> },
    DryRun { approved: Arc<Approved> },
    Applying { approved: Arc<Approved>, component: usize },
}

/// Why a sync ends without success.
enum End {
    /// A person has to approve: the result ends with the hint.
    Refused(Refusal),
    /// Anything else, with its own text.
    Failed(EndCode, String),
    /// None: the sync begins anew with the token bundle that is there now.
    Anew,
}

impl Sync {
    /// A new sync, and its first read.
    pub(crate) fn begin(id: CommandId, bundle: Bundle) -> (Self, [Effect; 2]) {
        let sync = Self { id, bundle: Arc::new(bundle), written: Vec::new(), phase: Phase::TokenBundle };
        let effects = sync.first();
        (sync, effects)
    }

    fn first(&self) -> [Effect; 2] {
        [self.progress(), Effect::Read(self.id, Read::TokenBundle)]
    }

    pub(crate) fn stage(&self) -> Stage {
        match self.phase {
            Phase::TokenBundle | Phase::Account { .. } | Phase::Permissions { .. } | Phase::Images { .. } | Phase::DryRun { .. } => {
                Stage::Checking
            }
            Phase::Rendering { .. } => Stage::Rendering,
            Phase::Applying { .. } => Stage::Applying,
        }
    }

    fn sha256(&self) -> &Sha256 {
        self.bundle.sha256()
    }

    /// How far it is. Steps: the checks, then one a component, which is the object.
    pub(crate) fn standing(&self) -> CommandProgress {
        let (step, component) = match &self.phase {
            Phase::TokenBundle => (1, None),
            Phase::Account { .. } => (2, None),
            Phase::Rendering { .. } => (3, None),
            Phase::Permissions { .. } => (4, None),
            Phase::Images { .. } => (5, None),
            Phase::DryRun { .. } => (6, None),
            Phase::Applying { component, .. } => (CHECKS + 1 + component, self.bundle.manifest().components.get(*component)),
        };
        let of = CHECKS + self.bundle.manifest().components.len();
        let number = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        let object = component.map(|component| component.name.to_string());
        CommandProgress { id: self.id, stage: self.stage().as_str().into(), step: number(step), of: number(of), object }
    }

    fn progress(&self) -> Effect {
        Effect::Progress(self.standing())
    }

    fn to(&self, phase: Phase) -> Self {
        Self { id: self.id, bundle: Arc::clone(&self.bundle), written: self.written.clone(), phase }
    }

    /// With more that was written. Of an object that was written before, what changed it counts, and what made it most.
    fn with(&self, written: Vec<ObjectOutcome>) -> Self {
        let mut sync = self.clone();
        for more in written {
            match sync.written.iter_mut().find(|before| before.key == more.key) {
                Some(before) if before.outcome == ObjectResult::Unchanged => *before = more,
                Some(_) => {}
                None => sync.written.push(more),
            }
        }
        sync
    }
}

/// What follows from a fact. A fact that the phase does not wait for is late and changes nothing.
pub(crate) fn on_fact(state: &State, sync: &Sync, fact: Fact, now: jiff::Timestamp) -> Transition {
    let next = match (&sync.phase, fact) {
        (Phase::TokenBundle, Fact::TokenBundle(result)) => on_token_bundle(sync, result, now),
        (Phase::Account { found }, Fact::Account(result)) => on_account(sync, found, result),
        (Phase::Rendering { found, account }, Fact::Rendered(result)) => on_rendered(sync, found, account, result),
        (Phase::Permissions { found, account, judged }, Fact::Permissions(result)) => {
            on_permissions(state, sync, found, account, judged, result)
        }
        (Phase::Images { approved }, Fact::Images(result)) => on_images(state, sync, approved, result),
        (Phase::DryRun { approved }, Fact::DryRun(result)) => on_dry_run(state, sync, approved, result),
        (Phase::Applying { approved, .. }, Fact::JobDone(job)) => {
            return Transition::record(Record::JobDone { install_id: approved.install_id(), job });
        }
        (Phase::Applying { approved, component }, Fact::Applied(applied, result)) => {
            let sync = sync.with(applied);
            let next = on_applied(state, &sync, approved, *component, result, now);
            return next.unwrap_or_else(|end| finish_badly(state, &sync, end, now));
        }
        (
            Phase::TokenBundle
            | Phase::Account { .. }
            | Phase::Rendering { .. }
            | Phase::Permissions { .. }
            | Phase::Images { .. }
            | Phase::DryRun { .. }
            | Phase::Applying { .. },
            _late,
        ) => return Transition::default(),
    };
    next.unwrap_or_else(|end| finish_badly(state, sync, end, now))
}

fn on_token_bundle(sync: &Sync, result: Result<TokenBundle, TokenBundleError>, now: jiff::Timestamp) -> Result<Transition, End> {
    let found = result.map_err(|error| match error {
        TokenBundleError::Absent => End::Refused(Refusal::NoApproval),
        TokenBundleError::Damaged(problem) => End::Refused(Refusal::Damaged(problem)),
    })?;
    checks::token_bundle(&found, sync.sha256(), now).map_err(End::Refused)?;
    let home = found.approval.home_namespace.clone();
    let next = sync.to(Phase::Account { found });
    let effects = [next.progress(), Effect::Read(sync.id, Read::Account(home))];
    Ok(Transition::default().sync(Some(next)).then_all(effects))
}

fn on_account(sync: &Sync, found: &TokenBundle, result: Result<Option<Value>, ReadError>) -> Result<Transition, End> {
    let account = result.map_err(read_error)?;
    checks::account(account.as_ref(), sync.sha256()).map_err(End::Refused)?;
    let read = Read::Render(Arc::clone(&sync.bundle), found.approval.capabilities.clone(), found.approval.home_namespace.clone());
    let next = sync.to(Phase::Rendering { found: found.clone(), account: account.unwrap_or_default() });
    let effects = [next.progress(), Effect::Read(sync.id, read)];
    Ok(Transition::default().sync(Some(next)).then_all(effects))
}

fn on_rendered(sync: &Sync, found: &TokenBundle, account: &Value, result: Result<Arc<Judged>, String>) -> Result<Transition, End> {
    let judged = result.map_err(failed)?;
    let next = sync.to(Phase::Permissions { found: found.clone(), account: account.clone(), judged: Arc::clone(&judged) });
    let effects = [next.progress(), Effect::Read(sync.id, Read::Permissions(judged))];
    Ok(Transition::default().sync(Some(next)).then_all(effects))
}

fn on_permissions(
    state: &State,
    sync: &Sync,
    found: &TokenBundle,
    account: &Value,
    judged: &Arc<Judged>,
    result: Result<Vec<Option<Value>>, ReadError>,
) -> Result<Transition, End> {
    let live = result.map_err(read_error)?;
    for (i, rendered) in judged.permissions().iter().enumerate() {
        checks::permission(rendered, live.get(i).and_then(Option::as_ref), sync.sha256()).map_err(End::Refused)?;
    }
    let approved = checks::approve(&sync.bundle, judged, account, found, &state.site.versions).map_err(End::Refused)?;
    let next = sync.to(Phase::Images { approved: Arc::new(approved) });
    let effects = [next.progress(), Effect::Read(sync.id, Read::Images(Arc::clone(&sync.bundle)))];
    Ok(Transition::default().sync(Some(next)).then_all(effects))
}

fn on_images(state: &State, sync: &Sync, approved: &Arc<Approved>, result: Result<UnpullableImages, String>) -> Result<Transition, End> {
    let UnpullableImages { missing, denied } = result.map_err(failed)?;
    let mut problems = Vec::new();
    if !missing.is_empty() {
        problems.push(format!("images are missing in the registry: {}; copy them there, digests unchanged", missing.join(", ")));
    }
    if !denied.is_empty() {
        let next = "allow the executor's login to pull them (who it is: clicklink clctl registry check)";
        problems.push(format!("images are denied by the registry: {}; {next}", denied.join(", ")));
    }
    if !problems.is_empty() {
        let code = if missing.is_empty() { EndCode::ImagesDenied } else { EndCode::ImagesMissing };
        return Err(End::Failed(code, problems.join("; ")));
    }
    let next = sync.to(Phase::DryRun { approved: Arc::clone(approved) });
    let read = Read::DryRun { approved: Arc::clone(approved), jobs_done: jobs_done(state, approved) };
    Ok(Transition::default().sync(Some(next.clone())).then_all([next.progress(), Effect::Read(sync.id, read)]))
}

fn on_dry_run(state: &State, sync: &Sync, approved: &Arc<Approved>, result: Result<Vec<String>, ReadError>) -> Result<Transition, End> {
    let refused = result.map_err(read_error)?;
    if !refused.is_empty() {
        let problem = format!("nothing was written, since the API server would not take: {}", refused.join("; "));
        return Err(End::Failed(EndCode::WorkloadRefused, problem));
    }
    let record = Record::Attempted { id: sync.id, sha256: sync.sha256().clone(), install_id: approved.install_id() };
    Ok(apply(state, Transition::record(record), sync, approved, 0).then(Effect::Beat))
}

fn apply(state: &State, transition: Transition, sync: &Sync, approved: &Arc<Approved>, component: usize) -> Transition {
    let next = sync.to(Phase::Applying { approved: Arc::clone(approved), component });
    let jobs_done = jobs_done(state, approved);
    let effects = [next.progress(), Effect::Apply { id: sync.id, approved: Arc::clone(approved), component, jobs_done }];
    transition.sync(Some(next)).then_all(effects)
}

/// Jobs that the approval's installation has done.
fn jobs_done(state: &State, approved: &Approved) -> BTreeSet<ObjectKey> {
    let install_id = approved.install_id();
    state.jobs_done.iter().filter(|(install, _)| *install == install_id).map(|(_, job)| job.clone()).collect()
}

fn on_applied(
    state: &State,
    sync: &Sync,
    approved: &Arc<Approved>,
    component: usize,
    result: Result<(), ApplyError>,
    now: jiff::Timestamp,
) -> Result<Transition, End> {
    if let Err(error) = result {
        return Err(match error {
            ApplyError::Replaced => End::Anew,
            ApplyError::Expired => End::Refused(Refusal::ExpiredDuringSync),
            ApplyError::Unauthorized => End::Refused(Refusal::Unauthorized),
            ApplyError::Other(problem) => {
                let name = sync.bundle.manifest().components.get(component).map(|c| c.name.to_string()).unwrap_or_default();
                failed(format!("component {name}: {problem}"))
            }
        });
    }
    if component + 1 < sync.bundle.manifest().components.len() {
        return Ok(apply(state, Transition::default(), sync, approved, component + 1).then(Effect::Beat));
    }
    let outcomes = sync.written.clone();
    let count = |outcome| outcomes.iter().filter(|object| object.outcome == outcome).count();
    let result = format!(
        "synced bundle {}: {} workload object(s) applied: {} created, {} changed, {} unchanged",
        sync.sha256(),
        outcomes.len(),
        count(ObjectResult::Created),
        count(ObjectResult::Changed),
        count(ObjectResult::Unchanged),
    );
    let result = CommandResult { id: sync.id, status: CommandStatus::Completed, result, objects: outcomes, code: None };
    Ok(finish(result, Outcome::Synced(sync.sha256().clone()), now))
}

fn failed(problem: String) -> End {
    End::Failed(EndCode::SyncFailed, problem)
}

fn read_error(error: ReadError) -> End {
    match error {
        ReadError::Replaced => End::Anew,
        ReadError::Unauthorized => End::Refused(Refusal::Unauthorized),
        ReadError::Other(problem) => failed(problem),
    }
}

fn finish_badly(state: &State, sync: &Sync, end: End, now: jiff::Timestamp) -> Transition {
    let (code, message, outcome) = match end {
        End::Anew => {
            let next = sync.to(Phase::TokenBundle);
            return Transition::default().then_all(next.first()).sync(Some(next));
        }
        End::Refused(reason) => {
            let message = format!("platform sync refused: {reason}; {}", hint::approve(state, sync.sha256()));
            (reason.code(), message, Outcome::Refused)
        }
        End::Failed(code, reason) => {
            let message = format!("platform sync failed: {reason}");
            (code, message.clone(), Outcome::Failed(Failure { sha256: sync.sha256().clone(), message }))
        }
    };
    finish(CommandResult { objects: sync.written.clone(), ..ended(sync.id, code, message) }, outcome, now)
}

/// The result of a command that ended without success.
pub(crate) fn ended(id: CommandId, code: EndCode, result: String) -> CommandResult {
    CommandResult { id, status: CommandStatus::Failed, result, objects: Vec::new(), code: Some(code.as_str().to_owned()) }
}

/// Ends a command: the record, then its delivery, and the next command's turn.
pub(crate) fn finish(result: CommandResult, outcome: Outcome, now: jiff::Timestamp) -> Transition {
    let id = result.id;
    Transition::record(Record::Finished { result, at: now, outcome }).sync(None).then_all([
        Effect::Deliver(id),
        Effect::Beat,
        Effect::Continue,
    ])
}
