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

use super::rule::{Readiness, judge};
use crate::error::ClusterError;
use crate::object::{self, query};
use crate::request::chain;
use crate::resource;

/// The API server ends a watch after this long, so that a dead connection is noticed.
const WATCH: Duration = Duration::from_secs(60);
/// A watch that is silent for longer has lost its connection.
const SILENCE: Duration = Duration::from_secs(75);
const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

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
        Ok(ended) => ended,
        Err(_elapsed) => Err(WaitError::TimedOut { limit, waiting: waiting.into_iter().collect() }),
    }
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
    let start = Follow { client, object, state: State::Read, pause: FIRST_PAUSE };
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
            Err(error) => Some(Err(error)),
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

    /// A watch that cannot be opened or broke: an answer (401, 403) ends the wait, everything else begins again with a read.
    fn broken(&mut self, error: kube::Error) -> Option<Result<Seen, ClusterError>> {
        let about = format!("watch of {}", ObjectKey::of(&self.object));
        if let kube::Error::Api(status) = &error
            && matches!(status.code, 401 | 403)
        {
            return Some(Err(ClusterError::of(&about, status, false)));
        }
        tracing::debug!(error = chain(&error), about, "the watch begins again");
        self.state = State::Pause;
        None
    }
}
