//! What the command lines of our programs share: the question before a change, and the reference that is committed.
//!
//! How a program prints its data and its errors is its own.

pub mod question;
pub mod reference;
