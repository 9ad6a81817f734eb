//! Every part is killed or stopped in the middle of the work, and the work goes on: one command, one result, nothing done twice, nothing
//! lost.
//!
//! One landscape. A sync is held where a test wants it by a pod that does not get ready until the test says so.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use system_tests::bundle::{self, Edition, NAMESPACE, Release};
use system_tests::landscape::{Landscape, SOON};
use system_tests::{binaries, eventually};

#[tokio::test(flavor = "multi_thread")]
async fn whatever_is_killed_the_work_goes_on() {
    let mut landscape = Landscape::new().await;
    let first = bundle::push(&landscape.registry, Edition::First).await.unwrap();
    let second = bundle::push(&landscape.registry, Edition::Second).await.unwrap();
    let first = with_a_job(&landscape, first).await;
    killed_executor(&mut landscape, &held(&first, "executor")).await;
    second_executor(&landscape).await;
    killed_manager(&mut landscape, &held(&second, "manager")).await;
    stopped_api_server_and_registry(&landscape, &held(&second, "api server")).await;
}

/// SIGKILL at four moments of one sync. Before the last, its Jobs have run to their end, and their time-to-live has removed them.
async fn killed_executor(landscape: &mut Landscape, release: &Release) {
    let sha256 = propose(landscape, "killed-executor", release).await;
    let start = landscape.executor_log_length();
    let mut mark = start;
    landscape.connector.approve(&["--yes"]).await.unwrap().ok().unwrap();
    for moment in ["command received", "applied object=", "waiting: Deployment.apps"] {
        landscape.until_logged(mark, &[moment]).await;
        mark = landscape.executor_log_length();
        landscape.connector.kill_and_restart_executor().await;
    }
    until_held(landscape, &sha256).await;
    let complete = ["wait", "jobs", "--all", "-n", NAMESPACE, "--for=condition=Complete", "--timeout=60s"];
    landscape.control_plane.kubectl(&complete).await.unwrap().ok().unwrap();
    landscape.until_logged(start, &["Job.batch clickhouse-platform/extra-", ": ready"]).await;
    let jobs = ["delete", "jobs", "--all", "-n", NAMESPACE, "--wait"];
    let deleted = landscape.control_plane.kubectl(&jobs).await.unwrap().ok().unwrap().stdout;
    assert!(deleted.contains("monitoring-collectors-migration-") && deleted.contains("extra-"), "both ran: {deleted}");
    let mark = landscape.executor_log_length();
    landscape.connector.kill_and_restart_executor().await;
    landscape.until_logged(mark, &["waiting: Deployment.apps"]).await;
    until_held(landscape, &sha256).await;
    let_go(landscape).await;
    landscape.until_status("synced", &sha256).await;

    let live = workload(landscape).await;
    assert!(!live.iter().any(|key| key.starts_with("Job")), "a Job ran again: {live:?}");
    let result = one_result(landscape, &sha256).await;
    assert_eq!(outcomes(&result), live, "what the result tells and what is there");
}

/// The folder's lock: the second daemon ends at once, the first does not notice.
async fn second_executor(landscape: &Landscape) {
    let program = binaries().clicklink("second").args(["executor", "--config"]).arg(landscape.connector.config());
    let ended = program.run(landscape.connector.folder(), Duration::from_secs(20)).await.unwrap();
    assert_eq!(ended.code(), Some(1), "{ended:?}");
    assert!(ended.stderr.contains("is in use by another executor; only one may run"), "{}", ended.stderr);
    landscape.connector.executor().ensure_running().unwrap();
    landscape.connector.commands().await.unwrap();
}

async fn killed_manager(landscape: &mut Landscape, release: &Release) {
    // Between the proposal and its delivery.
    landscape.connector.stop_executor().await;
    let before = (landscape.environment().await.unwrap(), landscape.commands_at_manager().await.unwrap());
    let sha256 = landscape.propose("killed-manager", release).await.unwrap();
    landscape.manager.kill().await;
    landscape.manager.resume().await.unwrap();
    let commands = landscape.commands_at_manager().await.unwrap();
    assert_eq!(commands[..before.1.len()], before.1[..], "commands and results are as they were");
    assert_eq!(landscape.environment().await.unwrap()["executors"][0]["id"], before.0["executors"][0]["id"]);
    landscape.connector.start_executor().unwrap();
    landscape.until_status("approval_required", &sha256).await;

    // While a person approves: the executor tells it once the manager is back.
    landscape.manager.kill().await;
    landscape.connector.approve(&["--yes"]).await.unwrap().ok().unwrap();
    landscape.manager.resume().await.unwrap();
    until_held(landscape, &sha256).await;

    // While the sync ends.
    landscape.manager.kill().await;
    let_go(landscape).await;
    let ended = landscape.until_ended(&sha256).await;
    assert_eq!(ended["status"], "completed", "{ended}");
    landscape.manager.resume().await.unwrap();
    landscape.until_status("synced", &sha256).await;
    let result = one_result(landscape, &sha256).await;
    assert_eq!(result["result"], ended["result"]);
    assert_eq!(outcomes(&result), workload(landscape).await, "what the result tells and what is there");
}

async fn stopped_api_server_and_registry(landscape: &Landscape, release: &Release) {
    let sha256 = propose(landscape, "stopped-api-server", release).await;
    landscape.connector.approve(&["--yes"]).await.unwrap().ok().unwrap();
    until_held(landscape, &sha256).await;
    landscape.control_plane.stop_apiserver().await.unwrap();
    eventually("the heartbeat to say that the cluster is out of reach", SOON, || reachable(landscape, false)).await;
    landscape.registry.stop().await.unwrap();
    landscape.registry.restart().await.unwrap();
    landscape.control_plane.start_apiserver().await.unwrap();
    eventually("the heartbeat to say that the cluster is back", SOON, || reachable(landscape, true)).await;
    let_go(landscape).await;
    landscape.until_status("synced", &sha256).await;
    one_result(landscape, &sha256).await;
}

async fn reachable(landscape: &Landscape, wanted: bool) -> Result<()> {
    let environment = landscape.environment().await?;
    let id = environment.pointer("/executors/0/id").and_then(Value::as_str).context("the executor's id")?;
    let shown = landscape.manager.quiet_cli(&["executor", "get", id, "-o", "json"]).await?.ok()?;
    let executor: Value = serde_json::from_str(&shown.stdout)?;
    let cluster = &executor["heartbeat"]["cluster"];
    ensure!(cluster["reachable"] == wanted, "{cluster}");
    Ok(())
}

async fn propose(landscape: &Landscape, name: &str, release: &Release) -> String {
    let sha256 = landscape.propose(name, release).await.unwrap();
    landscape.until_status("approval_required", &sha256).await;
    sha256
}

/// The release whose last component's pods do not get ready.
fn held(release: &Release, note: &str) -> Release {
    let mut release = release.clone();
    let annotations = json!({"testbed.clicklink.io/pod": "unready", "example.com/note": note});
    release.component("monitoring-collectors").values["podAnnotations"] = annotations;
    release
}

/// A Job that is no hook, beside the Deployment that is held.
async fn with_a_job(landscape: &Landscape, mut release: Release) -> Release {
    let component = release.component("monitoring-collectors");
    let copy = bundle::copy_chart(&component.name, &component.chart.version, landscape.connector.folder()).unwrap();
    let pod = format!("restartPolicy: Never, containers: [{{name: main, image: '{}'}}]", component.images[0]);
    let job = format!("apiVersion: batch/v1\nkind: Job\nmetadata: {{name: extra}}\nspec: {{template: {{spec: {{{pod}}}}}}}\n");
    std::fs::write(copy.join("templates/extra.yaml"), job).unwrap();
    component.chart = landscape.registry.push_chart(&copy, Some("1.8.1")).await.unwrap();
    release
}

/// The sync has applied everything before the pod that is not ready.
async fn until_held(landscape: &Landscape, sha256: &str) {
    eventually("the sync to wait for the pod", SOON, || async {
        let commands = landscape.connector.commands().await?;
        let newest = commands.into_iter().find(|command| command["sha256"] == sha256).context("no command of this bundle")?;
        ensure!(newest["status"] == "running" && newest["stage"] == "applying", "{newest}");
        ensure!(!held_pods(landscape).await?.is_empty(), "no pod is held");
        Ok(())
    })
    .await;
}

async fn held_pods(landscape: &Landscape) -> Result<Vec<String>> {
    let held = "jsonpath={range .items[?(@.metadata.annotations.testbed\\.clicklink\\.io/pod==\"unready\")]}{.metadata.name}{\"\\n\"}{end}";
    let listed = landscape.control_plane.kubectl(&["get", "pods", "-n", NAMESPACE, "-o", held]).await?.ok()?;
    Ok(listed.stdout.lines().map(str::to_owned).collect())
}

async fn let_go(landscape: &Landscape) {
    for pod in held_pods(landscape).await.unwrap() {
        let annotate = ["annotate", "pod", &pod, "-n", NAMESPACE, "testbed.clicklink.io/pod-"];
        landscape.control_plane.kubectl(&annotate).await.unwrap().ok().unwrap();
    }
}

/// Both sides know two commands of this bundle: the one that staged it, refused, and one that applied it.
async fn one_result(landscape: &Landscape, sha256: &str) -> Value {
    let of_bundle = |commands: Vec<Value>| -> Vec<Value> { commands.into_iter().filter(|command| command["sha256"] == sha256).collect() };
    let here = of_bundle(landscape.connector.commands().await.unwrap());
    let there = of_bundle(landscape.commands_at_manager().await.unwrap());
    let told = |commands: &[Value]| -> BTreeSet<String> {
        commands.iter().map(|command| format!("{} {} {}", command["id"], command["status"], command["result"])).collect()
    };
    assert_eq!(told(&here), told(&there));
    let ends: Vec<_> = there.iter().map(|command| (command["purpose"].as_str().unwrap(), command["status"].as_str().unwrap())).collect();
    assert_eq!(ends, [("stage", "failed"), ("apply", "completed")], "{there:?}");
    there[1].clone()
}

/// The objects that a result names, as `Kind/name`.
fn outcomes(result: &Value) -> BTreeSet<String> {
    let objects = result["objects"].as_array().unwrap();
    let names: BTreeSet<String> = objects.iter().map(|object| format!("{}/{}", text(object, "kind"), text(object, "name"))).collect();
    assert_eq!(names.len(), objects.len(), "no object is told twice");
    names
}

fn text<'a>(object: &'a Value, field: &str) -> &'a str {
    object[field].as_str().unwrap()
}

async fn workload(landscape: &Landscape) -> BTreeSet<String> {
    landscape.workload().await.unwrap().into_keys().collect()
}
