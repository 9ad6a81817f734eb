//! The plan from the live cluster: both halves read and dry-run as the person, with the managers that will really apply them.
//!
//! Nothing is stored. An object whose namespace or kind comes with the bundle counts as created. Conflicts and refused objects are lines of
//! the plan, so that one run tells all of them. A person who only looks (`--dry-run`) and may not dry-run gets estimates instead.

mod asked;
mod gaps;
mod leftovers;
mod objects;
mod rbac;

use std::collections::BTreeMap;

use agent_api::approval::Capabilities;
use agent_api::digest::Sha256;
use agent_api::platform_approval::key;
use cluster::{Client, ClusterError};
use executor_core::bundle::Judged;
use executor_core::privilege::{self, Comparison, PodAccess};
use serde_json::Value;

use self::gaps::Gaps;
use super::plan::{Leftover, PlannedObject};

/// What of a plan is read from the cluster.
pub(super) struct Preview {
    pub(super) permissions: Vec<PlannedObject>,
    pub(super) workload: Vec<PlannedObject>,
    /// What the API server would create of an object that is live, by its key in the approval: what a person agrees to, and what is pinned.
    pub(super) pinned: BTreeMap<String, Value>,
    pub(super) leftovers: Vec<Leftover>,
    pub(super) privileges: Comparison,
    pub(super) pods: Vec<PodAccess>,
    pub(super) estimates: Vec<String>,
    /// What cannot be applied as it is.
    pub(super) refused: Vec<ClusterError>,
}

/// Reads and dry-runs. With `estimates` what is forbidden for the person becomes an estimate, and without it an error.
pub(super) async fn preview(
    client: &Client,
    judged: &Judged,
    bundle: &Sha256,
    served: &Capabilities,
    take_over: bool,
    estimates: bool,
) -> Result<Preview, ClusterError> {
    let mut gaps = Gaps::new(estimates);
    let halves = objects::both(client, judged, bundle, take_over, &mut gaps).await?;
    let rendered = judged.permissions().iter().map(|object| &object.object);
    let live = rbac::live(client, judged, halves.permissions.iter().filter_map(|seen| seen.live.as_ref()), &mut gaps).await?;
    let privileges = privilege::compare(&live, rendered);
    let live: Vec<Value> = leftovers::live(client, judged, served, &mut gaps).await?;
    let pods = judged.workload().iter().zip(&halves.workload);
    let pods = pods.filter_map(|(rendered, seen)| PodAccess::of(&rendered.object, seen.live.as_ref())).collect();
    let seen = judged.workload().iter().zip(&halves.workload);
    let pinned = seen.filter_map(|(rendered, seen)| Some((key(&rendered.key()), seen.pinned.clone()?))).collect();
    let planned = |half: Vec<objects::Seen>| half.into_iter().map(|seen| seen.planned).collect();
    Ok(Preview {
        permissions: planned(halves.permissions),
        workload: planned(halves.workload),
        pinned,
        leftovers: leftovers::of(&live, judged),
        privileges,
        pods,
        estimates: gaps.sentences(),
        refused: halves.refused,
    })
}
