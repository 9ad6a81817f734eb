//! The plan from the live cluster: both halves read and dry-run as the person, with the managers that will really apply them.
//!
//! Nothing is stored. An object whose namespace or kind is not there yet counts as created. Conflicts and refused objects are
//! collected, so that one run tells all of them.

use agent_api::names::{FIELD_MANAGER_APPROVE, FIELD_MANAGER_EXECUTOR};
use agent_api::object::RenderedObject;
use cluster::object::{self, Apply};
use cluster::{Client, ClusterError};
use executor_core::bundle::{Judged, stamped};
use futures::{StreamExt as _, stream};
use serde_json::Value;

use super::plan::{Action, PlannedObject, compare};
use agent_api::digest::Sha256;

/// Requests side by side.
const PARALLEL: usize = 8;

/// Why there is no plan.
#[derive(Debug, thiserror::Error)]
pub(super) enum PreviewError {
    /// Objects that cannot be applied as they are.
    #[error("{} cannot be applied, and nothing was changed:{}", if .0.len() == 1 { "an object" } else { "objects" }, show(.0))]
    Refused(Vec<ClusterError>),
    /// The cluster could not be asked.
    #[error(transparent)]
    Cluster(#[from] ClusterError),
}

fn show(refusals: &[ClusterError]) -> String {
    refusals.iter().map(|refusal| format!("\n  - {refusal}")).collect()
}

/// Both halves of the plan.
pub(super) async fn preview(
    client: &Client,
    judged: &Judged,
    bundle: &Sha256,
) -> Result<(Vec<PlannedObject>, Vec<PlannedObject>), PreviewError> {
    let foreign: Vec<_> = judged.foreign_permissions().into_iter().map(RenderedObject::key).collect();
    let permissions = judged.permissions().iter().map(|object| (object, stamped(object, bundle), FIELD_MANAGER_APPROVE));
    let workload = judged.workload().iter().map(|object| (object, object.object.clone(), FIELD_MANAGER_EXECUTOR));
    let mut refused = Vec::new();
    let mut halves = Vec::new();
    for half in [permissions.collect::<Vec<_>>(), workload.collect()] {
        let mut planned = Vec::new();
        let mut answers =
            stream::iter(half.into_iter().map(|(rendered, value, manager)| async move { (rendered, one(client, &value, manager).await) }))
                .buffered(PARALLEL);
        while let Some((rendered, answer)) = answers.next().await {
            match answer {
                Ok((action, fields)) => planned.push(PlannedObject {
                    object: rendered.key().to_string(),
                    component: rendered.component.clone(),
                    action,
                    foreign: foreign.contains(&rendered.key()),
                    fields,
                }),
                Err(error @ (ClusterError::Conflict { .. } | ClusterError::Invalid { .. } | ClusterError::Forbidden { .. })) => {
                    refused.push(error);
                }
                Err(error) => return Err(error.into()),
            }
        }
        halves.push(planned);
    }
    if !refused.is_empty() {
        return Err(PreviewError::Refused(refused));
    }
    let workload = halves.pop().unwrap_or_default();
    Ok((halves.pop().unwrap_or_default(), workload))
}

async fn one(client: &Client, value: &Value, manager: &'static str) -> Result<(Action, Vec<super::plan::FieldChange>), ClusterError> {
    let live = object::get(client, value).await?;
    match object::apply_over(client, value, live.as_ref(), Apply { manager, dry_run: true }).await {
        Ok(applied) => Ok(compare(live.as_ref(), &applied.object)),
        // Its namespace or its kind comes with the bundle.
        Err(ClusterError::NotFound { .. }) if live.is_none() => Ok((Action::Create, Vec::new())),
        Err(error) => Err(error),
    }
}
