//! What people consented to reaches the vendor's record: each approval once, again when its end changes, for ever.

use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;

use crate::executor::{Executor, eventually};
use crate::executor_channel::prepared;

const HEARTBEAT: &str = include_str!("../../../agent-api/tests/wire/up-heartbeat.json");

fn heartbeat(executor: &Executor, approvals: Value) -> Message {
    let mut heartbeat: Value = serde_json::from_str(HEARTBEAT).unwrap();
    heartbeat["executor"]["id"] = json!(executor.id);
    heartbeat["approvals"] = approvals;
    Message::text(heartbeat.to_string())
}

fn approval(by: &str, day: u32, expires_at: &str) -> Value {
    json!({"sha256": "ab".repeat(32), "approved_by": by, "approved_at": format!("2026-11-{day:02}T10:00:00Z"), "expires_at": expires_at, "objects": 14})
}

#[tokio::test]
async fn each_approval_is_on_record_once_and_once_more_when_it_was_revoked() {
    let server = prepared();
    let executor = Executor::enrolled(&server, "bank-eu").await;
    let shown = || server.json(&["environment", "approvals", "env-1", "-o", "json"]);
    assert_eq!(shown(), json!([]));

    let (alice, bob) = (approval("alice", 1, "2026-11-01T12:00:00Z"), approval("bob", 2, "2026-11-02T12:00:00Z"));
    let mut channel = executor.online(0).await;
    for _ in 0..3 {
        channel.raw(heartbeat(&executor, json!([bob, alice]))).await;
    }
    let seen = eventually("the approvals", shown, |seen| seen.as_array().is_some_and(|seen| seen.len() == 2)).await;
    assert_eq!((&seen[0]["approved_by"], &seen[1]["approved_by"]), (&json!("bob"), &json!("alice")));
    assert_eq!((&seen[0]["expires_at"], &seen[0]["objects"]), (&json!("2026-11-02T12:00:00Z"), &json!(14)));
    assert_eq!(seen[0]["executor"], json!(executor.id));
    let table = server.run(&["environment", "approvals", "env-1", "-o", "table"]);
    assert!(table.contains("APPROVED BY") && table.contains("alice"), "{table}");

    // A new connection says the same again; then one is revoked, and the cluster forgets the other one.
    let mut channel = executor.online(0).await;
    channel.raw(heartbeat(&executor, json!([bob, alice]))).await;
    let revoked = approval("bob", 2, "2026-11-02T10:30:00Z");
    channel.raw(heartbeat(&executor, json!([revoked]))).await;
    let seen = eventually("the revocation", shown, |seen| seen[0]["expires_at"] == revoked["expires_at"]).await;
    assert_eq!(seen.as_array().unwrap().len(), 2, "what the cluster forgot stays on record");
    assert_eq!((&seen[0]["revoked_at"], &seen[1]["revoked_at"]), (&revoked["expires_at"], &Value::Null));
    let table = server.run(&["environment", "approvals", "env-1", "-o", "table"]);
    assert!(table.contains("REVOKED") && table.matches("2026-11-02T10:30:00Z").count() == 2, "{table}");

    let exported = server.run(&["audit", "export"]);
    let entries: Vec<Value> = exported.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let numbers: Vec<i64> = entries.iter().map(|entry| entry["number"].as_i64().unwrap()).collect();
    assert_eq!(numbers, (1..=i64::try_from(entries.len()).unwrap()).collect::<Vec<_>>());
    let approvals: Vec<(&Value, &Value)> = entries
        .iter()
        .filter(|entry| entry["what"] == "approval")
        .map(|entry| {
            assert_eq!((&entry["who"], &entry["executor"]), (&json!(format!("executor:{}", executor.id)), &json!(executor.id)));
            (&entry["approved_by"], &entry["expires_at"])
        })
        .collect();
    let of = |approval: &Value| (approval["approved_by"].clone(), approval["expires_at"].clone());
    assert_eq!(
        approvals.iter().map(|(by, until)| ((*by).clone(), (*until).clone())).collect::<Vec<_>>(),
        [of(&bob), of(&alice), of(&revoked)]
    );
}
