//! The journal on a real file: what was appended is there after a reopen, and nobody else may have the folder.

use super::*;
use agent_api::command::Command;
use agent_api::digest::Sha256;
use agent_api::frame::CommandResult;
use agent_api::object::ObjectKey;
use executor_core::{Event, Journal as _, Outcome, Pending, step};
use serde_json::json;

fn command(n: u128) -> Command {
    let text = include_str!("../../../agent-api/tests/wire/manifest.json");
    Command {
        id: CommandId(uuid::Uuid::from_u128(n)),
        sequence: u64::try_from(n).unwrap(),
        action: "sync_platform".into(),
        target: "platform".into(),
        deadline: None,
        payload: json!({"sha256": Sha256::of(text.as_bytes()), "manifest": text}),
    }
}

#[tokio::test]
async fn what_was_committed_is_there_after_a_reopen() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("state/executor.db");
    let now = jiff::Timestamp::now();
    let job = ObjectKey { group: "batch".into(), kind: "Job".into(), namespace: "n".into(), name: "j".into() };
    let install_id = agent_api::name::InstallId(uuid::Uuid::from_u128(9));
    let before = {
        let (mut journal, mut state) = Journal::open(&path, Site::default()).await.unwrap();
        for event in [Event::Command(command(1)), Event::Command(command(2)), Event::Continue] {
            let _ = step(&state, event, now).commit(&mut state, &mut journal).await.unwrap();
        }
        let record = Record::JobDone { install_id, job: job.clone() };
        journal.append(&record, &state.platform).await.unwrap();
        let result = CommandResult { id: command(1).id, status: CommandStatus::Failed, result: "no".into(), objects: Vec::new() };
        let record = Record::Finished { result, at: now, outcome: Outcome::Refused };
        journal.append(&record, &PlatformRecord { message: Some("no".into()), ..state.platform.clone() }).await.unwrap();
        state
    };
    let (_journal, after) = Journal::open(&path, Site::default()).await.unwrap();
    assert_eq!(after.platform, PlatformRecord { message: Some("no".into()), ..before.platform });
    assert_eq!(after.platform.pending.as_deref().map(|p: &Pending| p.manifest.as_str()), command(1).payload["manifest"].as_str());
    assert_eq!(after.commands[&command(2).id], before.commands[&command(2).id]);
    let ended = &after.commands[&command(1).id];
    assert_eq!((ended.status, ended.command.payload.is_null(), ended.acknowledged), (CommandStatus::Failed, true, false));
    assert!(after.jobs_done.contains(&(install_id, job)));
}

#[tokio::test]
async fn a_second_daemon_is_refused_and_modes_are_private() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("state/executor.db");
    let (_journal, _state) = Journal::open(&path, Site::default()).await.unwrap();
    assert!(matches!(Journal::open(&path, Site::default()).await, Err(JournalError::InUse(_))));
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&dir.path().join("state")), 0o700);
    assert_eq!(mode(&path), 0o600);
}

#[tokio::test]
async fn a_damaged_row_is_named_and_the_file_is_kept() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("executor.db");
    {
        let (mut journal, mut state) = Journal::open(&path, Site::default()).await.unwrap();
        let now = jiff::Timestamp::now();
        let _ = step(&state, Event::Command(command(1)), now).commit(&mut state, &mut journal).await.unwrap();
        sqlx::query("UPDATE commands SET command = '{'").execute(&mut journal.connection).await.unwrap();
    }
    let error = Journal::open(&path, Site::default()).await.err().unwrap().to_string();
    assert!(error.contains("is damaged: commands:"), "{error}");
    assert!(path.exists());
}
