//! Persist, then act: what the status says before the first write of a pass, so that whoever comes after a crash knows of everything that may
//! have been written. And what becomes of a plan when a write fails.

use cluster::crd::managed_component::{KeptReplicas, ManagedComponentStatus};
use jiff::Timestamp;

use super::observe::Outcome;
use super::plan::{Component, Plan, Steps, Stopped};
use super::status::pending;

/// The status to be written before the first write; `None` where it says all of it already.
///
/// - the inventory, so that nothing is applied that a deletion would not find;
/// - counts that a stop is about to lose, beside those that a start has not brought back yet;
/// - the restart that the gate has let through: once begun it goes on, whatever budgets say of the pods that it replaces.
#[must_use]
pub fn record(plan: &Plan, component: &Component<'_>, now: Timestamp) -> Option<ManagedComponentStatus> {
    let before = component.status;
    let mut status = before.clone();
    status.inventory.clone_from(&plan.inventory);
    status.kept_replicas = kept(&before.kept_replicas, plan.kept());
    if let (Some(carried), Some(next)) = (&mut status.taken_up, plan.taken_up()) {
        carried.restart_requested_at = next.restart_requested_at;
    }
    let writes = !matches!(plan.steps, Steps::Nothing);
    if !writes || status == *before {
        return None;
    }
    Some(if matches!(plan.outcome, Outcome::Written) { pending(status, component.generation, now) } else { status })
}

fn kept(before: &[KeptReplicas], next: &[KeptReplicas]) -> Vec<KeptReplicas> {
    let other = |kept: &&KeptReplicas| !next.iter().any(|next| next.kind == kept.kind && next.name == kept.name);
    before.iter().filter(other).chain(next).cloned().collect()
}

impl Plan {
    /// The plan after one of its writes failed: what was asked for is asked for again, but for a restart that has begun.
    #[must_use]
    pub fn failed(self, component: &Component<'_>, stopped: Stopped) -> Self {
        let mut taken_up = component.status.taken_up.clone();
        if let (Some(carried), Some(next)) = (&mut taken_up, self.taken_up()) {
            carried.restart_requested_at = next.restart_requested_at;
        }
        let kept = kept(&component.status.kept_replicas, self.kept());
        let Stopped { reason, message, .. } = stopped;
        let mut plan = self.remembering(taken_up, kept);
        plan.outcome = Outcome::Failed { reason, message };
        plan
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reconcile::Live;
    use crate::reconcile::plan::{Cluster, plan};
    use crate::reconcile::reason::Reason;
    use agent_api::heartbeat::{OperationState, State};
    use cluster::crd::managed_component::ManagedComponentSpec;
    use render::engine::EngineObject;
    use serde_json::{Value, json};
    use std::collections::BTreeMap;

    const AT: Timestamp = Timestamp::UNIX_EPOCH;

    fn deployment(replicas: u32, available: u32) -> Value {
        json!({"apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": "redis", "namespace": "here", "labels": {"platform.navin.ai/component": "redis"}},
            "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": "redis"}},
                "template": {"metadata": {"labels": {"app": "redis"}}}},
            "status": {"observedGeneration": 1, "replicas": replicas, "availableReplicas": available}})
    }

    /// The record and the failure of a pass over a spec with a former status and live objects.
    fn passed(spec: Value, status: Value, live: Vec<Value>) -> (Option<ManagedComponentStatus>, Plan, ManagedComponentStatus) {
        let mut whole = json!({"service": "redis", "source": {"local": "redis"}});
        for (field, value) in spec.as_object().unwrap() {
            whole[field] = value.clone();
        }
        let spec: ManagedComponentSpec = serde_json::from_value(whole).unwrap();
        let status: ManagedComponentStatus = serde_json::from_value(status).unwrap();
        let component = Component { name: "redis", namespace: "here", generation: 2, deleting: false, spec: &spec, status: &status };
        let (live, written): (Live, _) = (crate::reconcile::live(live), BTreeMap::new());
        let cluster = Cluster { live: &live, keda_served: false, written: &written, unanswered: &[] };
        let mut object = deployment(3, 3);
        object["metadata"] = json!({"name": "redis"});
        let object = EngineObject { template: "x.yaml".into(), hooks: vec![], weight: 0, crd: false, object };
        let plan = plan(&component, &cluster, |_| Ok(vec![object]));
        let recorded = record(&plan, &component, AT);
        let failed = plan.clone().failed(&component, Stopped::new(Reason::ApiUnavailable, "no answer"));
        let told = failed.status(&component, &live, None, AT);
        (recorded, plan, told)
    }

    fn taken_up() -> Value {
        json!({"generation": 1, "configuration": "0".repeat(64), "desiredState": "Running"})
    }

    #[test]
    fn what_is_about_to_be_applied_is_on_record_first() {
        let (recorded, plan, told) = passed(json!({}), json!({}), vec![]);
        let recorded = recorded.unwrap();
        assert_eq!((recorded.inventory.len(), recorded.state, recorded.converged), (1, Some(State::Installing), false));
        assert_eq!((recorded.operation_state, recorded.observed_generation), (Some(OperationState::Running), None));
        assert_eq!((told.inventory, told.taken_up), (plan.inventory, None), "a failed install is an install still");
    }

    #[test]
    fn counts_are_on_record_before_a_stop_and_until_a_start_has_brought_them_back() {
        let (recorded, ..) = passed(json!({"desiredState": "Stopped"}), json!({}), vec![deployment(5, 5)]);
        let kept = |recorded: &ManagedComponentStatus| recorded.kept_replicas.iter().map(|kept| kept.replicas).collect::<Vec<_>>();
        assert_eq!(kept(&recorded.unwrap()), [5]);
        let stopped = json!({"keptReplicas": [{"kind": "Deployment", "name": "redis", "replicas": 5}], "takenUp": taken_up()});
        let (recorded, _, told) = passed(json!({"replicas": 4}), stopped, vec![deployment(0, 0)]);
        assert_eq!((kept(&recorded.unwrap()), kept(&told)), (vec![5], vec![5]), "a start that failed begins again");
    }

    #[test]
    fn a_restart_that_has_begun_goes_on() {
        let restart = json!({"restartRequestedAt": "2026-11-30T10:00:00Z", "pdb": {"minAvailable": 2}});
        let (recorded, _, told) = passed(restart.clone(), json!({"takenUp": taken_up()}), vec![deployment(3, 3)]);
        let recorded = recorded.unwrap();
        let carried = |status: &ManagedComponentStatus| status.taken_up.as_ref().unwrap().restart_requested_at.map(|at| at.to_string());
        assert_eq!(carried(&recorded).as_deref(), Some("2026-11-30T10:00:00Z"));
        assert_eq!(carried(&told), carried(&recorded), "a failed write does not take it back");
        // With its pods being replaced the budget would not let it begin.
        let (_, plan, _) = passed(restart, serde_json::to_value(&recorded).unwrap(), vec![deployment(3, 1)]);
        assert!(matches!(plan.outcome, Outcome::Written | Outcome::NothingAsked { .. }), "{:?}", plan.outcome);
    }

    #[test]
    fn what_says_so_already_is_not_written_again() {
        let (recorded, plan, _) = passed(json!({}), json!({"takenUp": taken_up()}), vec![deployment(3, 3)]);
        let mut status = serde_json::to_value(recorded.unwrap()).unwrap();
        status["inventory"] = serde_json::to_value(&plan.inventory).unwrap();
        assert_eq!(passed(json!({}), status, vec![deployment(3, 3)]).0, None);
    }
}
