//! Turns at a registry: it may take half a minute to say nothing, and a worker that waits for it looks at no other component. So of one registry a
//! few are waited for at the same time, and of all together never so many that no worker is left. Who has no turn is put in line when it has one.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::queue::{Name, Queue};

/// Workers that wait for one registry: every other.
const OF_ONE: usize = super::WORKERS / 2;
/// Workers that wait for any: three of four.
const OF_ALL: usize = super::WORKERS / 4 * 3;

/// Who has a turn, and who waits for one.
pub struct Turns {
    queue: Arc<Queue>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Components with a turn, and at which registry.
    held: HashMap<Name, String>,
    waiting: VecDeque<(Name, String)>,
}

impl Turns {
    /// Nobody has one. Whoever gets one later is put in this line.
    #[must_use]
    pub fn new(queue: Arc<Queue>) -> Self {
        Self { queue, state: Mutex::default() }
    }

    /// Whether a component has a turn at a registry, until [`Turns::end`]. If not, it waits for one.
    pub fn take(&self, name: &Name, registry: &str) -> bool {
        let mut state = self.lock();
        if state.held.get(name).is_some_and(|held| held == registry) {
            return true;
        }
        let free = state.has_room(registry);
        if free {
            state.held.insert(name.clone(), registry.to_owned());
        } else if !state.waiting.iter().any(|(waiting, _)| waiting == name) {
            state.waiting.push_back((name.clone(), registry.to_owned()));
        }
        free
    }

    /// A component was looked at: its turn, if it has one, is over, taken or not.
    pub fn end(&self, name: &Name) {
        let mut state = self.lock();
        if state.held.remove(name).is_none() {
            return;
        }
        while let Some(next) = state.next() {
            self.queue.add(next);
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn has_room(&self, registry: &str) -> bool {
        self.held.len() < OF_ALL && self.held.values().filter(|held| *held == registry).count() < OF_ONE
    }

    /// The one that has waited longest and can have a turn now has it.
    fn next(&mut self) -> Option<Name> {
        let at = self.waiting.iter().position(|(_, registry)| self.has_room(registry))?;
        let (name, registry) = self.waiting.remove(at)?;
        self.held.insert(name.clone(), registry);
        Some(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(name: usize) -> Name {
        Name { namespace: "here".into(), name: name.to_string() }
    }

    fn of_registries(turns: &Turns, components: std::ops::Range<usize>, registry: &str) -> usize {
        components.filter(|i| turns.take(&name(*i), registry)).count()
    }

    #[tokio::test]
    async fn a_registry_that_does_not_answer_leaves_workers_to_the_others() {
        let queue = Arc::new(Queue::default());
        let turns = Turns::new(Arc::clone(&queue));
        assert_eq!(of_registries(&turns, 0..60, "dead"), OF_ONE);
        assert_eq!(of_registries(&turns, 0..60, "dead"), OF_ONE, "each has one turn");
        assert_eq!((200..300).filter(|i| turns.take(&name(*i), &format!("host-{i}"))).count(), OF_ALL - OF_ONE);
        const { assert!(OF_ALL < super::super::WORKERS) };
        assert_eq!(queue.length(), 0);
        turns.end(&name(0));
        assert_eq!(queue.length(), 1);
        let next = queue.take().await;
        assert_eq!(next, name(OF_ONE), "who waits longest comes next");
        assert!(turns.take(&next, "dead"));
        turns.end(&name(50));
        assert_eq!(queue.length(), 0, "one that only waits ends no turn");
    }

    #[test]
    fn a_turn_that_nobody_takes_is_the_next_ones() {
        let queue = Arc::new(Queue::default());
        let turns = Turns::new(Arc::clone(&queue));
        assert_eq!(of_registries(&turns, 0..OF_ONE + 2, "r"), OF_ONE);
        turns.end(&name(0));
        // It was deleted meanwhile: its pass asks for nothing.
        turns.end(&name(OF_ONE));
        assert_eq!(queue.length(), 2);
        assert!(turns.take(&name(OF_ONE + 1), "r"));
    }
}
