//! When to try again: full jitter over a growing bound, so that a fleet does not come back all at once.

use std::time::Duration;

/// First bound.
const BASE: Duration = Duration::from_secs(1);
/// Last bound.
const CAP: Duration = Duration::from_secs(60);
/// No pause is shorter.
const LEAST: Duration = Duration::from_millis(100);
/// What a manager asks for is obeyed up to this; an intermediary might say anything.
const ASKED_AT_MOST: Duration = Duration::from_secs(600);

/// Bounds double from [`BASE`] to [`CAP`]; each delay is uniform between [`LEAST`] and the bound.
#[derive(Debug, Default)]
pub(crate) struct Backoff {
    failures: u32,
}

impl Backoff {
    /// A connection proved good.
    pub(crate) fn reset(&mut self) {
        self.failures = 0;
    }

    /// The delay before the next try.
    pub(crate) fn next(&mut self) -> Duration {
        let bound = BASE.saturating_mul(1 << self.failures.min(16)).min(CAP);
        self.failures = self.failures.saturating_add(1);
        bound.mul_f64(random()).max(LEAST)
    }

    /// The delay that was asked for, and up to a tenth more (a second at least), since many are asked for the same.
    pub(crate) fn asked(&mut self, after: Duration) -> Duration {
        let after = after.min(ASKED_AT_MOST);
        after + (after / 10).max(BASE).mul_f64(random())
    }

    /// The longest delay: what only a person can mend does not get better by asking often.
    pub(crate) fn longest(&mut self) -> Duration {
        self.failures = self.failures.saturating_add(1);
        CAP.mul_f64(0.5 + random() / 2.0)
    }
}

/// Between 0 and 1.
fn random() -> f64 {
    let bytes = *uuid::Uuid::new_v4().as_bytes();
    f64::from(u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])) / f64::from(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_grow_to_the_cap_and_fall_back() {
        let mut backoff = Backoff::default();
        for bound in [1, 2, 4, 8, 16, 32, 60, 60] {
            let delay = backoff.next();
            assert!(delay >= LEAST && delay <= Duration::from_secs(bound), "{delay:?} over {bound}");
        }
        backoff.reset();
        assert!(backoff.next() <= BASE);
    }

    #[test]
    fn what_is_asked_for_is_obeyed_within_reason() {
        let asked = |seconds| Backoff::default().asked(Duration::from_secs(seconds)).as_secs_f64();
        for _ in 0..100 {
            assert!((7.0..=8.0).contains(&asked(7)));
            assert!((100.0..=110.0).contains(&asked(100)));
            assert!((600.0..=660.0).contains(&asked(1_000_000)));
            assert!((30.0..=60.0).contains(&Backoff::default().longest().as_secs_f64()));
        }
    }
}
