//! The boundary to executors: enrolment, signatures, certificates, and the channel, against the real server.

use agent_api::command::CommandStatus;
use agent_api::digest::Sha256;
use agent_api::heartbeat::PlatformStatus;
use agent_api::name::ExecutorId;
use agent_api::signature;
use jiff::Timestamp;
use reqwest::StatusCode;
use serde_json::Value;
use tokio_tungstenite::tungstenite::Message;

use crate::executor::{Executor, eventually, headers, problem};
use crate::server::Server;

const RELEASE: &str = r#"
name: NAME
namespaces: [clickhouse-platform]
components:
  - name: operator
    chart: { name: operator, version: 0.3.1, digest: "sha256:1111111111111111111111111111111111111111111111111111111111111111" }
    values: { replicas: 2 }
"#;

/// A server with a cluster, an environment and two releases.
pub(crate) fn prepared() -> Server {
    let server = Server::start();
    server.run(&["cluster", "create", "bank-eu"]);
    let base = "oci://127.0.0.1:5000/platform";
    server.run(&["environment", "create", "env-1", "--cluster", "bank-eu", "--registry-mode", "basic", "--chart-base", base]);
    for name in ["r1", "r2"] {
        let file = server.file(&format!("{name}.yaml"), &RELEASE.replace("NAME", name));
        server.run(&["release", "create", "-f", &file]);
    }
    server
}

pub(crate) fn propose(server: &Server, release: &str) -> (Sha256, Value) {
    let answer = server.json(&["release", "propose", release, "--environment", "env-1", "-o", "json"]);
    (answer["sha256"].as_str().unwrap().parse().unwrap(), answer)
}

pub(crate) fn commands(server: &Server, executor: &Executor) -> Value {
    server.json(&["executor", "commands", &executor.id.to_string(), "-o", "json"])
}

pub(crate) fn hint(sha: &Sha256) -> String {
    format!("no approval; run: clctl platform approve (pending bundle sha {sha})")
}

#[tokio::test]
async fn from_proposal_to_synced() {
    let server = prepared();
    let executor = Executor::enrolled(&server, "bank-eu").await;
    let mut channel = executor.online(0).await;
    let (sha, answer) = propose(&server, "r1");

    let (staged, payload) = channel.sync().await;
    assert_eq!((payload.sha256.clone(), staged.sequence), (sha.clone(), 1));
    assert_eq!(answer["command_id"], staged.id.to_string());
    assert_eq!(server.run(&["release", "manifest", "r1", "--environment", "env-1"]), payload.manifest);
    channel.ack(staged.id).await;
    channel.progress(staged.id, "checking").await;
    let seen = eventually("progress", || commands(&server, &executor), |seen| seen[0]["progress"]["stage"] == "checking").await;
    assert_eq!(seen[0]["status"], "delivered");
    channel.result(staged.id, CommandStatus::Failed, &hint(&sha)).await;
    channel.heartbeat(PlatformStatus::ApprovalRequired, None).await;
    assert!(channel.silent().await, "nothing is sent before an approval");

    channel.heartbeat(PlatformStatus::Approved, Some(&sha)).await;
    let (applied, payload) = channel.sync().await;
    assert_eq!((payload.sha256.clone(), applied.sequence), (sha.clone(), 2));
    channel.ack(applied.id).await;
    channel.result(applied.id, CommandStatus::Completed, "synced").await;
    channel.result(applied.id, CommandStatus::Failed, "said twice, stored once").await;
    channel.heartbeat(PlatformStatus::Synced, Some(&sha)).await;
    assert!(channel.silent().await, "nothing is sent after success");

    let seen = commands(&server, &executor);
    assert_eq!(seen.as_array().unwrap().len(), 2);
    assert_eq!((&seen[1]["status"], &seen[1]["result"]), (&"completed".into(), &"synced".into()));
    assert_eq!(seen[1]["objects"][0]["outcome"], "created");
    let environment = server.json(&["environment", "get", "env-1", "-o", "json"]);
    assert_eq!((&environment["resend"]["reason"], &environment["resend"]["attempts"]), (&"applied".into(), &1.into()));
    assert_eq!(environment["executors"][0]["platform"]["status"], "synced");
    assert_eq!(environment["executors"][0]["connected"], true);

    // What executors report of drift is told for each, and for the environment.
    let one = executor.id.to_string();
    for command in [&["executor", "list"][..], &["executor", "get", &one], &["environment", "list"]] {
        let table = server.run(&[command, &["-o", "table"]].concat());
        let rows: Vec<Vec<&str>> =
            table.lines().map(|line| line.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).collect()).collect();
        let (at, answer) = (rows[0].iter().position(|heading| *heading == "DRIFT"), server.json(&[command, &["-o", "json"]].concat()));
        assert_eq!(at.map(|at| rows[1][at]), Some("2"), "{table}");
        assert!(answer.to_string().contains(r#""drift":2"#), "{answer}");
    }

    let (again, answer) = propose(&server, "r1");
    assert_eq!((again, &answer["created"]), (sha, &false.into()));
    assert!(channel.silent().await, "the same proposal is not sent again");
}

#[tokio::test]
async fn unacknowledged_commands_come_again_and_a_newer_proposal_replaces_them() {
    let mut server = prepared();
    let executor = Executor::enrolled(&server, "bank-eu").await;
    let (old, answer) = propose(&server, "r1");
    assert_eq!(answer["command_ids"].as_array().unwrap().len(), 1);
    let mut channel = executor.online(0).await;
    let (first, _) = channel.sync().await;
    drop(channel);
    let mut channel = executor.online(0).await;
    let (again, _) = channel.sync().await;
    assert_eq!(again, first);

    server.restart();
    let mut channel = executor.online(0).await;
    let (again, payload) = channel.sync().await;
    assert_eq!((again, payload.sha256), (first.clone(), old));
    channel.close().await;

    let (new, _) = propose(&server, "r2");
    let mut channel = executor.online(0).await;
    let (second, payload) = channel.sync().await;
    assert_eq!((second.sequence, payload.sha256), (2, new));
    assert!(channel.silent().await, "the former proposal is never sent again");
    channel.ack(second.id).await;

    let mut newer = executor.online(2).await;
    assert_eq!(channel.close_code().await, 4001);
    assert!(newer.silent().await, "what is acknowledged does not come again");
    let seen = commands(&server, &executor);
    assert_eq!((&seen[0]["status"], &seen[1]["status"]), (&"superseded".into(), &"delivered".into()));
    assert_eq!(seen[0]["attempts"], 3);
}

#[tokio::test]
async fn sequences_go_on_above_what_the_executor_has() {
    let server = prepared();
    let executor = Executor::enrolled(&server, "bank-eu").await;
    let mut channel = executor.online(41).await;
    propose(&server, "r1");
    assert_eq!(channel.sync().await.0.sequence, 42);
}

#[tokio::test]
async fn a_request_is_believed_once_and_from_its_own_executor_only() {
    let mut server = prepared();
    let (one, other) = (Executor::enrolled(&server, "bank-eu").await, Executor::enrolled(&server, "bank-eu").await);
    let identity = one.identity.as_deref();
    let refused = |status: StatusCode, code: &str| (status, code.to_owned());

    let headers_of_one = one.headers();
    assert_eq!(one.upgrade(&headers_of_one, identity).await.status(), StatusCode::SWITCHING_PROTOCOLS);
    let replayed = refused(StatusCode::UNAUTHORIZED, "replayed");
    assert_eq!(problem(one.upgrade(&headers_of_one, identity).await).await, replayed);

    let without = one.upgrade(&one.headers(), None).await;
    assert_eq!(problem(without).await, refused(StatusCode::UNAUTHORIZED, "certificate_required"));
    let foreign = one.upgrade(&one.headers(), other.identity.as_deref()).await;
    assert_eq!(problem(foreign).await, refused(StatusCode::FORBIDDEN, "certificate_mismatch"));

    let invalid = refused(StatusCode::UNAUTHORIZED, "signature_invalid");
    let elsewhere = headers(&one.key, "GET", "/v1/other", b"");
    assert_eq!(problem(one.upgrade(&elsewhere, identity).await).await, invalid);
    let path = agent_api::enrolment::CHANNEL_PATH;
    let old = signature::sign(&one.key, "GET", path, b"", Timestamp::now().as_second() - 301, "n-1");
    assert_eq!(problem(one.upgrade(&old, identity).await).await, refused(StatusCode::UNAUTHORIZED, "clock_apart"));
    let mut key = one.key.clone();
    key.secret_key = other.key.secret_key.clone();
    assert_eq!(problem(one.upgrade(&headers(&key, "GET", path, b""), identity).await).await, invalid);
    key.access_key = "ak-nobody".into();
    assert_eq!(problem(one.upgrade(&headers(&key, "GET", path, b""), identity).await).await, invalid);

    // Nonces are forgotten by a restart; what was signed before it is refused all the same.
    tokio::time::sleep(std::time::Duration::from_millis(1100)).await;
    server.restart();
    let before = refused(StatusCode::UNAUTHORIZED, "signed_before_start");
    assert_eq!(problem(one.upgrade(&headers_of_one, identity).await).await, before);
    drop(one.online(0).await);
}

#[tokio::test]
async fn what_breaks_the_protocol_ends_the_connection() {
    let server = prepared();
    let executor = Executor::enrolled(&server, "bank-eu").await;
    let other = Executor::enrolled(&server, "bank-eu").await;
    let check = async |message: Message, greeted: bool, expected: u16| {
        let mut channel = if greeted { executor.online(0).await } else { executor.connect().await };
        channel.raw(message).await;
        assert_eq!(channel.close_code().await, expected);
    };
    check(Message::text("{"), true, 1007).await;
    check(Message::text(r#"{"type":"command_ack"}"#), true, 1007).await;
    check(Message::binary(vec![1]), true, 1003).await;
    check(Message::text(" ".repeat(agent_api::frame::MAX_BYTES + 1)), true, 1009).await;
    check(Message::text(r#"{"type":"command_ack","id":"01936f5e-0000-7000-8000-000000000000"}"#), false, 1002).await;
    let hello = format!(
        r#"{{"type":"hello","executor_id":"{}","cluster_uid":null,"version":"1","protocols":[1],"last_sequence":0,"unacknowledged_results":[]}}"#,
        other.id
    );
    check(Message::text(hello.clone()), false, 1008).await;
    check(Message::text(hello.replace(&other.id.to_string(), &executor.id.to_string()).replace("[1]", "[7]")), false, 1002).await;

    let mut channel = executor.online(0).await;
    channel.raw(Message::text(r#"{"type":"of_a_later_version"}"#)).await;
    propose(&server, "r1");
    channel.sync().await;
}

#[tokio::test]
async fn an_enrolment_token_is_good_once() {
    let server = prepared();
    let token = server.run(&["executor", "enroll", "--cluster", "bank-eu"]);
    let id = ExecutorId(uuid::Uuid::new_v4());
    assert!(Executor::redeem(&server, &token, id).await.is_ok());
    let refused = Executor::redeem(&server, &token, ExecutorId(uuid::Uuid::new_v4())).await.err();
    let invalid = Some((StatusCode::UNAUTHORIZED, "enrolment_token_invalid".to_owned()));
    assert_eq!(refused, invalid);
    assert_eq!(Executor::redeem(&server, "nve_made-up", id).await.err(), invalid);

    let token = server.run(&["executor", "enroll", "--cluster", "bank-eu"]);
    let mut again = Executor::redeem(&server, &token, id).await.expect("it has no certificate yet");
    assert_eq!(again.sign().await.status(), StatusCode::OK);
    let token = server.run(&["executor", "enroll", "--cluster", "bank-eu"]);
    let refused = Executor::redeem(&server, &token, id).await.err();
    assert_eq!(refused, Some((StatusCode::CONFLICT, "certificate_unexpired".to_owned())));
}
