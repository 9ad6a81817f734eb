//! The gate before a restart: it waits while a budget has fewer pods than it asks for, and goes on by itself.
//!
//! `restart` and `rolling_restart` are this one path: the annotation `platform.navin.ai/restarted-at` on pod templates. A Deployment starts a
//! pod before it ends one; a StatefulSet ends one first, so that its budget must have a pod to spare.

use std::fmt;

use cluster::crd::managed_component::{DesiredState, Pdb};
use jiff::Timestamp;

use super::Live;
use super::transform::budget::required;
use super::workload::Workload;

/// What pods are to carry.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Gate {
    /// This request, or none.
    Open(Option<Timestamp>),
    /// The former request still, because of these budgets.
    Blocked {
        /// What pods carry now.
        carried: Option<Timestamp>,
        /// Each budget that has no pod to spare.
        by: Vec<Exhausted>,
    },
}

impl Gate {
    /// The request that the pod templates carry, whichever way it is.
    #[must_use]
    pub fn restarted_at(&self) -> Option<Timestamp> {
        match self {
            Self::Open(restarted_at) => *restarted_at,
            Self::Blocked { carried, .. } => *carried,
        }
    }
}

/// A budget without a pod to spare.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Exhausted {
    /// The budget, as `PodDisruptionBudget.policy namespace/name`.
    pub budget: String,
    /// The workload, likewise.
    pub workload: String,
    /// Pods that must be available before a restart begins.
    pub needed: u32,
    /// Pods that are.
    pub available: u32,
}

impl fmt::Display for Exhausted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { budget, workload, needed, available } = self;
        write!(f, "{budget} needs {needed} available pods of {workload} before a restart; there are {available}")
    }
}

/// Decides about a restart request. `workloads` are the component's live ones; budgets are all live ones that select their pods, and the spec's
/// where it is not live yet.
#[must_use]
pub fn gate(
    asked: Option<Timestamp>,
    carried: Option<Timestamp>,
    desired: DesiredState,
    workloads: &[Workload<'_>],
    pdb: Option<&Pdb>,
    live: &Live,
) -> Gate {
    // A request that was taken back leaves pods as they are: to remove the annotation would replace them once more.
    let Some(asked) = asked else { return Gate::Open(carried) };
    if carried == Some(asked) || desired == DesiredState::Stopped {
        return Gate::Open(Some(asked));
    }
    let by: Vec<Exhausted> = workloads.iter().flat_map(|workload| exhausted(workload, pdb, live)).collect();
    if by.is_empty() { Gate::Open(Some(asked)) } else { Gate::Blocked { carried, by } }
}

fn exhausted(workload: &Workload<'_>, pdb: Option<&Pdb>, live: &Live) -> Vec<Exhausted> {
    let pods = workload.replicas().unwrap_or(1);
    if pods == 0 {
        return Vec::new();
    }
    // A status of an older generation says nothing of the pods that this one has.
    let available = if workload.is_observed() { workload.status("availableReplicas") } else { 0 };
    let spare = u32::from(workload.key.kind == "StatefulSet");
    let ours = format!("PodDisruptionBudget.policy {}/{}", workload.key.namespace, workload.derived_name());
    let mut budgets: Vec<(String, Pdb)> = live
        .iter()
        .filter(|(key, _)| key.group == "policy" && key.kind == "PodDisruptionBudget" && key.namespace == workload.key.namespace)
        .filter(|(_, object)| object.pointer("/spec/selector").is_some_and(|selector| workload.is_selected_by(selector)))
        .filter_map(|(key, object)| Some((key.to_string(), serde_json::from_value(object.get("spec")?.clone()).ok()?)))
        .filter(|(name, _)| *name != ours)
        .collect();
    budgets.extend(pdb.map(|pdb| (ours, pdb.clone())));
    let short = |(budget, pdb): (String, Pdb)| {
        let required = required(&pdb, pods);
        let needed = if required == 0 { 0 } else { required + spare };
        (available < needed).then(|| Exhausted { budget, workload: workload.key.to_string(), needed, available })
    };
    budgets.into_iter().filter_map(short).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reconcile::live;
    use cluster::crd::managed_component::Amount;
    use serde_json::{Value, json};

    fn at(second: i64) -> Option<Timestamp> {
        Some(Timestamp::from_second(second).unwrap())
    }

    fn workload(kind: &str, pods: u32, available: u32, observed: i64) -> Value {
        json!({"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": "redis", "namespace": "here", "generation": 2},
            "spec": {"replicas": pods, "template": {"metadata": {"labels": {"app": "redis"}}}},
            "status": {"observedGeneration": observed, "availableReplicas": available}})
    }

    fn budget(name: &str, app: &str, spec: Value) -> Value {
        let mut object = json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
            "metadata": {"name": name, "namespace": "here"}, "spec": {"selector": {"matchLabels": {"app": app}}}});
        for (field, value) in spec.as_object().unwrap() {
            object["spec"][field] = value.clone();
        }
        object
    }

    fn decided(asked: Option<Timestamp>, carried: Option<Timestamp>, workload: &Value, pdb: Option<&Pdb>, budgets: Vec<Value>) -> Gate {
        gate(asked, carried, DesiredState::Running, &[Workload::of(workload).unwrap()], pdb, &live(budgets))
    }

    /// "Protections", PodDisruptionBudget: a restart waits while fewer pods are available than the budget asks for.
    #[test]
    fn a_restart_waits_for_its_budget() {
        let two = Pdb { min_available: Some(Amount::Count(2)), max_unavailable: None };
        let one = Pdb { min_available: Some(Amount::Count(1)), max_unavailable: None };
        let none_missing = Pdb { min_available: None, max_unavailable: Some(Amount::Count(0)) };
        let all_missing = Pdb { min_available: None, max_unavailable: Some(Amount::Percent("100%".into())) };
        for (name, workload, pdb, open) in [
            ("enough", workload("Deployment", 3, 3, 2), Some(&two), true),
            ("just enough: one pod more comes first", workload("Deployment", 3, 2, 2), Some(&two), true),
            ("too few", workload("Deployment", 3, 1, 2), Some(&two), false),
            ("no budget", workload("Deployment", 3, 0, 2), None, true),
            ("an old status", workload("Deployment", 3, 3, 1), Some(&two), false),
            ("min 1 of 1", workload("Deployment", 1, 1, 2), Some(&one), true),
            ("maxUnavailable 0", workload("Deployment", 3, 3, 2), Some(&none_missing), true),
            ("maxUnavailable 0 and one is missing", workload("Deployment", 3, 2, 2), Some(&none_missing), false),
            ("a budget of nothing", workload("Deployment", 3, 0, 2), Some(&all_missing), true),
            ("a StatefulSet with one to spare", workload("StatefulSet", 3, 3, 2), Some(&two), true),
            ("a StatefulSet ends one first", workload("StatefulSet", 3, 2, 2), Some(&two), false),
            ("a StatefulSet, min 1 of 1", workload("StatefulSet", 1, 1, 2), Some(&one), false),
            ("at zero", workload("Deployment", 0, 0, 2), Some(&two), true),
        ] {
            let found = decided(at(2), at(1), &workload, pdb, Vec::new());
            assert_eq!(found.restarted_at(), if open { at(2) } else { at(1) }, "{name}: {found:?}");
        }
    }

    #[test]
    fn each_request_counts_once() {
        let (full, short) = (workload("Deployment", 3, 3, 2), workload("Deployment", 3, 0, 2));
        let two = Pdb { min_available: Some(Amount::Count(2)), max_unavailable: None };
        for (name, asked, carried, object, expected) in [
            ("none", None, None, &full, None),
            ("the first", at(1), None, &full, at(1)),
            ("carried already, while its pods are being replaced", at(1), at(1), &short, at(1)),
            ("the next", at(2), at(1), &full, at(2)),
            ("taken back", None, at(1), &full, at(1)),
        ] {
            let found = decided(asked, carried, object, Some(&two), Vec::new());
            assert_eq!(found, Gate::Open(expected), "{name}");
        }
        let stopped = gate(at(2), at(1), DesiredState::Stopped, &[Workload::of(&short).unwrap()], Some(&two), &Live::new());
        assert_eq!(stopped, Gate::Open(at(2)), "what is stopped has no pods to lose");
    }

    #[test]
    fn every_budget_on_the_pods_is_named() {
        let found = decided(
            at(1),
            None,
            &workload("Deployment", 3, 1, 2),
            Some(&Pdb { min_available: Some(Amount::Count(2)), max_unavailable: None }),
            vec![
                budget("by-hand", "redis", json!({"maxUnavailable": "30%"})),
                budget("other", "db", json!({"minAvailable": 9})),
                // The spec's own, as it was before this spec.
                budget("redis-deployment", "redis", json!({"minAvailable": 3})),
            ],
        );
        let Gate::Blocked { carried: None, by } = &found else { panic!("{found:?}") };
        let told: Vec<String> = by.iter().map(ToString::to_string).collect();
        let expected = [
            "PodDisruptionBudget.policy here/by-hand needs 2 available pods of Deployment.apps here/redis before a restart; there are 1",
            "PodDisruptionBudget.policy here/redis-deployment needs 2 available pods of Deployment.apps here/redis before a restart; there are 1",
        ];
        assert_eq!(told, expected);
    }
}
