//! What an update can only do when a person says so: take fields over from others, replace what no apply can change, delete what former bundles
//! left. Refused without the flag, told in the plan, done with it, and the executor goes on from there.

use serde_json::{Value, json};
use system_tests::bundle::{self, Edition, NAMESPACE, Release};
use system_tests::landscape::{Closing, Landscape, difference};

use crate::with_changed_chart;

const DEPLOYMENT: &str = "snapshot-controller";

#[tokio::test(flavor = "multi_thread")]
async fn what_a_person_has_to_say_is_asked_for_and_done() {
    let landscape = Landscape::new().await;
    let first = bundle::push(&landscape.registry, Edition::First).await.unwrap();
    let sha256 = landscape.propose("first", &first).await.unwrap();
    landscape.until_ended(&sha256).await;
    landscape.connector.approve(&["--yes"]).await.unwrap().ok().unwrap();
    landscape.until_status("synced", &sha256).await;

    others_take_fields(&landscape).await;
    let next = changed(&landscape, &first).await;
    let sha256 = landscape.propose("next", &next).await.unwrap();
    landscape.until_ended(&sha256).await;
    let (uid, before) = (uid(&landscape).await, landscape.content().await.unwrap());
    refused(&landscape, &[], &["field conflict", ".data.config.yaml is owned by `somebody`", "hint: ", "--take-over"]).await;
    refused(
        &landscape,
        &["--take-over"],
        &["error[objects_refused]", "spec.selector cannot be changed", "parameters cannot be changed", "--replace"],
    )
    .await;
    assert_eq!(difference(&before, &landscape.content().await.unwrap()), [""; 0]);
    is_told(&landscape).await;

    let all = ["--yes", "--take-over", "--replace", "--prune"];
    let approved = landscape.connector.approve(&all).await.unwrap().ok().unwrap();
    Closing::of(&approved).unwrap();
    assert!(approved.stderr.contains("StorageClass.storage.k8s.io gp3-encrypted is deleted, to be made anew"), "{approved:?}");
    landscape.until_status("synced", &sha256).await;
    assert_ne!(self::uid(&landscape).await, uid, "the Deployment is another one");
    is_done(&landscape).await;
    // All is as it should be: nothing is to be taken over, replaced or pruned.
    let again = landscape.connector.approve(&["--dry-run", "--detailed-exitcode"]).await.unwrap();
    assert_eq!(again.code(), Some(0), "{again:?}");
}

/// A tool that applies whole objects, and an edit by hand.
async fn others_take_fields(landscape: &Landscape) {
    let live = get(landscape, "configmap", "clickhouse-operator-config").await;
    let mut data = live["data"].clone();
    let key = data.as_object().unwrap().keys().next().unwrap().clone();
    assert_eq!(key, "config.yaml", "{data}");
    data[&key] = json!("theirs");
    data["extra"] = json!("only theirs");
    let theirs = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "clickhouse-operator-config", "namespace": NAMESPACE}, "data": data});
    let file = landscape.connector.folder().write("theirs.json", theirs.to_string()).unwrap().display().to_string();
    let apply = ["apply", "--server-side", "--force-conflicts", "--field-manager=somebody", "-f", &file];
    landscape.control_plane.kubectl(&apply).await.unwrap().ok().unwrap();
    let scale = ["scale", "deployment", "monitoring-collectors-gateway", "-n", NAMESPACE, "--replicas=2"];
    landscape.control_plane.kubectl(&scale).await.unwrap().ok().unwrap();
}

/// Another selector, another StorageClass, and the collectors' gateway is no more.
async fn changed(landscape: &Landscape, release: &Release) -> Release {
    let selector = "{{- define \"snapshot-controller.selector\" -}}";
    let tracked = |text: &str| text.replace(selector, &format!("{selector}\ntrack: stable"));
    let mut release = with_changed_chart(landscape, release, DEPLOYMENT, "_names.tpl", tracked).await;
    release.objects[0]["parameters"]["type"] = json!("io2");
    release.component("monitoring-collectors").values["gateway"]["enabled"] = json!(false);
    release
}

async fn refused(landscape: &Landscape, more: &[&str], told: &[&str]) {
    let refused = landscape.connector.approve(&[&["--yes"], more].concat()).await.unwrap();
    assert_eq!(refused.code(), Some(1), "{refused:?}");
    told.iter().for_each(|text| assert!(refused.stderr.contains(text), "`{text}` is not in:\n{}", refused.stderr));
}

async fn is_told(landscape: &Landscape) {
    let plan =
        landscape.connector.approve(&["--dry-run", "--take-over", "--replace", "--prune", "-o", "json"]).await.unwrap().ok().unwrap();
    let plan: Value = serde_json::from_str(&plan.stdout).unwrap();
    let objects = plan["workload"].as_array().unwrap();
    let config = objects.iter().find(|object| object["object"] == "ConfigMap clickhouse-platform/clickhouse-operator-config").unwrap();
    assert_eq!(config["taken"], json!([{"manager": "somebody", "field": ".data.config.yaml"}]));
    let leftovers = plan["leftovers"].as_array().unwrap();
    assert!(!leftovers.is_empty() && leftovers.iter().all(|leftover| leftover["pruned"] == true), "{leftovers:?}");
    let text = landscape.connector.approve(&["--dry-run", "--take-over", "--prune"]).await.unwrap().ok().unwrap().stdout;
    for expected in [
        ".data.config.yaml is taken over from somebody",
        "monitoring-collectors-gateway  (monitoring-collectors), running: deleted at the end",
    ] {
        assert!(text.contains(expected), "`{expected}` is not in:\n{text}");
    }
}

async fn is_done(landscape: &Landscape) {
    let config = get(landscape, "configmap", "clickhouse-operator-config").await;
    assert_ne!(config["data"]["config.yaml"], "theirs");
    assert_eq!(config["data"]["extra"], Value::Null, "what the former owner applied and the bundle lacks is gone");
    let managers = config["metadata"]["managedFields"].as_array().unwrap().iter().map(|entry| entry["manager"].as_str().unwrap());
    assert_eq!(managers.collect::<Vec<_>>(), ["clicklink-executor"]);
    let deployment = get(landscape, "deployment", DEPLOYMENT).await;
    assert_eq!(deployment["spec"]["selector"]["matchLabels"]["track"], "stable");
    let class = landscape.control_plane.kubectl(&["get", "storageclass", "gp3-encrypted", "-o", "json"]).await.unwrap().ok().unwrap();
    assert_eq!(serde_json::from_str::<Value>(&class.stdout).unwrap()["parameters"]["type"], "io2");
    for gone in ["deployment/monitoring-collectors-gateway", "configmap/monitoring-collectors-gateway"] {
        let tried = landscape.control_plane.kubectl(&["get", gone, "-n", NAMESPACE]).await.unwrap();
        assert!(tried.stderr.contains("NotFound"), "{tried:?}");
    }
    let approval = landscape.connector.approval().unwrap();
    assert_eq!(approval["leftovers"], 0, "{approval}");
}

async fn get(landscape: &Landscape, kind: &str, name: &str) -> Value {
    let shown =
        landscape.control_plane.kubectl(&["get", kind, name, "-n", NAMESPACE, "-o", "json", "--show-managed-fields"]).await.unwrap();
    serde_json::from_str(&shown.ok().unwrap().stdout).unwrap()
}

async fn uid(landscape: &Landscape) -> Value {
    get(landscape, "deployment", DEPLOYMENT).await["metadata"]["uid"].clone()
}
