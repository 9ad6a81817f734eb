//! How many executors may come in a second, and when those come back that were turned away.
//!
//! After a restart of the manager all come at once. What each costs is bounded by letting them in one by one; who is turned away is told
//! a moment at which there will be room, so that all are in as fast as the rate allows, and nobody knocks in vain twice.

use std::time::Duration;

/// What was configured.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rate {
    /// Connections a second.
    pub per_second: u32,
    /// Connections at once after a time of rest.
    pub burst: u32,
}

/// The longest wait that anybody is told.
const WAIT_AT_MOST: Duration = Duration::from_secs(60);

/// A bucket that fills at the rate, and those who were told to come back.
#[derive(Clone, Debug)]
pub struct Admission {
    rate: Rate,
    free: f64,
    /// How many were turned away and have not had their time yet.
    promised: f64,
    at: Duration,
}

impl Admission {
    /// A full bucket.
    #[must_use]
    pub fn new(rate: Rate) -> Self {
        Self { rate, free: f64::from(rate.burst), promised: 0.0, at: Duration::ZERO }
    }

    /// Lets one in, or says after how long there will be room for it. `now` from any fixed beginning; `random` between 0 and 1.
    ///
    /// # Errors
    /// The pause, in whole seconds as `Retry-After` has them.
    pub fn admit(&mut self, now: Duration, random: f64) -> Result<(), Duration> {
        let passed = now.saturating_sub(self.at).as_secs_f64() * f64::from(self.rate.per_second);
        self.at = self.at.max(now);
        self.free = (self.free + passed).min(f64::from(self.rate.burst));
        self.promised = (self.promised - passed).max(0.0);
        if self.free >= 1.0 {
            self.free -= 1.0;
            return Ok(());
        }
        self.promised += 1.0;
        let wait = self.promised / f64::from(self.rate.per_second);
        let seconds = (wait + random).ceil().clamp(1.0, WAIT_AT_MOST.as_secs_f64());
        Err(Duration::from_secs_f64(seconds))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: Rate = Rate { per_second: 100, burst: 50 };

    #[test]
    fn a_burst_then_the_rate() {
        let mut admission = Admission::new(RATE);
        let at = |millis| Duration::from_millis(millis);
        let admitted =
            |admission: &mut Admission, millis, knocks: u32| (0..knocks).filter(|_| admission.admit(at(millis), 0.5).is_ok()).count();
        assert_eq!(admitted(&mut admission, 0, 200), 50);
        assert_eq!(admitted(&mut admission, 100, 200), 10);
        assert_eq!(admitted(&mut admission, 60_000, 200), 50, "rest fills the bucket to the burst");
        assert_eq!(admitted(&mut admission, 0, 10), 0, "a clock that goes back gives nothing");
    }

    /// Everybody obeys: all of two thousand are in after a little more than they cost, and few are turned away more than twice.
    #[test]
    fn two_thousand_are_back_in_time() {
        let mut admission = Admission::new(RATE);
        let mut knocks: Vec<(u64, u32)> = (0..2000).map(|n| (n, 0)).collect();
        let (mut last, mut most) = (0, 0);
        while !knocks.is_empty() {
            knocks.sort_unstable();
            let (millis, tries) = knocks.remove(0);
            let random = f64::from((millis as u32).wrapping_mul(2_654_435_761)) / f64::from(u32::MAX);
            match admission.admit(Duration::from_millis(millis), random) {
                Ok(()) => (last, most) = (last.max(millis), most.max(tries)),
                Err(wait) => knocks.push((millis + u64::try_from(wait.as_millis()).unwrap() + (random * 1000.0) as u64, tries + 1)),
            }
        }
        assert!((15_000..35_000).contains(&last), "{last} ms");
        assert!(most <= 8, "{most} times");
    }
}
