//! Least secret: whatever holds a secret is planted with one that is known, and everything that this system says, shows or stores where a
//! secret has no business is searched for all of them, in plain and in base64.

use std::collections::BTreeMap;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;
use system_tests::bundle::{self, Edition, NAMESPACE, Release};
use system_tests::landscape::{ENVIRONMENT, Landscape, Narrator};
use system_tests::{Finished, Registry};

use crate::with_changed_chart;

/// A value of a chart's Secret.
const PLANTED: &str = "planted-7f3c2a91-in-a-chart";
/// The same Secret's value in the next version of the chart.
const NEXT: &str = "planted-0b8d6e54-in-the-next";

/// Where something was said or stored, and what.
type Said = BTreeMap<String, Vec<u8>>;

#[tokio::test(flavor = "multi_thread")]
async fn nothing_that_is_said_or_stored_holds_a_secret() {
    let mut landscape = Landscape::enrolled(&Narrator::silent()).await.unwrap();
    tell_everything(&landscape);
    landscape.connector.grant_access().await.unwrap();
    landscape.connector.start_executor().unwrap();
    landscape.until_connected().await.unwrap();

    let mut said = Said::new();
    let release = with_secret(&landscape, PLANTED).await;
    let sha256 = landscape.propose("first", &release).await.unwrap();
    landscape.until_ended(&sha256).await;
    approvals(&landscape, &mut said, "first").await;
    landscape.until_status("synced", &sha256).await;
    let mut secrets = secrets(&landscape);

    let next = with_secret(&landscape, NEXT).await;
    let sha256 = landscape.propose("next", &next).await.unwrap();
    landscape.until_ended(&sha256).await;
    refusals(&landscape, &mut said).await;
    approvals(&landscape, &mut said, "next").await;
    landscape.until_status("synced", &sha256).await;
    secrets.extend(self::secrets(&landscape));

    shown(&landscape, &mut said).await;
    stored(&landscape, &mut said);
    let found = search(&said, &secrets);
    assert!(found.is_empty(), "{found:#?}");
    // What is known to be there is found, in a log that leaves nothing out.
    assert!(said.len() > 40 && search(&said, &[("a control".into(), NAMESPACE.into())]).len() > 10, "{} places", said.len());
    let log = std::fs::read_to_string(landscape.connector.executor().log()).unwrap();
    assert!(log.contains("DEBUG") && log.contains("TRACE"), "the log is not loud");
}

/// The executor's log leaves nothing out.
fn tell_everything(landscape: &Landscape) {
    let config = landscape.connector.config();
    let text = std::fs::read_to_string(&config).unwrap();
    let louder = text.replacen("observability: {", "observability: {log_level: trace, ", 1);
    assert_ne!(text, louder, "the configuration has no observability block:\n{text}");
    std::fs::write(config, louder).unwrap();
}

async fn with_secret(landscape: &Landscape, value: &str) -> Release {
    let release = bundle::push(&landscape.registry, Edition::First).await.unwrap();
    let planted = |text: &str| text.replacen("stringData:\n", &format!("stringData:\n  planted: {value}\n"), 1);
    with_changed_chart(landscape, &release, "monitoring-collectors", "secret.yaml", planted).await
}

/// Name and value of each secret there is.
fn secrets(landscape: &Landscape) -> Vec<(String, String)> {
    let file = |path: &Path| std::fs::read_to_string(path).unwrap().trim().to_owned();
    let etc = landscape.connector.etc();
    let key = file(&etc.join("tls/client.key"));
    let token = String::from_utf8(landscape.connector.token_bundle().unwrap()["token"].clone()).unwrap();
    // A signature says nothing by itself, and is what makes a token one.
    let signature = |token: &str| token.trim().rsplit('.').next().unwrap_or_default().to_owned();
    vec![
        ("the chart's value".into(), PLANTED.into()),
        ("the chart's next value".into(), NEXT.into()),
        ("the platform token".into(), signature(&token)),
        ("the executor's token".into(), signature(&file(&landscape.connector.access_dir().join("_cluster/token")))),
        ("the signing key".into(), file(&etc.join("secret-key"))),
        ("the client key".into(), key.lines().nth(1).unwrap().to_owned()),
        ("the registry's password".into(), Registry::PASSWORD.into()),
        ("the manager's bearer token".into(), file(&landscape.manager.folder().join("token"))),
    ]
}

async fn approvals(landscape: &Landscape, said: &mut Said, of: &str) {
    for more in [&["--dry-run"][..], &["--dry-run", "-o", "json"], &["--yes"]] {
        note(said, &format!("approve {} of {of}", more.join(" ")), landscape.connector.approve(more).await.unwrap().ok().unwrap());
    }
}

/// Errors about what holds a secret: a conflict on its field, a value that is not taken, wrong credentials.
async fn refusals(landscape: &Landscape, said: &mut Said) {
    let cluster = &landscape.control_plane;
    let theirs = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "monitoring-collectors-endpoints", "namespace": NAMESPACE},
        "data": {"planted": STANDARD.encode("somebody else's")}});
    let file = landscape.connector.folder().write("theirs.json", theirs.to_string()).unwrap().display().to_string();
    let take = ["apply", "--server-side", "--force-conflicts", "--field-manager=somebody", "-f", &file];
    cluster.kubectl(&take).await.unwrap().ok().unwrap();
    let conflict = landscape.connector.approve(&["--yes"]).await.unwrap();
    assert!(conflict.stderr.contains("field conflict"), "{conflict:?}");
    note(said, "a conflict on the Secret", conflict);
    cluster.kubectl(&["delete", "secret", "monitoring-collectors-endpoints", "-n", NAMESPACE]).await.unwrap().ok().unwrap();
    let wrong = landscape.registry.wrong_docker_config().unwrap().display().to_string();
    let connector = &landscape.connector;
    let program = connector.clctl("wrong").args(["platform", "approve", "--yes", "--config"]).arg(connector.config());
    let program = program.arg("--output-dir").arg(connector.access_dir()).args(["--registry-config", &wrong, "--registry-ca-file"]);
    let refused = program.arg(landscape.registry.ca_file()).run(connector.folder(), system_tests::landscape::SOON).await.unwrap();
    assert!(!refused.success());
    note(said, "wrong credentials", refused);
}

fn note(said: &mut Said, place: &str, finished: Finished) {
    said.insert(format!("{place}: stdout"), finished.stdout.into_bytes());
    said.insert(format!("{place}: stderr"), finished.stderr.into_bytes());
}

/// What people and programs are shown.
async fn shown(landscape: &Landscape, said: &mut Said) {
    let output_dir = landscape.connector.access_dir().display().to_string();
    for args in [
        &["status", "-o", "json"][..],
        &["commands", "list", "-o", "json"],
        &["preflight", "-o", "json"],
        &["platform", "show", "-o", "json", "--output-dir", &output_dir],
    ] {
        note(said, &args.join(" "), landscape.connector.run(args).await.unwrap());
    }
    let id = landscape.environment().await.unwrap()["executors"][0]["id"].as_str().unwrap().to_owned();
    for args in [
        &["environment", "get", ENVIRONMENT, "-o", "json"][..],
        &["executor", "get", &id, "-o", "json"],
        &["executor", "commands", &id, "-o", "json"],
        &["release", "get", "first", "-o", "json"],
    ] {
        note(said, &format!("manager: {}", args[..2].join(" ")), landscape.manager.quiet_cli(args).await.unwrap());
    }
    for path in ["/v1/platform", "/v1/platform/pending", "/v1/commands"] {
        said.insert(path.into(), landscape.connector.local_api(path).await.unwrap().bytes().await.unwrap().to_vec());
    }
    for path in ["/metrics", "/healthz", "/readyz"] {
        said.insert(path.into(), landscape.connector.health(path).await.unwrap().bytes().await.unwrap().to_vec());
    }
    for kind in ["platformapprovals", "events", "serviceaccounts", "configmaps", "deployments"] {
        note(said, &format!("kubectl get {kind}"), landscape.control_plane.kubectl(&["get", kind, "-A", "-o", "json"]).await.unwrap());
    }
}

/// Files that have no business with secrets: logs, the journal, the staged bundle, the approval, the manager's store.
fn stored(landscape: &Landscape, said: &mut Said) {
    let connector = &landscape.connector;
    let mut keep = |path: &Path| said.insert(path.display().to_string(), std::fs::read(path).unwrap());
    for folder in [connector.folder().join("logs"), landscape.manager.folder().join("logs"), connector.state_dir()] {
        for entry in folder.read_dir().unwrap() {
            let path = entry.unwrap().path();
            if path.is_file() {
                keep(&path);
            }
        }
    }
    keep(&connector.config());
    keep(&connector.access_dir().join("platform-pending.json"));
    keep(&connector.access_dir().join("_platform/approval.json"));
    keep(&connector.access_dir().join("_cluster/kubeconfig"));
    for entry in landscape.manager.folder().join("data").read_dir().unwrap() {
        let path = entry.unwrap().path();
        if path.file_name().unwrap().to_string_lossy().contains(".db") {
            keep(&path);
        }
    }
}

/// Each place with a secret in it, and which.
fn search(said: &Said, secrets: &[(String, String)]) -> Vec<String> {
    let holds = |content: &[u8], text: &str| content.windows(text.len()).any(|window| window == text.as_bytes());
    let mut found = Vec::new();
    for (name, secret) in secrets {
        assert!(secret.len() > 12, "{name} is too short to be looked for");
        for form in [secret.clone(), STANDARD.encode(secret)] {
            found.extend(said.iter().filter(|(_, content)| holds(content, &form)).map(|(place, _)| format!("{place}: {name}")));
        }
    }
    found.sort();
    found.dedup();
    found
}
