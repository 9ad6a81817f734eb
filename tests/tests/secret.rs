//! The Kubernetes form, across executor, cluster and a person's workstation: the connector as in a pod, the staged bundle through its
//! local API (that is what a port-forward gives), the token bundle as a Secret that a kubelet mounts.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;

use anyhow::ensure;
use serde_json::{Value, json};
use system_tests::bundle::{self, Edition, NAMESPACE};
use system_tests::landscape::{Closing, Landscape, MountNamespace, Narrator, SOON, secret, server_in_cluster};
use system_tests::{Finished, TempFolder, eventually, free_port};

/// The connector's namespace.
const HOME: &str = "clicklink";
const SECRET: &str = "clicklink-platform-bundle";

#[tokio::test(flavor = "multi_thread")]
async fn a_connector_in_a_pod_gets_its_approval_as_a_secret() {
    let mounts = match MountNamespace::find() {
        Ok(mounts) => mounts,
        Err(refused) => return eprintln!("skipped: this machine allows no mount namespace: {refused:#}"),
    };
    let mut landscape = Landscape::enrolled(&Narrator::silent()).await.unwrap();
    let workstation = TempFolder::new("workstation").unwrap();
    access_is_granted_in_the_connectors_namespace(&landscape, &workstation).await;
    landscape.connector.start_executor_in_pod(mounts, &landscape.control_plane, HOME).await.unwrap();
    landscape.until_connected().await.unwrap();
    let first = bundle::push(&landscape.registry, Edition::First).await.unwrap();
    let sha256 = landscape.propose("platform-1", &first).await.unwrap();
    is_staged_and_refused(&landscape, &sha256, "there is no approval yet").await;
    without_a_port_forward_the_command_is_told(&landscape, &workstation).await;
    a_secret_that_is_not_taken_is_told_before(&landscape, &workstation).await;
    the_secret_is_for_pods_of_the_cluster(&landscape, &workstation, &sha256).await;

    a_server_of_another_authority_is_not_believed(&landscape, &workstation, &sha256).await;
    let closing = approve(&landscape, &workstation, &["--yes", "--server", &server_in_cluster(&landscape.control_plane)]).await;
    assert_eq!(closing.secret.as_deref(), Some("clicklink/clicklink-platform-bundle"));
    assert_eq!(closing.namespaces, NAMESPACE);
    landscape.has_status("failed", &sha256).await.unwrap();
    landscape.connector.refresh_mounted_secret(&landscape.control_plane, HOME, SECRET).await.unwrap();
    landscape.until_status("synced", &sha256).await;
    let environment = landscape.environment().await.unwrap();
    assert_eq!(environment["executors"][0]["kind"], "pod", "{environment}");
    assert_eq!(landscape.workload().await.unwrap().len(), closing.workload);
    its_own_account_sees_the_components(&environment);

    a_refreshed_mount_is_noticed(&landscape, &workstation, &sha256).await;
    let noted = with_a_note(&landscape, &first).await;
    is_staged_and_refused(&landscape, &noted, "the approval at hand is for bundle").await;
}

async fn access_is_granted_in_the_connectors_namespace(landscape: &Landscape, workstation: &TempFolder) {
    let output = workstation.join("access");
    for verb in ["grant", "apply"] {
        let program = landscape.connector.clctl(verb).args(["executor", "access", verb, "--cluster", "--sa-namespace", HOME, "--config"]);
        let program = program.arg(landscape.connector.config()).arg("--output-dir").arg(&output);
        program.run(workstation, SOON).await.unwrap().ok().unwrap();
    }
    assert!(!landscape.connector.access_dir().join("_cluster").exists(), "a pod has its own token");
}

async fn is_staged_and_refused(landscape: &Landscape, sha256: &str, reason: &str) {
    let ended = landscape.until_ended(sha256).await;
    let hint = format!("run: clctl platform approve --secret-namespace {HOME} (pending bundle sha {sha256})");
    let result = ended["result"].as_str().unwrap();
    assert!(ended["status"] == "failed" && result.contains(reason) && result.ends_with(&hint), "{ended}");
    landscape.until_status("approval_required", sha256).await;
    let staged: Value =
        serde_json::from_slice(&std::fs::read(landscape.connector.state_dir().join("platform-pending.json")).unwrap()).unwrap();
    assert_eq!(staged["sha256"], sha256);
    assert!(!landscape.connector.access_dir().join("platform-pending.json").exists(), "it lies on the state volume");
    let answer = landscape.connector.local_api("/v1/platform/pending").await.unwrap();
    assert_eq!(serde_json::from_str::<Value>(&answer.text().await.unwrap()).unwrap(), staged);
}

async fn without_a_port_forward_the_command_is_told(landscape: &Landscape, workstation: &TempFolder) {
    let before = landscape.content().await.unwrap();
    let nobody = format!("http://127.0.0.1:{}", free_port());
    let tried = try_approve(landscape, workstation, &["--yes", "--endpoint", &nobody]).await;
    assert!(!matches!(tried.code(), Some(0) | None), "{tried:?}");
    let command = format!("kubectl -n {HOME} port-forward deployment/clicklink-connector-executor 9999:9999");
    assert!(tried.stderr.lines().any(|line| line.trim() == command), "{}", tried.stderr);
    assert!(tried.stderr.contains(&nobody), "{}", tried.stderr);
    assert_eq!(tried.stdout, "");
    assert_eq!(landscape.content().await.unwrap(), before);
}

/// A Secret of this name is there, and somebody else's.
async fn a_secret_that_is_not_taken_is_told_before(landscape: &Landscape, workstation: &TempFolder) {
    let taken =
        json!({"apiVersion": "v1", "kind": "Secret", "type": "example.com/other", "metadata": {"name": "taken", "namespace": HOME}});
    landscape.control_plane.apply(&taken.to_string()).await.unwrap();
    let before = landscape.content().await.unwrap();
    let tried =
        try_approve(landscape, workstation, &["--yes", "--endpoint", landscape.connector.endpoint(), "--secret-name", "taken"]).await;
    assert!(!matches!(tried.code(), Some(0) | None), "{tried:?}");
    assert!(
        tried.stderr.contains(
            "the token bundle was not written: Secret clicklink/taken: field conflict: .type is owned by `kubectl-client-side-apply`"
        ),
        "{}",
        tried.stderr
    );
    assert!(!tried.stdout.contains("Approved:"));
    assert_eq!(landscape.content().await.unwrap(), before);
}

/// Without further flags the Secret names the API server as pods know it, with the CA that the cluster publishes for them; another
/// name of the Secret is taken, and nothing comes of a Secret that is not mounted.
async fn the_secret_is_for_pods_of_the_cluster(landscape: &Landscape, workstation: &TempFolder, sha256: &str) {
    let closing = approve(landscape, workstation, &["--yes", "--secret-name", "spare"]).await;
    assert_eq!(closing.secret.as_deref(), Some("clicklink/spare"));
    let keys: BTreeMap<String, Vec<u8>> = secret(&landscape.control_plane, HOME, "spare").await.unwrap().into_iter().collect();
    assert_eq!(keys.keys().map(String::as_str).collect::<Vec<_>>(), ["approval.json", "ca.crt", "server", "token"]);
    assert_eq!(keys["server"], b"https://kubernetes.default.svc");
    assert_eq!(String::from_utf8_lossy(&keys["ca.crt"]).trim(), landscape.control_plane.ca().trim());
    let approval: Value = serde_json::from_slice(&keys["approval.json"]).unwrap();
    assert_eq!(approval["bundle_sha256"], sha256);
    assert_eq!(approval["home_namespace"], HOME);
    assert_eq!(approval["expires_at"], closing.expiry);
    let content = landscape.content().await.unwrap();
    let secrets = |name: &str| content.contains_key(&format!("/api/v1/secrets {HOME}/{name}"));
    let accounts = |namespace: &str| content.contains_key(&format!("/api/v1/serviceaccounts {namespace}/pcm-platform"));
    assert!(secrets("spare") && !secrets(SECRET));
    assert!(accounts(HOME) && !accounts("clicklink-system"), "the connector's namespace is its home");
    assert_eq!(landscape.connector.mounted_secret().read_dir().unwrap().count(), 0, "nothing is written on the connector's side");
}

/// With the CA of somebody else, the executor sends its token to nobody.
async fn a_server_of_another_authority_is_not_believed(landscape: &Landscape, workstation: &TempFolder, sha256: &str) {
    let server = server_in_cluster(&landscape.control_plane);
    let known = landscape.known_commands().await.unwrap();
    let closing = approve(landscape, workstation, &["--yes", "--server", &server, "--ca-data", &landscape.registry.ca()]).await;
    assert_eq!(closing.secret.as_deref(), Some("clicklink/clicklink-platform-bundle"));
    landscape.has_status("approval_required", sha256).await.unwrap();
    landscape.connector.refresh_mounted_secret(&landscape.control_plane, HOME, SECRET).await.unwrap();
    let ended = landscape.until_new_ended(&known).await;
    let result = ended["result"].as_str().unwrap();
    assert!(ended["status"] == "failed" && result.contains("certificate") && !result.contains("run: "), "{ended}");
    landscape.until_status("failed", sha256).await;
    assert!(landscape.workload().await.unwrap().is_empty());
}

fn its_own_account_sees_the_components(environment: &Value) {
    let components = environment["executors"][0]["components"].as_array().unwrap();
    assert_eq!(components.len(), 3);
    for component in components {
        assert_eq!((&component["state"], &component["health"]), (&json!("started"), &json!("ok")), "{component}");
    }
}

async fn a_refreshed_mount_is_noticed(landscape: &Landscape, workstation: &TempFolder, sha256: &str) {
    let server = server_in_cluster(&landscape.control_plane);
    let known = landscape.known_commands().await.unwrap();
    let closing = approve(landscape, workstation, &["--yes", "--ttl", "5h", "--server", &server]).await;
    landscape.connector.refresh_mounted_secret(&landscape.control_plane, HOME, SECRET).await.unwrap();
    // Who approves again wants it applied again.
    let ended = landscape.until_new_ended(&known).await;
    assert!(ended["status"] == "completed" && ended["sha256"] == sha256, "{ended}");
    eventually("the new expiry in the heartbeat", SOON, || async {
        let platform = &landscape.environment().await?["executors"][0]["platform"];
        ensure!(platform["approval_expires_at"] == closing.expiry.as_str() && platform["status"] == "synced", "{platform}");
        Ok(())
    })
    .await;
    landscape.has_status("synced", sha256).await.unwrap();
}

/// Another bundle, by another value.
async fn with_a_note(landscape: &Landscape, release: &bundle::Release) -> String {
    let mut release = release.clone();
    release.component("clickhouse-operator").values["podAnnotations"] = json!({"example.com/note": "next"});
    landscape.propose("platform-2", &release).await.unwrap()
}

async fn approve(landscape: &Landscape, workstation: &TempFolder, more: &[&str]) -> Closing {
    let endpoint = ["--endpoint", landscape.connector.endpoint()];
    let approved = try_approve(landscape, workstation, &[&endpoint, more].concat()).await;
    Closing::of(&approved.ok().unwrap()).unwrap()
}

/// On a workstation: a copy of the configuration, no access folder.
async fn try_approve(landscape: &Landscape, workstation: &TempFolder, more: &[&str]) -> Finished {
    let config = workstation.join("clicklink-config.yaml");
    std::fs::copy(landscape.connector.config(), &config).unwrap();
    let program = landscape.connector.clctl("approve").args(["platform", "approve", "--secret-namespace", HOME, "--config"]).arg(config);
    program.args(landscape.connector.registry_args()).args(more).run(workstation, SOON).await.unwrap()
}
