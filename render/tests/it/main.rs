//! The crate against the real chart engine, a real confinement, and a registry that speaks TLS on loopback.

#![expect(clippy::unwrap_used, reason = "what the tests stand on fails the test where it fails")]

mod confinement;
mod engine;
mod hostile;
mod registry;
mod registry_faults;
mod registry_logins;
mod rendering;
mod support;
mod twice;
