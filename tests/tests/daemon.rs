//! The daemon between its service manager, its ports and its signals, with neither manager nor cluster in reach.
//!
//! The test is the service manager: it owns the socket that `NOTIFY_SOCKET` names.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use reqwest::StatusCode;
use rustix::process::Signal;
use serde_json::{Value, json};
use system_tests::landscape::{MountNamespace, SOON};
use system_tests::{Authority, Exit, Process, Program, TempFolder, binaries, eventually, free_port};
use tokio::net::UnixDatagram;

/// Bound of an orderly end.
const END: Duration = Duration::from_secs(5);
/// `WatchdogSec` as the daemon is told: 600 ms.
const WATCHDOG_USEC: &str = "600000";

/// An executor that is enrolled at a manager that is not there.
struct Lone {
    home: TempFolder,
    api_port: u16,
    health_port: u16,
    socket: UnixDatagram,
}

impl Lone {
    fn new(label: &str) -> Self {
        let home = TempFolder::new(label).unwrap();
        for folder in ["etc/tls", "etc/access/executor", "state"] {
            home.folder(folder).unwrap();
        }
        let authority = Authority::new("nobody's").unwrap();
        let client = authority.client("org-1", None).unwrap();
        home.write("etc/access-key", "ak-1").unwrap();
        home.write("etc/secret-key", "c2VjcmV0LXNlY3JldC1zZWNyZXQtc2VjcmV0LTEyMzQ=").unwrap();
        home.write("etc/tls/client.crt", client.certificate).unwrap();
        home.write("etc/tls/client.key", client.key).unwrap();
        home.write("etc/tls/ca.crt", authority.certificate()).unwrap();
        let socket = UnixDatagram::bind(home.join("notify")).unwrap();
        let lone = Self { home, api_port: free_port(), health_port: free_port(), socket };
        lone.configure("");
        lone
    }

    fn config(&self) -> PathBuf {
        self.home.join("etc/config.yaml")
    }

    /// Writes the configuration, with further keys below `executor.observability`, or whatever else follows.
    fn configure(&self, more: &str) {
        let etc = self.home.join("etc").display().to_string();
        let text = format!(
            "pcm_infra_uuid: 019b0000-0000-7000-8000-000000000001\ncloud: aws\nregion: eu-west-1\n\
             api:\n  endpoint: https://127.0.0.1:1\n  access_key_file: {etc}/access-key\n  secret_key_file: {etc}/secret-key\n  \
             tls: {{cert_file: {etc}/tls/client.crt, key_file: {etc}/tls/client.key, ca_file: {etc}/tls/ca.crt}}\n\
             executor:\n  db_path: {}/executor.db\n  api_port: {}\n  access_dir: {etc}/access/executor\n  \
             observability:\n    health_port: {}\n{more}",
            self.home.join("state").display(),
            self.api_port,
            self.health_port,
        );
        std::fs::write(self.config(), text).unwrap();
    }

    fn program(&self) -> Program {
        let program = binaries().clicklink("executor").args(["executor", "--config"]).arg(self.config());
        program.env("NOTIFY_SOCKET", self.home.join("notify")).env("WATCHDOG_USEC", WATCHDOG_USEC)
    }

    async fn start(&self) -> Process {
        let process = self.program().start(&self.home).unwrap();
        self.until_told("READY=1").await;
        process
    }

    /// The next notification, if one comes in time.
    async fn told(&self, within: Duration) -> Option<String> {
        let mut bytes = [0; 4096];
        let length = tokio::time::timeout(within, self.socket.recv(&mut bytes)).await.ok()?.unwrap();
        Some(String::from_utf8_lossy(&bytes[..length]).trim_end().to_owned())
    }

    /// Waits for a notification that has this line; gives all that came before it, and itself.
    async fn until_told(&self, line: &str) -> Vec<String> {
        let (started, mut all) = (Instant::now(), Vec::new());
        while started.elapsed() < SOON {
            let Some(told) = self.told(SOON).await else { break };
            let found = told.lines().any(|said| said.starts_with(line));
            all.push(told);
            if found {
                return all;
            }
        }
        panic!("waited for {line}, was told {all:?}");
    }

    async fn get(&self, port: u16, path: &str, headers: &[(&str, &str)]) -> anyhow::Result<(StatusCode, String)> {
        let client = reqwest::Client::builder().no_proxy().build()?;
        let request = headers
            .iter()
            .fold(client.get(format!("http://127.0.0.1:{port}{path}")), |request, (name, value)| request.header(*name, *value));
        let response = request.send().await?;
        Ok((response.status(), response.text().await?))
    }

    async fn health(&self, path: &str) -> (StatusCode, String) {
        self.get(self.health_port, path, &[]).await.unwrap()
    }

    async fn until_health(&self, path: &str, expected: (u16, Value)) {
        eventually(&format!("{path} to say {expected:?}"), SOON, || async {
            let (code, text) = self.get(self.health_port, path, &[]).await?;
            let found = (code.as_u16(), serde_json::from_str::<Value>(&text)?);
            ensure!(found == expected, "{found:?}");
            Ok(())
        })
        .await;
    }
}

#[tokio::test]
async fn the_service_manager_is_told_what_the_main_loop_answers() {
    let lone = Lone::new("notify");
    let process = lone.start().await;
    // Ready means: ports are bound, and the loop answers. Neither the manager nor a cluster is there.
    assert_eq!(lone.get(lone.api_port, "/v1/commands", &[]).await.unwrap(), (StatusCode::OK, "[]".into()));
    lone.until_told("STATUS=platform: none; channel: down; cluster: not reachable").await;
    for _ in 0..3 {
        lone.until_told("WATCHDOG=1").await;
    }

    process.signal(Signal::STOP);
    while lone.told(Duration::from_millis(300)).await.is_some() {}
    assert_eq!(lone.told(Duration::from_secs(1)).await, None, "a process that stands still is no sign of life");
    process.signal(Signal::CONT);
    lone.until_told("WATCHDOG=1").await;

    let started = Instant::now();
    process.terminate();
    let told = lone.until_told("STOPPING=1").await;
    assert_eq!(process.wait(END).await.unwrap(), Exit::Code(0), "{told:?}");
    assert!(started.elapsed() < END);
    while let Some(late) = lone.told(Duration::from_millis(100)).await {
        assert!(!late.contains("READY"), "{late}");
    }
}

#[tokio::test]
async fn a_hangup_reads_again_what_can_be_read_again() {
    let lone = Lone::new("hangup");
    let process = lone.start().await;
    let until_logged = async |text: &str| {
        eventually(text, SOON, || async {
            ensure!(process.log_tail(200).contains(text), "{}", process.log_tail(20));
            Ok(())
        })
        .await;
    };
    lone.configure("    log_level: debug\n");
    process.signal(Signal::HUP);
    let told = lone.until_told("RELOADING=1").await;
    assert!(told.last().unwrap().contains("MONOTONIC_USEC="), "{told:?}");
    lone.until_told("READY=1").await;
    until_logged("re-read: log level, registry credentials and CA; other keys take a restart level=\"debug\"").await;
    until_logged("DEBUG").await;

    lone.configure("    log_lewel: debug\n");
    process.signal(Signal::HUP);
    lone.until_told("READY=1").await;
    until_logged("nothing was re-read, and all stays as it was").await;
    until_logged("log_lewel").await;
    process.ensure_running().unwrap();
}

#[tokio::test]
async fn exit_codes_tell_a_person_s_work_from_what_a_restart_may_mend() {
    let lone = Lone::new("exits");
    let check = async |code: i32, text: &str| {
        let ended = lone.program().run(&lone.home, SOON).await.unwrap();
        assert_eq!(ended.code(), Some(code), "{text}: {}", ended.stderr);
        assert!(ended.stderr.contains(text), "{}", ended.stderr);
    };
    lone.configure("    log_level: loud\n");
    check(78, "`loud`").await;
    lone.configure("registry: {credentials_file: /nowhere/config.json}\n");
    check(78, "/nowhere/config.json").await;
    lone.configure("");
    std::fs::rename(lone.home.join("etc/access-key"), lone.home.join("etc/aside")).unwrap();
    check(78, "access-key").await;
    std::fs::rename(lone.home.join("etc/aside"), lone.home.join("etc/access-key")).unwrap();
    let taken = std::net::TcpListener::bind(("0.0.0.0", lone.health_port)).unwrap();
    check(1, &lone.health_port.to_string()).await;
    drop(taken);
    std::fs::remove_file(lone.config()).unwrap();
    check(78, "config.yaml").await;
}

#[tokio::test]
async fn health_says_what_is_wrong_and_nothing_else() {
    let lone = Lone::new("health");
    let _process = lone.start().await;
    assert_eq!(lone.health("/livez").await, (StatusCode::OK, r#"{"status":"ok"}"#.into()));
    assert_eq!(lone.health("/readyz").await, (StatusCode::OK, r#"{"status":"ready"}"#.into()));
    let degraded = json!({"status": "degraded", "problems": ["channel_down", "cluster_not_reachable"]});
    lone.until_health("/healthz", (200, degraded)).await;
    assert_eq!(lone.health("/").await.0, StatusCode::NOT_FOUND);
    assert_eq!(lone.health("/v1/commands").await.0, StatusCode::NOT_FOUND, "the local API is not on this port");

    let (_, page) = lone.health("/metrics").await;
    let samples = parse(&page).unwrap_or_else(|error| panic!("{error:#}\n{page}"));
    assert_eq!(samples["clicklink_channel_connected"], 0.0);
    assert_eq!(samples["clicklink_platform_status{status=\"none\"}"], 1.0);
    assert_eq!(samples["clicklink_access_bundle_state{bundle=\"cluster\",state=\"absent\"}"], 1.0);
    assert!(samples["clicklink_journal_size_bytes"] > 0.0 && samples["process_start_time_seconds"] > 1.7e9);
    assert!(!samples.keys().any(|name| name.contains("expiry") || name.contains("observation")), "unknown is not 0: {samples:?}");
    for secret in ["019b0000", "127.0.0.1", "eu-west-1", "/", "0.1.0"] {
        assert!(!page.contains(secret), "{secret} is nobody's business:\n{page}");
    }
}

/// Samples by name and labels, if the page is sound: each family with help and type before its samples, unit suffixes, an end.
fn parse(page: &str) -> anyhow::Result<BTreeMap<String, f64>> {
    let body = page.strip_suffix("# EOF\n").context("no end")?;
    let (mut described, mut samples, mut types) = (BTreeSet::new(), BTreeMap::new(), BTreeMap::new());
    for line in body.lines() {
        let words: Vec<&str> = line.splitn(4, ' ').collect();
        match words[..] {
            ["#", "HELP", name, help] => ensure!(help.len() > 10 && described.insert(name), "{line}"),
            ["#", "TYPE", name, kind] => drop(types.insert(name, kind)),
            ["#", "UNIT", name, unit] => ensure!(name.ends_with(&format!("_{unit}")), "{line}"),
            [sample, value] => {
                let name = sample.split('{').next().unwrap_or_default();
                let family = name.strip_suffix("_total").unwrap_or(name);
                let counter = types.get(family) == Some(&"counter");
                ensure!(described.contains(family) && counter == name.ends_with("_total"), "{line}");
                ensure!(samples.insert(sample.to_owned(), value.parse()?).is_none(), "twice: {line}");
            }
            _ => anyhow::bail!("what is this: {line}"),
        }
    }
    Ok(samples)
}

#[tokio::test]
async fn without_room_for_a_record_it_is_not_ready_and_then_it_is_again() {
    let mounts = match MountNamespace::find() {
        Ok(mounts) => mounts,
        Err(error) => return eprintln!("skipped: a small disk takes a mount namespace: {error}"),
    };
    let lone = Lone::new("full");
    let state = lone.home.join("state");
    let script = "mount -t tmpfs -o size=2m tmpfs \"$1\" && shift && exec \"$@\"";
    let process = mounts.program("executor", script).arg(&state).arg(binaries().clicklink).args(["executor", "--config"]);
    let process = process.arg(lone.config()).env("NOTIFY_SOCKET", lone.home.join("notify")).start(&lone.home).unwrap();
    lone.until_told("READY=1").await;
    lone.until_health("/readyz", (200, json!({"status": "ready"}))).await;
    // The disk as the daemon sees it.
    let filling = Path::new("/proc").join(process.pid().to_string()).join("root").join(state.strip_prefix("/").unwrap()).join("filling");
    assert!(std::fs::write(&filling, vec![0; 4 << 20]).is_err(), "the disk is small");
    lone.until_health("/readyz", (503, json!({"status": "not_ready", "problems": ["journal_not_writable"]}))).await;
    assert_eq!(lone.health("/livez").await.0, StatusCode::OK, "a restart makes no room");
    std::fs::remove_file(&filling).unwrap();
    lone.until_health("/readyz", (200, json!({"status": "ready"}))).await;
}

#[tokio::test]
async fn a_web_page_reads_nothing_of_the_local_api() {
    let lone = Lone::new("origin");
    let _process = lone.start().await;
    let own = format!("127.0.0.1:{}", lone.api_port);
    for path in ["/v1/commands", "/v1/platform", "/openapi.json"] {
        for headers in [[("host", own.as_str()), ("origin", "https://evil.example")], [("host", "evil.example"), ("accept", "*/*")]] {
            let (code, text) = lone.get(lone.api_port, path, &headers).await.unwrap();
            assert_eq!(code, StatusCode::FORBIDDEN, "{path} {headers:?}: {text}");
        }
    }
}

/// What cannot be asked is told as a problem document: another method, and a filter that would only ever find nothing.
#[tokio::test]
async fn what_the_local_api_does_not_take_is_a_problem_document() {
    let lone = Lone::new("problems");
    let _process = lone.start().await;
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let at = |path: &str| format!("http://127.0.0.1:{}{path}", lone.api_port);
    let problem = async |request: reqwest::RequestBuilder| -> (u16, Value) {
        let answer = request.send().await.unwrap();
        assert_eq!(answer.headers()["content-type"], "application/problem+json");
        (answer.status().as_u16(), answer.json().await.unwrap())
    };
    for path in ["/v1/commands", "/v1/platform", "/v1/platform/pending", "/openapi.json"] {
        for method in [reqwest::Method::POST, reqwest::Method::DELETE, reqwest::Method::PUT] {
            let (status, document) = problem(client.request(method, at(path))).await;
            assert_eq!(
                (status, &document["code"], &document["status"]),
                (405, &json!("method_not_allowed"), &json!(405)),
                "{path}: {document}"
            );
        }
    }
    let (status, document) = problem(client.get(at("/v1/commands?action=sync_platfrom"))).await;
    assert_eq!((status, &document["code"]), (400, &json!("bad_request")), "{document}");
    let detail = document["detail"].as_str().unwrap();
    assert!(detail.starts_with("`sync_platfrom` is no action; there are: sync_platform, create_instance, "), "{detail}");
    let known = client.get(at("/v1/commands?action=sync_platform")).send().await.unwrap();
    assert_eq!((known.status().as_u16(), known.text().await.unwrap()), (200, "[]".to_owned()));

    let endpoint = format!("http://127.0.0.1:{}", lone.api_port);
    let list = binaries().clicklink("list").args(["clctl", "commands", "list", "--action", "sync", "--endpoint", &endpoint]);
    let refused = list.run(&lone.home, SOON).await.unwrap();
    assert!(refused.code() == Some(1) && refused.stdout.is_empty(), "{refused:?}");
    assert!(refused.stderr.contains("error[request_refused]: `sync` is no action; there are: sync_platform, "), "{}", refused.stderr);
}

#[tokio::test]
async fn one_document_describes_both_ports_wherever_it_is_read() {
    let lone = Lone::new("openapi");
    let _process = lone.start().await;
    let printed = binaries().clicklink("openapi").arg("openapi").run(&lone.home, SOON).await.unwrap().ok().unwrap().stdout;
    let printed: Value = serde_json::from_str(&printed).unwrap();
    let (_, served) = lone.get(lone.api_port, "/openapi.json", &[]).await.unwrap();
    assert_eq!(serde_json::from_str::<Value>(&served).unwrap(), printed);
    let committed = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/reference/openapi.json")).unwrap();
    assert_eq!(serde_json::from_str::<Value>(&committed).unwrap(), printed, "run `make gen`");
    for path in ["/v1/platform/pending", "/v1/commands/{id}", "/readyz", "/metrics"] {
        assert!(printed["paths"].get(path).is_some(), "{path}");
    }
}
