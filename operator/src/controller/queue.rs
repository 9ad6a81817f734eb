//! Which components are to be looked at: each stands in line once, is looked at by one worker at a time, and once more where something happened
//! meanwhile. What is to be looked at later waits for its time; only the earliest time of each counts.

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

/// A component: namespace and name.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Name {
    /// Namespace.
    pub namespace: String,
    /// Name.
    pub name: String,
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// The line.
#[derive(Default)]
pub struct Queue {
    state: Mutex<State>,
    news: Notify,
}

#[derive(Default)]
struct State {
    ready: VecDeque<Name>,
    queued: HashSet<Name>,
    running: HashSet<Name>,
    again: HashSet<Name>,
    later: BTreeSet<(Instant, Name)>,
    due: HashMap<Name, Instant>,
}

impl Queue {
    /// Puts a component in line.
    pub fn add(&self, name: Name) {
        self.lock().add(name);
        self.news.notify_one();
    }

    /// Puts a component in line after a while, unless it comes earlier by itself.
    pub fn add_after(&self, name: Name, pause: Duration) {
        let at = Instant::now() + pause;
        let mut state = self.lock();
        match state.due.get(&name).copied() {
            Some(earlier) if earlier <= at => return,
            Some(former) => drop(state.later.remove(&(former, name.clone()))),
            None => {}
        }
        state.due.insert(name.clone(), at);
        state.later.insert((at, name));
        drop(state);
        self.news.notify_one();
    }

    /// The next component. [`Queue::done`] has to follow.
    pub async fn take(&self) -> Name {
        loop {
            let (found, next) = {
                let mut state = self.lock();
                state.ripen(Instant::now());
                (state.take(), state.later.first().map(|(at, _)| *at))
            };
            if let Some(name) = found {
                // Another worker may find more.
                self.news.notify_one();
                return name;
            }
            match next {
                Some(at) => {
                    tokio::select! {
                        () = self.news.notified() => {}
                        () = tokio::time::sleep_until(at) => {}
                    }
                }
                None => self.news.notified().await,
            }
        }
    }

    /// A worker has looked at a component.
    pub fn done(&self, name: &Name) {
        let mut state = self.lock();
        state.running.remove(name);
        if state.again.remove(name) {
            state.add(name.clone());
            drop(state);
            self.news.notify_one();
        }
    }

    /// How many stand in line.
    #[must_use]
    pub fn length(&self) -> usize {
        let state = self.lock();
        state.ready.len() + state.again.len()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn add(&mut self, name: Name) {
        if self.running.contains(&name) {
            self.again.insert(name);
        } else if self.queued.insert(name.clone()) {
            self.ready.push_back(name);
        }
    }

    fn ripen(&mut self, now: Instant) {
        while let Some((at, name)) = self.later.first().cloned().filter(|(at, _)| *at <= now) {
            self.later.remove(&(at, name.clone()));
            self.due.remove(&name);
            self.add(name);
        }
    }

    fn take(&mut self) -> Option<Name> {
        let name = self.ready.pop_front()?;
        self.queued.remove(&name);
        self.running.insert(name.clone());
        Some(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(name: &str) -> Name {
        Name { namespace: "here".into(), name: name.into() }
    }

    async fn next(queue: &Queue) -> Option<String> {
        tokio::time::timeout(Duration::from_millis(1), queue.take()).await.ok().map(|name| name.name)
    }

    #[tokio::test(start_paused = true)]
    async fn each_stands_in_line_once_and_is_looked_at_by_one() {
        let queue = Queue::default();
        for which in ["a", "b", "a"] {
            queue.add(name(which));
        }
        assert_eq!((queue.length(), next(&queue).await.as_deref(), next(&queue).await.as_deref()), (2, Some("a"), Some("b")));
        queue.add(name("a"));
        assert_eq!(next(&queue).await, None, "somebody is at it");
        queue.done(&name("b"));
        assert_eq!(next(&queue).await, None);
        queue.done(&name("a"));
        assert_eq!(next(&queue).await.as_deref(), Some("a"), "what happened meanwhile is looked at");
        queue.done(&name("a"));
        assert_eq!((next(&queue).await, queue.length()), (None, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn the_earliest_time_counts() {
        let queue = Queue::default();
        queue.add_after(name("a"), Duration::from_secs(300));
        queue.add_after(name("a"), Duration::from_secs(5));
        queue.add_after(name("a"), Duration::from_secs(60));
        let started = Instant::now();
        assert_eq!(queue.take().await.name, "a");
        assert_eq!(started.elapsed().as_secs(), 5);
        queue.done(&name("a"));
        tokio::time::advance(Duration::from_secs(600)).await;
        assert_eq!(next(&queue).await, None, "the other times are gone");
    }
}
