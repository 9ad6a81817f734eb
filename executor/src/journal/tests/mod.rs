//! The journal on a real file: what was appended is there after a reopen, and nobody else may have the folder.

mod damage;
mod schema;

use std::os::unix::fs::PermissionsExt as _;

use super::*;
use agent_api::command::{Command, CommandStatus};
use agent_api::digest::Sha256;
use agent_api::frame::CommandResult;
use agent_api::name::{CommandId, InstallId};
use agent_api::object::ObjectKey;
use executor_core::{Event, Journal as _, Outcome, Pending, Retention, step};
use serde_json::json;

fn command(n: u64) -> Command {
    let text = include_str!("../../../../agent-api/tests/wire/manifest.json");
    Command {
        id: CommandId(uuid::Uuid::from_u128(u128::from(n))),
        sequence: n,
        action: "sync_platform".into(),
        target: "platform".into(),
        deadline: None,
        payload: json!({"sha256": Sha256::of(text.as_bytes()), "manifest": text}),
    }
}

fn job() -> ObjectKey {
    ObjectKey { group: "batch".into(), kind: "Job".into(), namespace: "n".into(), name: "j".into() }
}

fn installation(n: u128) -> InstallId {
    InstallId(uuid::Uuid::from_u128(n))
}

fn failed(n: u64) -> CommandResult {
    CommandResult { id: command(n).id, status: CommandStatus::Failed, result: "no".into(), objects: Vec::new(), code: None }
}

/// Takes events one after the other, as the daemon's loop does, without performing what follows.
async fn take(journal: &mut Journal, state: &mut State, events: impl IntoIterator<Item = Event>) {
    for event in events {
        let _ = step(state, event, jiff::Timestamp::now()).commit(state, journal).await.unwrap();
    }
}

/// As a daemon ends that is not killed: nothing is left in the `-wal` file.
async fn close(journal: Journal) {
    let Journal { connection, _lock, .. } = journal;
    connection.close().await.unwrap();
}

#[tokio::test]
async fn what_was_committed_is_there_after_a_reopen() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("state/executor.db");
    let before = {
        let (mut journal, mut state) = Journal::open(&path, Site::default()).await.unwrap();
        take(&mut journal, &mut state, [Event::Command(command(1)), Event::Command(command(2)), Event::Continue]).await;
        for install_id in [installation(8), installation(9)] {
            journal.append(&Record::JobDone { install_id, job: job() }, &state.platform).await.unwrap();
        }
        let sha256 = state.platform.pending.as_ref().unwrap().sha256.clone();
        let attempt = Record::Attempted { id: command(1).id, sha256, install_id: installation(9) };
        journal.append(&attempt, &state.platform).await.unwrap();
        let record = Record::Finished { result: failed(1), at: jiff::Timestamp::now(), outcome: Outcome::Refused };
        journal.append(&record, &PlatformRecord { message: Some("no".into()), ..state.platform.clone() }).await.unwrap();
        state
    };
    let (_journal, after) = Journal::open(&path, Site::default()).await.unwrap();
    assert_eq!(after.platform, PlatformRecord { message: Some("no".into()), ..before.platform });
    assert_eq!(after.platform.pending.as_deref().map(|p: &Pending| p.manifest.as_str()), command(1).payload["manifest"].as_str());
    assert_eq!(after.commands[&command(2).id], before.commands[&command(2).id]);
    let ended = &after.commands[&command(1).id];
    assert_eq!((ended.status, ended.command.payload.is_null(), ended.acknowledged), (CommandStatus::Failed, true, false));
    assert_eq!(after.jobs_done.into_iter().collect::<Vec<_>>(), [(installation(9), job())], "of the installation that was approved");
}

#[tokio::test]
async fn what_is_forgotten_is_gone_from_the_file_and_is_not_run_again() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("executor.db");
    let site = Site { retention: Retention { count: 1, ..Retention::default() }, ..Site::default() };
    let before = {
        let (mut journal, mut state) = Journal::open(&path, site.clone()).await.unwrap();
        let bad = |n| Command { payload: json!({}), ..command(n) };
        for n in 1..=3 {
            take(&mut journal, &mut state, [Event::Command(bad(n)), Event::Continue]).await;
        }
        take(&mut journal, &mut state, [Event::Acknowledged(command(1).id), Event::Acknowledged(command(3).id), Event::Retain]).await;
        assert_eq!(state.commands.keys().copied().collect::<Vec<_>>(), [command(2).id], "its result is not acknowledged");
        assert_eq!(state.platform.forgotten_through, 3);
        take(&mut journal, &mut state, [Event::Command(command(1)), Event::Continue]).await;
        assert_eq!(state.platform.pending, None);
        state
    };
    let (_journal, after) = Journal::open(&path, site).await.unwrap();
    assert_eq!((&after.commands, &after.platform), (&before.commands, &before.platform));
    assert_eq!(after.commands[&command(1).id].status, CommandStatus::Failed);
    assert_eq!(after.undelivered().collect::<Vec<_>>(), [command(1).id, command(2).id]);
}

#[tokio::test]
async fn a_record_about_what_is_not_there_is_an_error_and_changes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("executor.db");
    let (mut journal, mut state) = Journal::open(&path, Site::default()).await.unwrap();
    assert!(journal.append(&Record::Acknowledged { id: command(1).id }, &state.platform).await.is_err());
    assert!(journal.is_in_trouble() && journal.condition().trouble.unwrap().contains("write"));
    journal.retry().await;
    assert!(!journal.is_in_trouble(), "there is room");
    take(&mut journal, &mut state, [Event::Command(command(1))]).await;
    drop(journal);
    let (_journal, after) = Journal::open(&path, Site::default()).await.unwrap();
    assert_eq!(after.commands, state.commands);
}

#[tokio::test]
async fn a_second_daemon_is_refused_and_modes_are_private() {
    let dir = tempfile::tempdir().unwrap();
    let state_dir = dir.path().join("state");
    std::fs::create_dir(&state_dir).unwrap();
    std::fs::set_permissions(&state_dir, std::fs::Permissions::from_mode(0o755)).unwrap();
    let path = state_dir.join("executor.db");
    let (mut journal, mut state) = Journal::open(&path, Site::default()).await.unwrap();
    assert!(matches!(Journal::open(&path, Site::default()).await, Err(JournalError::InUse(_))));
    take(&mut journal, &mut state, [Event::Command(command(1))]).await;
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&state_dir), 0o700);
    let mut files: Vec<_> = std::fs::read_dir(&state_dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert_eq!(files, ["executor.db", "executor.db-wal", "executor.lock"].map(|name| state_dir.join(name)));
    files.iter().for_each(|file| assert_eq!(mode(file), 0o600, "{}", file.display()));
}
