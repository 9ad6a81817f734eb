//! Waiting for readiness: one read, then a watch from its version, of each object, side by side. Nothing is polled.
//!
//! A read and a watch by name suffice as rights. A watch that ends, or whose version is too old (410), begins again with a read,
//! later each time that it ends without news.

use std::collections::BTreeMap;
use std::time::Duration;

use agent_api::object::ObjectKey;
use futures::StreamExt as _;
use futures::stream::{self, BoxStream, SelectAll};
use http::Request;
use kube::Client;
use kube::core::WatchEvent;
use serde_json::Value;
use tokio::time::Instant;

use super::last_words::last_words;
use super::rule::{Readiness, judge};
use crate::error::ClusterError;
use crate::object::{self, query};
use crate::resource;
use crate::told;

/// The API server ends a watch after this long, so that a dead connection is noticed.
const WATCH: Duration = Duration::from_secs(60);
/// A watch that is silent for longer has lost its connection.
const SILENCE: Duration = Duration::from_secs(75);
/// How long a denial is taken for an API server that has just started and has not read its roles yet, or for rights on their way.
const SETTLING: Duration = Duration::from_secs(30);
const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// Of so many objects that are not ready in time the pods are asked.
const EXPLAINED: usize = 3;

/// Why a wait ended without everything being ready.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum WaitError {
    /// An object failed.
    #[error("{key}: {reason}")]
    Failed {
        /// Object.
        key: ObjectKey,
        /// Why.
        reason: String,
    },
    /// An object is not there, or not any more.
    #[error("{key}: it is not there any more")]
    Gone {
        /// Object.
        key: ObjectKey,
    },
    /// Not ready in time.
    #[error("not ready within {} s: {}", limit.as_secs(), show(waiting))]
    TimedOut {
        /// The limit.
        limit: Duration,
        /// Each object that is not ready, and what it waits for.
        waiting: Vec<(ObjectKey, String)>,
    },
    /// Reading or watching failed.
    #[error(transparent)]
    Cluster(#[from] ClusterError),
}

fn show(waiting: &[(ObjectKey, String)]) -> String {
    waiting.iter().map(|(key, why)| format!("{key}: {why}")).collect::<Vec<_>>().join("; ")
}

/// Waits until all objects are ready. `progress` is told each news of an object that is not ready yet, and `ready` once.
///
/// # Errors
/// The first failure ends the wait at once; an API server that does not answer is waited for until the limit.
pub async fn wait(
    client: &Client,
    objects: &[Value],
    limit: Duration,
    mut progress: impl FnMut(&ObjectKey, &str),
) -> Result<(), WaitError> {
    let mut waiting: BTreeMap<ObjectKey, String> =
        objects.iter().map(|object| (ObjectKey::of(object), "it was not seen yet".to_owned())).collect();
    let mut news: SelectAll<_> = objects.iter().map(|object| follow(client.clone(), object.clone())).collect();
    let all_ready = async {
        while !waiting.is_empty() {
            let Some((key, seen)) = news.next().await else { break };
            match seen? {
                Seen::Ready => {
                    if waiting.remove(&key).is_some() {
                        progress(&key, "ready");
                    }
                }
                Seen::Waiting(why) => {
                    if let Some(former) = waiting.get_mut(&key)
                        && *former != why
                    {
                        progress(&key, &why);
                        *former = why;
                    }
                }
                Seen::Failed(reason) => return Err(WaitError::Failed { key, reason }),
                Seen::Gone => return Err(WaitError::Gone { key }),
            }
        }
        Ok(())
    };
    match tokio::time::timeout(limit, all_ready).await {
        Ok(Err(WaitError::Failed { key, reason })) => {
            let reason = with_last_words(client, objects, &key, reason).await;
            Err(WaitError::Failed { key, reason })
        }
        Ok(ended) => ended,
        Err(_elapsed) => {
            let mut explained = Vec::new();
            for (i, (key, why)) in waiting.into_iter().enumerate() {
                let why = if i < EXPLAINED { with_last_words(client, objects, &key, why).await } else { why };
                explained.push((key, why));
            }
            Err(WaitError::TimedOut { limit, waiting: explained })
        }
    }
}

/// A reason, and what the object's pods say.
async fn with_last_words(client: &Client, objects: &[Value], key: &ObjectKey, reason: String) -> String {
    let object = objects.iter().find(|object| ObjectKey::of(object) == *key);
    let words = match object {
        Some(object) => last_words(client, object).await,
        None => Vec::new(),
    };
    std::iter::once(reason).chain(words).collect::<Vec<_>>().join("; ")
}

enum Seen {
    Ready,
    Waiting(String),
    Failed(String),
    Gone,
}

impl From<Readiness> for Seen {
    fn from(readiness: Readiness) -> Self {
        match readiness {
            Readiness::Ready => Self::Ready,
            Readiness::Waiting(why) => Self::Waiting(why),
            Readiness::Failed(why) => Self::Failed(why),
        }
    }
}

type Events = BoxStream<'static, Result<WatchEvent<Value>, kube::Error>>;

struct Follow {
    client: Client,
    object: Value,
    state: State,
    pause: Duration,
    /// Since when reading or watching is denied; until a watch is open again.
    denied_since: Option<Instant>,
}

enum State {
    /// Read the object now.
    Read,
    /// Read it after a pause.
    Pause,
    /// Open a watch from this version.
    Open(String),
    Watch(Events),
    End,
}

/// All news of one object, until it is ready, failed or gone.
fn follow(client: Client, object: Value) -> BoxStream<'static, (ObjectKey, Result<Seen, ClusterError>)> {
    let key = ObjectKey::of(&object);
    let start = Follow { client, object, state: State::Read, pause: FIRST_PAUSE, denied_since: None };
    stream::unfold(start, move |mut follow| {
        let key = key.clone();
        async move {
            loop {
                if let Some(seen) = follow.step().await {
                    if !matches!(seen, Ok(Seen::Waiting(_))) {
                        follow.state = State::End;
                    }
                    return Some(((key, seen), follow));
                }
                if matches!(follow.state, State::End) {
                    return None;
                }
            }
        }
    })
    .boxed()
}

impl Follow {
    /// One step; `Some` where there is news.
    async fn step(&mut self) -> Option<Result<Seen, ClusterError>> {
        match std::mem::replace(&mut self.state, State::End) {
            State::End => None,
            State::Pause => {
                tokio::time::sleep(self.pause).await;
                self.pause = (self.pause * 2).min(LONGEST_PAUSE);
                self.state = State::Read;
                None
            }
            State::Read => self.read().await,
            State::Open(version) => match self.open(&version).await {
                Ok(events) => {
                    self.denied_since = None;
                    self.state = State::Watch(events);
                    None
                }
                Err(error) => self.broken(error),
            },
            State::Watch(events) => self.watch(events).await,
        }
    }

    async fn read(&mut self) -> Option<Result<Seen, ClusterError>> {
        match object::get(&self.client, &self.object).await {
            Ok(Some(live)) => {
                let version = live.pointer("/metadata/resourceVersion").and_then(Value::as_str).unwrap_or("0");
                self.state = State::Open(version.to_owned());
                Some(Ok(judge(&live).into()))
            }
            Ok(None) => Some(Ok(Seen::Gone)),
            Err(error) if error.is_transient() => {
                self.state = State::Pause;
                Some(Ok(Seen::Waiting(error.to_string())))
            }
            Err(error) => Some(self.denied(error)),
        }
    }

    /// A denial may pass; every other answer ends the wait.
    fn denied(&mut self, error: ClusterError) -> Result<Seen, ClusterError> {
        let since = *self.denied_since.get_or_insert_with(Instant::now);
        if matches!(error, ClusterError::Forbidden { .. }) && since.elapsed() < SETTLING {
            self.state = State::Pause;
            Ok(Seen::Waiting(error.to_string()))
        } else {
            Err(error)
        }
    }

    async fn open(&mut self, version: &str) -> Result<Events, kube::Error> {
        let (collection, name) = resource::of(&self.object).map_err(|error| kube::Error::Service(error.into()))?;
        let path = format!(
            "{collection}?watch=true&allowWatchBookmarks=true&timeoutSeconds={}&resourceVersion={}&fieldSelector={}",
            WATCH.as_secs(),
            query(version),
            query(&format!("metadata.name={name}"))
        );
        let request = Request::get(path).body(Vec::new()).map_err(kube::Error::HttpError)?;
        Ok(self.client.request_events::<Value>(request).await?.boxed())
    }

    async fn watch(&mut self, mut events: Events) -> Option<Result<Seen, ClusterError>> {
        let next = tokio::time::timeout(SILENCE, events.next()).await;
        match next {
            Ok(Some(Ok(WatchEvent::Added(live) | WatchEvent::Modified(live)))) => {
                self.pause = FIRST_PAUSE;
                self.state = State::Watch(events);
                Some(Ok(judge(&live).into()))
            }
            Ok(Some(Ok(WatchEvent::Deleted(_)))) => Some(Ok(Seen::Gone)),
            Ok(Some(Ok(WatchEvent::Bookmark(_)))) => {
                self.state = State::Watch(events);
                None
            }
            Ok(Some(Ok(WatchEvent::Error(status)))) => self.broken(kube::Error::Api(status)),
            Ok(Some(Err(error))) => self.broken(error),
            Ok(None) | Err(_) => {
                self.state = State::Pause;
                None
            }
        }
    }

    /// A watch that cannot be opened or broke: an answer (401, 403) is judged as that of a read, everything else begins again with one.
    fn broken(&mut self, error: kube::Error) -> Option<Result<Seen, ClusterError>> {
        let about = format!("watch of {}", ObjectKey::of(&self.object));
        if let kube::Error::Api(status) = &error
            && matches!(status.code, 401 | 403)
        {
            return Some(self.denied(ClusterError::of(&about, status, false)));
        }
        tracing::debug!(error = told::client(&error), about, "the watch begins again");
        self.state = State::Pause;
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::{Response, StatusCode};
    use kube::client::Body;
    use serde_json::json;

    /// An API server that answers the n-th request by a function of n and whether it is a watch.
    fn server(answer: impl Fn(u32, bool) -> (u16, Value) + Send + Sync + 'static) -> Client {
        let (answer, count) = (std::sync::Arc::new(answer), std::sync::Arc::new(std::sync::atomic::AtomicU32::new(0)));
        let service = tower::service_fn(move |request: Request<Body>| {
            let n = count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            let (status, body) = answer(n, request.uri().query().is_some_and(|query| query.contains("watch=true")));
            let response =
                Response::builder().status(StatusCode::from_u16(status).unwrap()).body(Body::from(body.to_string().into_bytes()));
            async move { Ok::<_, std::io::Error>(response.unwrap()) }
        });
        Client::new(service, "default")
    }

    fn status(code: u16, reason: &str) -> (u16, Value) {
        let message = format!("{reason} in words");
        (code, json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason, "message": message}))
    }

    fn map() -> Value {
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "b", "resourceVersion": "1"}})
    }

    fn job() -> Value {
        json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "a", "namespace": "b", "resourceVersion": "1"}})
    }

    async fn waited(client: Client, object: Value) -> (Result<(), WaitError>, Duration) {
        let began = Instant::now();
        let ended = wait(&client, &[object], Duration::from_secs(600), |_, _| {}).await;
        (ended, began.elapsed())
    }

    #[tokio::test(start_paused = true)]
    async fn a_denial_that_passes_does_not_end_the_wait() {
        let client = server(|n, _| if n < 4 { status(403, "Forbidden") } else { (200, map()) });
        let (ended, _) = waited(client, map()).await;
        assert_eq!(ended, Ok(()));
    }

    #[tokio::test(start_paused = true)]
    async fn a_denial_that_stays_ends_it() {
        let denied = |n: &Result<(), WaitError>| matches!(n, Err(WaitError::Cluster(ClusterError::Forbidden { .. })));
        let reads = server(|_, _| status(403, "Forbidden"));
        let watches = server(|_, watch| if watch { status(403, "Forbidden") } else { (200, job()) });
        for client in [reads, watches] {
            let (ended, after) = waited(client, job()).await;
            assert!(denied(&ended), "{ended:?}");
            assert!(after >= SETTLING && after < SETTLING * 2, "{after:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_credential_that_is_not_taken_ends_it_at_once() {
        let (ended, after) = waited(server(|_, _| status(401, "Unauthorized")), map()).await;
        assert!(matches!(ended, Err(WaitError::Cluster(ClusterError::Unauthorized { .. }))), "{ended:?}");
        assert!(after < Duration::from_secs(1), "{after:?}");
    }
}
