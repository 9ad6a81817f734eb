//! The vendor's side: `navin-manager serve` is the server, every other command is a client of its REST API.
//!
//! ```text
//! http  ── who asks, what they get        channel ── what goes over an executor's connection
//!    └──────────┬──────────────────────────────┘
//!            domain ── the rules: pure, the clock an argument
//!             store ── rows; pki ── keys and certificates; serve ── start and stop; cli ── the commands
//! ```

pub mod channel;
pub mod cli;
pub mod config;
pub mod domain;
pub mod http;
pub mod pki;
pub mod serve;
pub mod store;
