//! One pass over a component, wiring only: read, plan, put on record, write, look again, tell. What is decided is decided in `reconcile`.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use agent_api::heartbeat::{OperationState, State};
use agent_api::object::ObjectKey;
use cluster::ClusterError;
use cluster::crd::managed_component::{FINALIZER, InventoryItem, ManagedComponentStatus};
use cluster::exact;
use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::Operator;
use super::queue::Name;
use super::read::Resource;
use super::rendering::{Kept, Objects, With};
use super::secrets::{self, CHECK, Checked};
use super::watch::SETTLES;
use super::write::{self, Writer};
use crate::health::figures::Step;
use crate::reconcile::diff::Written;
use crate::reconcile::observe::Outcome;
use crate::reconcile::plan::{Cluster, Component, Plan, Steps, Stopped, plan, refused, values};
use crate::reconcile::reason::Reason;
use crate::reconcile::{FIELD_MANAGER, Live, diff, failure, prune, record};

/// Pause before a pass that something came in between of.
const LATE: Duration = Duration::from_millis(100);

/// What is remembered of a component between passes. All of it can be lost: then objects are written once more, which changes nothing.
#[derive(Default)]
pub(super) struct Memory {
    /// Of which resource of the name.
    uid: String,
    written: BTreeMap<ObjectKey, Written>,
    rendering: Option<Kept>,
    secrets: Option<Checked>,
    /// Whether the chart is rendered again after a while: it could not be told of all that the cluster serves.
    asks_again: bool,
    /// The newest generation, when it was first seen, and whether it was written for and seen to converge.
    generation: Option<Seen>,
    /// Passes that failed since the last that did not.
    pub(super) failures: u32,
}

struct Seen {
    generation: i64,
    at: Instant,
    written: bool,
    converged: bool,
}

/// When a component is looked at again, where nothing happens before.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Next {
    /// When something happens.
    Event,
    /// After so long.
    After(Duration),
    /// Soon: something came in between.
    Again,
    /// Later each time.
    Retry,
    /// When it has a turn at its registry: it is put in line then.
    Turn,
    /// Never: it is gone, and so is what is remembered of it.
    Gone,
}

/// A chart's objects.
enum Asked {
    /// The plan does without them.
    Not,
    /// They come when it is the component's turn at its registry.
    Waits,
    /// They are there, or it is known why not.
    For(Result<Objects, Stopped>),
}

impl Operator {
    /// Looks at a component once.
    ///
    /// # Errors
    /// The API server does not answer, or answers that something came in between ([`exact::is_late`]).
    pub(super) async fn pass(&self, name: &Name, memory: &mut Memory) -> Result<Next, ClusterError> {
        let Some(object) = self.store.component(name) else { return Ok(Next::Gone) };
        let (mut resource, mut status) = Resource::read(object);
        if resource.deleting && !resource.has_finalizer() {
            return Ok(Next::Gone);
        }
        memory.sees(&resource);
        if !resource.has_finalizer() {
            self.put_finalizer(&mut resource).await?;
        }
        let Some((mut plan, rendered, mut live)) = self.planned(name, &resource, &status, memory).await? else { return Ok(Next::Turn) };
        self.try_out(name, &resource, &status, &mut plan).await?;
        let version = rendered.filter(|_| matches!(plan.steps, Steps::Apply { .. })).or_else(|| status.version.clone());
        let now = Timestamp::now();
        let first = match &plan.steps {
            // What goes and what stays is told before anything goes.
            Steps::Remove(_) => {
                tell_deletion(name, &plan, &status);
                Some(plan.status(&resource.component(name, &status), &live, version.clone(), now))
            }
            Steps::Nothing | Steps::Raise(_) | Steps::Apply { .. } => record::record(&plan, &resource.component(name, &status), now),
        };
        let recorded = first.is_some() && matches!(plan.steps, Steps::Apply { .. });
        if let Some(first) = first {
            self.put_status(&mut resource, &mut status, first).await?;
        }
        memory.writes(&plan, self);
        let started = std::time::Instant::now();
        let writer = Writer { client: &self.client, store: &self.store, queue: &self.queue };
        let carried_out = writer.carry_out(&plan.steps, again(&resource, &status), &live, &mut memory.written).await;
        self.figures.took(Step::Apply, started);
        let mut applied = version;
        if let Err(error) = carried_out {
            let Some(stopped) = write::stopped(&error) else { return Err(error) };
            plan = plan.failed(&resource.component(name, &status), stopped);
            applied.clone_from(&status.version);
        }
        live = self.view(name, &plan.inventory);
        let held = held(&resource, &plan, &live, now);
        if let Some(held) = &held.0 {
            plan.outcome = held.clone();
        }
        let told = plan.status(&resource.component(name, &status), &live, applied, now);
        if recorded && under_way(&told) {
            // The record says so; what comes of it is seen in a moment.
            return Ok(Next::After(SETTLES));
        }
        self.put_status(&mut resource, &mut status, told).await?;
        memory.told(&status, &plan, self);
        if resource.deleting && matches!(plan.steps, Steps::Remove(_)) && status.inventory.is_empty() {
            self.drop_finalizer(&mut resource).await?;
            return Ok(Next::Gone);
        }
        Ok(next(&resource, &plan, held.1, memory.asks_again))
    }

    /// The plan, the version of the chart that was rendered for it, and what it was made of; nothing where the chart waits for its turn.
    async fn planned(
        &self,
        name: &Name,
        resource: &Resource,
        status: &ManagedComponentStatus,
        memory: &mut Memory,
    ) -> Result<Option<(Plan, Option<String>, Live)>, ClusterError> {
        let component = resource.component(name, status);
        if let Some(unreadable) = resource.unreadable.clone().filter(|_| !resource.deleting) {
            return Ok(Some((refused(&component, unreadable), None, self.view(name, &status.inventory))));
        }
        let rendered = match self.rendered(&component, name, memory).await? {
            Asked::Waits => return Ok(None),
            Asked::Not => None,
            Asked::For(rendered) => Some(rendered),
        };
        let made = rendered.as_ref().and_then(|rendered| rendered.as_ref().ok());
        let (version, unanswered) = made.map(|made| (made.version.clone(), Arc::clone(&made.unanswered))).unzip();
        let unanswered = unanswered.unwrap_or_default();
        memory.asks_again = !unanswered.is_empty();
        let keda_served = self.keda_served(memory.failures > 0).await?;
        let started = std::time::Instant::now();
        let mut live = self.view(name, &status.inventory);
        let nothing = || Err(Stopped::new(Reason::InvalidSpec, "the chart was not asked for"));
        loop {
            let cluster = Cluster { live: &live, keda_served, written: &memory.written, unanswered: &unanswered };
            let objects = rendered.as_ref().map_or_else(nothing, |rendered| rendered.clone().map(|made| made.objects));
            let plan = plan(&component, &cluster, |_| objects);
            // An object of somebody else's under a name that is wanted is in no view until the name is known.
            let wanted: Vec<ObjectKey> = match &plan.steps {
                Steps::Apply { writes, .. } => writes.iter().map(|(object, _)| ObjectKey::of(object)).collect(),
                Steps::Nothing | Steps::Raise(_) | Steps::Remove(_) => Vec::new(),
            };
            let unknown: Vec<(ObjectKey, Value)> = wanted
                .into_iter()
                .filter(|key| !live.contains_key(key))
                .filter_map(|key| self.store.read(&key).map(|object| (key, object)))
                .collect();
            if unknown.is_empty() {
                self.figures.took(Step::Plan, started);
                if matches!(plan.outcome, Outcome::Failed { reason: Reason::OwnedByAnother, .. }) {
                    let of_others = live.iter().filter(|(_, object)| diff::owner(object) != Some(&name.name));
                    self.store.wants(name, of_others.map(|(key, _)| key.clone()));
                }
                let unseen = self.watches().unseen(&name.namespace);
                return Ok(Some((unseen.judge(&component, plan), version, live)));
            }
            live.extend(unknown);
        }
    }

    /// The chart's objects where the plan needs them and the spec is valid; Secrets are looked for first.
    async fn rendered(&self, component: &Component<'_>, name: &Name, memory: &mut Memory) -> Result<Asked, ClusterError> {
        if component.deleting || component.spec.maintenance {
            return Ok(Asked::Not);
        }
        let Ok(values) = values(component.name, component.spec) else { return Ok(Asked::Not) };
        if let Err(stopped) = secrets::check(&self.client, component.namespace, &component.spec.secret_refs, &mut memory.secrets).await? {
            return Ok(Asked::For(Err(stopped)));
        }
        let input = (component.generation, component.spec);
        let with = With { discovery: &self.discovery, turns: &self.turns, figures: &self.figures };
        let objects = self.renderings.objects(name, input, &values, with, &mut memory.rendering);
        Ok(objects.await?.map_or(Asked::Waits, Asked::For))
    }

    /// A new generation is tried out before its first write, so that what cannot be is refused whole.
    async fn try_out(
        &self,
        name: &Name,
        resource: &Resource,
        status: &ManagedComponentStatus,
        plan: &mut Plan,
    ) -> Result<(), ClusterError> {
        let Steps::Apply { writes, .. } = &plan.steps else { return Ok(()) };
        if again(resource, status) {
            return Ok(());
        }
        let started = std::time::Instant::now();
        let writer = Writer { client: &self.client, store: &self.store, queue: &self.queue };
        let tried = writer.try_out(writes).await;
        self.figures.took(Step::DryRun, started);
        if let Err(stopped) = tried? {
            *plan = refused(&resource.component(name, status), stopped);
        }
        Ok(())
    }

    fn view(&self, name: &Name, inventory: &[InventoryItem]) -> Live {
        self.store.view(name, inventory.iter().map(InventoryItem::key))
    }

    /// Puts a status where it says something else than before.
    async fn put_status(
        &self,
        resource: &mut Resource,
        before: &mut ManagedComponentStatus,
        status: ManagedComponentStatus,
    ) -> Result<(), ClusterError> {
        if status == *before {
            return Ok(());
        }
        let started = std::time::Instant::now();
        let mut object = resource.object.clone();
        object["status"] = json!(status);
        let answer = exact::update(&self.client, &object, Some("status"), FIELD_MANAGER).await?;
        self.figures.took(Step::Status, started);
        let key = ObjectKey::of(&object);
        let component = format!("{}/{}", key.namespace, key.name);
        let [from, to] = [&*before, &status].map(dimensions);
        tracing::info!(component, generation = resource.generation, from, to, converged = status.converged, "status");
        self.takes(resource, answer);
        *before = status;
        Ok(())
    }

    async fn put_finalizer(&self, resource: &mut Resource) -> Result<(), ClusterError> {
        let mut object = resource.object.clone();
        if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
            let finalizers = metadata.entry("finalizers").or_insert_with(|| json!([]));
            if let Some(finalizers) = finalizers.as_array_mut() {
                finalizers.push(FINALIZER.into());
            }
        }
        let answer = exact::update(&self.client, &object, None, FIELD_MANAGER).await?;
        self.takes(resource, answer);
        Ok(())
    }

    async fn drop_finalizer(&self, resource: &mut Resource) -> Result<(), ClusterError> {
        let mut object = resource.object.clone();
        if let Some(finalizers) = object.pointer_mut("/metadata/finalizers").and_then(Value::as_array_mut) {
            finalizers.retain(|finalizer| finalizer != FINALIZER);
        }
        match exact::update(&self.client, &object, None, FIELD_MANAGER).await {
            // The answer is the object as it last was; it is gone, and the watch says so.
            Ok(_) | Err(ClusterError::NotFound { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// What was put is what the next write goes over. Another generation that came in between is news to the queue by its watch.
    fn takes(&self, resource: &mut Resource, answer: Value) {
        self.store.put(&answer);
        resource.object = answer;
    }
}

/// Whether this generation was carried out before.
fn again(resource: &Resource, status: &ManagedComponentStatus) -> bool {
    status.taken_up.as_ref().is_some_and(|taken_up| taken_up.generation == resource.generation)
}

/// What a deletion takes and leaves, once, in the log: the resource that says so is about to go.
fn tell_deletion(name: &Name, plan: &Plan, status: &ManagedComponentStatus) {
    if status.state != Some(State::Uninstalling) {
        tracing::info!(component = %name, objects = status.inventory.len(), "is being deleted; {}", plan.notes.join("; "));
    }
}

/// For the log.
fn dimensions(status: &ManagedComponentStatus) -> String {
    let told = json!([status.state, status.health, status.operation_state, status.security_state]);
    let words = told.as_array().into_iter().flatten().map(|word| word.as_str().unwrap_or("none").to_owned());
    words.collect::<Vec<_>>().join(" ")
}

/// A deletion that something else holds up, and when to look whether it does.
fn held(resource: &Resource, plan: &Plan, live: &Live, now: Timestamp) -> (Option<Outcome>, Option<Duration>) {
    match &plan.steps {
        Steps::Remove(fates) if resource.deleting && !matches!(plan.outcome, Outcome::Failed { .. }) => prune::held(fates, live, now),
        Steps::Remove(_) | Steps::Nothing | Steps::Raise(_) | Steps::Apply { .. } => (None, None),
    }
}

/// Whether a status says no more than that an operation runs.
fn under_way(status: &ManagedComponentStatus) -> bool {
    status.operation_state == Some(OperationState::Running)
}

fn next(resource: &Resource, plan: &Plan, look: Option<Duration>, asks_again: bool) -> Next {
    if let Outcome::Failed { reason, .. } = &plan.outcome {
        return if failure::may_pass(*reason, resource.spec.source.local.is_some()) { Next::Retry } else { Next::Event };
    }
    if let Some(look) = look {
        return Next::After(look);
    }
    let checks_secrets = !resource.deleting && !resource.spec.maintenance && !resource.spec.secret_refs.is_empty();
    if checks_secrets || asks_again { Next::After(CHECK) } else { Next::Event }
}

impl Memory {
    /// Another resource under the name has generations of its own, and nothing of the former counts for it.
    fn sees(&mut self, resource: &Resource) {
        if self.uid != resource.uid() {
            *self = Self { uid: resource.uid().to_owned(), ..Self::default() };
        }
        let generation = resource.generation;
        if self.generation.as_ref().is_none_or(|seen| seen.generation != generation) {
            self.generation = Some(Seen { generation, at: Instant::now(), written: false, converged: false });
            self.failures = 0;
        }
    }

    fn writes(&mut self, plan: &Plan, operator: &Operator) {
        let Some(seen) = self.generation.as_mut().filter(|seen| !seen.written && plan.steps != Steps::Nothing) else { return };
        seen.written = true;
        operator.figures.reacted(seen.at.elapsed());
    }

    fn told(&mut self, status: &ManagedComponentStatus, plan: &Plan, operator: &Operator) {
        let inventory: std::collections::BTreeSet<ObjectKey> = plan.inventory.iter().map(InventoryItem::key).collect();
        self.written.retain(|key, _| inventory.contains(key));
        let Some(seen) = self.generation.as_mut().filter(|seen| !seen.converged && status.converged) else { return };
        seen.converged = true;
        operator.figures.converged(seen.at.elapsed());
    }
}

/// The pause before the next try: doubled from one second to five minutes.
#[must_use]
pub(super) fn pause(next: Next, failures: u32) -> Option<Duration> {
    match next {
        Next::Event | Next::Turn | Next::Gone => None,
        Next::After(pause) => Some(pause),
        Next::Again => Some(LATE),
        Next::Retry => Some(Duration::from_secs(1 << failures.saturating_sub(1).min(9)).min(Duration::from_secs(300))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Known faults, kind 8: a resource that was deleted and made again while nobody looked has the generation that the former had.
    #[test]
    fn another_resource_of_the_name_is_not_what_is_remembered() {
        let resource = |uid: &str| {
            let spec = json!({"service": "a", "source": {"local": "a"}});
            Resource::read(json!({"metadata": {"name": "a", "namespace": "n", "uid": uid, "generation": 1}, "spec": spec})).0
        };
        let mut memory = Memory::default();
        memory.sees(&resource("first"));
        memory.written.insert(ObjectKey::of(&json!({"kind": "ConfigMap"})), Written::of(&json!({}), &json!({})));
        memory.sees(&resource("first"));
        assert_eq!(memory.written.len(), 1);
        memory.sees(&resource("second"));
        assert!(memory.written.is_empty() && memory.rendering.is_none() && memory.secrets.is_none());
    }

    #[test]
    fn pauses_grow_to_five_minutes() {
        let seconds = |failures: u32| pause(Next::Retry, failures).unwrap().as_secs();
        assert_eq!([1, 2, 3, 9, 10, 40].map(seconds), [1, 2, 4, 256, 300, 300]);
        assert_eq!((pause(Next::Event, 3), pause(Next::After(CHECK), 3)), (None, Some(CHECK)));
    }
}
