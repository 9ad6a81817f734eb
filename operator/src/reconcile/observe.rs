//! What is seen, as four dimensions that do not explain one another: an administrative stop is no security matter, and a blocked operation is no
//! matter of health. The published table is in docs/operator.md.
//!
//! State and health come from live workloads alone: generations, replicas, revisions, conditions. Nothing here knows what was asked for, but for
//! the operation itself and `converged`.

use agent_api::heartbeat::{Health, OperationState, SecurityState, State};
use agent_api::object::ObjectKey;
use cluster::crd::managed_component::DesiredState;
use cluster::readiness::{HeldBack, Readiness, held_back, judge};
use serde_json::Value;

use super::Live;
use super::reason::Reason;
use super::transform::autoscaler;
use super::workload::{Workload, is_workload};

/// How the steps before ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// Everything is written as the spec asks.
    Written,
    /// A new generation asks for nothing that was not taken up before, as after switching maintenance.
    NothingAsked {
        /// How the operation of the former generation stood.
        before: Option<OperationState>,
    },
    /// A rule holds it; it goes on by itself.
    Blocked {
        /// Why.
        reason: Reason,
        /// For people.
        message: String,
    },
    /// It cannot be carried out as it is.
    Failed {
        /// Why.
        reason: Reason,
        /// For people.
        message: String,
    },
}

/// What the guard and the rule for values found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Security {
    /// Nothing.
    Clean,
    /// A secret in plain text, or a forbidden object.
    Found {
        /// Why.
        reason: Reason,
        /// Places, never content.
        message: String,
    },
    /// The chart was not rendered.
    NotRendered,
}

/// An object that is to be there.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Expected {
    /// Its identity.
    pub key: ObjectKey,
    /// For a workload: how many pods it is to have, should it be missing.
    pub pods: u32,
}

impl Expected {
    /// Of a desired object.
    #[must_use]
    pub fn of(object: &Value) -> Self {
        let workload = Workload::of(object);
        Self { key: ObjectKey::of(object), pods: workload.map_or(0, |workload| workload.replicas().unwrap_or(1)) }
    }
}

/// Everything that is looked at.
#[derive(Clone, Copy, Debug)]
pub struct Seen<'a> {
    /// Whether the resource is being deleted.
    pub deleting: bool,
    /// `desiredState`.
    pub desired: DesiredState,
    /// Objects that are to be there; empty while nothing was ever written.
    pub expected: &'a [Expected],
    /// What is there; `None` where nobody could look.
    pub live: Option<&'a Live>,
    /// How the steps before ended.
    pub outcome: &'a Outcome,
    /// What was found.
    pub security: &'a Security,
    /// How the operation of this same generation stood when it was last seen.
    pub earlier: Option<OperationState>,
}

/// A dimension with its reason.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Told<T> {
    /// What it is.
    pub is: T,
    /// Why, for programs.
    pub reason: Reason,
    /// Why, for people.
    pub message: String,
}

fn told<T>(is: T, reason: Reason, message: impl Into<String>) -> Told<T> {
    Told { is, reason, message: message.into() }
}

/// The four dimensions, and whether what is observed is what is desired.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Dimensions {
    /// Observed on workloads.
    pub state: Told<State>,
    /// Available pods against wanted ones.
    pub health: Told<Health>,
    /// The last operation.
    pub operation: Told<OperationState>,
    /// Secrets and forbidden objects.
    pub security: Told<SecurityState>,
    /// See [`Dimensions`].
    pub converged: bool,
    /// Pods that are available.
    pub available: u32,
    /// Pods that are wanted.
    pub wanted: u32,
}

/// Observes.
#[must_use]
pub fn observe(seen: &Seen<'_>) -> Dimensions {
    let nothing = Live::new();
    let live = seen.live.unwrap_or(&nothing);
    let workloads: Vec<Workload<'_>> = seen.expected.iter().filter_map(|expected| Workload::of(live.get(&expected.key)?)).collect();
    let state = state(seen, live, &workloads);
    let (health, available, wanted) = health(seen, live, &workloads);
    let settled = settled(seen, live, &state, &workloads);
    let operation = operation(seen, &workloads, &state, settled);
    let done = matches!(operation.is, OperationState::Succeeded | OperationState::Idle);
    Dimensions { converged: settled && done, state, health, security: security(seen.security), operation, available, wanted }
}

/// An object that is not there, or that is about to go however long a finalizer holds it; a workload says so itself.
fn missing(key: &ObjectKey, live: &Live) -> Option<String> {
    match live.get(key) {
        None => Some(key.to_string()),
        Some(object) if !is_workload(key) && object.pointer("/metadata/deletionTimestamp").is_some() => {
            Some(format!("{key}, which is being deleted"))
        }
        Some(_) => None,
    }
}

/// Missing objects, then workloads in the order: gave up, going down, not ready, ready.
fn state(seen: &Seen<'_>, live: &Live, workloads: &[Workload<'_>]) -> Told<State> {
    let waits = matches!(seen.outcome, Outcome::Blocked { reason: Reason::Maintenance, .. });
    if seen.deleting && !waits {
        return told(State::Uninstalling, Reason::Uninstalling, "the component is being deleted");
    }
    let missing: Vec<String> = seen.expected.iter().filter_map(|expected| missing(&expected.key, live)).collect();
    if seen.expected.is_empty() || (!missing.is_empty() && seen.live.is_some()) {
        let what = if missing.is_empty() { "nothing is applied yet".to_owned() } else { format!("missing: {}", missing.join(", ")) };
        return match seen.outcome {
            Outcome::Failed { reason, message } => told(State::Failed, *reason, format!("{what}; {message}")),
            Outcome::Written | Outcome::NothingAsked { .. } | Outcome::Blocked { .. } => told(State::Installing, Reason::Progressing, what),
        };
    }
    let rests = |workload: &Workload<'_>| seen.desired == DesiredState::Running && may_rest(live, workload);
    let running: Vec<&Workload<'_>> = workloads.iter().filter(|workload| workload.replicas() != Some(0) || rests(workload)).collect();
    let ending: Vec<String> = workloads
        .iter()
        .filter(|workload| workload.replicas() == Some(0) && (workload.status("replicas") > 0 || !workload.is_observed()))
        .map(|workload| format!("{}: {} pods are still there", workload.key, workload.status("replicas")))
        .collect();
    if running.is_empty() {
        return match (workloads.is_empty(), seen.desired, ending.is_empty()) {
            (true, DesiredState::Running, _) => told(State::Started, Reason::AsDesired, "all objects are there; none has pods"),
            (true, DesiredState::Stopped, _) => told(State::Stopped, Reason::AsDesired, "no object has pods"),
            (false, _, true) => told(State::Stopped, Reason::AsDesired, "every workload is at zero"),
            (false, _, false) => told(State::Stopping, Reason::Progressing, ending.join("; ")),
        };
    }
    let (mut failed, mut waiting) = (Vec::new(), Vec::new());
    for workload in &running {
        match judge(workload.object()) {
            Readiness::Ready => {}
            Readiness::Waiting(why) => waiting.push(format!("{}: {why}", workload.key)),
            Readiness::Failed(why) => failed.push(format!("{}: {why}", workload.key)),
        }
    }
    if !failed.is_empty() {
        return told(State::Failed, Reason::RolloutFailed, failed.join("; "));
    }
    let some_ended = running.len() < workloads.len();
    if seen.desired == DesiredState::Stopped && some_ended {
        return told(State::Stopping, Reason::Progressing, "some workloads are not at zero yet");
    }
    if !waiting.is_empty() {
        return told(State::Starting, Reason::Progressing, waiting.join("; "));
    }
    told(State::Started, Reason::AsDesired, "every workload is ready")
}

/// Available pods against those that live workloads want. One that is missing wants what it is to have.
fn health(seen: &Seen<'_>, live: &Live, workloads: &[Workload<'_>]) -> (Told<Health>, u32, u32) {
    let missing = seen.expected.iter().filter(|expected| is_workload(&expected.key) && !live.contains_key(&expected.key));
    let missing: u32 = missing.map(|expected| expected.pods).sum();
    let wanted = workloads.iter().map(|workload| workload.replicas().unwrap_or(1)).sum::<u32>() + missing;
    let counted = |workload: &Workload<'_>| workload.status("availableReplicas").min(workload.replicas().unwrap_or(1));
    let available = workloads.iter().map(counted).sum();
    let unseen = seen.live.is_none() || seen.expected.is_empty() || workloads.iter().any(|workload| !workload.has_status());
    let pods = format!("{available} of {wanted} pods are available");
    let health = match (unseen, available) {
        (true, _) => told(Health::Unknown, Reason::NotObserved, "nothing was said of the pods yet"),
        (false, available) if available >= wanted => told(Health::Ok, Reason::Pods, pods),
        (false, 0) => told(Health::Critical, Reason::Pods, pods),
        (false, _) => told(Health::Warning, Reason::Pods, pods),
    };
    (health, available, wanted)
}

/// Whether what is observed is what is desired, whatever became of the operation.
fn settled(seen: &Seen<'_>, live: &Live, state: &Told<State>, workloads: &[Workload<'_>]) -> bool {
    let wanted = match seen.desired {
        DesiredState::Running => State::Started,
        DesiredState::Stopped => State::Stopped,
    };
    seen.live.is_some() && !seen.deleting && state.is == wanted && (wanted == State::Stopped || within_bounds(live, workloads))
}

/// Whether an autoscaler may keep a workload at zero while it runs, as KEDA does without events.
fn may_rest(live: &Live, workload: &Workload<'_>) -> bool {
    live.values().any(|object| autoscaler::scales(object, workload) && autoscaler::bounds(object).min == 0)
}

/// Whether every autoscaler has brought its workload between its bounds.
fn within_bounds(live: &Live, workloads: &[Workload<'_>]) -> bool {
    workloads.iter().all(|workload| {
        let count = workload.replicas().unwrap_or(1);
        let mut scalers = live.values().filter(|object| autoscaler::scales(object, workload)).map(autoscaler::bounds);
        scalers.all(|bounds| bounds.min <= count && count <= bounds.max)
    })
}

fn operation(seen: &Seen<'_>, workloads: &[Workload<'_>], state: &Told<State>, settled: bool) -> Told<OperationState> {
    if seen.deleting {
        return match seen.outcome {
            Outcome::Blocked { reason, message } => told(OperationState::Blocked, *reason, message),
            Outcome::Failed { reason, message } => told(OperationState::Failed, *reason, message),
            Outcome::Written | Outcome::NothingAsked { .. } => {
                told(OperationState::Running, Reason::Uninstalling, "objects are being removed")
            }
        };
    }
    let earlier = match seen.outcome {
        Outcome::Blocked { reason, message } => return told(OperationState::Blocked, *reason, message),
        Outcome::Failed { reason, message } => return told(OperationState::Failed, *reason, message),
        Outcome::NothingAsked { before } => match before {
            None | Some(OperationState::Idle | OperationState::Succeeded) => {
                return told(OperationState::Idle, Reason::NothingAsked, "this generation asks for no operation");
            }
            // What was under way goes on.
            Some(OperationState::Running | OperationState::Failed | OperationState::Blocked) => None,
        },
        Outcome::Written => seen.earlier,
    };
    if earlier == Some(OperationState::Idle) {
        return told(OperationState::Idle, Reason::NothingAsked, "this generation asks for no operation");
    }
    if settled {
        return told(OperationState::Succeeded, Reason::AsDesired, "what was asked for is seen");
    }
    // What happens to pods after an operation has ended is not the operation's.
    if earlier == Some(OperationState::Succeeded) {
        return told(OperationState::Succeeded, Reason::AsDesired, "what was asked for was seen; see state and health for what came after");
    }
    if state.is == State::Failed {
        return told(OperationState::Failed, state.reason, &state.message);
    }
    let held = workloads.iter().find_map(|workload| Some((workload, held_back(workload.object())?)));
    if let Some((workload, held)) = held {
        let reason = match held {
            HeldBack::OnDelete { .. } => Reason::OnDelete,
            HeldBack::Partition { .. } => Reason::Partition,
        };
        return told(OperationState::Blocked, reason, format!("{}: {held}", workload.key));
    }
    told(OperationState::Running, Reason::Progressing, &state.message)
}

fn security(security: &Security) -> Told<SecurityState> {
    match security {
        Security::Clean => told(SecurityState::Compliant, Reason::NothingFound, "no secret in plain text, no forbidden object"),
        Security::Found { reason, message } => told(SecurityState::NonCompliant, *reason, message),
        Security::NotRendered => told(SecurityState::Unknown, Reason::NotObserved, "the chart was not rendered"),
    }
}

#[cfg(test)]
mod tests;
