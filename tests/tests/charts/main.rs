//! Charts at the boundary to Helm: what the chart engine makes of them is what `helm template` and kubectl make of them.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod capabilities;
mod corpus;
mod editions;
mod full_disk;
mod generated;
mod helm;
mod kept;
mod ours;
mod rules;
