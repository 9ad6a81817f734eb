//! Which operations a spec asks for: what differs between it and what was last taken up.

use std::fmt;

use agent_api::digest::Sha256;
use cluster::crd::managed_component::{DesiredState, ManagedComponentSpec, TakenUp};
use serde_json::json;

/// An operation that a spec asks for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Operation {
    /// Nothing was taken up before.
    Install,
    /// `desiredState` to `Running`.
    Start,
    /// `desiredState` to `Stopped`.
    Stop,
    /// Another `restartRequestedAt`.
    Restart,
    /// More pods.
    ScaleUp {
        /// The count of the spec.
        to: u32,
    },
    /// Fewer pods, or a count that is no longer given.
    ScaleDown {
        /// The count of the spec; `None` where the chart's holds again.
        to: Option<u32>,
    },
    /// Another autoscaler, or none any more.
    Autoscale,
    /// Source, version, values, secret references or budget.
    Configure,
    /// The resource is being deleted.
    Uninstall,
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Install => f.write_str("install"),
            Self::Start => f.write_str("start"),
            Self::Stop => f.write_str("stop"),
            Self::Restart => f.write_str("restart"),
            Self::ScaleUp { to } => write!(f, "scale up to {to}"),
            Self::ScaleDown { to: Some(to) } => write!(f, "scale down to {to}"),
            Self::ScaleDown { to: None } => f.write_str("scale to the chart's count"),
            Self::Autoscale => f.write_str("change the autoscaler"),
            Self::Configure => f.write_str("configure"),
            Self::Uninstall => f.write_str("delete"),
        }
    }
}

/// What a generation of a spec is remembered by once it was carried out.
#[must_use]
pub fn taken_up(generation: i64, spec: &ManagedComponentSpec) -> TakenUp {
    let configuration = json!([spec.source, spec.version, spec.values, spec.secret_refs, spec.pdb]);
    TakenUp {
        generation,
        configuration: Sha256::of_json(&configuration),
        replicas: spec.replicas,
        autoscaling: spec.autoscaling.clone(),
        desired_state: spec.desired_state,
        restart_requested_at: spec.restart_requested_at,
    }
}

/// Everything that a spec asks for; empty where it says what was taken up, as after switching maintenance. `live` is the largest live count of
/// the component's workloads: what a first count of the spec is compared with.
#[must_use]
pub fn asked(spec: &ManagedComponentSpec, deleting: bool, before: Option<&TakenUp>, live: Option<u32>) -> Vec<Operation> {
    if deleting {
        return vec![Operation::Uninstall];
    }
    let Some(before) = before else { return vec![Operation::Install] };
    let now = taken_up(before.generation, spec);
    let mut asked = Vec::new();
    if now.configuration != before.configuration {
        asked.push(Operation::Configure);
    }
    match (before.replicas.or(live), now.replicas) {
        _ if before.replicas == now.replicas => {}
        (Some(from), Some(to)) if to < from => asked.push(Operation::ScaleDown { to: Some(to) }),
        (_, Some(to)) => asked.push(Operation::ScaleUp { to }),
        (_, None) => asked.push(Operation::ScaleDown { to: None }),
    }
    if now.autoscaling != before.autoscaling {
        asked.push(Operation::Autoscale);
    }
    if now.restart_requested_at != before.restart_requested_at && now.restart_requested_at.is_some() {
        asked.push(Operation::Restart);
    }
    match (before.desired_state, now.desired_state) {
        (DesiredState::Running, DesiredState::Stopped) => asked.push(Operation::Stop),
        (DesiredState::Stopped, DesiredState::Running) => asked.push(Operation::Start),
        (DesiredState::Running, DesiredState::Running) | (DesiredState::Stopped, DesiredState::Stopped) => {}
    }
    asked
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    fn spec(over: &Value) -> ManagedComponentSpec {
        let mut whole = json!({"service": "redis", "source": {"local": "redis"}, "replicas": 2, "values": {"a": 1}});
        for (field, value) in over.as_object().unwrap() {
            whole[field] = value.clone();
        }
        serde_json::from_value(whole).unwrap()
    }

    /// "Composants et opérations", row by row: what of the spec changes, and what that asks for.
    #[test]
    fn operations() {
        let scaling = json!({"autoscaling": {"minReplicas": 1, "maxReplicas": 3}});
        let nothing = json!({});
        for (name, before, now, expected) in [
            ("démarrage", json!({"desiredState": "Stopped"}), nothing.clone(), vec![Operation::Start]),
            ("arrêt", nothing.clone(), json!({"desiredState": "Stopped"}), vec![Operation::Stop]),
            ("redémarrage", nothing.clone(), json!({"restartRequestedAt": "2026-11-30T10:00:00Z"}), vec![Operation::Restart]),
            (
                "redémarrage, two in a row",
                json!({"restartRequestedAt": "2026-11-30T10:00:00Z"}),
                json!({"restartRequestedAt": "2026-11-30T10:00:01Z"}),
                vec![Operation::Restart],
            ),
            ("a request that is taken back", json!({"restartRequestedAt": "2026-11-30T10:00:00Z"}), nothing.clone(), vec![]),
            ("mise à l'échelle, up", nothing.clone(), json!({"replicas": 3}), vec![Operation::ScaleUp { to: 3 }]),
            ("mise à l'échelle, down", nothing.clone(), json!({"replicas": 1}), vec![Operation::ScaleDown { to: Some(1) }]),
            ("mise à l'échelle, the chart's", nothing.clone(), json!({"replicas": null}), vec![Operation::ScaleDown { to: None }]),
            ("mise à l'échelle, first given, up", json!({"replicas": null}), json!({"replicas": 6}), vec![Operation::ScaleUp { to: 6 }]),
            (
                "mise à l'échelle, first given, down",
                json!({"replicas": null}),
                json!({"replicas": 4}),
                vec![Operation::ScaleDown { to: Some(4) }],
            ),
            ("mise à l'échelle, autoscaling", nothing.clone(), scaling.clone(), vec![Operation::Autoscale]),
            ("mise à l'échelle, no autoscaling", scaling, nothing.clone(), vec![Operation::Autoscale]),
            ("maintenance", nothing.clone(), json!({"maintenance": true}), vec![]),
            ("configuration: version", nothing.clone(), json!({"version": "2.0.0"}), vec![Operation::Configure]),
            ("configuration: source", nothing.clone(), json!({"source": {"local": "other"}}), vec![Operation::Configure]),
            ("configuration: values", nothing.clone(), json!({"values": {"a": 2}}), vec![Operation::Configure]),
            ("configuration: pdb", nothing.clone(), json!({"pdb": {"minAvailable": 1}}), vec![Operation::Configure]),
            (
                "configuration: secret_refs",
                nothing.clone(),
                json!({"secretRefs": [{"secretName": "s", "key": "k", "valuePath": "a"}]}),
                vec![Operation::Configure],
            ),
            (
                "several at once",
                nothing.clone(),
                json!({"replicas": 3, "values": {}, "desiredState": "Stopped"}),
                vec![Operation::Configure, Operation::ScaleUp { to: 3 }, Operation::Stop],
            ),
            ("nothing", nothing.clone(), nothing.clone(), vec![]),
        ] {
            let before = taken_up(1, &spec(&before));
            assert_eq!(asked(&spec(&now), false, Some(&before), Some(5)), expected, "{name}");
        }
        assert_eq!(asked(&spec(&nothing), false, None, None), [Operation::Install], "installation");
        assert_eq!(asked(&spec(&json!({"replicas": 9})), true, None, None), [Operation::Uninstall], "suppression");
    }
}
