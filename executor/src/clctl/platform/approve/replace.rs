//! `--replace`: what no apply can change is deleted, so that it can be made anew. Of the permissions half right before it is applied, of the
//! workload half before the new approval is written; the executor makes that one again.

use std::collections::BTreeMap;

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
    #[error("{0} has objects, and deleting it would delete them all: nothing was deleted; migrate them by hand first, as the plan says")]
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

/// What is to be replaced of a plan that was agreed to: the uid of what was shown, by its name there.
pub(super) fn of(plan: &Plan) -> BTreeMap<String, String> {
    let replaced = plan.objects().filter(|object| object.replacement.is_some());
    replaced.map(|object| (object.object.clone(), object.uid.clone().unwrap_or_default())).collect()
}

/// Sees that nothing is to be replaced that holds what a bundle does not bring back: before somebody is asked, and once more when they have agreed.
pub(super) async fn check(
    client: &Client,
    permissions: &[RenderedObject],
    replaced: &BTreeMap<String, String>,
) -> Result<(), ReplaceError> {
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
pub(super) async fn remove(client: &Client, half: &[RenderedObject], replaced: &BTreeMap<String, String>) -> Result<(), ReplaceError> {
    check(client, half, replaced).await?;
    let shown = |rendered: &RenderedObject| {
        let mut object = rendered.object.clone();
        object["metadata"]["uid"] = replaced.get(&rendered.key().to_string()).cloned().into();
        object
    };
    let objects: Vec<Value> = of_half(half, replaced).map(shown).collect();
    for rendered in of_half(half, replaced) {
        talk(format_args!("  {} is deleted, to be made anew", rendered.key()));
    }
    Ok(removal::remove(client, &objects).await?)
}

fn of_half<'a>(half: &'a [RenderedObject], replaced: &'a BTreeMap<String, String>) -> impl Iterator<Item = &'a RenderedObject> {
    half.iter().filter(|rendered| replaced.contains_key(&rendered.key().to_string()))
}
