//! When to try again: full jitter over a growing bound, so that a fleet does not come back all at once.

use std::time::Duration;

/// First bound.
const BASE: Duration = Duration::from_secs(1);
/// Last bound.
const CAP: Duration = Duration::from_secs(60);

/// Bounds double from [`BASE`] to [`CAP`]; each delay is uniform between 100 ms and the bound.
#[derive(Debug, Default)]
pub(crate) struct Backoff {
    failures: u32,
}

impl Backoff {
    /// A connection was welcomed.
    pub(crate) fn reset(&mut self) {
        self.failures = 0;
    }

    /// The delay before the next try.
    pub(crate) fn next(&mut self) -> Duration {
        let bound = BASE.saturating_mul(1 << self.failures.min(16)).min(CAP);
        self.failures = self.failures.saturating_add(1);
        let bytes = *uuid::Uuid::new_v4().as_bytes();
        let random = f64::from(u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])) / f64::from(u32::MAX);
        bound.mul_f64(random).max(Duration::from_millis(100))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_grow_to_the_cap_and_fall_back() {
        let mut backoff = Backoff::default();
        for bound in [1, 2, 4, 8, 16, 32, 60, 60] {
            let delay = backoff.next();
            assert!(delay >= Duration::from_millis(100) && delay <= Duration::from_secs(bound), "{delay:?} over {bound}");
        }
        backoff.reset();
        assert!(backoff.next() <= BASE);
    }
}
