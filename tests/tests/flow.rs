//! The whole flow on file, across all process boundaries: what the vendor proposes is staged, refused, read, approved, applied and
//! observed; then the next update.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use system_tests::bundle::{self, Edition, NAMESPACE, Release};
use system_tests::landscape::{Closing, Landscape, SOON};
use system_tests::{Finished, eventually};

const BUNDLE_SHA256: &str = "clicklink.io/bundle-sha256";
const CONTENT_SHA256: &str = "clicklink.io/content-sha256";
const INSTALL_ID: &str = "clicklink.io/install-id";
const ACCOUNT: &str = "/api/v1/serviceaccounts clicklink-system/pcm-platform";
/// The Deployments of each component.
const DEPLOYMENTS: [(&str, &[&str]); 3] = [
    ("snapshot-controller", &["snapshot-controller"]),
    ("clickhouse-operator", &["clickhouse-operator"]),
    ("monitoring-collectors", &["monitoring-collectors", "monitoring-collectors-gateway"]),
];

#[tokio::test(flavor = "multi_thread")]
async fn from_the_first_proposal_to_the_second_update() {
    let mut landscape = Landscape::new().await;
    let first = bundle::push(&landscape.registry, Edition::First).await.unwrap();
    let second = bundle::push(&landscape.registry, Edition::Second).await.unwrap();

    nothing_is_staged(&landscape).await;
    let sha256 = landscape.propose("platform-1", &first).await.unwrap();
    is_staged(&landscape, "platform-1", &sha256).await;
    is_refused(&landscape, &sha256, "there is no approval yet").await;
    a_dry_run_changes_nothing(&landscape, &sha256).await;

    is_approved_and_synced(&landscape, &sha256, "12 created, 0 changed, 0 unchanged").await;
    is_observed_as_released(&landscape, &first).await;
    components_came_one_after_the_other(&landscape).await;
    nothing_is_left_to_change(&landscape).await;

    access_may_be_applied_again(&landscape).await;
    may_be_approved_again(&landscape, &sha256).await;
    a_second_sync_runs_no_job_again(&landscape, &sha256).await;
    what_is_there_is_observed_and_not_what_was_asked_for(&mut landscape, &first, &sha256).await;

    let sha256 = landscape.propose("platform-2", &second).await.unwrap();
    is_staged(&landscape, "platform-2", &sha256).await;
    is_refused(&landscape, &sha256, "the approval at hand is for bundle").await;
    is_approved_and_synced(&landscape, &sha256, "1 created, 11 changed, 0 unchanged").await;
    is_observed_as_released(&landscape, &second).await;
    both_halves_are_of_the_second_edition(&landscape).await;
    nothing_is_left_to_change(&landscape).await;
}

async fn nothing_is_staged(landscape: &Landscape) {
    let answer = landscape.connector.local_api("/v1/platform/pending").await.unwrap();
    assert_eq!(answer.status(), 404);
    assert_eq!(answer.headers()["content-type"], "application/problem+json");
    let problem: Value = serde_json::from_str(&answer.text().await.unwrap()).unwrap();
    assert_eq!(problem["detail"], "no platform bundle is staged");
    assert!(!pending_file(landscape).exists());
    let approved = landscape.connector.approve(&["--yes"]).await.unwrap();
    assert_ne!(approved.code(), Some(0));
    assert!(approved.stderr.contains("no platform bundle is staged"), "{}", approved.stderr);
}

/// File and local API hold the exact text that was proposed.
async fn is_staged(landscape: &Landscape, release: &str, sha256: &str) {
    landscape.until_ended(sha256).await;
    let staged: Value = serde_json::from_slice(&std::fs::read(pending_file(landscape)).unwrap()).unwrap();
    let keys: BTreeSet<&str> = staged.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(keys, BTreeSet::from(["cluster_uid", "manifest", "received_at", "sha256"]));
    assert_eq!(staged["sha256"], sha256);
    let text = staged["manifest"].as_str().unwrap();
    assert_eq!(hex(text.as_bytes()), sha256, "the text hashes to the bundle's identity");
    assert_eq!(text, landscape.manager.manifest(release).await.unwrap());
    assert_eq!(staged["cluster_uid"], live(landscape, "namespace", "kube-system", None).await["metadata"]["uid"]);
    let answer = landscape.connector.local_api("/v1/platform/pending").await.unwrap();
    assert_eq!(answer.status(), 200);
    let answered: Value = serde_json::from_str(&answer.text().await.unwrap()).unwrap();
    assert_eq!(answered, staged);
}

/// The refusal is a failed command that ends with the command to run, and no attempt.
async fn is_refused(landscape: &Landscape, sha256: &str, reason: &str) {
    let list = ["commands", "list", "--status", "failed", "--action", "sync_platform"];
    let listed = landscape.connector.run(&list).await.unwrap().ok().unwrap();
    let commands: Vec<Value> = serde_json::from_str(&listed.stdout).unwrap();
    let result = commands[0]["result"].as_str().unwrap();
    let hint = format!("run: clctl platform approve (pending bundle sha {sha256})");
    assert!(commands[0]["sha256"] == sha256 && result.contains(reason) && result.ends_with(&hint), "{}", commands[0]);
    assert!(commands.iter().all(|command| command["status"] == "failed" && command["action"] == "sync_platform"));
    let table = landscape.connector.run(&[&list[..], &["-o", "table"]].concat()).await.unwrap().ok().unwrap();
    assert!(table.stdout.lines().any(|line| line.trim_end().ends_with(&hint)), "the result is not cut:\n{}", table.stdout);
    landscape.until_status("approval_required", sha256).await;
    let environment = landscape.environment().await.unwrap();
    assert_eq!(environment["resend"]["attempts"], 0, "{environment}");
    assert_eq!(environment["resend"]["reason"], "approval_required", "{environment}");
}

async fn a_dry_run_changes_nothing(landscape: &Landscape, sha256: &str) {
    let before = (landscape.content().await.unwrap(), names(&landscape.connector.access_dir()));
    let plan = landscape.connector.approve(&["--dry-run"]).await.unwrap();
    assert_eq!(plan.code(), Some(0), "{}", plan.stderr);
    for expected in [
        sha256,
        "create     StorageClass.storage.k8s.io gp3-encrypted",
        "create     Deployment.apps clickhouse-platform/clickhouse-operator",
    ] {
        assert!(plan.stdout.contains(expected), "{expected} is not in:\n{}", plan.stdout);
    }
    assert!(!plan.stdout.contains("Approved:"));
    let plan = landscape.connector.approve(&["--dry-run", "--detailed-exitcode"]).await.unwrap();
    assert_eq!(plan.code(), Some(2), "{}", plan.stderr);
    assert_eq!((landscape.content().await.unwrap(), names(&landscape.connector.access_dir())), before);
}

async fn is_approved_and_synced(landscape: &Landscape, sha256: &str, outcomes: &str) {
    let asked_at = jiff::Timestamp::now();
    // As the user documentation has it, without a flag: nobody is asked where there is no terminal.
    let approved = landscape.connector.approve(&[]).await.unwrap().ok().unwrap();
    assert!(approved.stdout.contains(sha256), "the plan is of this bundle");
    let closing = Closing::of(&approved).unwrap();
    assert_eq!((closing.namespaces.as_str(), closing.secret.as_deref()), (NAMESPACE, None));
    ends_in_two_hours(&closing, asked_at);
    the_token_bundle_is_private(landscape, sha256, &closing);

    landscape.until_status("synced", sha256).await;
    let listed = landscape.connector.run(&["commands", "list", "--action", "sync_platform"]).await.unwrap().ok().unwrap();
    let commands: Vec<Value> = serde_json::from_str(&listed.stdout).unwrap();
    assert_eq!((&commands[0]["status"], &commands[0]["sha256"]), (&json!("completed"), &json!(sha256)));
    let result = format!("synced bundle {sha256}: 12 workload object(s) applied: {outcomes}");
    assert_eq!(commands[0]["result"], result);
    let environment = landscape.environment().await.unwrap();
    assert_eq!((&environment["resend"]["reason"], &environment["resend"]["attempts"]), (&json!("applied"), &json!(1)), "{environment}");

    // The counts, counted on the cluster.
    let content = landscape.content().await.unwrap();
    let stamped = |object: &&Value| annotation(object, BUNDLE_SHA256) == sha256 && !annotation(object, CONTENT_SHA256).is_empty();
    assert_eq!(content.values().filter(stamped).count(), closing.permissions);
    assert_eq!(closing.workload, 12);
    let account = &content[ACCOUNT];
    assert_eq!(annotation(account, BUNDLE_SHA256), sha256);
    assert_eq!(annotation(account, "clicklink.io/expires-at"), closing.expiry);
}

fn ends_in_two_hours(closing: &Closing, asked_at: jiff::Timestamp) {
    let expiry: jiff::Timestamp = closing.expiry.parse().unwrap();
    assert_eq!(closing.expiry.len(), "2026-11-30T10:00:00Z".len(), "{}", closing.expiry);
    let lasts = expiry.duration_since(asked_at).as_secs();
    assert!((7199..7200 + 60).contains(&lasts), "{lasts} s");
}

fn the_token_bundle_is_private(landscape: &Landscape, sha256: &str, closing: &Closing) {
    let folder = landscape.connector.access_dir().join("_platform");
    let mode = |path: &Path| path.symlink_metadata().unwrap().permissions().mode() & 0o7777;
    assert_eq!(mode(&folder), 0o700);
    let files = landscape.connector.token_bundle().unwrap();
    assert_eq!(files.keys().map(String::as_str).collect::<Vec<_>>(), ["approval.json", "ca.crt", "server", "token"]);
    for file in files.keys() {
        assert_eq!(mode(&folder.join(file)), 0o600, "{file}");
    }
    assert_eq!(files["server"], landscape.control_plane.url().as_bytes());
    let approval = landscape.connector.approval().unwrap();
    assert_eq!((&approval["bundle_sha256"], &approval["expires_at"]), (&json!(sha256), &json!(closing.expiry)));
    let token = String::from_utf8(files["token"].clone()).unwrap();
    assert!(!String::from_utf8_lossy(&files["approval.json"]).contains(token.trim()), "no secret");
}

/// The four dimensions of each component, its chart version, its images and its pods, as the manager has heard them.
async fn is_observed_as_released(landscape: &Landscape, release: &Release) {
    for (component, (name, deployments)) in release.components.iter().zip(DEPLOYMENTS) {
        assert_eq!(component.name, name);
        let jobs_only: BTreeSet<&str> = component.images.iter().map(String::as_str).filter(|image| image.contains("migration")).collect();
        let images: BTreeSet<&str> = component.images.iter().map(String::as_str).filter(|image| !jobs_only.contains(image)).collect();
        until_component(landscape, name, |seen| {
            ensure!(seen["chart_version"] == component.chart.version.as_str(), "chart version");
            let observed: BTreeSet<&str> = seen["images"].as_array().context("images")?.iter().filter_map(Value::as_str).collect();
            ensure!(observed == images, "images");
            dimensions(seen, "started", "ok", "succeeded", "compliant")?;
            pods(seen, deployments.len(), deployments.len())
        })
        .await;
    }
}

async fn components_came_one_after_the_other(landscape: &Landscape) {
    let mut made = Vec::new();
    for name in DEPLOYMENTS.iter().flat_map(|(_, names)| *names) {
        made.push(time(&live(landscape, "deployment", name, Some(NAMESPACE)).await, "/metadata/creationTimestamp"));
    }
    assert!(made[0] <= made[1] && made[1] <= made[2].min(made[3]), "{made:?}");
    let jobs = jobs(landscape).await;
    assert_eq!(jobs.len(), 1);
    let job = jobs.values().next().unwrap();
    assert_eq!(job["status"]["succeeded"], 1, "{job}");
    assert!(time(job, "/status/completionTime") <= made[2].min(made[3]), "a hook runs before what it prepares");
}

async fn nothing_is_left_to_change(landscape: &Landscape) {
    let plan = landscape.connector.approve(&["--dry-run", "--detailed-exitcode"]).await.unwrap();
    assert_eq!(plan.code(), Some(0), "{}\n{}", plan.stdout, plan.stderr);
    assert!(plan.stdout.contains(": 0 to create, 0 to change, 12 unchanged"), "{}", plan.stdout);
}

async fn access_may_be_applied_again(landscape: &Landscape) {
    let before = landscape.content().await.unwrap();
    let token = landscape.connector.access_dir().join("_cluster/token");
    let former = std::fs::read(&token).unwrap();
    landscape.connector.grant_access().await.unwrap();
    assert_eq!(landscape.content().await.unwrap(), before);
    assert_ne!(std::fs::read(&token).unwrap(), former, "a new token");
}

/// Approving again replaces the token and has the bundle applied once more, which finds nothing to change.
async fn may_be_approved_again(landscape: &Landscape, sha256: &str) {
    let former = landscape.connector.token_bundle().unwrap();
    let commands = landscape.known_commands().await.unwrap();
    let before = unapproved(landscape.content().await.unwrap());
    let install_id = install_id(landscape).await;
    let closing = Closing::of(&landscape.connector.approve(&["--yes", "--ttl", "3h"]).await.unwrap().ok().unwrap()).unwrap();
    let ended = landscape.until_new_ended(&commands).await;
    assert!(ended["status"] == "completed" && ended["sha256"] == sha256, "{ended}");
    // The manager has heard of it, and has decided.
    eventually("the new expiry in the heartbeat", SOON, || async {
        let environment = landscape.environment().await?;
        let platform = &environment["executors"][0]["platform"];
        ensure!(platform["approval_expires_at"] == closing.expiry.as_str() && platform["status"] == "synced", "{environment}");
        ensure!(environment["resend"]["reason"] == "applied", "{environment}");
        Ok(())
    })
    .await;
    let files = landscape.connector.token_bundle().unwrap();
    assert_ne!(files["token"], former["token"]);
    assert_eq!((&files["ca.crt"], &files["server"]), (&former["ca.crt"], &former["server"]));
    assert_eq!(self::install_id(landscape).await, install_id);
    assert_eq!(landscape.connector.approval().unwrap()["install_id"], install_id);
    assert_eq!(unapproved(landscape.content().await.unwrap()), before);
    assert_eq!(landscape.known_commands().await.unwrap().len(), commands.len() + 1, "one sync for one approval");
}

/// A Job that was seen complete is done for, also when it is gone.
async fn a_second_sync_runs_no_job_again(landscape: &Landscape, sha256: &str) {
    let before = landscape.workload().await.unwrap();
    let name = jobs(landscape).await.into_keys().next().unwrap();
    let hash = name.strip_prefix("monitoring-collectors-migration-").unwrap();
    assert!(hash.len() == 8 && hash.bytes().all(|byte| byte.is_ascii_hexdigit()), "{name}");
    sync_again(landscape, sha256, "11 workload object(s) applied: 0 created, 0 changed, 11 unchanged").await;
    assert_eq!(landscape.workload().await.unwrap(), before);

    let delete = ["delete", "job", &name, "-n", NAMESPACE, "--wait", "--cascade=foreground"];
    landscape.control_plane.kubectl(&delete).await.unwrap().ok().unwrap();
    sync_again(landscape, sha256, "11 workload object(s) applied: 0 created, 0 changed, 11 unchanged").await;
    assert!(jobs(landscape).await.is_empty());
}

/// Hands change what is there; the heartbeat follows without a sync, at last without a valid approval.
async fn what_is_there_is_observed_and_not_what_was_asked_for(landscape: &mut Landscape, release: &Release, sha256: &str) {
    let operator = "clickhouse-operator";
    let commands = landscape.known_commands().await.unwrap();
    let scale = async |landscape: &Landscape, replicas: &str| {
        let args = ["scale", "deployment", operator, "-n", NAMESPACE, &format!("--replicas={replicas}")];
        landscape.control_plane.kubectl(&args).await.unwrap().ok().unwrap();
    };
    scale(landscape, "3").await;
    until_component(landscape, operator, |seen| {
        dimensions(seen, "started", "ok", "succeeded", "compliant")?;
        pods(seen, 3, 3)
    })
    .await;

    the_approval_expires(landscape).await;
    scale(landscape, "0").await;
    until_component(landscape, operator, |seen| {
        dimensions(seen, "stopped", "ok", "succeeded", "compliant")?;
        pods(seen, 0, 0)
    })
    .await;
    let other = "registry.invalid/other@sha256:1111111111111111111111111111111111111111111111111111111111111111";
    let unready = json!({"spec": {"replicas": 2, "template": {"metadata": {"annotations": {"testbed.clicklink.io/pod": "unready"}},
        "spec": {"containers": [{"name": "manager", "image": other}]}}}});
    let patch = ["patch", "deployment", operator, "-n", NAMESPACE, "-p", &unready.to_string()];
    landscape.control_plane.kubectl(&patch).await.unwrap().ok().unwrap();
    until_component(landscape, operator, |seen| {
        dimensions(seen, "starting", "critical", "succeeded", "non_compliant")?;
        ensure!(seen["images"] == json!([other]), "images");
        pods(seen, 0, 2)
    })
    .await;
    // One of the two becomes ready.
    let listed = ["get", "pods", "-n", NAMESPACE, "-l", "app.kubernetes.io/name=clickhouse-operator", "-o", "name"];
    let listed = landscape.control_plane.kubectl(&listed).await.unwrap().ok().unwrap().stdout;
    let one = listed.lines().next().unwrap();
    let heal = ["annotate", one, "-n", NAMESPACE, "testbed.clicklink.io/pod-", "--overwrite"];
    landscape.control_plane.kubectl(&heal).await.unwrap().ok().unwrap();
    until_component(landscape, operator, |seen| {
        dimensions(seen, "starting", "warning", "succeeded", "non_compliant")?;
        pods(seen, 1, 2)
    })
    .await;
    landscape.control_plane.kubectl(&["delete", "deployment", operator, "-n", NAMESPACE, "--wait"]).await.unwrap().ok().unwrap();
    until_component(landscape, operator, |seen| {
        dimensions(seen, "failed", "critical", "succeeded", "unknown")?;
        ensure!(seen["message"] == format!("Deployment.apps {NAMESPACE}/{operator} is missing"), "message");
        pods(seen, 0, 1)
    })
    .await;
    assert_eq!(landscape.known_commands().await.unwrap(), commands, "nothing was asked of the executor");

    // An approval again is answered with a sync, which brings back what is missing.
    let known = landscape.known_commands().await.unwrap();
    landscape.connector.approve(&["--yes"]).await.unwrap().ok().unwrap();
    synced(landscape, &known, sha256, "11 workload object(s) applied: 1 created, 0 changed, 10 unchanged").await;
    is_observed_as_released(landscape, release).await;
}

/// TokenRequest gives no token for less than ten minutes, so one that has ended takes its place.
async fn the_approval_expires(landscape: &Landscape) {
    let account = live(landscape, "serviceaccount", "pcm-platform", Some("clicklink-system")).await;
    let uid = account["metadata"]["uid"].as_str().unwrap();
    let ended = landscape.control_plane.sign_token("clicklink-system", "pcm-platform", uid, jiff::SignedDuration::from_secs(-120)).unwrap();
    std::fs::write(landscape.connector.access_dir().join("_platform/token"), ended.token).unwrap();
    eventually("the executor to see that the approval has ended", SOON, || async {
        let shown: Value = serde_json::from_str(&landscape.connector.local_api("/v1/platform").await?.text().await?)?;
        ensure!(shown["access"]["platform"] == "expired" && shown["access"]["cluster"] == "ok", "{shown}");
        ensure!(shown["platform"]["status"] == "synced", "what is applied stays applied: {shown}");
        Ok(())
    })
    .await;
}

async fn both_halves_are_of_the_second_edition(landscape: &Landscape) {
    let clusters = live(landscape, "customresourcedefinition", "clickhouseclusters.clickhouse.com", None).await;
    let field = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/upgradeChannel/enum";
    assert_eq!(clusters.pointer(field), Some(&json!(["stable", "lts"])));
    let role = live(landscape, "clusterrole", "clickhouse-operator", None).await;
    let rules = role["rules"].as_array().unwrap();
    assert!(rules.iter().any(|rule| rule["apiGroups"] == json!(["batch"]) && rule["resources"] == json!(["jobs"])), "{role}");
    let settings = live(landscape, "configmap", "clickhouse-operator-config", Some(NAMESPACE)).await;
    assert!(settings["data"]["config.yaml"].as_str().unwrap().contains("versionProbe"), "{settings}");
    let jobs = jobs(landscape).await;
    assert_eq!(jobs.len(), 1, "the second edition's own: {:?}", jobs.keys());
    assert!(jobs.values().all(|job| job["status"]["succeeded"] == 1));
}

/// Sends the bundle again as the vendor's person does, and waits for the one new command.
async fn sync_again(landscape: &Landscape, sha256: &str, outcomes: &str) {
    let known = landscape.known_commands().await.unwrap();
    landscape.rearm().await.unwrap();
    synced(landscape, &known, sha256, outcomes).await;
}

/// Waits for the one command that was not known.
async fn synced(landscape: &Landscape, known: &BTreeSet<String>, sha256: &str, outcomes: &str) {
    let ended = landscape.until_new_ended(known).await;
    assert_eq!(ended["result"], format!("synced bundle {sha256}: {outcomes}"), "{ended}");
    landscape.until_status("synced", sha256).await;
}

async fn until_component(landscape: &Landscape, name: &str, check: impl Fn(&Value) -> Result<()>) {
    eventually(&format!("the manager to hear how {name} is"), SOON, || async {
        let environment = landscape.environment().await?;
        let components = environment["executors"][0]["components"].as_array().context("components")?;
        let seen = components.iter().find(|component| component["name"] == name).context("the component")?;
        check(seen).with_context(|| seen.to_string())
    })
    .await;
}

fn dimensions(seen: &Value, state: &str, health: &str, operation: &str, security: &str) -> Result<()> {
    for (key, expected) in [("state", state), ("health", health), ("operation_state", operation), ("security_state", security)] {
        ensure!(seen[key] == expected, "{key} is not {expected}");
    }
    Ok(())
}

fn pods(seen: &Value, ready: usize, desired: usize) -> Result<()> {
    ensure!(seen["ready"] == ready && seen["desired"] == desired, "pods are not {ready}/{desired}");
    Ok(())
}

/// What stays as it is when a bundle is approved again: all but the times and the end on the account.
fn unapproved(mut content: BTreeMap<String, Value>) -> BTreeMap<String, Value> {
    assert!(content.remove(ACCOUNT).is_some());
    content
}

async fn install_id(landscape: &Landscape) -> String {
    let account = live(landscape, "serviceaccount", "pcm-platform", Some("clicklink-system")).await;
    let id = annotation(&account, INSTALL_ID).to_owned();
    assert!(!id.is_empty(), "{account}");
    id
}

async fn jobs(landscape: &Landscape) -> BTreeMap<String, Value> {
    let listed: Finished = landscape.control_plane.kubectl(&["get", "jobs", "-n", NAMESPACE, "-o", "json"]).await.unwrap().ok().unwrap();
    let listed: Value = serde_json::from_str(&listed.stdout).unwrap();
    let items = listed["items"].as_array().unwrap();
    items.iter().map(|job| (job["metadata"]["name"].as_str().unwrap().to_owned(), job.clone())).collect()
}

async fn live(landscape: &Landscape, kind: &str, name: &str, namespace: Option<&str>) -> Value {
    let mut args = vec!["get", kind, name, "-o", "json"];
    args.extend(namespace.iter().flat_map(|namespace| ["-n", namespace]));
    let got = landscape.control_plane.kubectl(&args).await.unwrap().ok().unwrap();
    serde_json::from_str(&got.stdout).unwrap()
}

fn annotation<'a>(object: &'a Value, key: &str) -> &'a str {
    object["metadata"]["annotations"][key].as_str().unwrap_or_default()
}

fn time(object: &Value, pointer: &str) -> jiff::Timestamp {
    object.pointer(pointer).and_then(Value::as_str).unwrap().parse().unwrap()
}

fn pending_file(landscape: &Landscape) -> PathBuf {
    landscape.connector.access_dir().join("platform-pending.json")
}

fn names(folder: &Path) -> BTreeSet<String> {
    folder.read_dir().unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

fn hex(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}
