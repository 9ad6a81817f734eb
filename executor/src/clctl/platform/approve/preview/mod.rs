//! The plan from the live cluster: both halves read and dry-run as the person, with the managers that will really apply them.
//!
//! Nothing is stored. An object whose namespace or kind comes with the bundle counts as created. Conflicts and refused objects are
//! collected, so that one run tells all of them. A person who only looks (`--dry-run`) and may not dry-run gets estimates instead.

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
use super::plan::{Leftover, Plan, PlannedObject, Replacement};
use crate::error_code::{Code, Coded};
use crate::terminal::escaped;

/// The API server's words where a policy's parameter is not there.
const NO_PARAMETER: &str = "no params found for policy binding";

/// Why there is no plan, or none that can be approved.
#[derive(Debug, thiserror::Error)]
pub(super) enum PreviewError {
    /// Objects that cannot be applied as they are.
    #[error("{} cannot be applied, and nothing was changed:{}", if .0.len() == 1 { "an object" } else { "objects" }, show(.0))]
    Refused(Vec<ClusterError>),
    /// Objects that no apply can change.
    #[error("{} must be replaced, and nothing was changed:{}", if .0.len() == 1 { "an object" } else { "objects" }, replacements(.0))]
    MustBeReplaced(Vec<(String, Replacement)>),
    /// The cluster could not be asked.
    #[error(transparent)]
    Cluster(#[from] ClusterError),
}

impl Coded for PreviewError {
    fn code(&self) -> Code {
        match self {
            Self::Refused(_) | Self::MustBeReplaced(_) => Code::ObjectsRefused,
            Self::Cluster(error) => error.code(),
        }
    }

    fn hints(&self) -> Vec<String> {
        match self {
            Self::Refused(errors) if errors.iter().any(|error| error.to_string().contains(NO_PARAMETER)) => {
                vec![
                    "PlatformApproval `current` or the Secret `pcm-platform-pins` was removed; put ended ones in their place: clicklink clctl platform \
                     approve --revoke"
                        .into(),
                ]
            }
            Self::Refused(errors) if errors.iter().any(|error| matches!(error, ClusterError::Conflict { .. })) => {
                vec!["move the ownership of these fields with their content: the same command with --take-over".into()]
            }
            Self::Refused(_) => Vec::new(),
            Self::MustBeReplaced(_) => {
                vec![
                    "delete them and make them anew: the same command with --replace; what is deleted is gone until the bundle is applied"
                        .into(),
                ]
            }
            Self::Cluster(error) => error.hints(),
        }
    }
}

fn show(refusals: &[ClusterError]) -> String {
    refusals.iter().map(|refusal| item(&refusal.to_string())).collect()
}

fn replacements(objects: &[(String, Replacement)]) -> String {
    objects.iter().map(|(object, how)| item(&format!("{object}: {}; by hand: {}", how.reason, how.by_hand))).collect()
}

/// One line: the name of a role may hold a line break.
fn item(text: &str) -> String {
    format!("\n  - {}", escaped(text, &[]))
}

/// What of a plan is read from the cluster.
pub(super) struct Preview {
    pub(super) permissions: Vec<PlannedObject>,
    pub(super) workload: Vec<PlannedObject>,
    /// What of a live object will be pinned, by its key in the approval: what a person agrees to.
    pub(super) pinned: BTreeMap<String, Value>,
    pub(super) leftovers: Vec<Leftover>,
    pub(super) privileges: Comparison,
    pub(super) pods: Vec<PodAccess>,
    pub(super) estimates: Vec<String>,
}

/// Reads and dry-runs. With `estimates` what is forbidden for the person becomes an estimate, and without it an error.
pub(super) async fn preview(
    client: &Client,
    judged: &Judged,
    bundle: &Sha256,
    served: &Capabilities,
    take_over: bool,
    estimates: bool,
) -> Result<Preview, PreviewError> {
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
    })
}

/// Stops where something must be replaced: `approve` only applies.
pub(super) fn refuse_replacements(plan: &Plan) -> Result<(), PreviewError> {
    let all: Vec<_> = plan.replacements().map(|(object, how)| (object.to_owned(), how.clone())).collect();
    if all.is_empty() { Ok(()) } else { Err(PreviewError::MustBeReplaced(all)) }
}
