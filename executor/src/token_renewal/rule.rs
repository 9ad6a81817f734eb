//! When a token is renewed, and when it is looked at again; pure.

use std::time::Duration;

use cluster::token::Claims;
use jiff::{SignedDuration, Timestamp};

/// No pause is shorter.
const LEAST: Duration = Duration::from_secs(1);

/// A token's life, by its own word.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Life {
    whole: SignedDuration,
    ends: Timestamp,
}

impl Life {
    /// One that does not say when it began is taken to have been granted as it would be asked for.
    pub(super) fn of(claims: &Claims, requested: Duration) -> Self {
        let whole = match claims.issued_at {
            Some(begin) => claims.expires_at.duration_since(begin),
            None => SignedDuration::try_from(requested).unwrap_or(SignedDuration::MAX),
        };
        Self { whole, ends: claims.expires_at }
    }

    /// A third of its life, or less, is left. One that has ended is due as well: the clocks may differ.
    pub(super) fn is_due(self, now: Timestamp) -> bool {
        self.ends.duration_since(now) <= self.whole / 3
    }

    /// Until the next look: the configured interval; for a token that was granted for less than six of them, a sixth of its life, so
    /// that two looks fall into its last third.
    pub(super) fn pause(self, interval: Duration) -> Duration {
        let sixth = Duration::try_from(self.whole / 6).unwrap_or_default();
        interval.min(sixth).max(LEAST)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: i64 = 60;
    const HOUR: i64 = 60 * MINUTE;

    fn life(issued: Option<i64>, ends: i64) -> Life {
        let at = |second| Timestamp::from_second(second).unwrap();
        let claims = Claims { expires_at: at(ends), issued_at: issued.map(at), subject: None, id: None };
        Life::of(&claims, Duration::from_secs(24 * 3600))
    }

    #[test]
    fn it_is_due_when_a_third_of_what_was_granted_is_left() {
        let check = |life: Life, due_from: i64| {
            for (now, due) in [(due_from - 1, false), (due_from, true), (due_from + 365 * 24 * HOUR, true)] {
                assert_eq!(life.is_due(Timestamp::from_second(now).unwrap()), due, "{life:?} at {now}");
            }
        };
        check(life(Some(0), 24 * HOUR), 16 * HOUR);
        check(life(Some(0), 2160 * HOUR), 1440 * HOUR);
        // Capped by the API server: what was asked for does not count.
        check(life(Some(0), 10 * MINUTE), 400);
        check(life(Some(5 * HOUR), 6 * HOUR), 5 * HOUR + 40 * MINUTE);
        check(life(None, 48 * HOUR), 40 * HOUR);
    }

    #[test]
    fn a_token_without_a_life_is_due() {
        let nonsense = life(Some(HOUR), 0);
        assert!(nonsense.is_due(Timestamp::from_second(HOUR).unwrap()));
        assert_eq!(nonsense.pause(Duration::from_secs(600)), LEAST);
    }

    #[test]
    fn a_short_token_is_looked_at_more_often() {
        let check = |ends, interval, expected| {
            assert_eq!(life(Some(0), ends).pause(Duration::from_secs(interval)), Duration::from_secs(expected), "{ends}, {interval}");
        };
        check(24 * HOUR, 600, 600);
        check(HOUR, 600, 600);
        check(10 * MINUTE, 600, 100);
        check(24 * HOUR, 24 * 3600, 4 * 3600);
        check(10 * MINUTE, 5, 5);
        check(3, 600, 1);
    }
}
