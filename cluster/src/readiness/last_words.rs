//! Why a workload does not get ready, in the words of its pods: what they wait for, how their containers ended, what was warned of.
//!
//! Container states, exit codes, termination messages and events are read; logs are not, since they hold what nobody may see.

use std::time::Duration;

use k8s_openapi::api::core::v1::{ContainerStatus, Event, Pod};
use kube::api::{Api, ListParams};
use kube::{Client, ResourceExt as _};
use serde_json::{Map, Value};

/// Pods that are told of, the newest first.
const PODS: usize = 3;
/// Pods that are asked for.
const ASKED: u32 = 100;
/// Characters of one message.
const LONGEST: usize = 300;
/// How long the look may take: an error is told without it then.
const LOOK: Duration = Duration::from_secs(10);
/// What every pod waits for at first.
const ORDINARY: [&str; 2] = ["ContainerCreating", "PodInitializing"];

/// A sentence for each of its pods that is not ready; empty where nothing can be said or read.
pub(super) async fn last_words(client: &Client, workload: &Value) -> Vec<String> {
    let look = async {
        let Some((namespace, selector)) = pods_of(workload) else { return Ok(Vec::new()) };
        let pods: Api<Pod> = Api::namespaced(client.clone(), &namespace);
        let mut pods = pods.list(&ListParams::default().labels(&selector).limit(ASKED)).await?.items;
        pods.retain(|pod| !is_ready(pod));
        pods.sort_by_key(|pod| std::cmp::Reverse(pod.creation_timestamp()));
        pods.truncate(PODS);
        let events: Api<Event> = Api::namespaced(client.clone(), &namespace);
        let mut words = Vec::new();
        for pod in pods {
            let of_pod = format!("involvedObject.uid={},type=Warning", pod.uid().unwrap_or_default());
            let events = events.list(&ListParams::default().fields(&of_pod).limit(ASKED)).await?.items;
            words.extend(words_of(&pod, &events));
        }
        Ok::<_, kube::Error>(words)
    };
    match tokio::time::timeout(LOOK, look).await {
        Ok(Ok(words)) => words,
        Ok(Err(error)) => {
            tracing::debug!(%error, "the pods could not be asked");
            Vec::new()
        }
        Err(_elapsed) => Vec::new(),
    }
}

/// Namespace and label selector of a workload's pods.
fn pods_of(workload: &Value) -> Option<(String, String)> {
    let labels: &Map<String, Value> = workload.pointer("/spec/selector/matchLabels")?.as_object()?;
    let pairs: Vec<String> = labels.iter().filter_map(|(key, value)| Some(format!("{key}={}", value.as_str()?))).collect();
    let namespace = workload.pointer("/metadata/namespace")?.as_str()?;
    (!pairs.is_empty()).then(|| (namespace.to_owned(), pairs.join(",")))
}

fn is_ready(pod: &Pod) -> bool {
    let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_ref()).into_iter().flatten();
    let finished = pod.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Succeeded");
    finished || conditions.into_iter().any(|condition| condition.type_ == "Ready" && condition.status == "True")
}

/// `pod x: container c waits: ImagePullBackOff: …; FailedMount: …`; `None` where it says nothing.
fn words_of(pod: &Pod, events: &[Event]) -> Option<String> {
    let status = pod.status.clone().unwrap_or_default();
    let mut said = Vec::new();
    said.extend(joined("", status.reason.as_deref(), status.message.as_deref()));
    let unscheduled =
        |condition: &&k8s_openapi::api::core::v1::PodCondition| condition.type_ == "PodScheduled" && condition.status == "False";
    if let Some(condition) = status.conditions.iter().flatten().find(unscheduled) {
        said.extend(joined("is not scheduled: ", condition.reason.as_deref(), condition.message.as_deref()));
    }
    let containers = status.init_container_statuses.iter().chain(&status.container_statuses).flatten();
    said.extend(containers.flat_map(container));
    let newest = events.iter().max_by_key(|event| (event.last_timestamp.clone(), event.event_time.clone()));
    if let Some(event) = newest {
        said.extend(joined("", event.reason.as_deref(), event.message.as_deref()));
    }
    (!said.is_empty()).then(|| format!("pod {}: {}", pod.name_any(), said.join("; ")))
}

/// What a container waits for, and how it ended last.
fn container(status: &ContainerStatus) -> Vec<String> {
    let mut said = Vec::new();
    let state = status.state.clone().unwrap_or_default();
    if let Some(waiting) = state.waiting
        && !waiting.reason.as_deref().is_some_and(|reason| ORDINARY.contains(&reason))
    {
        said.extend(joined(&format!("container {} waits: ", status.name), waiting.reason.as_deref(), waiting.message.as_deref()));
    }
    let ended = state.terminated.or_else(|| status.last_state.clone().unwrap_or_default().terminated);
    if let Some(ended) = ended.filter(|ended| ended.exit_code != 0) {
        let before = format!("container {} ended with exit code {}: ", status.name, ended.exit_code);
        let words = joined(&before, ended.reason.as_deref(), ended.message.as_deref());
        said.push(words.unwrap_or_else(|| before.trim_end_matches(": ").to_owned()));
    }
    said
}

/// One line, not too long.
fn joined(before: &str, reason: Option<&str>, message: Option<&str>) -> Option<String> {
    let parts: Vec<&str> = [reason, message].into_iter().flatten().map(str::trim).filter(|part| !part.is_empty()).collect();
    if parts.is_empty() {
        return None;
    }
    let line = parts.join(": ").split_whitespace().collect::<Vec<_>>().join(" ");
    let cut = line.char_indices().nth(LONGEST).map_or(line.len(), |(at, _)| at);
    Some(format!("{before}{}{}", &line[..cut], if cut < line.len() { "…" } else { "" }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(status: Value, events: Value, expected: Option<&str>) {
        let pod: Pod = serde_json::from_value(json!({"metadata": {"name": "p"}, "status": status})).unwrap();
        let events: Vec<Event> = serde_json::from_value(events).unwrap();
        assert_eq!(words_of(&pod, &events).as_deref(), expected);
    }

    fn container(state: Value, last: Value) -> Value {
        json!({"containerStatuses": [{"name": "c", "image": "i", "imageID": "", "ready": false, "restartCount": 1, "state": state, "lastState": last}]})
    }

    #[test]
    fn a_pod_says_what_holds_it_up() {
        check(json!({}), json!([]), None);
        let creating = container(json!({"waiting": {"reason": "ContainerCreating"}}), json!({}));
        check(creating.clone(), json!([]), None);
        let event = |time: &str, reason: &str, message: &str| json!({"metadata": {}, "involvedObject": {}, "type": "Warning", "reason": reason, "message": message, "lastTimestamp": time});
        let events = json!([
            event("2026-11-30T10:00:02Z", "FailedMount", "secret \"x\"\n not found"),
            event("2026-11-30T10:00:01Z", "FailedScheduling", "before")
        ]);
        check(creating, events, Some("pod p: FailedMount: secret \"x\" not found"));
        let pull = container(json!({"waiting": {"reason": "ErrImagePull", "message": "no such image"}}), json!({}));
        check(pull, json!([]), Some("pod p: container c waits: ErrImagePull: no such image"));
        let crash = container(
            json!({"waiting": {"reason": "CrashLoopBackOff"}}),
            json!({"terminated": {"exitCode": 3, "reason": "Error", "message": "no configuration\n"}}),
        );
        check(
            crash,
            json!([]),
            Some("pod p: container c waits: CrashLoopBackOff; container c ended with exit code 3: Error: no configuration"),
        );
        check(container(json!({"terminated": {"exitCode": 1}}), json!({})), json!([]), Some("pod p: container c ended with exit code 1"));
        check(container(json!({"terminated": {"exitCode": 0}}), json!({})), json!([]), None);
        let unscheduled =
            json!({"conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/1 nodes"}]});
        check(unscheduled, json!([]), Some("pod p: is not scheduled: Unschedulable: 0/1 nodes"));
        check(json!({"reason": "Evicted", "message": "x".repeat(400)}), json!([]), Some(&format!("pod p: Evicted: {}…", "x".repeat(291))));
    }

    #[test]
    fn pods_are_found_by_their_workloads_selector() {
        let workload = json!({"metadata": {"namespace": "n"}, "spec": {"selector": {"matchLabels": {"a": "1", "b.io/c": "2"}}}});
        assert_eq!(pods_of(&workload), Some(("n".into(), "a=1,b.io/c=2".into())));
        assert_eq!(pods_of(&json!({"metadata": {"namespace": "n"}, "spec": {}})), None);
        let ready = |status: Value| is_ready(&serde_json::from_value(json!({"metadata": {}, "status": status})).unwrap());
        assert!(ready(json!({"conditions": [{"type": "Ready", "status": "True"}]})) && ready(json!({"phase": "Succeeded"})));
        assert!(!ready(json!({"conditions": [{"type": "Ready", "status": "False"}]})));
    }
}
