//! Maintenance: nothing is written but replicas upward, whoever wrote the resource.
//!
//! | asked for | under maintenance |
//! | --- | --- |
//! | scale up, start | the counts are raised, nothing else is written |
//! | install, stop, restart, scale down, autoscaling, configure, delete | refused, until maintenance ends |

use agent_api::object::ObjectKey;
use cluster::crd::managed_component::{DesiredState, ManagedComponentSpec};

use super::operation::Operation;
use super::workload::Workload;

/// What maintenance leaves of what is asked for.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Held {
    /// What waits for its end.
    pub refused: Vec<Operation>,
    /// What is carried out, by raising counts.
    pub allowed: Vec<Operation>,
}

impl Held {
    /// For the condition; `None` where nothing is refused.
    #[must_use]
    pub fn message(&self) -> Option<String> {
        let refused: Vec<String> = self.refused.iter().map(ToString::to_string).collect();
        (!refused.is_empty()).then(|| format!("under maintenance, refused: {}", refused.join(", ")))
    }
}

/// Sorts what is asked for.
#[must_use]
pub fn held(asked: Vec<Operation>) -> Held {
    let (allowed, refused) = asked.into_iter().partition(|operation| match operation {
        Operation::ScaleUp { .. } | Operation::Start => true,
        Operation::Install
        | Operation::Stop
        | Operation::Restart
        | Operation::ScaleDown { .. }
        | Operation::Autoscale
        | Operation::Configure
        | Operation::Uninstall => false,
    });
    Held { refused, allowed }
}

/// A count that is raised under maintenance; nothing else of the workload is written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Raise {
    /// Workload.
    pub workload: ObjectKey,
    /// The new count, more than the live one.
    pub to: u32,
}

/// A live workload, with what may be its count.
#[derive(Clone, Debug)]
pub struct Candidate<'a> {
    /// As it is live.
    pub workload: Workload<'a>,
    /// The count that it has where the spec says none, before a stop or by its chart.
    pub otherwise: Option<u32>,
    /// Whether an autoscaler owns it.
    pub autoscaled: bool,
}

/// The counts that are raised for what is allowed. An autoscaler's count is its own, but for a start: at zero it does nothing.
#[must_use]
pub fn raises(spec: &ManagedComponentSpec, allowed: &[Operation], candidates: &[Candidate<'_>]) -> Vec<Raise> {
    if allowed.is_empty() || spec.desired_state == DesiredState::Stopped {
        return Vec::new();
    }
    let starts = allowed.contains(&Operation::Start);
    let raise = |candidate: &Candidate<'_>| {
        let live = candidate.workload.replicas().unwrap_or(1);
        let wanted = if candidate.autoscaled { candidate.otherwise } else { spec.replicas.or(candidate.otherwise) }?;
        // What stands at zero stands there by a stop, and only a start ends it.
        let may = if live == 0 { starts } else { !candidate.autoscaled };
        (may && wanted > live).then(|| Raise { workload: candidate.workload.key.clone(), to: wanted })
    };
    candidates.iter().filter_map(raise).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    /// "Maintenance": what is blocked, and what stays allowed.
    #[test]
    fn what_maintenance_blocks() {
        for (name, operation, allowed) in [
            ("arrêt", Operation::Stop, false),
            ("redémarrage", Operation::Restart, false),
            ("réduction", Operation::ScaleDown { to: Some(1) }, false),
            ("réduction to the chart's count", Operation::ScaleDown { to: None }, false),
            ("configuration", Operation::Configure, false),
            ("suppression", Operation::Uninstall, false),
            ("autoscaling", Operation::Autoscale, false),
            ("installation", Operation::Install, false),
            ("augmentation", Operation::ScaleUp { to: 4 }, true),
            ("démarrage", Operation::Start, true),
        ] {
            let held = held(vec![operation.clone()]);
            assert_eq!(held.allowed == [operation], allowed, "{name}");
            assert_eq!(held.message().is_none(), allowed, "{name}");
        }
        let mixed = held(vec![Operation::Configure, Operation::ScaleUp { to: 4 }, Operation::Stop]);
        assert_eq!(mixed.message().unwrap(), "under maintenance, refused: configure, stop");
        assert_eq!(mixed.allowed, [Operation::ScaleUp { to: 4 }]);
    }

    #[test]
    fn only_more_pods_are_written() {
        let up = [Operation::ScaleUp { to: 4 }];
        let start = [Operation::Start];
        let running = json!({"service": "redis", "source": {"local": "redis"}, "replicas": 4});
        let silent = json!({"service": "redis", "source": {"local": "redis"}});
        let stopped = json!({"service": "redis", "source": {"local": "redis"}, "replicas": 4, "desiredState": "Stopped"});
        for (name, spec, allowed, live, otherwise, autoscaled, expected) in [
            ("augmentation", &running, up.as_slice(), 2, None, false, Some(4)),
            ("somebody has more already", &running, &up, 6, None, false, None),
            ("nothing is asked for", &running, &[], 2, None, false, None),
            ("an autoscaler owns it", &running, &up, 2, None, true, None),
            ("a refused stop goes with it", &stopped, &up, 2, None, false, None),
            ("more pods of what is stopped", &running, &up, 0, None, false, None),
            ("démarrage", &running, &start, 0, None, false, Some(4)),
            ("démarrage by the chart's count", &silent, &start, 0, Some(2), false, Some(2)),
            ("démarrage under an autoscaler", &running, &start, 0, Some(8), true, Some(8)),
        ] {
            let object: Value = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a", "namespace": "n"},
                "spec": {"replicas": live}});
            let spec: ManagedComponentSpec = serde_json::from_value(spec.clone()).unwrap();
            let candidate = Candidate { workload: Workload::of(&object).unwrap(), otherwise, autoscaled };
            let found = raises(&spec, allowed, &[candidate]);
            assert_eq!(found.first().map(|raise| raise.to), expected, "{name}");
        }
    }
}
