//! Nonces that were seen: each is good once for a key while its signature could still be believed. Bounded, in memory.
//!
//! A restart forgets them; so a request that was signed before this process started is refused elsewhere.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use agent_api::signature::{Claim, WINDOW_S};

use crate::config;

/// The memory; asked after the signature was verified, so that nobody else can fill it.
#[derive(Debug, Default)]
pub struct Nonces(Mutex<HashMap<String, HashMap<String, i64>>>);

/// What is known of a nonce.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Seen {
    /// It is new, and remembered from now on.
    New,
    /// It was there before.
    Before,
    /// There are too many of this key to remember one more.
    Full,
}

impl Nonces {
    /// Remembers a claim's nonce. `now` in Unix seconds.
    pub fn see(&self, claim: &Claim, now: i64) -> Seen {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let nonces = all.entry(claim.access_key.clone()).or_default();
        // A signature is believed up to this second; before it the nonce must not be forgotten.
        nonces.retain(|_, believed_until| *believed_until >= now);
        if nonces.contains_key(&claim.nonce) {
            return Seen::Before;
        }
        if nonces.len() >= config::MAX_NONCES {
            return Seen::Full;
        }
        nonces.insert(claim.nonce.clone(), claim.created.saturating_add(WINDOW_S));
        Seen::New
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn once_while_it_could_be_believed() {
        let nonces = Nonces::default();
        let claim = |key: &str, nonce: &str| Claim { access_key: key.into(), created: 1000, nonce: nonce.into() };
        assert_eq!(nonces.see(&claim("a", "1"), 1000), Seen::New);
        assert_eq!(nonces.see(&claim("a", "1"), 1000), Seen::Before);
        assert_eq!(nonces.see(&claim("a", "1"), 1300), Seen::Before);
        assert_eq!(nonces.see(&claim("b", "1"), 1000), Seen::New);
        for n in 1..config::MAX_NONCES {
            assert_eq!(nonces.see(&claim("a", &format!("n{n}")), 1000), Seen::New);
        }
        assert_eq!(nonces.see(&claim("a", "more"), 1000), Seen::Full);
        assert_eq!(nonces.see(&claim("a", "more"), 1301), Seen::New);
    }
}
