//! The readiness rules. A status that speaks of an older generation counts for nothing.
//!
//! | kind | ready | failed |
//! | --- | --- | --- |
//! | Deployment | not paused, newest generation observed, all replicas updated and available, no old pod left | `ProgressDeadlineExceeded` |
//! | StatefulSet | newest generation observed, all replicas there, available and of the newest revision | |
//! | Job | `Complete` | `Failed`, `FailureTarget` |
//! | CustomResourceDefinition | `Established` | its names are not accepted |
//! | every other | it is there | |
//!
//! A StatefulSet that keeps pods of an older revision, by a partition or by `OnDelete`, is not ready, and says which of the two it is.
//! An object that is being deleted is failed, whatever its kind.

use std::fmt;

use serde_json::Value;

/// What an object's live state says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Readiness {
    /// It does its work.
    Ready,
    /// Not yet, and what is missing.
    Waiting(String),
    /// It will not become ready by itself, and why.
    Failed(String),
}

/// Judges a live object.
#[must_use]
pub fn judge(live: &Value) -> Readiness {
    if live.pointer("/metadata/deletionTimestamp").is_some() {
        return Readiness::Failed("it is being deleted".into());
    }
    let group = live.get("apiVersion").and_then(Value::as_str).and_then(|text| text.split_once('/')).map_or("", |(group, _)| group);
    match (group, live.get("kind").and_then(Value::as_str).unwrap_or_default()) {
        ("apps", "Deployment") => deployment(live),
        ("apps", "StatefulSet") => stateful_set(live),
        ("batch", "Job") => job(live),
        ("apiextensions.k8s.io", "CustomResourceDefinition") => definition(live),
        _ => Readiness::Ready,
    }
}

fn deployment(live: &Value) -> Readiness {
    if number(live, "/status/observedGeneration") < number(live, "/metadata/generation") || live.pointer("/status").is_none() {
        return waiting("the newest generation is not observed yet");
    }
    if let Some(condition) = condition(live, "Progressing")
        && text(condition, "reason") == "ProgressDeadlineExceeded"
    {
        return Readiness::Failed(explain(condition));
    }
    if live.pointer("/spec/paused").and_then(Value::as_bool) == Some(true) {
        return waiting("it is paused");
    }
    let desired = live.pointer("/spec/replicas").and_then(Value::as_i64).unwrap_or(1);
    let updated = number(live, "/status/updatedReplicas");
    let all = number(live, "/status/replicas");
    let available = number(live, "/status/availableReplicas");
    if updated < desired {
        let why = condition(live, "ReplicaFailure").filter(|condition| text(condition, "status") == "True").map(explain);
        let why = why.map(|why| format!(" ({why})")).unwrap_or_default();
        return waiting(format!("{updated} of {desired} replicas are updated{why}"));
    }
    if all > updated {
        return waiting(format!("{} old replicas are still there", all - updated));
    }
    if available < desired {
        return waiting(format!("{available} of {desired} replicas are available"));
    }
    Readiness::Ready
}

fn stateful_set(live: &Value) -> Readiness {
    if number(live, "/status/observedGeneration") < number(live, "/metadata/generation") || live.pointer("/status").is_none() {
        return waiting("the newest generation is not observed yet");
    }
    let desired = live.pointer("/spec/replicas").and_then(Value::as_i64).unwrap_or(1);
    let all = number(live, "/status/replicas");
    let available = number(live, "/status/availableReplicas");
    if all > desired {
        return waiting(format!("{} surplus replicas are still there", all - desired));
    }
    if all < desired {
        return waiting(format!("{all} of {desired} replicas are there"));
    }
    if let Some(held) = held_back(live) {
        return waiting(held.to_string());
    }
    let updated = number(live, "/status/updatedReplicas");
    if updated < desired {
        return waiting(format!("{updated} of {desired} replicas are updated"));
    }
    if available < desired {
        return waiting(format!("{available} of {desired} replicas are available"));
    }
    Readiness::Ready
}

/// Pods of a StatefulSet that its own update strategy keeps at an older revision: no controller will replace them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HeldBack {
    /// `OnDelete`: each is replaced when somebody deletes it.
    OnDelete {
        /// How many.
        pods: i64,
    },
    /// `rollingUpdate.partition`: those with a lower ordinal keep their revision.
    Partition {
        /// How many.
        pods: i64,
        /// The partition.
        partition: i64,
    },
}

impl fmt::Display for HeldBack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OnDelete { pods } => {
                write!(f, "{pods} replicas have an older revision and stay so until somebody deletes them (OnDelete)")
            }
            Self::Partition { pods, partition } => write!(f, "{pods} replicas keep an older revision (partition {partition})"),
        }
    }
}

/// What a live StatefulSet keeps at an older revision for good; `None` while its controller is still at work, and for every other kind.
#[must_use]
pub fn held_back(live: &Value) -> Option<HeldBack> {
    let observed = number(live, "/status/observedGeneration") >= number(live, "/metadata/generation");
    if live.get("kind").and_then(Value::as_str) != Some("StatefulSet") || live.pointer("/status").is_none() || !observed {
        return None;
    }
    let desired = live.pointer("/spec/replicas").and_then(Value::as_i64).unwrap_or(1);
    let old = desired - number(live, "/status/updatedReplicas");
    if old <= 0 || number(live, "/status/replicas") < desired {
        return None;
    }
    if live.pointer("/spec/updateStrategy/type").and_then(Value::as_str) == Some("OnDelete") {
        return Some(HeldBack::OnDelete { pods: old });
    }
    let partition = number(live, "/spec/updateStrategy/rollingUpdate/partition");
    (old <= partition).then_some(HeldBack::Partition { pods: old, partition })
}

fn job(live: &Value) -> Readiness {
    if is_true(live, "Complete") {
        return Readiness::Ready;
    }
    for kind in ["Failed", "FailureTarget"] {
        if let Some(condition) = condition(live, kind).filter(|condition| text(condition, "status") == "True") {
            return Readiness::Failed(explain(condition));
        }
    }
    if live.pointer("/spec/suspend").and_then(Value::as_bool) == Some(true) || is_true(live, "Suspended") {
        return waiting("it is suspended");
    }
    let (active, failed) = (number(live, "/status/active"), number(live, "/status/failed"));
    let failures = if failed > 0 { format!(", {failed} failed") } else { String::new() };
    waiting(format!("it runs: {active} active{failures}"))
}

fn definition(live: &Value) -> Readiness {
    if let Some(condition) = condition(live, "NamesAccepted").filter(|condition| text(condition, "status") == "False") {
        return Readiness::Failed(explain(condition));
    }
    if is_true(live, "Established") { Readiness::Ready } else { waiting("it is not established yet") }
}

fn waiting(why: impl Into<String>) -> Readiness {
    Readiness::Waiting(why.into())
}

fn number(live: &Value, pointer: &str) -> i64 {
    live.pointer(pointer).and_then(Value::as_i64).unwrap_or(0)
}

fn condition<'a>(live: &'a Value, kind: &str) -> Option<&'a Value> {
    live.pointer("/status/conditions")?.as_array()?.iter().find(|condition| text(condition, "type") == kind)
}

fn is_true(live: &Value, kind: &str) -> bool {
    condition(live, kind).is_some_and(|condition| text(condition, "status") == "True")
}

fn text<'a>(condition: &'a Value, field: &str) -> &'a str {
    condition.get(field).and_then(Value::as_str).unwrap_or_default()
}

fn explain(condition: &Value) -> String {
    match (text(condition, "reason"), text(condition, "message")) {
        (reason, "") => reason.to_owned(),
        ("", message) => message.to_owned(),
        (reason, message) => format!("{reason}: {message}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(live: Value, expected: &str) {
        let found = match judge(&live) {
            Readiness::Ready => "ready".to_owned(),
            Readiness::Waiting(why) => format!("waiting: {why}"),
            Readiness::Failed(why) => format!("failed: {why}"),
        };
        assert_eq!(found, expected, "{live}");
    }

    fn deployment(spec: Value, status: Value) -> Value {
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"generation": 2}, "spec": spec, "status": status})
    }

    #[test]
    fn the_rules_are_published_as_they_are() {
        let page = include_str!("../../../docs/readiness.md");
        let rules: Vec<&str> = include_str!("rule.rs").lines().filter_map(|line| line.strip_prefix("//! |")).collect();
        assert_eq!(rules.len(), 7);
        for rule in rules {
            assert!(page.contains(&format!("\n|{rule}\n")), "{rule}");
        }
    }

    #[test]
    fn deployments() {
        let good = json!({"observedGeneration": 2, "replicas": 2, "updatedReplicas": 2, "readyReplicas": 2, "availableReplicas": 2});
        let with = |field: &str, value: Value| {
            let mut status = good.clone();
            status[field] = value;
            status
        };
        let two = json!({"replicas": 2});
        check(deployment(two.clone(), good.clone()), "ready");
        check(deployment(json!({"replicas": 2, "paused": true}), good.clone()), "waiting: it is paused");
        check(deployment(two.clone(), with("observedGeneration", json!(1))), "waiting: the newest generation is not observed yet");
        check(deployment(two.clone(), json!({})), "waiting: the newest generation is not observed yet");
        check(deployment(two.clone(), with("updatedReplicas", json!(1))), "waiting: 1 of 2 replicas are updated");
        check(deployment(two.clone(), with("replicas", json!(3))), "waiting: 1 old replicas are still there");
        check(deployment(two.clone(), with("availableReplicas", json!(0))), "waiting: 0 of 2 replicas are available");
        check(deployment(json!({"replicas": 0}), json!({"observedGeneration": 2})), "ready");
        check(deployment(json!({}), json!({"observedGeneration": 2})), "waiting: 0 of 1 replicas are updated");
        let late = json!([{"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded", "message": "too late"}]);
        check(deployment(two.clone(), with("conditions", late.clone())), "failed: ProgressDeadlineExceeded: too late");
        let old = json!({"observedGeneration": 1, "conditions": late});
        check(deployment(two.clone(), old), "waiting: the newest generation is not observed yet");
        let quota = json!({"observedGeneration": 2, "conditions":
            [{"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": "quota"}]});
        check(deployment(two, quota), "waiting: 0 of 2 replicas are updated (FailedCreate: quota)");
    }

    #[test]
    fn stateful_sets() {
        let set = |strategy: Value, status: Value| {
            json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"generation": 2},
                "spec": {"replicas": 3, "updateStrategy": strategy}, "status": status})
        };
        let rolling = json!({"type": "RollingUpdate", "rollingUpdate": {"partition": 0}});
        let status = |replicas: u32, updated: u32, available: u32| json!({"observedGeneration": 2, "replicas": replicas, "updatedReplicas": updated, "availableReplicas": available});
        check(set(rolling.clone(), status(3, 3, 3)), "ready");
        check(set(rolling.clone(), status(2, 2, 2)), "waiting: 2 of 3 replicas are there");
        check(set(rolling.clone(), status(4, 3, 3)), "waiting: 1 surplus replicas are still there");
        check(set(rolling.clone(), status(3, 1, 2)), "waiting: 1 of 3 replicas are updated");
        check(set(rolling.clone(), status(3, 3, 2)), "waiting: 2 of 3 replicas are available");
        check(set(rolling.clone(), json!({"observedGeneration": 1, "replicas": 3})), "waiting: the newest generation is not observed yet");
        let partition = json!({"type": "RollingUpdate", "rollingUpdate": {"partition": 2}});
        check(set(partition.clone(), status(3, 1, 3)), "waiting: 2 replicas keep an older revision (partition 2)");
        check(set(partition.clone(), status(3, 0, 3)), "waiting: 0 of 3 replicas are updated");
        check(set(partition, status(3, 3, 3)), "ready");
        let on_delete = "waiting: 3 replicas have an older revision and stay so until somebody deletes them (OnDelete)";
        check(set(json!({"type": "OnDelete"}), status(3, 0, 3)), on_delete);
        check(set(json!({"type": "OnDelete"}), status(3, 3, 3)), "ready");
    }

    #[test]
    fn jobs() {
        let job = |spec: Value, status: Value| json!({"apiVersion": "batch/v1", "kind": "Job", "spec": spec, "status": status});
        let conditions =
            |kind: &str, status: &str| json!({"conditions": [{"type": kind, "status": status, "reason": "R", "message": "m"}]});
        check(job(json!({}), conditions("Complete", "True")), "ready");
        check(job(json!({}), conditions("Failed", "True")), "failed: R: m");
        check(job(json!({}), conditions("FailureTarget", "True")), "failed: R: m");
        check(job(json!({}), conditions("Failed", "False")), "waiting: it runs: 0 active");
        check(job(json!({"suspend": true}), json!({})), "waiting: it is suspended");
        check(job(json!({}), json!({"active": 1, "failed": 2})), "waiting: it runs: 1 active, 2 failed");
        check(job(json!({}), Value::Null), "waiting: it runs: 0 active");
    }

    #[test]
    fn definitions_and_the_rest() {
        let crd = |kind: &str, status: &str| {
            json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
                   "status": {"conditions": [{"type": kind, "status": status, "reason": "R", "message": "m"}]}})
        };
        check(crd("Established", "True"), "ready");
        check(crd("Established", "False"), "waiting: it is not established yet");
        check(crd("NamesAccepted", "False"), "failed: R: m");
        check(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {}}), "ready");
        check(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"deletionTimestamp": "t"}}), "failed: it is being deleted");
    }
}
