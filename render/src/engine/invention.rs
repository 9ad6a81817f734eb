//! What stands in for time and chance, so that a rendering is a function of what the engine is given.

use jiff::{SignedDuration, Timestamp};
use serde::Serialize;

/// How far the second rendering's clock is ahead: another year, month, day, weekday, hour, minute and second.
const CLOCK_DISTANCE: SignedDuration = SignedDuration::from_secs(4_173 * 86_400 + 7 * 3_600 + 13 * 60 + 17);

/// Time and chance of one rendering.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Invention {
    /// What the chart is told the time is.
    pub clock: Timestamp,
    /// What stands in for chance; two seeds that differ by one differ in every random value.
    pub seed: u64,
}

impl Invention {
    /// Those of a first rendering, and of a second in which everything that is made up is another.
    #[must_use]
    pub fn pair(clock: Timestamp) -> [Self; 2] {
        [Self { clock, seed: 0 }, Self { clock: far_from(clock), seed: 1 }]
    }
}

/// A time far from the given one; before it where the calendar ends.
fn far_from(time: Timestamp) -> Timestamp {
    time.checked_add(CLOCK_DISTANCE).or_else(|_| time.checked_sub(CLOCK_DISTANCE)).unwrap_or(Timestamp::UNIX_EPOCH)
}
