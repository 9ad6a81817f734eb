//! The manager's rules: pure functions over plain data, the clock an argument. No store, no network here.

pub mod admission;
pub mod delivery;
pub mod enrolment;
pub mod permission;
pub mod refusal;
pub mod release;
pub mod resend;
pub mod token;
