//! The status of a resource, put together from what the steps found. Written by `update`, and only where it says something else than before.

use agent_api::heartbeat::{Health, OperationState, SecurityState, State};
use cluster::crd::managed_component::{Condition, InventoryItem, KeptReplicas, ManagedComponentStatus, TakenUp};
use jiff::Timestamp;

use super::observe::{Dimensions, Told};
use super::reason::Reason;

/// Condition: `converged`.
pub const CONVERGED: &str = "Converged";
/// Condition: health.
pub const HEALTHY: &str = "Healthy";
/// Condition: the last operation.
pub const OPERATION: &str = "OperationSucceeded";
/// Condition: security.
pub const COMPLIANT: &str = "Compliant";

/// All, in the order in which they are written.
const CONDITIONS: [&str; 4] = [CONVERGED, HEALTHY, OPERATION, COMPLIANT];

/// Longest message of a condition, in characters.
const LONGEST: usize = 4_000;

/// What a pass over a resource found.
#[derive(Clone, Debug)]
pub struct Found {
    /// Generation of the spec that the pass was for.
    pub generation: i64,
    /// What was seen.
    pub dimensions: Dimensions,
    /// What was carried out; stays where nothing was.
    pub taken_up: Option<TakenUp>,
    /// Objects applied and not seen gone.
    pub inventory: Vec<InventoryItem>,
    /// Counts kept over a stop.
    pub kept: Vec<KeptReplicas>,
    /// Version of the chart that is applied.
    pub version: Option<String>,
}

/// The new status. A condition whose status is what it was keeps its time.
#[must_use]
pub fn status(before: &ManagedComponentStatus, found: Found, now: Timestamp) -> ManagedComponentStatus {
    let seen = &found.dimensions;
    let operation = match seen.operation.is {
        OperationState::Succeeded | OperationState::Idle => "True",
        OperationState::Failed | OperationState::Blocked => "False",
        OperationState::Running => "Unknown",
    };
    let health = match seen.health.is {
        Health::Ok => "True",
        Health::Warning | Health::Critical => "False",
        Health::Unknown => "Unknown",
    };
    let security = match seen.security.is {
        SecurityState::Compliant => "True",
        SecurityState::NonCompliant => "False",
        SecurityState::Unknown => "Unknown",
    };
    // What keeps it from being as desired: the operation where that has not ended well, else what was observed.
    let why = if seen.converged || operation == "True" { told(&seen.state) } else { told(&seen.operation) };
    let conditions = [
        (CONVERGED, if seen.converged { "True" } else { "False" }, why),
        (HEALTHY, health, told(&seen.health)),
        (OPERATION, operation, told(&seen.operation)),
        (COMPLIANT, security, told(&seen.security)),
    ];
    let conditions = conditions.into_iter().map(|(kind, status, (reason, message))| {
        let former = before.conditions.iter().find(|condition| condition.kind == kind && condition.status == status);
        Condition {
            kind: kind.to_owned(),
            status: status.to_owned(),
            observed_generation: Some(found.generation),
            last_transition_time: former.map_or(now, |condition| condition.last_transition_time),
            reason,
            message,
        }
    });
    ManagedComponentStatus {
        observed_generation: Some(found.generation),
        state: Some(seen.state.is),
        health: Some(seen.health.is),
        operation_state: Some(seen.operation.is),
        security_state: Some(seen.security.is),
        converged: seen.converged,
        version: found.version,
        available: seen.available,
        wanted: seen.wanted,
        conditions: conditions.collect(),
        taken_up: found.taken_up,
        inventory: found.inventory,
        kept_replicas: found.kept,
    }
}

/// A status before the writes of a new generation: nobody has seen yet what they do.
#[must_use]
pub fn pending(status: ManagedComponentStatus, generation: i64, now: Timestamp) -> ManagedComponentStatus {
    let mut conditions = status.conditions;
    for (kind, is) in [(CONVERGED, "False"), (OPERATION, "Unknown")] {
        let former = conditions.iter().position(|condition| condition.kind == kind).map(|at| conditions.remove(at));
        let since = former.filter(|former| former.status == is).map_or(now, |former| former.last_transition_time);
        conditions.push(Condition {
            kind: kind.to_owned(),
            status: is.to_owned(),
            observed_generation: Some(generation),
            last_transition_time: since,
            reason: Reason::Progressing.as_str().to_owned(),
            message: "objects are being written".to_owned(),
        });
    }
    conditions.sort_by_key(|condition| CONDITIONS.iter().position(|kind| *kind == condition.kind));
    ManagedComponentStatus {
        state: status.state.or(Some(State::Installing)),
        health: status.health.or(Some(Health::Unknown)),
        operation_state: Some(OperationState::Running),
        security_state: status.security_state.or(Some(SecurityState::Unknown)),
        converged: false,
        conditions,
        ..status
    }
}

fn told<T>(told: &Told<T>) -> (String, String) {
    let mut message: String = told.message.chars().take(LONGEST).collect();
    if message.len() < told.message.len() {
        message.push('…');
    }
    (told.reason.as_str().to_owned(), message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reconcile::observe::{Outcome, Security, Seen, observe};
    use crate::reconcile::reason::Reason;
    use cluster::crd::managed_component::DesiredState;

    fn found(generation: i64, outcome: &Outcome) -> Found {
        let map = serde_json::json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "map", "namespace": "here"}});
        let expected = [crate::reconcile::observe::Expected::of(&map)];
        let live = crate::reconcile::live([map]);
        let (security, desired) = (Security::Clean, DesiredState::Running);
        let dimensions = observe(&Seen {
            deleting: false,
            desired,
            expected: &expected,
            live: Some(&live),
            outcome,
            security: &security,
            earlier: None,
        });
        Found { generation, dimensions, taken_up: None, inventory: Vec::new(), kept: Vec::new(), version: Some("1.2.3".into()) }
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn condition<'a>(status: &'a ManagedComponentStatus, kind: &str) -> &'a Condition {
        status.conditions.iter().find(|condition| condition.kind == kind).unwrap()
    }

    #[test]
    fn a_condition_keeps_its_time_until_it_turns() {
        let first = status(&ManagedComponentStatus::default(), found(1, &Outcome::Written), at(1));
        assert!(first.converged && first.observed_generation == Some(1));
        let same = status(&first, found(1, &Outcome::Written), at(2));
        assert_eq!(same, first, "nothing new, nothing to write");
        let blocked = Outcome::Blocked { reason: Reason::Maintenance, message: "under maintenance, refused: stop".into() };
        let turned = status(&first, found(2, &blocked), at(3));
        assert_eq!((turned.converged, turned.operation_state), (false, Some(OperationState::Blocked)));
        let converged = condition(&turned, CONVERGED);
        assert_eq!((converged.reason.as_str(), converged.message.as_str()), ("Maintenance", "under maintenance, refused: stop"));
        assert_eq!((converged.last_transition_time, condition(&turned, HEALTHY).last_transition_time), (at(3), at(1)));
        assert!(turned.conditions.iter().all(|condition| condition.observed_generation == Some(2)));
    }

    #[test]
    fn a_long_message_is_cut() {
        let long = Outcome::Failed { reason: Reason::ForbiddenObject, message: "é".repeat(9_000) };
        let status = status(&ManagedComponentStatus::default(), found(1, &long), at(1));
        assert_eq!(condition(&status, OPERATION).message.chars().count(), LONGEST + 1);
    }
}
