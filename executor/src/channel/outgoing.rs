//! Frames that wait to be sent. Bounded, and of each kind only the newest: a manager that reads slowly costs no memory.
//!
//! Nothing is kept here for its own sake: what is dropped is repeated, results from the journal, everything else by its nature.
//! One result is under way at a time, so that a result which the manager does not take is known, and others go past it.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use agent_api::frame::{CommandResult, MAX_BYTES, Up};
use agent_api::name::CommandId;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};
use tracing::{error, warn};

use super::counters::Counters;

/// Frames that wait; more are dropped.
const FRAMES: usize = 256;
/// Bytes that wait: two of the largest frames.
const BYTES: usize = 2 * MAX_BYTES;
/// A result that is not acknowledged after so long lets others go first.
const ANSWER: Duration = Duration::from_secs(15);
/// How long a result that was not taken is held back at first; it doubles to [`HELD_AT_MOST`].
const HELD: Duration = Duration::from_secs(15);
/// See [`HELD`].
const HELD_AT_MOST: Duration = Duration::from_secs(3600);

/// The queue.
#[derive(Debug)]
pub(super) struct Outgoing {
    inner: Mutex<Inner>,
    ready: Notify,
    counters: Arc<Counters>,
}

#[derive(Debug, Default)]
struct Inner {
    waiting: VecDeque<(Key, String)>,
    bytes: usize,
    /// The result that was sent and not acknowledged.
    under_way: Option<(CommandId, Instant)>,
    /// A result that was under way when the link was cut; it may be chance.
    suspect: Option<CommandId>,
    held: HashMap<CommandId, Held>,
}

#[derive(Debug)]
struct Held {
    times: u32,
    until: Instant,
}

/// What a newer frame replaces.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Key {
    Hello,
    Heartbeat,
    Ack(CommandId),
    Progress(CommandId),
    Result(CommandId),
}

/// How a connection ended, as far as the result that was under way is concerned.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum End {
    /// The manager ended it.
    Closed,
    /// The link was cut, or we left.
    Cut,
}

impl Outgoing {
    pub(super) fn new(counters: Arc<Counters>) -> Self {
        Self { inner: Mutex::default(), ready: Notify::new(), counters }
    }

    /// Queues a frame, in the place of an older one of its kind.
    pub(super) fn push(&self, frame: &Up) {
        let key = key(frame);
        if let Key::Result(id) = key
            && self.lock().waits(id, Instant::now())
        {
            return;
        }
        let Some(text) = text(frame) else { return };
        let mut inner = self.lock();
        let former = inner.waiting.iter().position(|(other, _)| *other == key);
        let freed = former.map_or(0, |place| inner.waiting[place].1.len());
        // What is small and one of its kind always has room: results that nobody takes must not silence the heartbeat.
        let bounded = matches!(key, Key::Result(_) | Key::Progress(_));
        let full = inner.bytes - freed + text.len() > BYTES || (former.is_none() && inner.waiting.len() >= FRAMES);
        if bounded && full {
            Counters::add(&self.counters.dropped);
            return;
        }
        inner.bytes = inner.bytes - freed + text.len();
        match former {
            Some(place) => inner.waiting[place].1 = text,
            None => inner.waiting.push_back((key, text)),
        }
        drop(inner);
        self.ready.notify_one();
    }

    /// The next frame, as soon as there is one. A frame that is given is gone.
    pub(super) async fn next(&self) -> String {
        loop {
            if let Some(text) = self.take(usize::MAX) {
                return text;
            }
            self.changed().await;
        }
    }

    /// Returns when there is a frame to send.
    pub(super) async fn any(&self) {
        while !self.has() {
            self.changed().await;
        }
    }

    /// The next frame, if there is one of at most so many bytes.
    pub(super) fn take(&self, at_most: usize) -> Option<String> {
        let now = Instant::now();
        let mut inner = self.lock();
        self.release(&mut inner, now);
        let place = inner.sendable()?;
        if inner.waiting[place].1.len() > at_most {
            return None;
        }
        let (key, text) = inner.waiting.remove(place)?;
        inner.bytes -= text.len();
        if let Key::Result(id) = key {
            inner.under_way = Some((id, now));
        }
        Some(text)
    }

    /// The manager has a result.
    pub(super) fn acknowledged(&self, id: CommandId) {
        let mut inner = self.lock();
        inner.held.remove(&id);
        inner.under_way = inner.under_way.filter(|(under_way, _)| *under_way != id);
        inner.suspect = inner.suspect.filter(|suspect| *suspect != id);
        drop(inner);
        self.ready.notify_one();
    }

    /// A connection ended: what waits is forgotten, and the result under way may be why.
    pub(super) fn ended(&self, end: End) {
        let now = Instant::now();
        let mut inner = self.lock();
        inner.waiting.clear();
        inner.bytes = 0;
        let Some((id, _)) = inner.under_way.take() else { return };
        match end {
            End::Cut if inner.suspect != Some(id) => inner.suspect = Some(id),
            End::Cut | End::Closed => self.hold(&mut inner, id, now),
        }
    }

    fn has(&self) -> bool {
        let mut inner = self.lock();
        self.release(&mut inner, Instant::now());
        inner.sendable().is_some()
    }

    async fn changed(&self) {
        let answer = self.lock().under_way.map(|(_, since)| since + ANSWER);
        match answer {
            None => self.ready.notified().await,
            Some(end) => tokio::select! {
                () = self.ready.notified() => {}
                () = sleep_until(end) => {}
            },
        }
    }

    /// A result without an answer lets others go first.
    fn release(&self, inner: &mut Inner, now: Instant) {
        if let Some((id, since)) = inner.under_way
            && now >= since + ANSWER
        {
            inner.under_way = None;
            self.hold(inner, id, now);
        }
    }

    fn hold(&self, inner: &mut Inner, id: CommandId, now: Instant) {
        let times = inner.held.get(&id).map_or(0, |held| held.times);
        let pause = HELD.saturating_mul(1 << times.min(16)).min(HELD_AT_MOST);
        inner.held.insert(id, Held { times: times + 1, until: now + pause });
        Counters::add(&self.counters.held);
        warn!(command = %id, again_in = ?pause, "channel: the manager did not take this result; others go first");
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    /// Whether a result is under way, or held back.
    fn waits(&self, id: CommandId, now: Instant) -> bool {
        self.under_way.is_some_and(|(under_way, _)| under_way == id) || self.held.get(&id).is_some_and(|held| now < held.until)
    }

    fn sendable(&self) -> Option<usize> {
        self.waiting.iter().position(|(key, _)| !matches!(key, Key::Result(_)) || self.under_way.is_none())
    }
}

fn key(frame: &Up) -> Key {
    match frame {
        Up::Hello(_) => Key::Hello,
        Up::Heartbeat(_) => Key::Heartbeat,
        Up::CommandAck(ack) => Key::Ack(ack.id),
        Up::CommandProgress(progress) => Key::Progress(progress.id),
        Up::CommandResult(result) => Key::Result(result.id),
    }
}

/// A frame as it is sent. A result that is too large for a frame goes without its objects, and with the beginning of its text only:
/// the whole of it is in the journal.
fn text(frame: &Up) -> Option<String> {
    let text = serde_json::to_string(frame).inspect_err(|problem| error!("channel: a frame could not be written: {problem}")).ok()?;
    match frame {
        _ if text.len() <= MAX_BYTES => Some(text),
        Up::CommandResult(result) => {
            warn!(command = %result.id, bytes = text.len(), "channel: the result is too large for a frame; its objects are left out");
            let end = result.result.floor_char_boundary(MAX_BYTES / 8);
            let result = CommandResult { result: result.result[..end].to_owned(), objects: Vec::new(), ..result.clone() };
            serde_json::to_string(&Up::CommandResult(result)).ok()
        }
        Up::Hello(_) | Up::Heartbeat(_) | Up::CommandAck(_) | Up::CommandProgress(_) => {
            error!(bytes = text.len(), "channel: a frame is too large and is left out");
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use agent_api::command::CommandStatus;
    use agent_api::frame::{CommandAck, CommandProgress, ObjectOutcome, Outcome};
    use agent_api::object::ObjectKey;

    use super::*;

    fn id(n: u128) -> CommandId {
        CommandId(uuid::Uuid::from_u128(n))
    }

    fn result(n: u128, text: &str) -> Up {
        Up::CommandResult(CommandResult { id: id(n), status: CommandStatus::Failed, result: text.into(), objects: Vec::new(), code: None })
    }

    fn progress(n: u128, step: u32) -> Up {
        Up::CommandProgress(CommandProgress { id: id(n), stage: "applying".into(), step, of: 9, object: None })
    }

    fn queue() -> Outgoing {
        Outgoing::new(Arc::default())
    }

    fn taken(queue: &Outgoing) -> Vec<Up> {
        std::iter::from_fn(|| queue.take(usize::MAX)).map(|text| serde_json::from_str(&text).unwrap()).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn of_each_kind_the_newest_and_never_more_than_fits() {
        let queue = queue();
        queue.push(&progress(1, 1));
        queue.push(&Up::CommandAck(CommandAck { id: id(1) }));
        queue.push(&progress(2, 1));
        queue.push(&progress(1, 2));
        assert_eq!(taken(&queue), [progress(1, 2), Up::CommandAck(CommandAck { id: id(1) }), progress(2, 1)]);

        let large = "x".repeat(MAX_BYTES / 2);
        for n in 0..10 {
            queue.push(&result(n, &large));
        }
        for n in 0..1000 {
            queue.push(&progress(n, 1));
        }
        let inner = queue.lock();
        assert!(inner.bytes <= BYTES && inner.waiting.len() <= FRAMES, "{} bytes, {} frames", inner.bytes, inner.waiting.len());
        drop(inner);
        let dropped = Counters::get(&queue.counters.dropped);
        assert!(dropped > 700);
        queue.push(&Up::CommandAck(CommandAck { id: id(7) }));
        assert_eq!(Counters::get(&queue.counters.dropped), dropped, "an acknowledgement always has room");
    }

    #[tokio::test(start_paused = true)]
    async fn a_result_that_is_not_taken_holds_up_no_other() {
        let queue = queue();
        let redeliver = || {
            queue.push(&result(1, "poisoned"));
            queue.push(&result(2, "good"));
        };
        redeliver();
        assert_eq!(taken(&queue), [result(1, "poisoned")], "one at a time");
        queue.ended(End::Closed);
        redeliver();
        assert_eq!(taken(&queue), [result(2, "good")], "the other goes first");
        queue.acknowledged(id(2));
        tokio::time::advance(HELD).await;
        queue.push(&result(1, "poisoned"));
        assert_eq!(taken(&queue), [result(1, "poisoned")], "it is not forgotten");

        queue.push(&result(3, "silence"));
        assert!(queue.take(usize::MAX).is_none());
        tokio::time::advance(ANSWER).await;
        assert_eq!(taken(&queue), [result(3, "silence")], "silence is no answer");
        queue.ended(End::Cut);
        queue.push(&result(3, "silence"));
        assert_eq!(taken(&queue), [result(3, "silence")], "a cut may be chance");
        queue.ended(End::Cut);
        queue.push(&result(3, "silence"));
        assert!(queue.take(usize::MAX).is_none(), "twice is none");
    }

    #[test]
    fn a_result_that_fits_no_frame_goes_without_its_objects() {
        let key = ObjectKey { group: "apps".into(), kind: "Deployment".into(), namespace: "p".into(), name: "n".repeat(200) };
        let objects = vec![ObjectOutcome { key, outcome: Outcome::Created }; 20_000];
        let large = CommandResult { id: id(1), status: CommandStatus::Completed, result: "ä".repeat(MAX_BYTES), objects, code: None };
        let text = text(&Up::CommandResult(large)).unwrap();
        assert!(text.len() < MAX_BYTES);
        let Up::CommandResult(read) = serde_json::from_str(&text).unwrap() else { panic!("{text}") };
        assert_eq!((read.id, read.status, read.objects.len()), (id(1), CommandStatus::Completed, 0));
        assert!(read.result.starts_with("ää"));
    }
}
