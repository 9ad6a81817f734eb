//! What is pinned of a workload object: all that the API server made of what was rendered, but for what the cluster chooses.
//!
//! The policy `pcm-platform-approved` compares each write with it, the plan what an apply would leave, and the executor what is live.

use agent_api::digest::Sha256;
use agent_api::object::ObjectKey;
use serde_json::{Map, Value, json};

/// Labels that the Job controller's defaults put on a Job's pods.
pub(crate) const JOB_LABELS: [&str; 4] =
    ["controller-uid", "batch.kubernetes.io/controller-uid", "job-name", "batch.kubernetes.io/job-name"];
/// Fields of a Service that the cluster chooses.
pub(crate) const SERVICE_CHOSEN: [&str; 3] = ["clusterIP", "clusterIPs", "healthCheckNodePort"];

/// The object under a name that nobody has, without what only one object can have.
#[must_use]
pub fn scratch(object: &Value) -> Value {
    let digest = Sha256::of_json(object);
    let mut scratch = object.clone();
    scratch["metadata"]["name"] = format!("clicklink-pin-{}", digest.short()).into();
    if ObjectKey::of(object).kind == "Service" {
        // Addresses that the chart chose are taken already, by the live Service.
        if let Some(spec) = scratch.get_mut("spec").and_then(Value::as_object_mut) {
            if !spec.get("clusterIP").is_some_and(|address| address == "None") {
                SERVICE_CHOSEN.iter().for_each(|field| drop(spec.remove(*field)));
            }
            for port in spec.get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten().filter_map(Value::as_object_mut) {
                port.remove("nodePort");
            }
        }
    }
    scratch
}

/// The object as it can stand in the place of a live one: with what the cluster chose of that and nobody can change, which no pin has.
#[must_use]
pub fn in_place(object: &Value, live: &Value) -> Value {
    let mut whole = object.clone();
    if ObjectKey::of(object).kind == "Job" {
        whole["spec"]["selector"] = live.pointer("/spec/selector").cloned().unwrap_or_default();
        let labels = live.pointer("/spec/template/metadata/labels");
        for (label, value) in JOB_LABELS.iter().filter_map(|label| Some((label, labels?.get(label)?))) {
            whole["spec"]["template"]["metadata"]["labels"][label] = value.clone();
        }
    }
    whole
}

/// What is pinned of a created object, a Secret's values included.
#[must_use]
pub fn whole(rendered: &Value, created: &Value) -> Value {
    let mut whole = entry(rendered, created);
    if ObjectKey::of(rendered).kind == "Secret"
        && let Some(data) = created.get("data")
    {
        whole["data"] = data.clone();
    }
    whole
}

/// What is pinned, at the places of the object itself, without what a write may differ in: labels and annotations of others, the order of a
/// Service's ports, and whether an empty field is there.
#[must_use]
pub fn compared(rendered: &Value, object: &Value) -> Value {
    let mut compared = whole(rendered, object);
    let template = compared.as_object_mut().and_then(|fields| {
        fields.retain(|field, value| !matches!(field.as_str(), "labels" | "annotations") && !is_empty(value));
        fields.remove("template")
    });
    if let Some(template) = template {
        let labels = template.get("labels").filter(|labels| !is_empty(labels));
        compared["spec"]["template"] = json!({"metadata": {"labels": labels}, "spec": template.get("spec")});
    }
    sort_ports(&mut compared);
    for field in ["apiVersion", "kind"] {
        compared[field] = rendered.get(field).cloned().unwrap_or_default();
    }
    compared
}

/// A Service's ports have no order.
pub(crate) fn sort_ports(object: &mut Value) {
    if let Some(ports) = object.pointer_mut("/spec/ports").and_then(Value::as_array_mut) {
        ports.sort_by_key(|port| (port.get("port").and_then(Value::as_u64), port.get("protocol").map(ToString::to_string)));
    }
}

fn is_empty(value: &Value) -> bool {
    value == &Value::Bool(false) || value.as_object().is_some_and(Map::is_empty)
}

/// What of a created object is compared with each write; see the policy.
#[must_use]
pub fn entry(rendered: &Value, created: &Value) -> Value {
    let mut entry = Map::new();
    let metadata = created.get("metadata").cloned().unwrap_or_default();
    put(&mut entry, "labels", &metadata);
    put(&mut entry, "annotations", &metadata);
    let kind = ObjectKey::of(rendered).kind;
    let mut spec = map(created, "spec");
    match kind.as_str() {
        "Deployment" | "Job" => {
            let mut template = spec.remove("template").unwrap_or_default();
            if kind == "Job" {
                spec.remove("selector");
                if let Some(labels) = template.pointer_mut("/metadata/labels").and_then(Value::as_object_mut) {
                    JOB_LABELS.iter().for_each(|label| drop(labels.remove(*label)));
                }
            } else if rendered.pointer("/spec/replicas").is_none() {
                spec.remove("replicas");
            }
            let mut approved = Map::from_iter([("spec".to_owned(), template.get("spec").cloned().unwrap_or_default())]);
            let metadata = template.get("metadata").cloned().unwrap_or_default();
            put(&mut approved, "labels", &metadata);
            put(&mut approved, "annotations", &metadata);
            entry.insert("template".into(), approved.into());
            entry.insert("spec".into(), spec.into());
        }
        "Service" => {
            entry.insert("spec".into(), service(rendered, spec));
        }
        "PodDisruptionBudget" => {
            entry.insert("spec".into(), spec.into());
        }
        _ => {
            put(&mut entry, "immutable", created);
            if kind == "Secret" {
                put(&mut entry, "type", created);
            } else {
                put(&mut entry, "data", created);
                put(&mut entry, "binaryData", created);
            }
        }
    }
    entry.into()
}

/// A Service's `spec`: what the chart chose, and defaults, without what the cluster would choose.
fn service(rendered: &Value, mut spec: Map<String, Value>) -> Value {
    let chosen = map(rendered, "spec");
    for field in SERVICE_CHOSEN {
        match chosen.get(field) {
            // `None` makes both fields.
            None if field == "clusterIPs" && chosen.get("clusterIP").is_some_and(|address| address == "None") => {}
            None => drop(spec.remove(field)),
            Some(value) => drop(spec.insert(field.to_owned(), value.clone())),
        }
    }
    let rendered_ports = chosen.get("ports").and_then(Value::as_array).cloned().unwrap_or_default();
    let ports = spec.get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten().filter_map(Value::as_object_mut);
    for (n, port) in ports.enumerate() {
        match rendered_ports.get(n).and_then(|port| port.get("nodePort")) {
            Some(chosen) => drop(port.insert("nodePort".into(), chosen.clone())),
            None => drop(port.remove("nodePort")),
        }
    }
    spec.into()
}

fn map(object: &Value, field: &str) -> Map<String, Value> {
    object.get(field).and_then(Value::as_object).cloned().unwrap_or_default()
}

fn put(entry: &mut Map<String, Value>, field: &str, from: &Value) {
    if let Some(value) = from.get(field) {
        entry.insert(field.to_owned(), value.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deployment_is_pinned_whole_and_its_replicas_where_the_chart_says_them() {
        let rendered = |replicas: Value| {
            let mut object =
                json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a", "namespace": "n"}, "spec": {}});
            if !replicas.is_null() {
                object["spec"]["replicas"] = replicas;
            }
            object
        };
        let created = json!({"metadata": {"labels": {"l": "1"}, "annotations": {"a": "1"}, "uid": "u"},
            "spec": {"replicas": 1, "strategy": {}, "template": {"metadata": {"labels": {"p": "1"}}, "spec": {"dnsPolicy": "x"}}}});
        let expected = json!({"labels": {"l": "1"}, "annotations": {"a": "1"}, "spec": {"strategy": {}},
            "template": {"labels": {"p": "1"}, "spec": {"dnsPolicy": "x"}}});
        assert_eq!(entry(&rendered(Value::Null), &created), expected);
        assert_eq!(entry(&rendered(json!(1)), &created)["spec"], json!({"replicas": 1, "strategy": {}}));
    }

    #[test]
    fn a_job_is_pinned_without_what_its_name_and_uid_give() {
        let rendered = json!({"kind": "Job"});
        let labels = json!({"app": "x", "controller-uid": "1", "batch.kubernetes.io/controller-uid": "1", "job-name": "s",
            "batch.kubernetes.io/job-name": "s"});
        let created = json!({"spec": {"backoffLimit": 6, "selector": {"matchLabels": {}}, "template": {"metadata": {"labels": labels}}}});
        assert_eq!(entry(&rendered, &created), json!({"spec": {"backoffLimit": 6}, "template": {"labels": {"app": "x"}, "spec": null}}));
    }

    #[test]
    fn of_a_service_only_what_the_chart_chose_is_pinned() {
        let service =
            |spec: Value| json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a", "namespace": "n"}, "spec": spec});
        let chosen_by_cluster = service(json!({"clusterIP": "10.0.0.1", "clusterIPs": ["10.0.0.1"], "healthCheckNodePort": 30000,
            "type": "LoadBalancer", "ports": [{"port": 1, "protocol": "TCP", "nodePort": 30001}]}));
        let rendered = service(json!({"type": "LoadBalancer", "ports": [{"port": 1}]}));
        let free = json!({"spec": {"type": "LoadBalancer", "ports": [{"port": 1, "protocol": "TCP"}]}});
        assert_eq!(entry(&rendered, &chosen_by_cluster), free);

        let fixed = service(json!({"clusterIP": "10.0.0.9", "ports": [{"port": 1, "nodePort": 30009}]}));
        let pinned = json!({"spec": {"clusterIP": "10.0.0.9", "type": "LoadBalancer", "ports": [{"port": 1, "protocol": "TCP", "nodePort": 30009}]}});
        assert_eq!(entry(&fixed, &chosen_by_cluster), pinned);
        assert_eq!(scratch(&fixed)["spec"], json!({"ports": [{"port": 1}]}), "a live Service has them already");

        let headless = service(json!({"clusterIP": "None", "ports": []}));
        assert_eq!(scratch(&headless)["spec"]["clusterIP"], "None");
        let created = service(json!({"clusterIP": "None", "clusterIPs": ["None"]}));
        assert_eq!(entry(&headless, &created), json!({"spec": {"clusterIP": "None", "clusterIPs": ["None"]}}));
    }

    #[test]
    fn a_secrets_values_are_not_in_the_approval() {
        let created = json!({"type": "Opaque", "immutable": true, "data": {"k": "dg=="}});
        assert_eq!(entry(&json!({"kind": "Secret"}), &created), json!({"type": "Opaque", "immutable": true}));
        let created = json!({"data": {"k": "v"}, "binaryData": {"b": "dg=="}});
        assert_eq!(entry(&json!({"kind": "ConfigMap"}), &created), json!({"data": {"k": "v"}, "binaryData": {"b": "dg=="}}));
    }

    #[test]
    fn what_a_write_may_differ_in_is_not_compared() {
        let deployment = |more: Value| {
            let labels = |mine: &str| json!({"app": "x", "theirs": mine});
            json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a", "labels": labels("l"), "annotations": more},
                "spec": {"replicas": 3, "template": {"metadata": {"labels": {"app": "x"}, "annotations": more}, "spec": {}}}})
        };
        let rendered = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a"}, "spec": {}});
        assert_eq!(compared(&rendered, &deployment(json!({}))), compared(&rendered, &deployment(json!({"restartedAt": "now"}))));
        let mut labelled = deployment(json!({}));
        labelled["spec"]["template"]["metadata"]["labels"]["more"] = "1".into();
        assert_eq!(compared(&rendered, &labelled).pointer("/spec/template/metadata/labels/more"), Some(&"1".into()));

        let service = |ports: Value| json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a"}, "spec": {"ports": ports}});
        let ports = [json!({"port": 1, "protocol": "TCP"}), json!({"port": 2, "protocol": "TCP"})];
        let rendered = service(json!([{"port": 1}, {"port": 2}]));
        let [one, two] = ports;
        assert_eq!(compared(&rendered, &service(json!([two, one]))), compared(&rendered, &service(json!([one, two]))));

        let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}});
        let mut empty = map.clone();
        empty["data"] = json!({});
        empty["immutable"] = json!(false);
        assert_eq!(compared(&map, &empty), map.as_object().map(|_| json!({"apiVersion": "v1", "kind": "ConfigMap"})).unwrap());
    }
}
