//! `navin-operator`: carries out `ManagedComponent` (`platform.navin.ai/v1alpha1`) in the namespaces that it is given.
//!
//! `reconcile` decides, pure; `controller` carries out while `leader` says so; `chart` fetches what `render` renders; `generate` makes
//! `operator/config/`. Deliberately absent: a Kubernetes client of our own (`cluster`), rendering (`render`), and everything of the executor.

pub mod chart;
pub mod cli;
pub mod controller;
pub mod generate;
pub mod health;
pub mod leader;
#[cfg(test)]
mod published;
pub mod rbac;
pub mod reconcile;
pub mod run;
pub mod run_arguments;
