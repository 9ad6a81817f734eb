//! The channel over long poll: the same frames, and nothing is lost when an answer is.

use std::time::{Duration, Instant};

use agent_api::command::{Command, CommandStatus, SyncPlatform};
use agent_api::enrolment::POLL_PATH;
use agent_api::frame::{CommandAck, CommandResult, Down, PollRequest, PollResponse, Up};
use reqwest::StatusCode;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::executor::{Executor, hello, problem};
use crate::executor_channel::{commands, hint, prepared, propose};

/// A poll session of an executor that asks only when the test tells it to.
struct Poll<'a> {
    executor: &'a Executor,
    session: Uuid,
    sequence: u64,
}

impl<'a> Poll<'a> {
    async fn begin(executor: &'a Executor) -> Self {
        let mut poll = Self { executor, session: Uuid::new_v4(), sequence: 0 };
        let frames = poll.ask(&[hello(executor.id, 0)], 0).await.unwrap();
        assert!(matches!(frames.as_slice(), [Down::Welcome(_)]), "{frames:?}");
        poll
    }

    async fn ask(&mut self, frames: &[Up], wait_s: u32) -> Result<Vec<Down>, (StatusCode, String)> {
        self.sequence += 1;
        let frames = frames.iter().map(|frame| serde_json::to_value(frame).unwrap()).collect();
        send(self.executor, PollRequest { session: self.session, sequence: self.sequence, wait_s, frames }).await
    }

    /// The one command that comes.
    async fn command(&mut self, frames: &[Up]) -> Command {
        match self.ask(frames, 10).await.unwrap().as_slice() {
            [Down::Command(command)] => command.clone(),
            other => panic!("{other:?}"),
        }
    }
}

async fn send(executor: &Executor, request: PollRequest) -> Result<Vec<Down>, (StatusCode, String)> {
    let response = executor.post(executor.identity.as_deref(), POLL_PATH, serde_json::to_vec(&request).unwrap()).await;
    if response.status() != StatusCode::OK {
        return Err(problem(response).await);
    }
    let answer: PollResponse = response.json().await.unwrap();
    Ok(answer.frames.into_iter().map(|frame| serde_json::from_value(frame).unwrap()).collect())
}

fn conflict(code: &str) -> Option<(StatusCode, String)> {
    Some((StatusCode::CONFLICT, code.to_owned()))
}

#[tokio::test]
async fn the_same_frames_and_an_answer_that_is_lost_comes_again() {
    let mut server = prepared();
    let executor = Executor::enrolled(&server, "bank-eu").await;
    let mut poll = Poll::begin(&executor).await;
    let began = Instant::now();
    assert_eq!(poll.ask(&[], 1).await.unwrap(), []);
    assert!(began.elapsed() >= Duration::from_secs(1), "held while there is nothing to say");
    let shown = server.json(&["environment", "get", "env-1", "-o", "json"]);
    assert_eq!(shown["executors"][0]["connected"], true);

    let (sha, _) = propose(&server, "r1");
    let command = poll.command(&[]).await;
    let payload: SyncPlatform = serde_json::from_value(command.payload.clone()).unwrap();
    assert_eq!((payload.sha256, command.sequence), (sha.clone(), 1));
    // The answer was lost: a new session has the command again.
    let mut poll = Poll::begin(&executor).await;
    assert_eq!(poll.command(&[]).await, command);

    let ack = Up::CommandAck(CommandAck { id: command.id });
    let text = hint(&sha);
    let result =
        Up::CommandResult(CommandResult { id: command.id, status: CommandStatus::Failed, result: text, objects: Vec::new(), code: None });
    for _ in 0..2 {
        let answer = poll.ask(&[ack.clone(), result.clone()], 10).await.unwrap();
        assert!(matches!(answer.as_slice(), [Down::ResultAck(ack)] if ack.id == command.id), "{answer:?}");
    }
    assert_eq!(commands(&server, &executor)[0]["status"], "failed");

    server.restart();
    assert_eq!(poll.ask(&[], 1).await.err(), conflict("poll_session_unknown"));
    Poll::begin(&executor).await;
}

#[tokio::test]
async fn a_later_request_ends_an_earlier_one_and_a_late_ones_results_count() {
    let server = prepared();
    let executor = Executor::enrolled(&server, "bank-eu").await;
    let mut poll = Poll::begin(&executor).await;
    let session = poll.session;
    let (sha, _) = propose(&server, "r1");
    let command = poll.command(&[]).await;
    let request = |sequence, wait_s| PollRequest { session, sequence, wait_s, frames: Vec::new() };
    let began = Instant::now();
    let (held, later) = tokio::join!(send(&executor, request(3, 20)), async {
        tokio::time::sleep(Duration::from_millis(500)).await;
        send(&executor, request(4, 0)).await
    });
    assert_eq!((held.err(), later.unwrap()), (conflict("poll_overtaken"), Vec::new()));
    assert!(began.elapsed() < Duration::from_secs(10));
    // A large result on a slow line arrives after the heartbeats that were sent behind it.
    let result = Up::CommandResult(CommandResult {
        id: command.id,
        status: CommandStatus::Failed,
        result: hint(&sha),
        objects: Vec::new(),
        code: None,
    });
    let late = PollRequest { frames: vec![serde_json::to_value(&result).unwrap()], ..request(3, 20) };
    assert_eq!(send(&executor, late).await.err(), conflict("poll_overtaken"));
    assert_eq!(commands(&server, &executor)[0]["status"], "failed");
    poll.sequence = 4;
    let told = poll.ask(&[], 10).await.unwrap();
    assert!(matches!(told.as_slice(), [Down::ResultAck(ack)] if ack.id == command.id), "{told:?}");

    // A newer connection takes over, and comes back the same way.
    let channel = executor.online(0).await;
    assert_eq!(poll.ask(&[], 20).await.err(), conflict("poll_session_unknown"));
    Poll::begin(&executor).await;
    drop(channel);
}

#[tokio::test]
async fn what_breaks_the_protocol_is_refused() {
    let server = prepared();
    let (executor, other) = (Executor::enrolled(&server, "bank-eu").await, Executor::enrolled(&server, "bank-eu").await);
    let refused = Some((StatusCode::BAD_REQUEST, "frame_refused".to_owned()));
    let first =
        async |frames: Vec<Value>| send(&executor, PollRequest { session: Uuid::new_v4(), sequence: 1, wait_s: 0, frames }).await.err();
    assert_eq!(first(vec![]).await, refused);
    assert_eq!(first(vec![json!({"type": "command_ack", "id": Uuid::nil()})]).await, refused);
    assert_eq!(first(vec![serde_json::to_value(hello(other.id, 0)).unwrap()]).await, refused);
    let own = serde_json::to_value(hello(executor.id, 0)).unwrap();
    assert_eq!(first(vec![own.clone(), own.clone()]).await, refused);
    assert_eq!(first(vec![own.clone(), json!({"type": "of_a_later_version"})]).await, None);

    let mut poll = Poll::begin(&executor).await;
    poll.sequence += 1;
    let damaged = PollRequest { session: poll.session, sequence: 2, wait_s: 0, frames: vec![json!({"type": "command_ack"})] };
    assert_eq!(send(&executor, damaged).await.err(), refused);
    assert_eq!(poll.ask(&[], 0).await.err(), conflict("poll_session_unknown"));
    let large = executor.post(executor.identity.as_deref(), POLL_PATH, vec![b' '; 5 << 20]).await;
    assert_eq!(problem(large).await, (StatusCode::PAYLOAD_TOO_LARGE, "too_large".to_owned()));
}
