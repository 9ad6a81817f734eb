//! The disruption budget of a workload, and the rolling update that stays within it.

use cluster::crd::managed_component::Pdb;
use serde_json::{Value, json};

use super::super::workload::Workload;

/// So many of `pods` have to be available. A share is rounded up, as the disruption controller does it; of `maxUnavailable` that means that
/// `30%` of one pod is that pod.
#[must_use]
pub fn required(pdb: &Pdb, pods: u32) -> u32 {
    let min = pdb.min_available.as_ref().and_then(|amount| amount.of(pods));
    let max = pdb.max_unavailable.as_ref().and_then(|amount| amount.of(pods));
    min.or_else(|| max.map(|max| pods.saturating_sub(max))).unwrap_or(0)
}

/// A rolling update of so many pods that never has fewer available than are required: all above may be missing, and one pod more than wanted
/// is started first, so that it goes on where none may be missing.
#[must_use]
pub fn rolling_update(pods: u32, required: u32) -> Value {
    json!({"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": pods.saturating_sub(required), "maxSurge": 1}})
}

/// The PodDisruptionBudget. Pods that are not healthy are never protected, so that those are replaced first.
#[must_use]
pub fn object(workload: &Workload<'_>, pdb: &Pdb) -> Value {
    let mut spec = serde_json::to_value(pdb).unwrap_or_default();
    spec["selector"] = workload.selector();
    spec["unhealthyPodEvictionPolicy"] = "AlwaysAllow".into();
    json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
        "metadata": {"name": workload.derived_name(), "namespace": workload.key.namespace}, "spec": spec})
}

#[cfg(test)]
mod tests {
    use super::*;
    use cluster::crd::managed_component::Amount;

    fn min(amount: Amount) -> Pdb {
        Pdb { min_available: Some(amount), max_unavailable: None }
    }

    fn max(amount: Amount) -> Pdb {
        Pdb { min_available: None, max_unavailable: Some(amount) }
    }

    fn share(text: &str) -> Amount {
        Amount::Percent(text.into())
    }

    /// "Protections", PodDisruptionBudget: what the budget asks for, and the `maxUnavailable` that is computed from it.
    #[test]
    fn budgets_and_their_rolling_updates() {
        for (pdb, pods, expected, max_unavailable) in [
            (min(Amount::Count(2)), 3, 2, 1),
            (min(Amount::Count(1)), 1, 1, 0),
            (min(Amount::Count(0)), 3, 0, 3),
            (min(share("50%")), 3, 2, 1),
            (min(share("30%")), 1, 1, 0),
            (min(share("100%")), 4, 4, 0),
            (max(Amount::Count(1)), 3, 2, 1),
            (max(Amount::Count(0)), 3, 3, 0),
            (max(Amount::Count(5)), 3, 0, 3),
            (max(share("30%")), 1, 0, 1),
            (max(share("30%")), 10, 7, 3),
        ] {
            let found = required(&pdb, pods);
            assert_eq!(found, expected, "{pdb:?} of {pods}");
            let update = rolling_update(pods, found);
            assert_eq!(
                update,
                json!({"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": max_unavailable, "maxSurge": 1}}),
                "{pdb:?}"
            );
        }
    }
}
