//! A poll session: the same frames by `POST`, where WebSocket cannot be had. An answer is held back until there is something to say.
//!
//! A request that waits for its answer does not hold up frames: they go in a second one, which ends the first.

use std::time::Duration;

use agent_api::enrolment::POLL_PATH;
use agent_api::frame::{Down, Hello, MAX_BYTES, POLL_HOLD_S, PollRequest, PollResponse, Up, on_the_way};
use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use reqwest::{Method, StatusCode, header};
use serde_json::Value;
use tokio::time::{Instant, sleep_until, timeout};
use tracing::debug;
use uuid::Uuid;

use super::counters::Counters;
use super::ended::{Ended, SessionError};
use super::pulse::DEAD;
use super::read::{self, Read};
use super::transport::RETURN;
use super::{Ends, answer};
use crate::signed::Signed;

/// Requests under way at one time.
const UNDER_WAY: usize = 2;
/// Frames that come within this go in one request.
const TOGETHER: Duration = Duration::from_millis(50);
/// What a request holds beside its frames.
const ENVELOPE: usize = 1024;

type Asked<'a> = FuturesUnordered<BoxFuture<'a, Result<Answered, SessionError>>>;

enum Answered {
    /// Frames down.
    Frames(Vec<Value>),
    /// A newer request took its place.
    Overtaken,
}

/// Polls until it fails, or WebSocket is to be tried again.
pub(super) async fn run(signed: &Signed, hello: Hello, ends: &Ends) -> Ended {
    let mut session = Session { signed, id: Uuid::new_v4(), sequence: 0 };
    let hello = match serde_json::to_value(Up::Hello(hello)) {
        Ok(hello) => hello,
        Err(_) => return Ended::failed(SessionError::NoWelcome),
    };
    let opened = session.ask(vec![hello], 0).await.and_then(|answered| match answered {
        Answered::Frames(frames) => Ok(frames),
        Answered::Overtaken => Err(SessionError::NoWelcome),
    });
    let frames = match opened {
        Ok(frames) => frames,
        Err(error) => return Ended::failed(error),
    };
    let mut frames = frames.into_iter();
    let welcome = match frames.next().map(|first| read::frame(&first.to_string())) {
        Some(Read::Frame(Down::Welcome(welcome))) => welcome,
        Some(Read::Frame(_)) => return Ended::failed(ends.broken(read::OUT_OF_ORDER)),
        Some(Read::Broken(broken)) => return Ended::failed(ends.broken(broken)),
        _ => return Ended::failed(SessionError::NoWelcome),
    };
    let welcomed = Some(ends.welcome(welcome, "long poll").await);
    let error = match take(frames.collect(), ends).await {
        Ok(()) => exchange(&mut session, ends).await.err(),
        Err(error) => Some(error),
    };
    Ended { welcomed, error }
}

async fn exchange(session: &mut Session<'_>, ends: &Ends) -> Result<(), SessionError> {
    let mut leave = ends.leave.clone();
    let until = Instant::now() + RETURN;
    let mut asked = Asked::new();
    loop {
        if asked.is_empty() {
            asked.push(session.request(queued(ends), POLL_HOLD_S));
        }
        tokio::select! {
            answered = asked.next() => match answered {
                Some(Ok(Answered::Frames(frames))) => take(frames, ends).await?,
                Some(Ok(Answered::Overtaken)) => debug!("channel: a poll was overtaken"),
                Some(Err(error)) => return Err(error),
                None => {}
            },
            () = ends.outgoing.any(), if asked.len() < UNDER_WAY => {
                tokio::time::sleep(TOGETHER).await;
                asked.push(session.request(queued(ends), POLL_HOLD_S));
            }
            Ok(()) = leave.changed() => return Err(SessionError::Leaving),
            () = sleep_until(until) => return Err(SessionError::Return),
        }
    }
}

/// Frames that wait, as many as one request holds.
fn queued(ends: &Ends) -> Vec<Value> {
    let mut left = MAX_BYTES;
    let mut frames = Vec::new();
    while let Some(text) = ends.outgoing.take(left) {
        left -= text.len();
        frames.extend(serde_json::from_str::<Value>(&text).ok());
    }
    frames
}

async fn take(frames: Vec<Value>, ends: &Ends) -> Result<(), SessionError> {
    for frame in frames {
        match read::frame(&frame.to_string()) {
            Read::Frame(frame) => ends.pass(frame).await?,
            Read::Unknown => Counters::add(&ends.counters.skipped),
            Read::Broken(broken) => return Err(ends.broken(broken)),
            Read::Pong | Read::Nothing | Read::Closed(_) | Read::Failed(_) => {}
        }
    }
    Ok(())
}

struct Session<'a> {
    signed: &'a Signed,
    id: Uuid,
    sequence: u64,
}

impl<'a> Session<'a> {
    async fn ask(&mut self, frames: Vec<Value>, wait_s: u32) -> Result<Answered, SessionError> {
        self.request(frames, wait_s).await
    }

    /// A request, sent when it is polled.
    fn request(&mut self, frames: Vec<Value>, wait_s: u32) -> BoxFuture<'a, Result<Answered, SessionError>> {
        self.sequence += 1;
        let request = PollRequest { session: self.id, sequence: self.sequence, wait_s, frames };
        let signed = self.signed;
        Box::pin(async move {
            let body = serde_json::to_vec(&request).unwrap_or_default();
            let patience = DEAD + on_the_way(body.len());
            let request = signed.request(Method::POST, POLL_PATH, body).header(header::CONTENT_TYPE, "application/json");
            answered(request, patience).await
        })
    }
}

/// The head of the answer comes within `patience`, and of its body some bytes within [`DEAD`].
async fn answered(request: reqwest::RequestBuilder, patience: Duration) -> Result<Answered, SessionError> {
    let mut response = timeout(patience, request.send()).await.map_err(|_| SessionError::Dead)?.map_err(SessionError::Connect)?;
    match response.status() {
        StatusCode::OK => {}
        StatusCode::CONFLICT => {
            let answer = answer::read(response).await;
            return match answer.code.as_deref() {
                Some("poll_overtaken") => Ok(Answered::Overtaken),
                Some("poll_session_unknown") => Err(SessionError::Forgotten),
                _ => Err(SessionError::Refused(answer)),
            };
        }
        _ => return Err(SessionError::Refused(answer::read(response).await)),
    }
    let mut body = Vec::new();
    while let Some(part) = timeout(DEAD, response.chunk()).await.map_err(|_| SessionError::Dead)?.map_err(SessionError::Connect)? {
        if body.len() + part.len() > 2 * MAX_BYTES + ENVELOPE {
            return Err(SessionError::NoWelcome);
        }
        body.extend_from_slice(&part);
    }
    match serde_json::from_slice::<PollResponse>(&body) {
        Ok(answer) => Ok(Answered::Frames(answer.frames)),
        // A page of something in between, most likely.
        Err(_) => Err(SessionError::NoWelcome),
    }
}
