//! The whole workload half in a dry run, as `pcm-platform`, before the first write: what changed since the approval (a field that somebody took
//! over, a quota, an admission policy) is found while nothing is half applied.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use agent_api::names::FIELD_MANAGER_EXECUTOR;
use agent_api::object::{ObjectKey, RenderedObject};
use cluster::ClusterError;
use cluster::object::{self, Found};
use executor_core::{Approved, ReadError};
use futures::{StreamExt, TryStreamExt};

use super::CONCURRENCY;
use super::account::{Account, Denied};
use crate::terminal::chain;

/// What it found.
#[derive(Default)]
pub(super) struct DryRun {
    /// What would not be taken, a sentence each, in the order of the workload half.
    pub(super) refused: Vec<String>,
    /// What is in the objects' places.
    pub(super) found: BTreeMap<ObjectKey, Found>,
}

/// Asks of every object, but for Jobs that are done: they are not written again.
pub(super) async fn of(account: &Account, approved: &Approved, jobs_done: &BTreeSet<ObjectKey>) -> Result<DryRun, ReadError> {
    let began = Instant::now();
    let objects = approved.judged().workload().iter().filter(|object| !jobs_done.contains(&object.key()));
    let questions: Vec<_> = objects.map(|object| one(account, object, began)).collect();
    let mut answers = futures::stream::iter(questions).buffered(CONCURRENCY);
    let mut dry_run = DryRun::default();
    while let Some(answer) = answers.try_next().await? {
        match answer {
            Ok((object, found)) => drop(dry_run.found.insert(object, found)),
            Err(refusal) => dry_run.refused.push(refusal),
        }
    }
    Ok(dry_run)
}

type Answer = Result<(ObjectKey, Found), String>;

/// A denial is asked again while rights may still be on their way, and for all objects together no longer than that.
async fn one(account: &Account, rendered: &RenderedObject, began: Instant) -> Result<Answer, ReadError> {
    loop {
        let error = match object::dry_run(&account.client, &rendered.object, FIELD_MANAGER_EXECUTOR).await {
            Ok(found) => return Ok(Ok((rendered.key(), found))),
            Err(error) => error,
        };
        match account.try_again(error, began).await {
            Ok(()) => {}
            Err(Denied::Refused(
                error @ (ClusterError::Conflict { .. }
                | ClusterError::Invalid { .. }
                | ClusterError::Forbidden { .. }
                | ClusterError::NotFound { .. }
                | ClusterError::Terminating { .. }),
            )) => return Ok(Err(chain(&error))),
            Err(denied) => return Err(denied.into()),
        }
    }
}
