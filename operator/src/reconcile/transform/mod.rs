//! What a spec makes of a chart's objects: counts, budgets, autoscalers, the restart annotation.
//!
//! A budget or autoscaler of the spec stands in place of the chart's own for the same workload: two budgets on a pod block every eviction, and
//! two autoscalers fight.

pub mod autoscaler;
pub mod budget;
pub mod replicas;

use agent_api::object::{ObjectKey, RenderedObject, metadata_map};
use cluster::crd::component_kind::ComponentKind;
use cluster::crd::managed_component::{COMPONENT_LABEL, DesiredState, Engine, KeptReplicas, ManagedComponentSpec, RESTARTED_AT};
use serde_json::{Map, Value};

use self::autoscaler::KedaNotServed;
use self::replicas::{Bounds, Facts, LiveCount, Replicas};
use super::Live;
use super::guard::Allowed;
use super::reason::Reason;
use super::workload::Workload;

/// What beside the chart's objects decides.
#[derive(Clone, Copy, Debug)]
pub struct Inputs<'a> {
    /// The component's name.
    pub component: &'a str,
    /// Its spec.
    pub spec: &'a ManagedComponentSpec,
    /// Whether the cluster serves KEDA's ScaledObject.
    pub keda_served: bool,
    /// What is there.
    pub live: &'a Live,
    /// Counts from before a stop.
    pub kept: &'a [KeptReplicas],
    /// The restart request that pods are to carry, after the gate.
    pub restarted_at: Option<jiff::Timestamp>,
}

/// What is to be there.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Desired {
    /// In the order in which it is applied.
    pub objects: Vec<RenderedObject>,
    /// Budgets and autoscalers of the chart that the spec's stand in for.
    pub replaced: Vec<ObjectKey>,
    /// Counts to keep over a stop.
    pub kept: Vec<KeptReplicas>,
}

/// Why a chart and a spec do not go together.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum TransformError {
    /// See [`KedaNotServed`].
    #[error(transparent)]
    KedaNotServed(#[from] KedaNotServed),
    /// The chart's own count is below the budget.
    #[error("{workload} has {pods} replicas, fewer than the {required} that pdb.minAvailable asks for")]
    ReplicasBelowMinAvailable {
        /// Workload.
        workload: ObjectKey,
        /// What the chart gives it.
        pods: u32,
        /// What is asked for.
        required: u32,
    },
    /// `Recreate` ends all pods before it starts new ones.
    #[error("{workload} has strategy Recreate, which ends all pods at once; its budget asks for {required}")]
    RecreateUnderBudget {
        /// Workload.
        workload: ObjectKey,
        /// What is asked for.
        required: u32,
    },
}

impl TransformError {
    /// The reason in the condition.
    #[must_use]
    pub fn reason(&self) -> Reason {
        match self {
            Self::KedaNotServed(_) => Reason::KedaNotServed,
            Self::ReplicasBelowMinAvailable { .. } => Reason::ReplicasBelowMinAvailable,
            Self::RecreateUnderBudget { .. } => Reason::RecreateUnderBudget,
        }
    }
}

/// Transforms what passed the guard.
///
/// # Errors
/// See [`TransformError`].
pub fn transform(allowed: Allowed, inputs: &Inputs<'_>) -> Result<Desired, TransformError> {
    let engine = match &inputs.spec.autoscaling {
        Some(autoscaling) => Some(autoscaler::engine(autoscaling.engine, inputs.keda_served)?),
        None => None,
    };
    let mut desired = Desired::default();
    let (mut objects, replaced) = without_replaced(allowed.into_objects(), inputs.spec);
    if objects.iter().any(|rendered| autoscaler::is_scaled_object(&rendered.key())) && !inputs.keda_served {
        return Err(KedaNotServed.into());
    }
    desired.replaced = replaced;
    let mut added = Vec::new();
    for i in 0..objects.len() {
        let Some(workload) = Workload::of(&objects[i].object) else { continue };
        let facts = facts(&workload, &objects, inputs);
        desired.kept.extend(replicas::kept(&facts).map(|replicas| KeptReplicas {
            kind: workload.key.kind.clone(),
            name: workload.key.name.clone(),
            replicas,
        }));
        added.extend(companions(&workload, inputs, engine));
        let strategy = strategy(&workload, &facts, inputs.spec)?;
        set_spec(&mut objects[i].object, replicas::replicas(&facts), strategy);
        annotate(&mut objects[i].object, inputs.restarted_at);
    }
    objects.extend(added.into_iter().map(|object| made(inputs.component, object)));
    objects.sort_by_key(place);
    desired.objects = objects;
    Ok(desired)
}

/// Leaves out the chart's budgets and autoscalers of workloads that the spec gives one.
fn without_replaced(objects: Vec<RenderedObject>, spec: &ManagedComponentSpec) -> (Vec<RenderedObject>, Vec<ObjectKey>) {
    let workloads: Vec<Workload<'_>> = objects.iter().filter_map(|rendered| Workload::of(&rendered.object)).collect();
    let is_replaced = |rendered: &RenderedObject| {
        let key = rendered.key();
        let selector = rendered.object.pointer("/spec/selector").cloned().unwrap_or_default();
        let budget = key.group == "policy" && key.kind == "PodDisruptionBudget";
        (budget && spec.pdb.is_some() && workloads.iter().any(|workload| workload.is_selected_by(&selector)))
            || (spec.autoscaling.is_some() && workloads.iter().any(|workload| autoscaler::scales(&rendered.object, workload)))
    };
    let flags: Vec<bool> = objects.iter().map(is_replaced).collect();
    let mut replaced = Vec::new();
    let mut rest = Vec::new();
    for (object, flag) in objects.into_iter().zip(flags) {
        if flag { replaced.push(object.key()) } else { rest.push(object) }
    }
    (rest, replaced)
}

fn facts(workload: &Workload<'_>, objects: &[RenderedObject], inputs: &Inputs<'_>) -> Facts {
    let live = inputs.live.get(&workload.key).and_then(Workload::of);
    let kept = inputs.kept.iter().find(|kept| kept.kind == workload.key.kind && kept.name == workload.key.name);
    Facts {
        stopped: inputs.spec.desired_state == DesiredState::Stopped,
        declared: inputs.spec.replicas.or(workload.replicas()),
        autoscaled: autoscaled(workload, objects, inputs),
        // A workload that is there has a count: the API server gives it one.
        live: live.map(|live| LiveCount { replicas: live.replicas().unwrap_or(1), ours: live.owns_replicas() }),
        kept: kept.map(|kept| kept.replicas),
    }
}

/// The bounds of what scales a workload: the spec's autoscaler, else the chart's, else a live one of somebody else's. One of this component's
/// that is live and no longer wanted does not count: it is about to go.
fn autoscaled(workload: &Workload<'_>, objects: &[RenderedObject], inputs: &Inputs<'_>) -> Option<Bounds> {
    if let Some(autoscaling) = &inputs.spec.autoscaling {
        return Some(Bounds { min: autoscaling.min_replicas, max: autoscaling.max_replicas });
    }
    let rendered = objects.iter().map(|rendered| &rendered.object).find(|object| autoscaler::scales(object, workload));
    let foreign = |object: &&Value| {
        let owner = object.pointer("/metadata/labels").and_then(|labels| labels.get(COMPONENT_LABEL)).and_then(Value::as_str);
        owner != Some(inputs.component) && autoscaler::scales(object, workload)
    };
    rendered.or_else(|| inputs.live.values().find(foreign)).map(autoscaler::bounds)
}

/// The spec's budget and autoscaler for a workload.
fn companions(workload: &Workload<'_>, inputs: &Inputs<'_>, engine: Option<Engine>) -> Vec<Value> {
    let budget = inputs.spec.pdb.as_ref().map(|pdb| budget::object(workload, pdb));
    let stopped = inputs.spec.desired_state == DesiredState::Stopped;
    let scaler = inputs.spec.autoscaling.as_ref().zip(engine);
    let scaler = scaler.map(|(autoscaling, engine)| autoscaler::object(workload, autoscaling, engine, stopped));
    budget.into_iter().chain(scaler).collect()
}

/// A Deployment's strategy under the spec's budget, for the fewest pods that it can have while it runs; a StatefulSet ends one pod at a time
/// as it is, and `restart` waits for it.
fn strategy(workload: &Workload<'_>, facts: &Facts, spec: &ManagedComponentSpec) -> Result<Option<Value>, TransformError> {
    let Some(pdb) = &spec.pdb else { return Ok(None) };
    let pods = facts.autoscaled.map(|bounds| bounds.min).or(facts.declared).unwrap_or(1);
    let required = budget::required(pdb, pods);
    if pods < required {
        return Err(TransformError::ReplicasBelowMinAvailable { workload: workload.key.clone(), pods, required });
    }
    if workload.key.kind != "Deployment" {
        return Ok(None);
    }
    if workload.text("/spec/strategy/type") == Some("Recreate") {
        // Its chart never wants two at a time, as on a volume that one pod writes: no budget makes it a rolling update.
        let problem = TransformError::RecreateUnderBudget { workload: workload.key.clone(), required };
        return if required > 0 { Err(problem) } else { Ok(None) };
    }
    Ok(Some(budget::rolling_update(pods, required)))
}

fn set_spec(object: &mut Value, replicas: Replicas, strategy: Option<Value>) {
    let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) else { return };
    match replicas {
        Replicas::Write(count) => drop(spec.insert("replicas".into(), count.into())),
        Replicas::Leave => drop(spec.remove("replicas")),
    }
    if let Some(strategy) = strategy {
        spec.insert("strategy".into(), strategy);
    }
}

/// Puts the restart request on the pod template; annotations of others are theirs.
fn annotate(object: &mut Value, restarted_at: Option<jiff::Timestamp>) {
    let Some(restarted_at) = restarted_at else { return };
    let Some(template) = object.pointer_mut("/spec/template") else { return };
    if let Some(annotations) = metadata_map(template, "annotations") {
        annotations.insert(RESTARTED_AT.to_owned(), restarted_at.to_string().into());
    }
}

/// An object of the operator's own making.
fn made(component: &str, mut object: Value) -> RenderedObject {
    let labels: Map<String, Value> = [(COMPONENT_LABEL.to_owned(), component.into())].into_iter().collect();
    object["metadata"]["labels"] = labels.into();
    RenderedObject { component: Some(component.to_owned()), template: "spec".to_owned(), hook: None, object }
}

/// Hooks before and after by their weights, in between the kinds in the order of the table.
fn place(rendered: &RenderedObject) -> (i8, i64, usize) {
    let key = rendered.key();
    let kind = ComponentKind::order(&key.group, &key.kind);
    match rendered.hook {
        Some(hook) if hook.phase == agent_api::object::HookPhase::Pre => (-1, hook.weight, kind),
        Some(hook) => (1, hook.weight, kind),
        None => (0, 0, kind),
    }
}

#[cfg(test)]
mod tests;
