//! A revoked executor: its key and certificates are refused, its connection ends at once, and a fresh one-time token brings it back.

use std::time::{Duration, Instant};

use agent_api::enrolment::POLL_PATH;
use agent_api::frame::PollRequest;
use reqwest::StatusCode;
use serde_json::json;
use uuid::Uuid;

use crate::executor::{Executor, hello, problem};
use crate::executor_channel::{commands, prepared, propose};
use crate::server::Server;

fn revoke(server: &Server, executor: &Executor) -> serde_json::Value {
    server.json(&["executor", "revoke", &executor.id.to_string(), "-o", "json"])
}

fn refused() -> (StatusCode, String) {
    (StatusCode::UNAUTHORIZED, "executor_revoked".to_owned())
}

#[tokio::test]
async fn a_revoked_executor_is_cut_off_and_may_enrol_anew() {
    let server = prepared();
    let (executor, other) = (Executor::enrolled(&server, "bank-eu").await, Executor::enrolled(&server, "bank-eu").await);
    let mut channel = executor.online(0).await;
    let mut unconcerned = other.online(0).await;
    let began = Instant::now();
    let shown = revoke(&server, &executor);
    assert!(shown["revoked_at"].is_string(), "{shown}");
    assert_eq!(channel.close_code().await, 4003);
    assert!(began.elapsed() < Duration::from_secs(5));

    let identity = executor.identity.as_deref();
    assert_eq!(problem(executor.upgrade(&executor.headers(), identity).await).await, refused());
    assert_eq!(executor.renew(identity, "bank").await.err(), Some(refused()));
    let poll = PollRequest { session: Uuid::new_v4(), sequence: 1, wait_s: 0, frames: vec![json!(hello(executor.id, 0))] };
    assert_eq!(problem(executor.post(identity, POLL_PATH, serde_json::to_vec(&poll).unwrap()).await).await, refused());
    // Who has not the key learns nothing.
    let mut guessed = executor.key.clone();
    guessed.secret_key = other.key.secret_key.clone();
    let forged = crate::executor::headers(&guessed, "GET", agent_api::enrolment::CHANNEL_PATH, b"");
    assert_eq!(problem(executor.upgrade(&forged, identity).await).await, (StatusCode::UNAUTHORIZED, "signature_invalid".to_owned()));

    // Nothing is queued for it; the others go on.
    let (_, answer) = propose(&server, "r1");
    assert_eq!(answer["command_ids"].as_array().unwrap().len(), 1);
    unconcerned.sync().await;
    assert_eq!(commands(&server, &executor), json!([]));
    assert_eq!(revoke(&server, &executor)["revoked_at"], shown["revoked_at"], "the second time changes nothing");
    assert!(server.run(&["audit", "export"]).contains(&format!("/api/v1/executors/{}/revoke", executor.id)));

    let token = server.run(&["executor", "enroll", "--cluster", "bank-eu"]);
    let mut again = Executor::redeem(&server, &token, executor.id).await.expect("it may enrol anew");
    assert_eq!(again.sign().await.status(), StatusCode::OK);
    again.online(0).await.sync().await;
    let listed = server.json(&["executor", "get", &executor.id.to_string(), "-o", "json"]);
    assert!(listed["revoked_at"].is_null());
    let old = problem(executor.upgrade(&executor.headers(), identity).await).await;
    assert_eq!(old.0, StatusCode::UNAUTHORIZED, "{old:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_poll_that_is_held_is_answered_at_once() {
    let server = prepared();
    let executor = Executor::enrolled(&server, "bank-eu").await;
    let session = Uuid::new_v4();
    let ask = async |sequence, wait_s, frames| {
        let poll = serde_json::to_vec(&PollRequest { session, sequence, wait_s, frames }).unwrap();
        executor.post(executor.identity.as_deref(), POLL_PATH, poll).await
    };
    assert_eq!(ask(1, 0, vec![json!(hello(executor.id, 0))]).await.status(), StatusCode::OK);
    let began = Instant::now();
    let (held, ()) = tokio::join!(ask(2, 25, Vec::new()), async {
        tokio::time::sleep(Duration::from_millis(500)).await;
        tokio::task::block_in_place(|| drop(revoke(&server, &executor)));
    });
    assert_eq!(problem(held).await, refused());
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
}

#[tokio::test]
async fn frames_that_were_not_taken_are_counted() {
    use tokio_tungstenite::tungstenite::Message;
    let server = prepared();
    let executor = Executor::enrolled(&server, "bank-eu").await;
    let mut channel = executor.online(0).await;
    channel.raw(Message::text(r#"{"type":"of_a_later_version"}"#)).await;
    channel.raw(Message::text("{")).await;
    assert_eq!(channel.close_code().await, 1007);
    let channel = executor.online(0).await;
    let metrics = server.text("/metrics").await;
    for line in [
        r#"navin_channel_frames_refused_total{code="1007"} 1"#,
        r#"navin_channel_frames_refused_total{code="1009"} 0"#,
        "navin_channel_frames_skipped_total 1",
        "navin_executors_connected 1",
    ] {
        assert!(metrics.lines().any(|found| found == line), "{line}: {metrics}");
    }
    drop(channel);
    let http = crate::executor::client(&server.ca(), None);
    let stranger = http.get(format!("{}/metrics", server.endpoint)).send().await.unwrap();
    assert_eq!(stranger.status(), StatusCode::UNAUTHORIZED);
}
