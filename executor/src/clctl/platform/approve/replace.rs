//! `--replace`: what no apply can change is deleted, so that it can be made anew. Of the permissions half right before it is applied, of the
//! workload half before the new approval is written; the executor makes that one again.

use std::collections::BTreeSet;

use agent_api::object::RenderedObject;
use cluster::{Client, ClusterError, object};
use serde_json::Value;

use super::super::removal::{self, RemovalError};
use super::plan::Plan;
use crate::error_code::{Code, Coded};
use crate::terminal::talk;

/// Why something was not replaced.
#[derive(Debug, thiserror::Error)]
pub(super) enum ReplaceError {
    /// Its objects would go with it.
    #[error("{0} has objects, and deleting it would delete them all: nothing was changed; migrate them by hand first, as the plan says")]
    HasObjects(String),
    /// The cluster.
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    /// It does not go.
    #[error("{0}; the token bundle is untouched, and approve can be run again")]
    Removal(#[from] RemovalError),
}

impl Coded for ReplaceError {
    fn code(&self) -> Code {
        match self {
            Self::HasObjects(_) => Code::ObjectsRefused,
            Self::Cluster(error) => error.code(),
            Self::Removal(error) => error.code(),
        }
    }

    fn hints(&self) -> Vec<String> {
        match self {
            Self::HasObjects(_) => Vec::new(),
            Self::Cluster(error) => error.hints(),
            Self::Removal(error) => error.hints(),
        }
    }
}

/// What is to be replaced of a plan that was agreed to, by its name there.
pub(super) fn of(plan: &Plan) -> BTreeSet<String> {
    plan.replacements().map(|(object, _)| object.to_owned()).collect()
}

/// Sees that nothing is to be replaced that holds what a bundle does not bring back.
pub(super) async fn check(client: &Client, permissions: &[RenderedObject], replaced: &BTreeSet<String>) -> Result<(), ReplaceError> {
    for definition in of_half(permissions, replaced).filter(|object| object.key().kind == "CustomResourceDefinition") {
        if let Some(live) = object::get(client, &definition.object).await?
            && object::any_of(client, &live).await?
        {
            return Err(ReplaceError::HasObjects(definition.key().to_string()));
        }
    }
    Ok(())
}

/// Deletes what of a half is to be replaced, until it is gone.
pub(super) async fn remove(client: &Client, half: &[RenderedObject], replaced: &BTreeSet<String>) -> Result<(), ReplaceError> {
    let objects: Vec<Value> = of_half(half, replaced).map(|rendered| rendered.object.clone()).collect();
    for rendered in of_half(half, replaced) {
        talk(format_args!("  {} is deleted, to be made anew", rendered.key()));
    }
    Ok(removal::remove(client, &objects).await?)
}

fn of_half<'a>(half: &'a [RenderedObject], replaced: &'a BTreeSet<String>) -> impl Iterator<Item = &'a RenderedObject> {
    half.iter().filter(|rendered| replaced.contains(&rendered.key().to_string()))
}
