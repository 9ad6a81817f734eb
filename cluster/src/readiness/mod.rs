//! When an object is ready: one published rule a kind ([`judge`]), and waiting for it by watching ([`wait`]).

mod last_words;
mod rule;
mod wait;

pub use rule::{HeldBack, Readiness, held_back, judge};
pub use wait::{WaitError, wait};
