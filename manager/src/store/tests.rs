//! The store as the rest sees it: what is written is there after it was opened again, once.

use agent_api::command::CommandStatus;
use agent_api::frame::{CommandResult, Hello};
use agent_api::manifest::Bundle;
use agent_api::name::{CommandId, ExecutorId};
use agent_api::secret::Secret;
use jiff::Timestamp;

use super::Store;
use super::command::NewSync;
use super::enrolment::NewKeys;
use crate::domain::delivery::Status;
use crate::domain::enrolment::Refusal;
use crate::domain::release::Release;
use crate::domain::resend::{End, Phase, Purpose};
use crate::domain::token;

const MANIFEST: &str = include_str!("../../../agent-api/tests/wire/manifest.json");

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_796_000_000 + second).unwrap()
}

fn executor() -> ExecutorId {
    ExecutorId(uuid::Uuid::from_u128(7))
}

async fn open(folder: &tempfile::TempDir) -> Store {
    Store::open(&folder.path().join("manager.db")).await.unwrap()
}

/// A cluster `c` with an environment `env-7c1d`, a release `r`, and one executor.
async fn prepared(folder: &tempfile::TempDir) -> Store {
    let store = open(folder).await;
    store.create_cluster(&"c".parse().unwrap(), at(0)).await.unwrap();
    let cluster = store.cluster("c").await.unwrap().unwrap();
    let bundle = Bundle::parse(MANIFEST.to_owned()).unwrap();
    store.create_environment(&"env-7c1d".parse().unwrap(), &cluster.id, &bundle.manifest().registry, at(0)).await.unwrap();
    let release: Release = serde_json::from_value(serde_json::json!({"name": "r", "namespaces": ["n"], "components": []})).unwrap();
    store.create_release(&release, at(0)).await.unwrap();
    let token = token::hash(&Secret::new("t".into()));
    store.create_enrolment(&token, &cluster.id, at(0), at(3600)).await.unwrap();
    let keys = || NewKeys { access_key: "ak", sealed_secret: b"sealed" };
    assert_eq!(store.redeem(&token, executor(), keys(), at(3600)).await.unwrap(), Err(Refusal::Token));
    assert_eq!(store.redeem(&token, executor(), keys(), at(1)).await.unwrap(), Ok(()));
    assert_eq!(store.redeem(&token, executor(), keys(), at(1)).await.unwrap(), Err(Refusal::Token));
    store.create_proposal("env-7c1d", "r", &bundle, at(2)).await.unwrap();
    store
}

async fn sync(store: &Store, purpose: Purpose, second: i64) -> CommandId {
    let proposal = store.newest_proposal("env-7c1d").await.unwrap().unwrap();
    let new = NewSync { executor: executor(), proposal_id: &proposal.id, purpose, approval_expires_at: None };
    store.create_sync(&new, at(second)).await.unwrap()
}

fn result(id: CommandId, status: CommandStatus, text: &str) -> CommandResult {
    CommandResult { id, status, result: text.into(), objects: Vec::new(), code: None }
}

#[tokio::test]
async fn a_command_from_queue_to_result() {
    let folder = tempfile::tempdir().unwrap();
    let store = prepared(&folder).await;
    let (one, two) = (sync(&store, Purpose::Stage, 3).await, sync(&store, Purpose::Apply, 4).await);
    assert_eq!(store.queued(executor()).await.unwrap(), [one, two]);
    let command = store.send(one, at(5)).await.unwrap().unwrap();
    assert_eq!((command.sequence, command.payload["manifest"].as_str()), (1, Some(MANIFEST)));
    store.ack(ExecutorId(uuid::Uuid::nil()), one, at(6)).await.unwrap();
    assert_eq!(store.queued(executor()).await.unwrap().len(), 2, "another executor's acknowledgement is nothing");
    store.ack(executor(), one, at(6)).await.unwrap();
    store.close().await;

    let store = open(&folder).await;
    assert_eq!(store.queued(executor()).await.unwrap(), [two]);
    assert!(store.send(one, at(7)).await.unwrap().is_none());
    let hint = format!("run: clctl platform approve (pending bundle sha {})", "a".repeat(64));
    let refused = CommandResult { code: Some("approval_missing".into()), ..result(one, CommandStatus::Failed, &hint) };
    assert!(!store.store_result(ExecutorId(uuid::Uuid::nil()), &refused, at(8)).await.unwrap());
    assert!(store.store_result(executor(), &refused, at(8)).await.unwrap());
    assert!(!store.store_result(executor(), &result(one, CommandStatus::Completed, "other"), at(9)).await.unwrap());
    let stored = store.commands(executor()).await.unwrap();
    assert_eq!((stored[0].status, stored[0].result.as_deref(), stored[0].ended_at), (Status::Failed, Some(hint.as_str()), Some(at(8))));
    assert_eq!(stored[0].code.as_deref(), Some("approval_missing"));
    let (_, state) = store.resend_state("env-7c1d").await.unwrap().unwrap();
    assert_eq!(state.syncs[0].phase, Phase::Ended { at: at(8), end: End::WantsApproval });
    assert_eq!(state.syncs[1].phase, Phase::Queued);
}

#[tokio::test]
async fn a_newer_proposal_supersedes_what_no_executor_has() {
    let folder = tempfile::tempdir().unwrap();
    let store = prepared(&folder).await;
    let (taken, queued) = (sync(&store, Purpose::Stage, 3).await, sync(&store, Purpose::Apply, 4).await);
    store.ack(executor(), taken, at(5)).await.unwrap();
    let bundle = Bundle::parse(MANIFEST.replace("2026-11-30T10", "2026-11-30T11")).unwrap();
    store.create_proposal("env-7c1d", "r", &bundle, at(6)).await.unwrap();
    assert_eq!(store.queued(executor()).await.unwrap(), []);
    let statuses: Vec<Status> = store.commands(executor()).await.unwrap().iter().map(|command| command.status).collect();
    assert_eq!(statuses, [Status::Delivered, Status::Superseded]);
    let (proposal, state) = store.resend_state("env-7c1d").await.unwrap().unwrap();
    assert_eq!(proposal.sha256, *bundle.sha256());
    assert_eq!(state.syncs.len(), 1, "only the one that may still run");
    store.ack(executor(), queued, at(7)).await.unwrap();
    assert_eq!(store.commands(executor()).await.unwrap()[1].status, Status::Delivered, "it had it after all");
    let (_, text) = store.proposed_manifest("env-7c1d", None).await.unwrap().unwrap();
    assert_eq!(text, bundle.text());
}

#[tokio::test]
async fn deliveries_and_sequences() {
    let folder = tempfile::tempdir().unwrap();
    let store = prepared(&folder).await;
    let id = sync(&store, Purpose::Stage, 3).await;
    store.missed(id, false, at(63)).await.unwrap();
    let waiting = store.undelivered("env-7c1d").await.unwrap();
    assert_eq!((waiting[0].id, waiting[0].missed, waiting[0].tried_at), (id, 1, at(63)));
    store.missed(id, true, at(123)).await.unwrap();
    assert!(store.undelivered("env-7c1d").await.unwrap().is_empty());
    assert_eq!(store.commands(executor()).await.unwrap()[0].status, Status::Undelivered);
    let hello = |last_sequence| Hello {
        executor_id: executor(),
        cluster_uid: None,
        version: "1".into(),
        protocols: vec![1],
        last_sequence,
        unacknowledged_results: Vec::new(),
    };
    store.store_hello(&hello(40)).await.unwrap();
    store.store_hello(&hello(3)).await.unwrap();
    sync(&store, Purpose::Stage, 200).await;
    assert_eq!(store.commands(executor()).await.unwrap()[1].sequence, 41);
}

#[tokio::test]
async fn tokens() {
    use super::token::Revoked;
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder).await;
    let hash = |text: &str| token::hash(&Secret::new(text.into()));
    assert!(store.create_token("one", &hash("1"), &[], true, at(0)).await.unwrap());
    assert!(!store.create_token("two", &hash("2"), &[], true, at(0)).await.unwrap(), "only the first is a first one");
    assert!(store.create_token("one", &hash("2"), &[], false, at(0)).await.is_err());
    assert_eq!(store.revoke_token("one", at(1)).await.unwrap(), Revoked::Last);
    assert!(store.create_token("two", &hash("2"), &[], false, at(1)).await.unwrap());
    assert!(store.use_token(&hash("1"), at(2)).await.unwrap().is_some());
    assert_eq!(store.revoke_token("one", at(3)).await.unwrap(), Revoked::Done);
    assert!(store.use_token(&hash("1"), at(4)).await.unwrap().is_none());
    assert_eq!(store.revoke_token("one", at(5)).await.unwrap(), Revoked::Unknown);
}

/// A record from before entries had numbers, and approvals a place in it.
#[tokio::test]
async fn an_older_record_is_kept_in_its_order() {
    let pool = sqlx::sqlite::SqlitePoolOptions::new().max_connections(1).connect("sqlite::memory:").await.unwrap();
    sqlx::query("CREATE TABLE audit (id TEXT PRIMARY KEY, at BIGINT, who TEXT, method TEXT, path TEXT, status BIGINT)")
        .execute(&pool)
        .await
        .unwrap();
    for (id, at) in [("b", 2), ("a", 2), ("c", 1)] {
        sqlx::query("INSERT INTO audit VALUES ($1, $2, $1, 'POST', '/', 200)").bind(id).bind(at).execute(&pool).await.unwrap();
    }
    sqlx::raw_sql(include_str!("../../migrations/0003_audit.sql")).execute(&pool).await.unwrap();
    let store = Store { pool };
    store.append_call("d", "POST", "/", 200, at(0)).await.unwrap();
    let who = |entries: Vec<super::audit::Entry>| entries.into_iter().map(|entry| (entry.number, entry.who)).collect::<Vec<_>>();
    let expected = [(1, "c".to_owned()), (2, "a".to_owned()), (3, "b".to_owned()), (4, "d".to_owned())];
    assert_eq!(who(store.audit(0, None, 10).await.unwrap()), expected);
    assert_eq!(who(store.audit(1, None, 2).await.unwrap()), expected[1..3]);
    assert_eq!(who(store.audit(0, Some(at(0)), 10).await.unwrap()), expected[3..]);
}
