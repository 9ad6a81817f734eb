//! `token_renew`: how the executor's own token is kept from ending.

use std::time::Duration;

use cluster::token::SHORTEST;
use serde::Deserialize;

use super::duration;

/// The longest lifetime that the API server takes: 2^32 s.
const LONGEST: Duration = Duration::from_secs(1 << 32);

/// The block.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct TokenRenew {
    /// How often the token is looked at, at the least.
    #[serde(deserialize_with = "duration")]
    pub(crate) sweep_interval: Duration,
    /// The lifetime that is asked for; the API server may grant less.
    #[serde(deserialize_with = "duration")]
    pub(crate) requested_ttl: Duration,
}

impl Default for TokenRenew {
    fn default() -> Self {
        Self { sweep_interval: Duration::from_secs(10 * 60), requested_ttl: Duration::from_secs(24 * 60 * 60) }
    }
}

impl TokenRenew {
    /// What is not taken, if anything.
    pub(super) fn check(&self) -> Result<(), String> {
        if self.sweep_interval < Duration::from_secs(1) {
            return Err("token_renew.sweep_interval: 1s at the least".into());
        }
        if !(SHORTEST..=LONGEST).contains(&self.requested_ttl) {
            return Err("token_renew.requested_ttl: 10m to 2^32 s are allowed; the API server grants no other token".into());
        }
        Ok(())
    }
}
