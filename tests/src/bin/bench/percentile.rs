//! Percentiles of times.

use std::time::Duration;

/// Times that were measured one by one.
#[derive(Default)]
pub(crate) struct Times(Vec<Duration>);

impl Times {
    pub(crate) fn push(&mut self, time: Duration) {
        self.0.push(time);
    }

    /// The time, in milliseconds, that so many of a hundred do not exceed (nearest rank).
    pub(crate) fn percentile(&self, of_hundred: usize) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_unstable();
        let rank = (sorted.len() * of_hundred).div_ceil(100);
        sorted.get(rank.saturating_sub(1)).map_or(f64::NAN, |time| time.as_secs_f64() * 1e3)
    }

    /// How many were measured.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// How many follow one another in a second.
    pub(crate) fn per_second(&self) -> f64 {
        self.0.len() as f64 / self.0.iter().sum::<Duration>().as_secs_f64()
    }
}

/// The middle one of some values (the upper of two).
pub(crate) fn median(values: &mut [f64]) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}
