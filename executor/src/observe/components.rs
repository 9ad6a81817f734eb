//! From live Deployments to the four dimensions of a component; pure.

use agent_api::digest::Sha256;
use agent_api::heartbeat::{ComponentState, Health, OperationState, SecurityState, State};
use agent_api::keys;
use agent_api::manifest::{Component, Manifest};
use executor_core::bundle::same_image;
use k8s_openapi::api::apps::v1::Deployment;
use kube::ResourceExt;

use super::Observed;
use super::workload::Missing;

/// Label by which charts name themselves: `<name>-<version>`.
const CHART_LABEL: &str = "helm.sh/chart";
/// Label by which workloads name their version.
const VERSION_LABEL: &str = "app.kubernetes.io/version";

/// One entry for each component of the pending bundle, in its order. `applied` is the bundle that was applied last: what of it is missing
/// counts against its component.
pub(crate) fn components(
    manifest: &Manifest,
    observed: &Observed,
    applied: Option<&Sha256>,
    operation: OperationState,
) -> Vec<ComponentState> {
    let missing = observed.missing(applied);
    manifest.components.iter().map(|component| one(manifest, component, observed, &missing, operation)).collect()
}

fn one(
    manifest: &Manifest,
    component: &Component,
    observed: &Observed,
    missing: &[Missing],
    operation_state: OperationState,
) -> ComponentState {
    let unknown = ComponentState {
        name: component.name.clone(),
        chart_version: None,
        app_version: None,
        images: Vec::new(),
        state: None,
        health: Health::Unknown,
        operation_state,
        security_state: SecurityState::Unknown,
        ready: 0,
        desired: 0,
        message: None,
        observed_at: None,
    };
    let (Some(all), true) = (&observed.deployments, observed.cluster.reachable) else { return unknown };
    // Labels alone can be put on any object of any namespace.
    let is_mine = |deployment: &&Deployment| {
        let named = deployment.labels().get(keys::COMPONENT).map(String::as_str) == Some(component.name.as_str());
        named && deployment.namespace().is_some_and(|namespace| manifest.namespaces.iter().any(|listed| listed.as_str() == namespace))
    };
    let (mine, going): (Vec<&Deployment>, Vec<&Deployment>) =
        all.values().filter(is_mine).partition(|deployment| deployment.metadata.deletion_timestamp.is_none());
    let missing: Vec<&Missing> = missing.iter().filter(|missing| missing.component == component.name.as_str()).collect();
    if mine.is_empty() && going.is_empty() && missing.is_empty() {
        return ComponentState {
            message: Some("no workload of it is in the cluster".into()),
            observed_at: observed.observed_at,
            ..unknown
        };
    }
    let (ready, mut desired) =
        mine.iter().fold((0, 0), |(ready, desired), deployment| (ready + available(deployment), desired + wanted(deployment)));
    desired += going.iter().map(|deployment| wanted(deployment)).sum::<u32>() + missing.iter().map(|missing| missing.replicas).sum::<u32>();
    let prefix = format!("{}-", component.chart.name);
    let chart = mine.iter().find_map(|deployment| deployment.labels().get(CHART_LABEL)?.strip_prefix(&prefix).map(str::to_owned));
    let mut images: Vec<String> = mine.iter().flat_map(|deployment| images(deployment)).collect();
    images.sort();
    images.dedup();
    let stuck = mine.iter().find_map(|deployment| stuck(deployment));
    let absent = absent(&going, &missing);
    let mut health = health(ready, desired);
    if health == Health::Ok && absent.is_some() {
        health = Health::Warning;
    }
    let gone = !going.is_empty() || missing.iter().any(|missing| missing.object.kind == "Deployment");
    ComponentState {
        chart_version: chart,
        app_version: mine.iter().find_map(|deployment| deployment.labels().get(VERSION_LABEL).cloned()),
        state: Some(match () {
            () if stuck.is_some() => State::Failed,
            // A sync that runs puts them there.
            () if gone && operation_state == OperationState::Running => State::Starting,
            () if gone => State::Failed,
            () => state(&mine, ready, desired),
        }),
        health,
        security_state: match () {
            () if mine.is_empty() => SecurityState::Unknown,
            () if images.iter().all(|image| component.images.iter().any(|listed| same_image(listed, image))) => SecurityState::Compliant,
            () => SecurityState::NonCompliant,
        },
        images,
        ready,
        desired,
        message: stuck.or(absent),
        observed_at: observed.observed_at,
        ..unknown
    }
}

/// What is not there, or not for long; `None` where all is.
fn absent(going: &[&Deployment], missing: &[&Missing]) -> Option<String> {
    let going = going.iter().map(|deployment| {
        let (namespace, name) = (deployment.namespace().unwrap_or_default(), deployment.name_any());
        format!("Deployment.apps {namespace}/{name} is being deleted")
    });
    let texts: Vec<String> = going.chain(missing.iter().map(|missing| format!("{} is missing", missing.object))).collect();
    (!texts.is_empty()).then(|| texts.join("; "))
}

fn state(mine: &[&Deployment], ready: u32, desired: u32) -> State {
    if desired == 0 {
        return if ready == 0 { State::Stopped } else { State::Stopping };
    }
    if mine.iter().all(|deployment| rolled_out(deployment)) { State::Started } else { State::Starting }
}

fn health(ready: u32, desired: u32) -> Health {
    match ready {
        _ if ready >= desired => Health::Ok,
        0 => Health::Critical,
        _ => Health::Warning,
    }
}

fn rolled_out(deployment: &Deployment) -> bool {
    let value = serde_json::to_value(deployment).unwrap_or_default();
    matches!(cluster::readiness::judge(&value), cluster::readiness::Readiness::Ready)
}

fn stuck(deployment: &Deployment) -> Option<String> {
    let conditions = deployment.status.as_ref()?.conditions.as_ref()?;
    let condition = conditions.iter().find(|condition| condition.reason.as_deref() == Some("ProgressDeadlineExceeded"))?;
    Some(format!("{}: {}", deployment.name_any(), condition.message.clone().unwrap_or_default()))
}

fn wanted(deployment: &Deployment) -> u32 {
    deployment.spec.replicas.unwrap_or(1).max(0).unsigned_abs()
}

fn available(deployment: &Deployment) -> u32 {
    deployment.status.as_ref().and_then(|status| status.available_replicas).unwrap_or(0).max(0).unsigned_abs()
}

fn images(deployment: &Deployment) -> Vec<String> {
    let pod = deployment.spec.template.spec.as_ref();
    let containers = pod.into_iter().flat_map(|pod| pod.containers.iter().chain(pod.init_containers.iter().flatten()));
    containers.filter_map(|container| container.image.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    const IMAGE: &str =
        "registry.bank.example:5000/snapshot-controller@sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";

    fn deployment(image: &str, replicas: u32, status: Value) -> Deployment {
        serde_json::from_value(json!({
            "metadata": {"name": "d", "namespace": "clickhouse-platform", "generation": 2, "labels": {
                "clicklink.io/component": "snapshot-controller", "helm.sh/chart": "snapshot-controller-4.1.0", "app.kubernetes.io/version": "8.2.0"}},
            "spec": {"replicas": replicas, "selector": {}, "template": {"spec": {"containers": [{"name": "c", "image": image}]}}},
            "status": status,
        }))
        .unwrap()
    }

    fn look(deployments: Option<Vec<Deployment>>) -> ComponentState {
        let bundle = agent_api::manifest::Bundle::parse(include_str!("../../../agent-api/tests/wire/manifest.json").into()).unwrap();
        let mut observed = Observed::nothing();
        observed.cluster.reachable = true;
        observed.deployments = deployments.map(|list| list.into_iter().map(|d| ((String::new(), d.name_any()), d)).collect());
        components(bundle.manifest(), &observed, None, OperationState::Idle).remove(0)
    }

    fn ready(n: u32) -> Value {
        json!({"observedGeneration": 2, "replicas": n, "updatedReplicas": n, "readyReplicas": n, "availableReplicas": n})
    }

    #[test]
    fn what_is_seen_and_what_is_said() {
        let check = |seen: Option<Deployment>, state, health, security| {
            let found = look(seen.map(|deployment| vec![deployment]));
            assert_eq!((found.state, found.health, found.security_state), (state, health, security), "{found:?}");
        };
        check(None, None, Health::Unknown, SecurityState::Unknown);
        check(Some(deployment(IMAGE, 2, ready(2))), Some(State::Started), Health::Ok, SecurityState::Compliant);
        check(Some(deployment(IMAGE, 2, ready(1))), Some(State::Starting), Health::Warning, SecurityState::Compliant);
        check(Some(deployment(IMAGE, 2, ready(0))), Some(State::Starting), Health::Critical, SecurityState::Compliant);
        check(Some(deployment(IMAGE, 0, ready(0))), Some(State::Stopped), Health::Ok, SecurityState::Compliant);
        check(Some(deployment("evil@sha256:00", 2, ready(2))), Some(State::Started), Health::Ok, SecurityState::NonCompliant);
        let stale = json!({"observedGeneration": 1, "replicas": 2, "updatedReplicas": 2, "readyReplicas": 2, "availableReplicas": 2});
        check(Some(deployment(IMAGE, 2, stale)), Some(State::Starting), Health::Ok, SecurityState::Compliant);
        let mut dead = ready(0);
        dead["conditions"] =
            json!([{"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded", "message": "gave up"}]);
        check(Some(deployment(IMAGE, 2, dead)), Some(State::Failed), Health::Critical, SecurityState::Compliant);
        assert_eq!(look(Some(vec![])).state, None);
        let tagged = IMAGE.replace('@', ":v1@");
        check(Some(deployment(&tagged, 2, ready(2))), Some(State::Started), Health::Ok, SecurityState::Compliant);
        let mut elsewhere = deployment("evil@sha256:00", 2, ready(2));
        elsewhere.metadata.namespace = Some("default".into());
        assert_eq!(look(Some(vec![elsewhere])).state, None, "a label in another namespace is nobody's");
        let found = look(Some(vec![deployment(IMAGE, 2, ready(2))]));
        assert_eq!(
            (found.chart_version.as_deref(), found.app_version.as_deref(), found.ready, found.desired),
            (Some("4.1.0"), Some("8.2.0"), 2, 2)
        );
    }
    /// What was applied and is not there any more degrades its component, however well the rest of it is.
    #[test]
    fn what_is_missing_or_going_counts_against_its_component() {
        let bundle = agent_api::manifest::Bundle::parse(include_str!("../../../agent-api/tests/wire/manifest.json").into()).unwrap();
        let check =
            |deployments: Vec<Deployment>, missing: &[(&str, u32)], operation, expected: (Option<State>, Health, u32, u32), told: &str| {
                let mut observed = Observed::nothing();
                observed.cluster.reachable = true;
                observed.deployments = Some(deployments.into_iter().map(|d| ((String::new(), d.name_any()), d)).collect());
                let missing: Vec<Missing> = missing
                    .iter()
                    .map(|(kind, replicas)| {
                        let object = json!({"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": "x", "namespace": "n"}});
                        let object = agent_api::object::ObjectKey::of(&object);
                        Missing { object, component: "snapshot-controller".into(), replicas: *replicas }
                    })
                    .collect();
                let found = one(bundle.manifest(), &bundle.manifest().components[0], &observed, &missing, operation);
                assert_eq!((found.state, found.health, found.ready, found.desired), expected, "{found:?}");
                assert_eq!(found.message.as_deref(), Some(told), "{found:?}");
                // Nobody else's component.
                let other = one(bundle.manifest(), &bundle.manifest().components[1], &observed, &missing, operation);
                assert_eq!(other.message.as_deref(), Some("no workload of it is in the cluster"));
            };
        let well = || deployment(IMAGE, 2, ready(2));
        let going = || {
            let mut going = deployment(IMAGE, 3, ready(3));
            going.metadata.name = Some("g".into());
            going.metadata.deletion_timestamp = Some(serde_json::from_value(json!("2026-11-30T10:00:00Z")).unwrap());
            going
        };
        let idle = OperationState::Succeeded;
        let missing = "Deployment.apps n/x is missing";
        check(vec![well()], &[("Deployment", 1)], idle, (Some(State::Failed), Health::Warning, 2, 3), missing);
        check(vec![], &[("Deployment", 1)], idle, (Some(State::Failed), Health::Critical, 0, 1), missing);
        check(vec![well()], &[("Deployment", 0)], idle, (Some(State::Failed), Health::Warning, 2, 2), missing);
        check(vec![well()], &[("Deployment", 1)], OperationState::Running, (Some(State::Starting), Health::Warning, 2, 3), missing);
        let service = "Service.apps n/x is missing";
        check(vec![well()], &[("Service", 0)], idle, (Some(State::Started), Health::Warning, 2, 2), service);
        let deleted = "Deployment.apps clickhouse-platform/g is being deleted";
        check(vec![well(), going()], &[], idle, (Some(State::Failed), Health::Warning, 2, 5), deleted);
        check(vec![going()], &[], idle, (Some(State::Failed), Health::Critical, 0, 3), deleted);
    }
}
