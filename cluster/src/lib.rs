//! The Kubernetes API as our processes use it: connections, server-side apply, readiness, reviews, tokens.
//!
//! Objects are raw JSON, named by the table of kinds in `agent-api`, so that no answer of a cluster changes where a write goes.
//! Deliberately absent: what a bundle may hold, what may be written by whom, and any decision of the executor.

pub mod address;
pub mod capabilities;
pub mod connect;
pub mod crd;
mod error;
pub mod exact;
pub mod guard;
pub mod inventory;
pub mod object;
pub mod readiness;
mod request;
mod resource;
pub mod review;
pub mod token;
mod told;

pub use error::ClusterError;
pub use kube::Client;
