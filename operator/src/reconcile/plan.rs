//! One pass over a component, as a decision: the steps in their order, from the spec and what is live to what is to be written. Whoever carries a
//! plan out records its inventory first, writes, looks again, and asks [`Plan::status`].
//!
//! A refusal anywhere before the first write means that nothing is written, and what was there before stays as it is.

use std::collections::{BTreeMap, BTreeSet};

use agent_api::object::ObjectKey;
use cluster::crd::managed_component::{DesiredState, InventoryItem, KeptReplicas, ManagedComponentSpec, ManagedComponentStatus, TakenUp};
use jiff::Timestamp;
use render::engine::EngineObject;
use serde_json::{Map, Value};

use super::Live;
use super::diff::{Write, Written, diff};
use super::guard::guard;
use super::maintenance::{Candidate, Raise, held, raises};
use super::normalise::normalise;
use super::observe::{Expected, Outcome, Security, Seen, observe};
use super::operation::{self, Operation};
use super::prune::{self, Fate};
use super::reason::Reason;
use super::restart::{Gate, gate};
use super::secret_names::with_secret_names;
use super::status::{Found, status};
use super::transform::{Inputs, autoscaler, transform};
use super::validate::validate;
use super::workload::live_workloads;

/// Most objects of a component: its inventory has to fit into its status with room to spare.
pub const MAX_OBJECTS: usize = 2_000;

/// A resource, as it was read.
#[derive(Clone, Copy, Debug)]
pub struct Component<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its namespace.
    pub namespace: &'a str,
    /// Generation of its spec.
    pub generation: i64,
    /// Whether it is being deleted.
    pub deleting: bool,
    /// Its spec.
    pub spec: &'a ManagedComponentSpec,
    /// What was last said of it.
    pub status: &'a ManagedComponentStatus,
}

/// What the cluster has to say.
#[derive(Clone, Copy, Debug)]
pub struct Cluster<'a> {
    /// Live objects of the namespace.
    pub live: &'a Live,
    /// Whether KEDA's ScaledObject is served.
    pub keda_served: bool,
    /// What is remembered of writes.
    pub written: &'a BTreeMap<ObjectKey, Written>,
    /// API groups that the chart could not be told of, because their own servers do not answer.
    pub unanswered: &'a [String],
}

/// Why a pass stops before anything is written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Stopped {
    /// For programs.
    pub reason: Reason,
    /// For people.
    pub message: String,
    /// What is known of security by then.
    pub security: Security,
}

impl Stopped {
    /// A stop that says nothing of security.
    #[must_use]
    pub fn new(reason: Reason, message: impl ToString) -> Self {
        Self { reason, message: message.to_string(), security: Security::NotRendered }
    }

    /// A stop that is a matter of security itself.
    fn insecure(reason: Reason, message: impl ToString) -> Self {
        let message = message.to_string();
        Self { reason, security: Security::Found { reason, message: message.clone() }, message }
    }

    fn after(self, security: &Security) -> Self {
        Self { security: security.clone(), ..self }
    }
}

/// What is written.
#[derive(Clone, PartialEq, Debug)]
pub enum Steps {
    /// Nothing.
    Nothing,
    /// Counts, upward, and nothing else.
    Raise(Vec<Raise>),
    /// Objects, then what an update no longer has.
    Apply {
        /// In order.
        writes: Vec<(Value, Write)>,
        /// In order.
        prune: Vec<(ObjectKey, Fate)>,
    },
    /// Everything goes.
    Remove(Vec<(ObjectKey, Fate)>),
}

/// A pass.
#[derive(Clone, PartialEq, Debug)]
pub struct Plan {
    /// What is written.
    pub steps: Steps,
    /// What the status has to say before the first write.
    pub inventory: Vec<InventoryItem>,
    /// What is to be there afterwards.
    pub expected: Vec<Expected>,
    /// How the operation stands, unless a write fails.
    pub outcome: Outcome,
    /// What was found.
    pub security: Security,
    /// What a person should know beside: hooks left out, objects that the spec's stand in for, what a deletion takes and leaves.
    pub notes: Vec<String>,
    taken_up: Option<TakenUp>,
    kept: Vec<KeptReplicas>,
}

/// The values that the chart is rendered with, once the resource is seen to be valid.
///
/// # Errors
/// The resource breaks a rule, or a Secret's name has no place.
pub fn values(name: &str, spec: &ManagedComponentSpec) -> Result<Map<String, Value>, Stopped> {
    validate(name, spec).map_err(|violations| match violations.reason() {
        Reason::SecretInValues => Stopped::insecure(Reason::SecretInValues, violations),
        reason => Stopped::new(reason, violations),
    })?;
    with_secret_names(&spec.values, &spec.secret_refs).map_err(|error| Stopped::new(Reason::ValuePath, error))
}

/// Plans a pass. `rendered` is asked for only where the chart is needed: not for a deletion, and not under maintenance.
pub fn plan(
    component: &Component<'_>,
    cluster: &Cluster<'_>,
    rendered: impl FnOnce(Map<String, Value>) -> Result<Vec<EngineObject>, Stopped>,
) -> Plan {
    let recorded: Vec<ObjectKey> = component.status.inventory.iter().map(InventoryItem::key).collect();
    let most = live_workloads(&recorded, cluster.live).filter_map(|workload| workload.replicas()).max();
    let asked = operation::asked(component.spec, component.deleting, component.status.taken_up.as_ref(), most);
    if component.spec.maintenance {
        return under_maintenance(component, cluster, &recorded, asked);
    }
    if component.deleting {
        let inventory = &component.status.inventory;
        let fates = prune::deletion(component.name, inventory, cluster.live);
        let kept = note("removed though kept in updates", names(&prune::kept_until_deletion(inventory, cluster.live)));
        let claims = note("claims of StatefulSets that stay", names(&prune::claims_of_sets(inventory, cluster.live)));
        let plan = unchanged(component, &recorded, Outcome::Written, Security::NotRendered).with(Steps::Remove(fates));
        return Plan { notes: kept.into_iter().chain(claims).collect(), ..plan };
    }
    match applied(component, cluster, &asked, rendered) {
        Ok(plan) => plan,
        Err(stopped) => refused(component, stopped),
    }
}

/// A pass that ends before the first write: everything stays as it is recorded.
#[must_use]
pub fn refused(component: &Component<'_>, stopped: Stopped) -> Plan {
    let recorded: Vec<ObjectKey> = component.status.inventory.iter().map(InventoryItem::key).collect();
    let Stopped { reason, message, security } = stopped;
    unchanged(component, &recorded, Outcome::Failed { reason, message }, security)
}

fn applied(
    component: &Component<'_>,
    cluster: &Cluster<'_>,
    asked: &[Operation],
    rendered: impl FnOnce(Map<String, Value>) -> Result<Vec<EngineObject>, Stopped>,
) -> Result<Plan, Stopped> {
    let Component { name, namespace, spec, status, .. } = *component;
    let normalised = normalise(name, namespace, rendered(values(name, spec)?)?);
    let left_out = normalised.left_out.iter().map(|hook| format!("{} ({})", hook.object, hook.events.join(", "))).collect();
    let allowed = guard(normalised.objects, namespace).map_err(|refusals| Stopped::insecure(Reason::ForbiddenObject, refusals))?;
    if allowed.objects().len() > MAX_OBJECTS {
        let message = format!("the chart renders {} objects; at most {MAX_OBJECTS} are allowed", allowed.objects().len());
        return Err(Stopped::new(Reason::TooManyObjects, message));
    }
    let security = match allowed.plain_secrets() {
        [] => Security::Clean,
        places => Security::Found { reason: Reason::SecretInPlainText, message: places.join("; ") },
    };
    let gate = restart(component, cluster, allowed.objects().iter().map(|rendered| rendered.key()));
    let (keda_served, live, kept) = (cluster.keda_served, cluster.live, &status.kept_replicas);
    let inputs = Inputs { component: name, spec, keda_served, live, kept, restarted_at: gate.restarted_at() };
    let desired = transform(allowed, &inputs).map_err(|error| Stopped::new(error.reason(), error).after(&security))?;
    let notes = [note("hooks left out", left_out), note("the spec's stand in for", names(&desired.replaced))];
    let objects: Vec<Value> = desired.objects.into_iter().map(|rendered| rendered.object).collect();
    let writes = writes(name, objects, cluster).map_err(|stopped| stopped.after(&security))?;
    let keys: BTreeSet<ObjectKey> = writes.iter().map(|(object, _)| ObjectKey::of(object)).collect();
    let mut prune = prune::update(name, &status.inventory, &keys, cluster.live);
    // The spec is as it was: only what the chart was told of the cluster is another, and that is not because somebody wants it so.
    let spared = if asked.is_empty() && !cluster.unanswered.is_empty() { prune::spare(&mut prune) } else { Vec::new() };
    let spared = note(&format!("kept while {} does not answer", cluster.unanswered.join(", ")), names(&spared));
    let mut taken_up = operation::taken_up(component.generation, spec);
    taken_up.restart_requested_at = gate.restarted_at();
    let outcome = match &gate {
        Gate::Blocked { by, .. } => {
            let by: Vec<String> = by.iter().map(ToString::to_string).collect();
            Outcome::Blocked { reason: Reason::DisruptionBudgetExhausted, message: by.join("; ") }
        }
        Gate::Open(_) => outcome(component, asked),
    };
    Ok(Plan {
        inventory: prune::recorded(&status.inventory, writes.iter().map(|(object, _)| object)),
        expected: writes.iter().map(|(object, _)| Expected::of(object)).collect(),
        steps: Steps::Apply { writes, prune },
        outcome,
        security,
        notes: notes.into_iter().flatten().chain(spared).collect(),
        taken_up: Some(taken_up),
        kept: desired.kept,
    })
}

fn names(keys: &[ObjectKey]) -> Vec<String> {
    keys.iter().map(ToString::to_string).collect()
}

fn note(about: &str, what: Vec<String>) -> Option<String> {
    (!what.is_empty()).then(|| format!("{about}: {}", what.join(", ")))
}

fn restart(component: &Component<'_>, cluster: &Cluster<'_>, keys: impl Iterator<Item = ObjectKey>) -> Gate {
    let keys: Vec<ObjectKey> = keys.collect();
    let workloads: Vec<_> = live_workloads(&keys, cluster.live).collect();
    let spec = component.spec;
    let carried = component.status.taken_up.as_ref().and_then(|taken_up| taken_up.restart_requested_at);
    gate(spec.restart_requested_at, carried, spec.desired_state, &workloads, spec.pdb.as_ref(), cluster.live)
}

/// What has to be written; an object of somebody else's stops the whole pass.
fn writes(name: &str, objects: Vec<Value>, cluster: &Cluster<'_>) -> Result<Vec<(Value, Write)>, Stopped> {
    let (mut writes, mut foreign) = (Vec::new(), Vec::new());
    for object in objects {
        let key = ObjectKey::of(&object);
        match diff(name, &object, cluster.live.get(&key), cluster.written.get(&key)) {
            Ok(write) => writes.push((object, write)),
            Err(error) => foreign.push(error.to_string()),
        }
    }
    if foreign.is_empty() { Ok(writes) } else { Err(Stopped::new(Reason::OwnedByAnother, foreign.join("; "))) }
}

/// A generation that asks for nothing is no operation; the same generation seen again is the operation that it was.
fn outcome(component: &Component<'_>, asked: &[Operation]) -> Outcome {
    let again = component.status.taken_up.as_ref().is_some_and(|taken_up| taken_up.generation == component.generation);
    if asked.is_empty() && !again { Outcome::NothingAsked { before: component.status.operation_state } } else { Outcome::Written }
}

fn under_maintenance(component: &Component<'_>, cluster: &Cluster<'_>, recorded: &[ObjectKey], asked: Vec<Operation>) -> Plan {
    let outcome = outcome(component, &asked);
    let held = held(asked);
    let kept = |kind: &str, name: &str| {
        let kept = component.status.kept_replicas.iter().find(|kept| kept.kind == kind && kept.name == name);
        kept.map(|kept| kept.replicas)
    };
    let candidates: Vec<Candidate<'_>> = live_workloads(recorded, cluster.live)
        .map(|workload| Candidate {
            otherwise: kept(&workload.key.kind, &workload.key.name),
            autoscaled: cluster.live.values().any(|object| autoscaler::scales(object, &workload)),
            workload,
        })
        .collect();
    let raises = raises(component.spec, &held.allowed, &candidates);
    let outcome = match held.message() {
        Some(message) => Outcome::Blocked { reason: Reason::Maintenance, message },
        None => outcome,
    };
    let blocked = matches!(outcome, Outcome::Blocked { .. });
    let mut plan = unchanged(component, recorded, outcome, earlier_security(component));
    if let Some(taken_up) = &mut plan.taken_up {
        for operation in &held.allowed {
            match operation {
                Operation::ScaleUp { to } => taken_up.replicas = Some(*to),
                Operation::Start => taken_up.desired_state = DesiredState::Running,
                Operation::Install
                | Operation::Stop
                | Operation::Restart
                | Operation::ScaleDown { .. }
                | Operation::Autoscale
                | Operation::Configure
                | Operation::Uninstall => {}
            }
        }
        if !blocked {
            taken_up.generation = component.generation;
        }
    }
    plan.with(if raises.is_empty() { Steps::Nothing } else { Steps::Raise(raises) })
}

/// What was said of security when the chart was last rendered; it is not rendered now.
fn earlier_security(component: &Component<'_>) -> Security {
    use agent_api::heartbeat::SecurityState;
    match component.status.security_state {
        Some(SecurityState::Compliant) => Security::Clean,
        Some(SecurityState::NonCompliant) => {
            let former = component.status.conditions.iter().find(|condition| condition.kind == super::status::COMPLIANT);
            let message = former.map(|condition| condition.message.clone()).unwrap_or_default();
            Security::Found { reason: Reason::ForbiddenObject, message }
        }
        Some(SecurityState::Unknown) | None => Security::NotRendered,
    }
}

/// Everything stays as it is recorded.
fn unchanged(component: &Component<'_>, recorded: &[ObjectKey], outcome: Outcome, security: Security) -> Plan {
    Plan {
        steps: Steps::Nothing,
        inventory: component.status.inventory.clone(),
        // A workload that is missing is known by its name alone: it wants a pod at least.
        expected: recorded.iter().map(|key| Expected { key: key.clone(), pods: 1 }).collect(),
        outcome,
        security,
        notes: Vec::new(),
        taken_up: component.status.taken_up.clone(),
        kept: component.status.kept_replicas.clone(),
    }
}

impl Plan {
    fn with(self, steps: Steps) -> Self {
        Self { steps, ..self }
    }

    /// What is taken up where everything is written.
    #[must_use]
    pub fn taken_up(&self) -> Option<&TakenUp> {
        self.taken_up.as_ref()
    }

    /// Counts to keep over a stop.
    #[must_use]
    pub fn kept(&self) -> &[KeptReplicas] {
        &self.kept
    }

    pub(super) fn remembering(self, taken_up: Option<TakenUp>, kept: Vec<KeptReplicas>) -> Self {
        Self { taken_up, kept, ..self }
    }

    /// The status after the pass, from what is live then. `version` is that of the chart that is applied.
    #[must_use]
    pub fn status(&self, component: &Component<'_>, live: &Live, version: Option<String>, now: Timestamp) -> ManagedComponentStatus {
        let before = component.status;
        let again = before.observed_generation == Some(component.generation);
        let mut dimensions = observe(&Seen {
            deleting: component.deleting,
            desired: component.spec.desired_state,
            expected: &self.expected,
            live: Some(live),
            outcome: &self.outcome,
            security: &self.security,
            earlier: before.operation_state.filter(|_| again),
        });
        let scalers = self.expected.iter().filter_map(|expected| autoscaler::trouble(live.get(&expected.key)?));
        for note in self.notes.iter().cloned().chain(scalers) {
            dimensions.operation.message.push_str(&format!("; {note}"));
        }
        let left: BTreeSet<&ObjectKey> = match &self.steps {
            Steps::Apply { prune: fates, .. } | Steps::Remove(fates) => fates
                .iter()
                .filter(|(key, fate)| match fate {
                    Fate::Gone | Fate::Left => true,
                    Fate::Delete => !live.contains_key(key),
                    Fate::Keep => false,
                })
                .map(|(key, _)| key)
                .collect(),
            Steps::Nothing | Steps::Raise(_) => BTreeSet::new(),
        };
        let inventory = self.inventory.iter().filter(|item| !left.contains(&item.key())).cloned().collect();
        let (taken_up, kept) = (self.taken_up.clone(), self.kept.clone());
        status(before, Found { generation: component.generation, dimensions, taken_up, inventory, kept, version }, now)
    }
}

#[cfg(test)]
mod tests;
