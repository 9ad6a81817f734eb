use super::*;
use crate::published;
use crate::reconcile::live;
use serde_json::json;

use agent_api::heartbeat::Health::{Critical, Ok as Good, Unknown, Warning};
use agent_api::heartbeat::OperationState::{Blocked, Idle, Running, Succeeded};
use agent_api::heartbeat::State::{Installing, Started, Starting, Stopped, Stopping, Uninstalling};

fn deployment(pods: u32, status: Value) -> Value {
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "app", "namespace": "here", "generation": 2},
        "spec": {"replicas": pods}, "status": status})
}

/// All of so many pods, newest and available.
fn all(pods: u32) -> Value {
    json!({"observedGeneration": 2, "replicas": pods, "updatedReplicas": pods, "availableReplicas": pods})
}

fn some(pods: u32, updated: u32, available: u32) -> Value {
    json!({"observedGeneration": 2, "replicas": pods, "updatedReplicas": updated, "availableReplicas": available})
}

fn set(strategy: Value, status: Value) -> Value {
    json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "set", "namespace": "here", "generation": 2},
        "spec": {"replicas": 3, "updateStrategy": strategy}, "status": status})
}

fn blocked(reason: Reason) -> Outcome {
    Outcome::Blocked { reason, message: "because".into() }
}

fn failed(reason: Reason) -> Outcome {
    Outcome::Failed { reason, message: "because".into() }
}

struct Row {
    desired: DesiredState,
    deleting: bool,
    live: Vec<Value>,
    missing: Vec<Value>,
    outcome: Outcome,
    security: Security,
    earlier: Option<OperationState>,
}

fn row(live: Vec<Value>) -> Row {
    Row {
        desired: DesiredState::Running,
        deleting: false,
        live,
        missing: Vec::new(),
        outcome: Outcome::Written,
        security: Security::Clean,
        earlier: None,
    }
}

impl Row {
    fn stopped(self) -> Self {
        Self { desired: DesiredState::Stopped, ..self }
    }

    fn outcome(self, outcome: Outcome) -> Self {
        Self { outcome, ..self }
    }

    fn missing(self, missing: Vec<Value>) -> Self {
        Self { missing, ..self }
    }

    fn earlier(self, earlier: OperationState) -> Self {
        Self { earlier: Some(earlier), ..self }
    }

    fn observed(&self) -> Dimensions {
        let expected: Vec<Expected> = self.live.iter().chain(&self.missing).map(Expected::of).collect();
        let live = live(self.live.clone());
        observe(&Seen {
            deleting: self.deleting,
            desired: self.desired,
            expected: &expected,
            live: Some(&live),
            outcome: &self.outcome,
            security: &self.security,
            earlier: self.earlier,
        })
    }
}

/// The table of docs/operator.md, "What is seen, and the four dimensions".
#[test]
fn quatre_dimensions() {
    let late = json!({"observedGeneration": 2, "replicas": 2, "updatedReplicas": 1, "availableReplicas": 1, "conditions":
        [{"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded", "message": "too late"}]});
    let old = json!({"observedGeneration": 1, "replicas": 2, "updatedReplicas": 2, "availableReplicas": 2});
    let gave_up = OperationState::Failed;
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "map", "namespace": "here"}});
    let hpa = json!({"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "h", "namespace": "here"},
        "spec": {"scaleTargetRef": {"kind": "Deployment", "name": "app"}, "minReplicas": 3, "maxReplicas": 9}});
    let keda = json!({"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject", "metadata": {"name": "k", "namespace": "here"},
        "spec": {"scaleTargetRef": {"name": "app"}, "minReplicaCount": 0}});
    let partition = json!({"type": "RollingUpdate", "rollingUpdate": {"partition": 2}});
    let mut going = map.clone();
    going["metadata"]["deletionTimestamp"] = json!("2026-12-01T00:00:00Z");
    let mut page = vec!["| seen | state | health | operationState | converged |".to_owned(), "| --- | --- | --- | --- | --- |".to_owned()];
    for (name, row, state, health, operation, converged) in [
        ("nothing is applied yet", row(vec![]), Installing, Unknown, Running, false),
        ("some objects are missing", row(vec![map.clone()]).missing(vec![deployment(2, all(2))]), Installing, Critical, Running, false),
        ("a first install cannot be carried out", row(vec![]).outcome(failed(Reason::InvalidSpec)), State::Failed, Unknown, gave_up, false),
        ("no status yet", row(vec![deployment(2, json!({}))]), Starting, Unknown, Running, false),
        ("the status is of an older generation", row(vec![deployment(2, old)]), Starting, Good, Running, false),
        ("none of the pods is available", row(vec![deployment(2, some(2, 2, 0))]), Starting, Critical, Running, false),
        ("some pods are available", row(vec![deployment(2, some(2, 2, 1))]), Starting, Warning, Running, false),
        ("old pods are still there", row(vec![deployment(2, some(3, 2, 2))]), Starting, Good, Running, false),
        ("every workload is ready", row(vec![deployment(2, all(2)), map.clone()]), Started, Good, Succeeded, true),
        (
            "a finalizer holds an object that somebody deleted",
            row(vec![deployment(2, all(2)), going]).earlier(Succeeded),
            Installing,
            Good,
            Succeeded,
            false,
        ),
        ("the chart has no workloads", row(vec![map.clone()]), Started, Good, Succeeded, true),
        ("a rollout gave up", row(vec![deployment(2, late.clone())]), State::Failed, Warning, gave_up, false),
        ("stopped: pods are still there", row(vec![deployment(0, some(2, 2, 2))]).stopped(), Stopping, Good, Running, false),
        (
            "stopped: one of two workloads is at zero",
            row(vec![deployment(0, some(0, 0, 0)), set(json!({}), some(3, 3, 3))]).stopped(),
            Stopping,
            Good,
            Running,
            false,
        ),
        ("stopped: every workload is at zero", row(vec![deployment(0, all(0))]).stopped(), Stopped, Good, Succeeded, true),
        ("stopped: the chart has no workloads", row(vec![map.clone()]).stopped(), Stopped, Good, Succeeded, true),
        (
            "a stop that maintenance blocks",
            row(vec![deployment(2, all(2))]).stopped().outcome(blocked(Reason::Maintenance)),
            Started,
            Good,
            Blocked,
            false,
        ),
        (
            "a restart that maintenance blocks",
            row(vec![deployment(2, all(2))]).outcome(blocked(Reason::Maintenance)),
            Started,
            Good,
            Blocked,
            false,
        ),
        (
            "a restart that its budget blocks",
            row(vec![deployment(2, some(2, 2, 1))]).outcome(blocked(Reason::DisruptionBudgetExhausted)),
            Starting,
            Warning,
            Blocked,
            false,
        ),
        (
            "a configuration that is refused while the former runs",
            row(vec![deployment(2, all(2))]).outcome(failed(Reason::ForbiddenObject)),
            Started,
            Good,
            gave_up,
            false,
        ),
        (
            "only maintenance was switched",
            row(vec![deployment(2, all(2))]).outcome(Outcome::NothingAsked { before: Some(Succeeded) }),
            Started,
            Good,
            Idle,
            true,
        ),
        (
            "maintenance was switched during a rollout",
            row(vec![deployment(2, some(2, 1, 1))]).outcome(Outcome::NothingAsked { before: Some(Running) }),
            Starting,
            Warning,
            Running,
            false,
        ),
        (
            "pods are lost after the operation",
            row(vec![deployment(2, some(2, 2, 1))]).earlier(Succeeded),
            Starting,
            Warning,
            Succeeded,
            false,
        ),
        (
            "a later rollout of somebody else's gives up",
            row(vec![deployment(2, late)]).earlier(Succeeded),
            State::Failed,
            Warning,
            Succeeded,
            false,
        ),
        ("OnDelete keeps old pods", row(vec![set(json!({"type": "OnDelete"}), some(3, 0, 3))]), Starting, Good, Blocked, false),
        ("a partition keeps old pods", row(vec![set(partition, some(3, 1, 3))]), Starting, Good, Blocked, false),
        ("an autoscaler has not reached its bounds", row(vec![deployment(2, all(2)), hpa.clone()]), Started, Good, Running, false),
        ("an autoscaler is within its bounds", row(vec![deployment(3, all(3)), hpa]), Started, Good, Succeeded, true),
        (
            "an autoscaler that may go to zero has gone there",
            row(vec![deployment(0, all(0)), keda.clone()]),
            Started,
            Good,
            Succeeded,
            true,
        ),
        ("stopped, under such an autoscaler", row(vec![deployment(0, all(0)), keda]).stopped(), Stopped, Good, Succeeded, true),
        ("deletion", Row { deleting: true, ..row(vec![deployment(2, all(2))]) }, Uninstalling, Good, Running, false),
        ("the same generation is seen again", row(vec![deployment(2, all(2))]).earlier(Idle), Started, Good, Idle, true),
        (
            "a deletion that something else holds up",
            Row { deleting: true, ..row(vec![deployment(2, all(2))]) }.outcome(blocked(Reason::Progressing)),
            Uninstalling,
            Good,
            Blocked,
            false,
        ),
        (
            "a deletion that maintenance blocks",
            Row { deleting: true, ..row(vec![deployment(2, all(2))]) }.outcome(blocked(Reason::Maintenance)),
            Started,
            Good,
            Blocked,
            false,
        ),
    ] {
        let found = row.observed();
        let dimensions = (found.state.is, found.health.is, found.operation.is, found.security.is, found.converged);
        assert_eq!(dimensions, (state, health, operation, SecurityState::Compliant, converged), "{name}: {found:?}");
        assert!(!found.state.message.is_empty() && !found.operation.message.is_empty(), "{name} says why");
        let word = |value: Value| value.as_str().unwrap_or_default().to_owned();
        let (state, health, operation) = (word(json!(state)), word(json!(health)), word(json!(operation)));
        page.push(format!("| {name} | `{state}` | `{health}` | `{operation}` | {converged} |"));
    }
    published::check("dimensions", &page);
}

#[test]
fn security_is_a_dimension_of_its_own() {
    let found = Security::Found { reason: Reason::ForbiddenObject, message: "Secret here/a".into() };
    for (security, expected) in
        [(Security::Clean, SecurityState::Compliant), (found, SecurityState::NonCompliant), (Security::NotRendered, SecurityState::Unknown)]
    {
        let row = Row { security, ..row(vec![deployment(2, all(2))]) };
        let found = row.observed();
        assert_eq!(found.security.is, expected);
        assert_eq!((found.state.is, found.health.is, found.operation.is), (Started, Good, Succeeded), "the others are what they are");
    }
}

#[test]
fn whoever_cannot_look_claims_nothing() {
    let expected = [Expected::of(&deployment(2, json!({})))];
    let found = observe(&Seen {
        deleting: false,
        desired: DesiredState::Running,
        expected: &expected,
        live: None,
        outcome: &failed(Reason::NotObserved),
        security: &Security::NotRendered,
        earlier: Some(Succeeded),
    });
    assert_eq!((found.health.is, found.converged, found.wanted), (Unknown, false, 2));
}

#[test]
fn reasons_are_told_with_what_is_blocked() {
    let set = set(json!({"type": "OnDelete"}), some(3, 1, 3));
    let found = row(vec![set]).observed();
    assert_eq!(found.operation.reason, Reason::OnDelete);
    assert!(found.operation.message.starts_with("StatefulSet.apps here/set: 2 replicas"), "{}", found.operation.message);
}
