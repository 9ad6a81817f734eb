//! `navin-operator`: carries out `ManagedComponent` (`platform.navin.ai/v1alpha1`) in the namespaces that it is given.
//!
//! Here: the decisions of each reconcile step, pure, and the generators of `operator/config/`. Deliberately absent: a Kubernetes client of our
//! own (`cluster`), charts (`render`), and everything of the executor.

pub mod cli;
pub mod generate;
#[cfg(test)]
mod published;
pub mod rbac;
pub mod reconcile;
pub mod run_arguments;
