//! How a live workload object departs from what a person approved: the rule of the policy `pcm-platform-approved`, asked of what is there.
//!
//! What others may do to a live object is no drift: labels and annotations of their own, replicas that the chart leaves open, addresses and
//! node ports that the cluster chose. Deployments, Services, Jobs and PodDisruptionBudgets are compared: `pcm-executor` may read no others.

use agent_api::object::ObjectKey;
use serde_json::{Map, Value, json};

use crate::bundle::pins::{JOB_LABELS, SERVICE_CHOSEN, sort_ports};
use crate::difference::{FieldChange, differing};

/// Kinds that are compared.
pub const KINDS: [&str; 4] = ["Deployment", "Service", "Job", "PodDisruptionBudget"];

/// Fields whose texts may be somebody's secret, wherever in a workload object they are.
const SECRETIVE: [&str; 4] = ["annotations", "args", "command", "httpHeaders"];
/// What stands in the place of such a text, as in a plan.
const MASK: &str = "[secret]";

/// The fields in which `live` departs from its pin (see [`crate::bundle::pins::entry`]): `old` is approved, `new` is live. Values that could be
/// secrets (of environment variables, arguments, annotations) are masked; the fields are named.
#[must_use]
pub fn drift(pin: &Value, live: &Value) -> Vec<FieldChange> {
    let kind = ObjectKey::of(live).kind;
    let (mut approved, mut found) = (as_approved(pin), as_live(pin, live, &kind));
    sort_ports(&mut approved);
    sort_ports(&mut found);
    let mut fields = differing(&approved, &found);
    fields.iter_mut().for_each(mask);
    fields
}

fn mask(field: &mut FieldChange) {
    let mut within = Within::default();
    keys(&field.path).for_each(|key| within = within.below(key));
    [&mut field.old, &mut field.new].into_iter().flatten().for_each(|value| mask_below(value, within));
}

/// What a value lies in.
#[derive(Clone, Copy, Default)]
struct Within {
    env: bool,
    secretive: bool,
}

impl Within {
    fn below(self, key: &str) -> Self {
        Self { env: self.env || key == "env", secretive: self.secretive || SECRETIVE.contains(&key) || (self.env && key == "value") }
    }
}

fn mask_below(value: &mut Value, within: Within) {
    match value {
        Value::Object(map) => map.iter_mut().for_each(|(key, child)| mask_below(child, within.below(key))),
        Value::Array(items) => items.iter_mut().for_each(|item| mask_below(item, within)),
        Value::String(_) | Value::Number(_) | Value::Bool(_) if within.secretive => *value = MASK.into(),
        Value::String(_) | Value::Number(_) | Value::Bool(_) | Value::Null => {}
    }
}

/// The keys of a path; what stands in brackets names an item or a key of somebody's own.
fn keys(path: &str) -> impl Iterator<Item = &str> {
    path.split(']').filter_map(|part| part.split('[').next()).flat_map(|part| part.split('.')).filter(|key| !key.is_empty())
}

/// A pin, at the places of the object itself.
fn as_approved(pin: &Value) -> Value {
    let mut spec = map(pin, "/spec");
    if let Some(template) = pin.get("template") {
        let metadata = metadata(map(template, "/labels"), map(template, "/annotations"));
        spec.insert("template".into(), json!({"metadata": metadata, "spec": template.get("spec")}));
    }
    json!({"metadata": metadata(map(pin, "/labels"), map(pin, "/annotations")), "spec": spec})
}

/// What is live, as far as it is compared.
fn as_live(pin: &Value, live: &Value, kind: &str) -> Value {
    let pinned = map(pin, "/spec");
    let mut spec = map(live, "/spec");
    let chosen: &[&str] = match kind {
        "Deployment" => &["replicas"],
        "Service" => &SERVICE_CHOSEN,
        _ => &[],
    };
    spec.retain(|field, _| pinned.contains_key(field) || !chosen.contains(&field.as_str()));
    if kind == "Job" {
        spec.remove("selector");
    }
    if let Some(template) = spec.remove("template") {
        let mut labels = map(&template, "/metadata/labels");
        if kind == "Job" {
            JOB_LABELS.iter().for_each(|label| drop(labels.remove(*label)));
        }
        let annotations = of_approved(map(&template, "/metadata/annotations"), &map(pin, "/template/annotations"));
        spec.insert("template".into(), json!({"metadata": metadata(labels, annotations), "spec": template.get("spec")}));
    }
    let ports = spec.get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten().filter_map(Value::as_object_mut);
    for port in ports.filter(|port| !has_node_port(&pinned, port)) {
        port.remove("nodePort");
    }
    let labels = of_approved(map(live, "/metadata/labels"), &map(pin, "/labels"));
    let annotations = of_approved(map(live, "/metadata/annotations"), &map(pin, "/annotations"));
    json!({"metadata": metadata(labels, annotations), "spec": spec})
}

/// Whether the chart chose this port's node port.
fn has_node_port(pinned: &Map<String, Value>, port: &Map<String, Value>) -> bool {
    let ports = pinned.get("ports").and_then(Value::as_array).into_iter().flatten();
    let same = |pinned: &&Value| ["port", "protocol"].iter().all(|field| pinned.get(*field) == port.get(*field));
    ports.filter(same).any(|pinned| pinned.get("nodePort").is_some())
}

/// Only the keys that the approval has.
fn of_approved(mut live: Map<String, Value>, approved: &Map<String, Value>) -> Map<String, Value> {
    live.retain(|key, _| approved.contains_key(key));
    live
}

/// Absent where empty, as the API server has it.
fn metadata(labels: Map<String, Value>, annotations: Map<String, Value>) -> Value {
    let parts = [("labels", labels), ("annotations", annotations)];
    parts.into_iter().filter(|(_, part)| !part.is_empty()).map(|(name, part)| (name.to_owned(), part.into())).collect::<Map<_, _>>().into()
}

fn map(object: &Value, pointer: &str) -> Map<String, Value> {
    object.pointer(pointer).and_then(Value::as_object).cloned().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bundle::pins;

    /// What was rendered, what is live (all of it as created, but for one change), and the drift.
    fn check(rendered: &Value, created: &Value, change: impl Fn(&mut Value), expected: &[&str]) {
        let mut live = created.clone();
        change(&mut live);
        let side = |value: &Option<Value>| value.as_ref().map_or("-".to_owned(), ToString::to_string);
        let found: Vec<String> = drift(&pins::entry(rendered, created), &live)
            .iter()
            .map(|field| format!("{} {} {}", field.path, side(&field.old), side(&field.new)))
            .collect();
        assert_eq!(found, expected, "{live}");
    }

    fn set(pointer: &'static str, key: &'static str, value: Value) -> impl Fn(&mut Value) {
        move |live| live.pointer_mut(pointer).unwrap()[key] = value.clone()
    }

    #[test]
    fn of_a_deployment() {
        let rendered = |replicas: Value| {
            json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d", "labels": {"app": "x"}},
                "spec": {"replicas": replicas, "template": {"metadata": {"labels": {"app": "x"}}, "spec": {"containers": [{"name": "c"}]}}}})
        };
        let mut open = rendered(Value::Null);
        open["spec"].as_object_mut().unwrap().remove("replicas");
        let created = json!({"apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": "d", "labels": {"app": "x"}, "annotations": {}},
            "spec": {"replicas": 1, "paused": false, "template": {"metadata": {"labels": {"app": "x"}, "annotations": {}},
                "spec": {"containers": [{"name": "c", "image": "i"}]}}}});
        let fixed = rendered(json!(1));
        check(&fixed, &created, |_| {}, &[]);
        // What others may do.
        check(&fixed, &created, set("/metadata/labels", "theirs", json!("1")), &[]);
        check(&fixed, &created, set("/metadata/annotations", "deployment.kubernetes.io/revision", json!("7")), &[]);
        check(&fixed, &created, set("/spec/template/metadata/annotations", "kubectl.kubernetes.io/restartedAt", json!("now")), &[]);
        check(&open, &created, set("/spec", "replicas", json!(9)), &[]);
        // What they may not.
        check(&fixed, &created, set("/spec", "replicas", json!(9)), &["spec.replicas 1 9"]);
        check(&fixed, &created, set("/metadata/labels", "app", json!("y")), &[r#"metadata.labels.app "x" "y""#]);
        check(
            &fixed,
            &created,
            set("/spec/template/metadata/labels", "more", json!("1")),
            &[r#"spec.template.metadata.labels.more - "1""#],
        );
        check(
            &fixed,
            &created,
            set("/spec/template/spec/containers/0", "image", json!("other")),
            &[r#"spec.template.spec.containers[name=c].image "i" "other""#],
        );
        check(&fixed, &created, set("/spec", "paused", json!(true)), &["spec.paused false true"]);
    }

    /// Object and field are named; the values are told only where nobody could have put a secret.
    #[test]
    fn what_could_be_a_secret_is_not_told() {
        let container = json!({"name": "c", "image": "i", "args": ["--token=hunter2"], "command": ["hunter2"],
            "env": [{"name": "PASSWORD", "value": "hunter2"}, {"name": "FROM", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}],
            "livenessProbe": {"httpGet": {"path": "/", "httpHeaders": [{"name": "Authorization", "value": "hunter2"}]}}});
        let created = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d", "annotations": {"a.io/b": "hunter2"}},
            "spec": {"template": {"metadata": {"annotations": {"c": "hunter2"}}, "spec": {"containers": [container]}}}});
        let change = |pointer: &'static str, value: Value| move |live: &mut Value| *live.pointer_mut(pointer).unwrap() = value.clone();
        let at = "/spec/template/spec/containers/0";
        let told = |pointer: &str| {
            let mut live = created.clone();
            *live.pointer_mut(&format!("{at}{pointer}")).unwrap() = "hunter3".into();
            let fields = drift(&pins::entry(&created, &created), &live);
            assert!(!serde_json::to_string(&fields).unwrap().contains("hunter"), "{fields:?}");
            fields[0].path.clone()
        };
        assert_eq!(told("/env/0/value"), "spec.template.spec.containers[name=c].env[name=PASSWORD].value");
        assert_eq!(told("/args/0"), "spec.template.spec.containers[name=c].args[0]");
        assert_eq!(told("/command/0"), "spec.template.spec.containers[name=c].command[0]");
        assert_eq!(
            told("/livenessProbe/httpGet/httpHeaders/0/value"),
            "spec.template.spec.containers[name=c].livenessProbe.httpGet.httpHeaders[name=Authorization].value"
        );
        let secret = r#""[secret]" "[secret]""#;
        check(
            &created,
            &created,
            change("/metadata/annotations", json!({"a.io/b": "hunter3"})),
            &[&format!("metadata.annotations[a.io/b] {secret}")],
        );
        check(
            &created,
            &created,
            change("/spec/template/metadata/annotations", json!({"c": "hunter3"})),
            &[&format!("spec.template.metadata.annotations.c {secret}")],
        );
        // A container that somebody added: what it is, without what it is told.
        let mut live = created.clone();
        let mut added = created.pointer(at).unwrap().clone();
        added["name"] = "env".into();
        live.pointer_mut("/spec/template/spec/containers").unwrap().as_array_mut().unwrap().push(added);
        let fields = drift(&pins::entry(&created, &created), &live);
        let text = serde_json::to_string(&fields).unwrap();
        assert!(
            text.contains(r#""image":"i""#) && text.contains("PASSWORD") && text.contains("secretKeyRef") && !text.contains("hunter"),
            "{text}"
        );
        // A name is no place: this container is called `env`, and its image is told.
        let mut pinned = live.clone();
        pinned.pointer_mut("/spec/template/spec/containers/1").unwrap()["image"] = "j".into();
        let image = r#"spec.template.spec.containers[name=env].image "i" "j""#;
        check(&live, &live, |changed| *changed = pinned.clone(), &[image]);
    }

    #[test]
    fn of_a_service() {
        let rendered = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"},
            "spec": {"ports": [{"port": 1, "nodePort": 30001}, {"port": 2}]}});
        let created = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}, "spec": {"clusterIP": "10.0.0.1",
            "selector": {"app": "x"}, "ports": [{"port": 1, "protocol": "TCP", "nodePort": 30001}, {"port": 2, "protocol": "TCP", "nodePort": 30002}]}});
        check(&rendered, &created, set("/spec", "clusterIP", json!("10.0.0.2")), &[]);
        check(&rendered, &created, set("/spec/ports/1", "nodePort", json!(30009)), &[]);
        check(&rendered, &created, set("/spec/ports/0", "nodePort", json!(30009)), &["spec.ports[0].nodePort 30001 30009"]);
        check(&rendered, &created, set("/spec/selector", "app", json!("evil")), &[r#"spec.selector.app "x" "evil""#]);
        check(&rendered, &created, |live| live["spec"]["ports"].as_array_mut().unwrap().reverse(), &[]);
    }

    #[test]
    fn of_a_job_and_a_budget() {
        let rendered = json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"}});
        let created = json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"}, "spec": {"backoffLimit": 1, "selector":
            {"matchLabels": {"batch.kubernetes.io/controller-uid": "u"}}, "template": {"metadata": {"labels": {"job-name": "j", "a": "b"}}, "spec": {}}}});
        check(&rendered, &created, set("/spec/template/metadata/labels", "job-name", json!("other")), &[]);
        check(&rendered, &created, set("/spec", "suspend", json!(true)), &["spec.suspend - true"]);

        let rendered = json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "p"}});
        let created =
            json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "p"}, "spec": {"minAvailable": 1}});
        check(&rendered, &created, |_| {}, &[]);
        check(&rendered, &created, set("/spec", "minAvailable", json!(0)), &["spec.minAvailable 1 0"]);
    }
}
