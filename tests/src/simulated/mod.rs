//! A strict executor without a cluster: it enrols, signs every request, holds a connection, and says only what it is told to. By the
//! thousand it is the load that a manager has.
//!
//! Whatever is not as the contract has it panics: this is for tests and measurements.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod channel;
mod executor;
mod fleet;

pub use channel::{Channel, hello};
pub use executor::{Executor, client, headers, problem};
pub use fleet::{come, enrol};

/// A manager as executors come to it.
pub trait Server {
    /// Whose it is.
    fn organisation(&self) -> &str;
    /// `https://host:port`.
    fn endpoint(&self) -> &str;
    /// PEM of its CA.
    fn ca(&self) -> String;
    /// A one-time token for this cluster.
    fn enrolment_token(&self, cluster: &str) -> String;
}
