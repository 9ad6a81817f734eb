//! Answers that this process alone keeps.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use agent_api::digest::Sha256;

/// Most bytes of answers in a process: 8 MiB. The oldest go first; one that is larger by itself is not kept.
const MAX_BYTES: usize = 8 << 20;

/// Answers, the oldest first.
#[derive(Default)]
pub(super) struct Memory(Mutex<VecDeque<(Sha256, Arc<[u8]>)>>);

impl Memory {
    /// The answer under a key.
    pub(super) fn get(&self, key: &Sha256) -> Option<Arc<[u8]>> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.iter().find(|(known, _)| known == key).map(|(_, answer)| Arc::clone(answer))
    }

    /// Keeps an answer.
    pub(super) fn put(&self, key: Sha256, answer: Vec<u8>) {
        if answer.len() > MAX_BYTES {
            return;
        }
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|(known, _)| *known != key);
        kept.push_back((key, answer.into()));
        while kept.iter().map(|(_, answer)| answer.len()).sum::<usize>() > MAX_BYTES {
            kept.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_go_when_there_is_no_room() {
        let (memory, key) = (Memory::default(), |n: u8| Sha256::of(&[n]));
        for n in 0..4 {
            memory.put(key(n), vec![n; MAX_BYTES / 3]);
        }
        assert!(memory.get(&key(0)).is_none());
        assert!((1..4).all(|n| memory.get(&key(n)).is_some_and(|answer| answer[0] == n)));
        memory.put(key(9), vec![0; MAX_BYTES + 1]);
        assert!(memory.get(&key(9)).is_none() && memory.get(&key(1)).is_some());
    }
}
