//! The autoscaler of a workload: a HorizontalPodAutoscaler, or a ScaledObject of KEDA; and who else scales it.

use agent_api::object::ObjectKey;
use cluster::crd::component_kind::KEDA;
use cluster::crd::managed_component::{Autoscaling, Engine};
use serde_json::{Value, json};

use super::super::workload::Workload;
use super::replicas::Bounds;

/// Annotation by which KEDA holds a ScaledObject at a count: it would otherwise bring a stopped workload back.
pub const KEDA_PAUSED: &str = "autoscaling.keda.sh/paused-replicas";

/// KEDA was asked for and is not there.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("a ScaledObject is asked for, and this cluster does not serve KEDA's (scaledobjects.keda.sh)")]
pub struct KedaNotServed;

/// Which engine scales. One that is asked for and not there is never silently another.
///
/// # Errors
/// [`KedaNotServed`].
pub fn engine(asked: Option<Engine>, keda_served: bool) -> Result<Engine, KedaNotServed> {
    match (asked, keda_served) {
        (Some(Engine::Hpa), _) | (None, false) => Ok(Engine::Hpa),
        (Some(Engine::Keda) | None, true) => Ok(Engine::Keda),
        (Some(Engine::Keda), false) => Err(KedaNotServed),
    }
}

/// The autoscaler's object. A HorizontalPodAutoscaler leaves a workload at zero alone by itself; KEDA has to be told.
#[must_use]
pub fn object(workload: &Workload<'_>, autoscaling: &Autoscaling, engine: Engine, stopped: bool) -> Value {
    let target = json!({"apiVersion": "apps/v1", "kind": workload.key.kind, "name": workload.key.name});
    let mut metadata = json!({"name": workload.derived_name(), "namespace": workload.key.namespace});
    let cpu = autoscaling.target_cpu_utilization_percentage;
    match engine {
        Engine::Hpa => {
            let utilization = json!({"type": "Utilization", "averageUtilization": cpu});
            json!({"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": metadata, "spec": {
                "scaleTargetRef": target, "minReplicas": autoscaling.min_replicas, "maxReplicas": autoscaling.max_replicas,
                "metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": utilization}}]}})
        }
        Engine::Keda => {
            if stopped {
                metadata["annotations"] = json!({KEDA_PAUSED: "0"});
            }
            json!({"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject", "metadata": metadata, "spec": {
                "scaleTargetRef": target, "minReplicaCount": autoscaling.min_replicas, "maxReplicaCount": autoscaling.max_replicas,
                "triggers": [{"type": "cpu", "metricType": "Utilization", "metadata": {"value": cpu.to_string()}}]}})
        }
    }
}

/// Whether an object, rendered or live, scales a workload of its namespace.
#[must_use]
pub fn scales(object: &Value, workload: &Workload<'_>) -> bool {
    let key = ObjectKey::of(object);
    let target = |field: &str| object.pointer(&format!("/spec/scaleTargetRef/{field}")).and_then(Value::as_str);
    // KEDA scales Deployments where nothing else is said.
    let kind = target("kind").or((key.group == KEDA).then_some("Deployment"));
    is_autoscaler(&key)
        && key.namespace == workload.key.namespace
        && kind == Some(workload.key.kind.as_str())
        && target("name") == Some(workload.key.name.as_str())
}

/// Whether an object is a HorizontalPodAutoscaler or a ScaledObject.
#[must_use]
pub fn is_autoscaler(key: &ObjectKey) -> bool {
    (key.group == "autoscaling" && key.kind == "HorizontalPodAutoscaler") || is_scaled_object(key)
}

/// Whether an object is a ScaledObject.
#[must_use]
pub fn is_scaled_object(key: &ObjectKey) -> bool {
    key.group == KEDA && key.kind == "ScaledObject"
}

/// Conditions of a live autoscaler that keep it from scaling, `type reason` each: of a HorizontalPodAutoscaler, that it gets no metrics or may
/// not scale; of a ScaledObject, that it is not ready.
#[must_use]
pub fn trouble(live: &Value) -> Option<String> {
    let conditions = live.pointer("/status/conditions").and_then(Value::as_array)?;
    let text = |condition: &Value, field: &str| condition.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
    let keeps = |condition: &&Value| {
        let resting = text(condition, "reason") == "ScalingDisabled";
        ["ScalingActive", "AbleToScale", "Ready"].contains(&text(condition, "type").as_str())
            && text(condition, "status") == "False"
            && !resting
    };
    let told: Vec<String> =
        conditions.iter().filter(keeps).map(|condition| format!("{} {}", text(condition, "type"), text(condition, "reason"))).collect();
    (is_autoscaler(&ObjectKey::of(live)) && !told.is_empty())
        .then(|| format!("{} does not scale: {}", ObjectKey::of(live), told.join(", ")))
}

/// The bounds of an autoscaler, with the defaults of its kind: HPA from 1; KEDA from 0, to 100.
#[must_use]
pub fn bounds(object: &Value) -> Bounds {
    let number = |pointer: &str| object.pointer(pointer).and_then(Value::as_u64).and_then(|number| u32::try_from(number).ok());
    if is_scaled_object(&ObjectKey::of(object)) {
        Bounds { min: number("/spec/minReplicaCount").unwrap_or(0), max: number("/spec/maxReplicaCount").unwrap_or(100) }
    } else {
        let min = number("/spec/minReplicas").unwrap_or(1);
        Bounds { min, max: number("/spec/maxReplicas").unwrap_or(min) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// "mise à l'échelle": HorizontalPodAutoscaler, or ScaledObject where KEDA's CRD is.
    #[test]
    fn the_engine() {
        for (asked, keda_served, expected) in [
            (None, false, Ok(Engine::Hpa)),
            (None, true, Ok(Engine::Keda)),
            (Some(Engine::Hpa), true, Ok(Engine::Hpa)),
            (Some(Engine::Hpa), false, Ok(Engine::Hpa)),
            (Some(Engine::Keda), true, Ok(Engine::Keda)),
            (Some(Engine::Keda), false, Err(KedaNotServed)),
        ] {
            assert_eq!(engine(asked, keda_served), expected, "{asked:?} {keda_served}");
        }
    }

    #[test]
    fn what_it_scales() {
        let deployment = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a", "namespace": "n"}});
        let workload = Workload::of(&deployment).unwrap();
        let hpa = |kind: &str, name: &str, namespace: &str| {
            json!({"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "x", "namespace": namespace},
                "spec": {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": kind, "name": name}}})
        };
        let keda = json!({"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject", "metadata": {"name": "x", "namespace": "n"},
            "spec": {"scaleTargetRef": {"name": "a"}}});
        for (object, expected) in [
            (hpa("Deployment", "a", "n"), true),
            (hpa("StatefulSet", "a", "n"), false),
            (hpa("Deployment", "b", "n"), false),
            (hpa("Deployment", "a", "other"), false),
            (keda.clone(), true),
            (json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "namespace": "n"}, "spec": keda["spec"]}), false),
        ] {
            assert_eq!(scales(&object, &workload), expected, "{object}");
        }
        assert_eq!(bounds(&keda), Bounds { min: 0, max: 100 });
    }

    #[test]
    fn what_keeps_an_autoscaler_from_scaling_is_told() {
        let hpa = |conditions: Value| {
            json!({"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "a", "namespace": "n"},
                "status": {"conditions": conditions}})
        };
        let condition = |kind: &str, status: &str, reason: &str| json!({"type": kind, "status": status, "reason": reason});
        let able = condition("AbleToScale", "True", "SucceededGetScale");
        let blind = condition("ScalingActive", "False", "FailedGetResourceMetric");
        let told = "HorizontalPodAutoscaler.autoscaling n/a does not scale: ScalingActive FailedGetResourceMetric".to_owned();
        assert_eq!(trouble(&hpa(json!([able, blind]))), Some(told));
        let limited = condition("ScalingLimited", "False", "DesiredWithinRange");
        assert_eq!(trouble(&hpa(json!([able, limited]))), None);
        assert_eq!(trouble(&hpa(json!([condition("ScalingActive", "False", "ScalingDisabled")]))), None, "its workload is stopped");
        assert_eq!(trouble(&hpa(json!(null))), None);
    }
}
