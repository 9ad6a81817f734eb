//! Which transport is tried when: WebSocket, long poll while it cannot be had, and back; and how long is waited between.

use std::time::Duration;

use agent_api::frame::Hello;
use tokio::sync::watch;
use tokio::time::Instant;
use tracing::{error, info, warn};

use super::answer::Meaning;
use super::backoff::Backoff;
use super::counters::Counters;
use super::ended::{Ended, SessionError};
use super::{Ends, Incoming, Link, Trouble, poll, session};
use crate::error_code::Code;
use crate::signed::Signed;
use crate::terminal::chain;

/// A connection that was welcomed and lasted so long was good: the next pause is short again.
const STABLE: Duration = Duration::from_secs(30);
/// How long long poll is used before WebSocket is tried again.
pub(super) const RETURN: Duration = Duration::from_secs(600);

/// What comes next.
#[derive(Debug)]
struct Next {
    backoff: Backoff,
    /// WebSocket could not be had; until then it is not tried.
    poll_until: Option<Instant>,
}

/// What to do before the next try.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Pause {
    delay: Duration,
    /// Whether only a person can mend it.
    credentials: bool,
}

/// Connects for ever.
pub(super) async fn keep(mut signed: Signed, hello: watch::Receiver<Hello>, mut ends: Ends) {
    let mut next = Next { backoff: Backoff::default(), poll_until: None };
    loop {
        // What is new from here on is worth leaving for.
        ends.leave.mark_unchanged();
        match signed.reload() {
            Ok(fresh) => signed = fresh,
            Err(problem) => error!("channel: the former credentials go on: {}", chain(&problem)),
        }
        let first = hello.borrow().clone();
        let polling = next.polls(Instant::now());
        let ended = if polling { poll::run(&signed, first, &ends).await } else { session::run(&signed, first, &ends).await };
        ends.outgoing.ended(ended.end());
        if (ended.welcomed.is_some() && ends.incoming.send(Incoming::Disconnected).await.is_err()) || ends.incoming.is_closed() {
            return;
        }
        let pause = next.after(&ended, polling, Instant::now());
        tell(&ends, &ended, pause);
        tokio::select! {
            () = tokio::time::sleep(pause.delay) => {}
            // New credentials are tried at once.
            Ok(()) = ends.leave.changed() => {}
        }
    }
}

fn tell(ends: &Ends, ended: &Ended, pause: Pause) {
    let code = ended.error.as_ref().map_or(Code::ChannelClosed.name(), SessionError::code);
    let why = ended.error.as_ref().map_or_else(|| "closed by the manager".to_owned(), |error| chain(error).to_string());
    let counters = &ends.counters;
    let (skipped, dropped) = (Counters::get(&counters.skipped), Counters::get(&counters.dropped));
    let trouble = Trouble { code: code.to_owned(), why: why.clone() };
    if pause.credentials {
        Counters::add(&counters.failed);
        // Said once, however often it is tried.
        if ends.stands(Link::CredentialsRefused(trouble)) {
            error!(
                code,
                "channel: the manager does not take this executor's certificate or key ({why}); enrol again: \
                 clicklink clctl init --enroll <url> --force"
            );
        }
        return;
    }
    match &ended.error {
        Some(SessionError::Leaving | SessionError::Return) => info!("channel: {why}"),
        Some(_) => {
            Counters::add(&counters.failed);
            warn!(code, retry_in = ?pause.delay, skipped, dropped, "channel: {why}");
        }
        None => info!(retry_in = ?pause.delay, skipped, dropped, "channel: {why}"),
    }
    ends.stands(Link::Down(Some(trouble)));
}

impl Next {
    fn polls(&self, now: Instant) -> bool {
        self.poll_until.is_some_and(|until| now < until)
    }

    fn after(&mut self, ended: &Ended, polled: bool, now: Instant) -> Pause {
        let at_once = Pause { delay: Duration::ZERO, credentials: false };
        if ended.welcomed.is_some_and(|at| now.duration_since(at) >= STABLE) {
            self.backoff.reset();
        }
        match (&ended.error, ended.meaning()) {
            (Some(SessionError::Leaving), _) => return at_once,
            (Some(SessionError::Return), _) => {
                self.poll_until = None;
                return at_once;
            }
            (_, Meaning::NoTransport) if !polled => {
                self.poll_until = Some(now + RETURN);
                return at_once;
            }
            // Neither can be had: it is not the upgrade that is refused.
            _ if polled && ended.welcomed.is_none() => self.poll_until = None,
            _ => {}
        }
        let later = |delay| Pause { delay, credentials: false };
        match ended.meaning() {
            Meaning::Credentials => Pause { delay: self.backoff.longest(), credentials: true },
            Meaning::After(asked) => later(self.backoff.asked(asked)),
            Meaning::Later | Meaning::NoTransport => later(self.backoff.next()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::answer::Answer;
    use super::*;

    fn refused(meaning: Meaning) -> Ended {
        Ended::failed(SessionError::Refused(Answer { status: 500, detail: String::new(), meaning, code: None }))
    }

    fn welcomed(before: Duration) -> Ended {
        Ended { welcomed: Some(Instant::now() - before), error: Some(SessionError::Dead) }
    }

    #[tokio::test(start_paused = true)]
    async fn falls_back_and_returns() {
        let mut next = Next { backoff: Backoff::default(), poll_until: None };
        let now = Instant::now();
        assert_eq!(next.after(&refused(Meaning::NoTransport), false, now).delay, Duration::ZERO);
        assert!(next.polls(now) && !next.polls(now + RETURN));
        assert!(next.after(&welcomed(Duration::from_secs(1)), true, now).delay > Duration::ZERO);
        assert!(next.polls(now), "polling worked, so it goes on");
        next.after(&refused(Meaning::NoTransport), true, now);
        assert!(!next.polls(now), "nothing works, so the first one is tried first");
        next.after(&refused(Meaning::NoTransport), false, now);
        next.after(&Ended { welcomed: Some(now), error: Some(SessionError::Return) }, true, now);
        assert!(!next.polls(now));
    }

    #[tokio::test(start_paused = true)]
    async fn a_short_welcome_does_not_shorten_the_pause() {
        tokio::time::advance(Duration::from_secs(100)).await;
        let mut next = Next { backoff: Backoff::default(), poll_until: None };
        let longest = |next: &mut Next, ended: &dyn Fn() -> Ended| {
            let delays = (0..40).map(|_| next.after(&ended(), false, Instant::now()).delay);
            delays.max().unwrap_or_default()
        };
        assert!(longest(&mut next, &|| welcomed(Duration::from_secs(2))) > Duration::from_secs(20));
        assert!(longest(&mut next, &|| welcomed(STABLE)) <= Duration::from_secs(1));
        let pause = next.after(&refused(Meaning::Credentials), false, Instant::now());
        assert!(pause.credentials && pause.delay >= Duration::from_secs(30));
        let pause = next.after(&refused(Meaning::After(Duration::from_secs(9))), false, Instant::now());
        assert!(pause.delay >= Duration::from_secs(9) && pause.delay <= Duration::from_secs(10));
    }
}
