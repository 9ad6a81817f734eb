//! What an apply would be refused with is unset with the person's credentials, before the new approval is written; see `plan::unset`.

use std::collections::BTreeSet;

use agent_api::names::{FIELD_MANAGER_APPROVE, FIELD_MANAGER_EXECUTOR};
use agent_api::object::RenderedObject;
use cluster::{Client, ClusterError, object};

use super::{plan, take_over};

/// What is set in its place, and that the executor's apply must be able to own.
const SET: &str = ".spec.strategy.type";

/// Unsets what a person agreed to, by the objects' names in the plan.
pub(super) async fn all(client: &Client, workload: &[RenderedObject], unset: &BTreeSet<String>) -> Result<(), ClusterError> {
    for rendered in workload.iter().filter(|rendered| unset.contains(&rendered.key().to_string())) {
        let wanted = &rendered.object;
        object::modify(client, wanted, FIELD_MANAGER_APPROVE, |live| plan::unset(live, wanted).map(|(_, mended)| mended)).await?;
        let ours = [(FIELD_MANAGER_APPROVE.to_owned(), SET.to_owned())];
        take_over::take(client, wanted, &ours, FIELD_MANAGER_EXECUTOR).await?;
    }
    Ok(())
}
