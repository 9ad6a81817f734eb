//! The whole workload half in a dry run, as `pcm-platform`, before the first write: what changed since the approval (a field that somebody took
//! over, a quota, an admission policy) is found while nothing is half applied.

use std::collections::BTreeSet;
use std::time::Instant;

use agent_api::names::FIELD_MANAGER_EXECUTOR;
use agent_api::object::{ObjectKey, RenderedObject};
use cluster::object::{self, Apply};
use cluster::{Client, ClusterError};
use executor_core::{Approved, ReadError};
use futures::{StreamExt, TryStreamExt};

use super::{CONCURRENCY, PAUSE, PROPAGATION, may_propagate};
use crate::terminal::chain;

const DRY: Apply = Apply { manager: FIELD_MANAGER_EXECUTOR, dry_run: true };

/// What would not be taken, a sentence each, in the order of the workload half. Jobs that are done are not written again.
pub(super) async fn refused(client: &Client, approved: &Approved, jobs_done: &BTreeSet<ObjectKey>) -> Result<Vec<String>, ReadError> {
    let began = Instant::now();
    let objects = approved.judged().workload().iter().filter(|object| !jobs_done.contains(&object.key()));
    let questions: Vec<_> = objects.map(|object| one(client, object, began)).collect();
    let answers = futures::stream::iter(questions).buffered(CONCURRENCY);
    answers.try_filter_map(|refusal| async { Ok(refusal) }).try_collect().await
}

/// A denial is asked again while rights may still be on their way, and for all objects together no longer than that.
async fn one(client: &Client, rendered: &RenderedObject, began: Instant) -> Result<Option<String>, ReadError> {
    loop {
        match object::apply_over(client, &rendered.object, None, DRY).await {
            Ok(_) => return Ok(None),
            Err(ClusterError::Unauthorized { .. }) => return Err(ReadError::Unauthorized),
            Err(error) if may_propagate(&error) && began.elapsed() < PROPAGATION => tokio::time::sleep(PAUSE).await,
            Err(
                error @ (ClusterError::Conflict { .. }
                | ClusterError::Invalid { .. }
                | ClusterError::Forbidden { .. }
                | ClusterError::NotFound { .. }),
            ) => return Ok(Some(chain(&error))),
            Err(error) => return Err(ReadError::Other(chain(&error))),
        }
    }
}
