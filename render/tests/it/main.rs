//! The crate against the real chart engine, a real confinement, and a registry that speaks TLS on loopback.

mod confinement;
mod engine;
mod registry;
mod rendering;
mod support;
