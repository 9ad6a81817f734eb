//! The plan from the live cluster: both halves read and dry-run as the person, with the managers that will really apply them.
//!
//! Nothing is stored. An object whose namespace or kind comes with the bundle counts as created. Conflicts and refused objects are
//! collected, so that one run tells all of them.

use std::collections::BTreeSet;

use agent_api::digest::Sha256;
use agent_api::kind::Half;
use agent_api::names::{FIELD_MANAGER_APPROVE, FIELD_MANAGER_EXECUTOR};
use agent_api::object::{ObjectKey, RenderedObject};
use cluster::object::{self, Apply};
use cluster::{Client, ClusterError};
use executor_core::bundle::{Judged, stamped};
use futures::{StreamExt as _, stream};
use serde_json::Value;

use super::plan::{Action, FieldChange, PlannedObject, compare, created};
use super::rights;
use crate::error_code::{Code, Coded};

/// Requests side by side.
const PARALLEL: usize = 8;

/// The API server's words where a policy's parameter is not there.
const NO_PARAMETER: &str = "no params found for policy binding";

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

impl Coded for PreviewError {
    fn code(&self) -> Code {
        match self {
            Self::Refused(_) => Code::ObjectsRefused,
            Self::Cluster(error) => error.code(),
        }
    }

    fn hints(&self) -> Vec<String> {
        match self {
            Self::Refused(errors) if errors.iter().any(|error| error.to_string().contains(NO_PARAMETER)) => {
                vec![
                    "PlatformApproval `current` was removed; put an ended one in its place: clicklink clctl platform approve --revoke"
                        .into(),
                ]
            }
            Self::Refused(_) => Vec::new(),
            Self::Cluster(error) => error.hints(),
        }
    }
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
    let coming = Coming::of(judged);
    let mut refused = Vec::new();
    let mut halves = Vec::new();
    for half in [permissions.collect::<Vec<_>>(), workload.collect()] {
        let mut planned = Vec::new();
        let mut answers = stream::iter(half.into_iter().map(|(rendered, value, manager)| {
            let coming = &coming;
            async move { (rendered, one(client, &value, manager, coming).await) }
        }))
        .buffered(PARALLEL);
        while let Some((rendered, answer)) = answers.next().await {
            match answer {
                Ok((action, fields)) => planned.push(line(rendered, action, fields, foreign.contains(&rendered.key()))),
                Err(
                    error @ (ClusterError::Conflict { .. }
                    | ClusterError::Invalid { .. }
                    | ClusterError::Forbidden { .. }
                    | ClusterError::NotFound { .. }),
                ) => refused.push(error),
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

fn line(rendered: &RenderedObject, action: Action, fields: Vec<FieldChange>, foreign: bool) -> PlannedObject {
    let permission = rendered.half() == Some(Half::Permissions);
    let fields = if permission && action == Action::Create { created(&rendered.object) } else { fields };
    let grants = if permission && action != Action::Unchanged { rights::lines(&rendered.object) } else { Vec::new() };
    PlannedObject { object: rendered.key().to_string(), component: rendered.component.clone(), action, foreign, fields, grants }
}

/// What the bundle brings, so that it may be missing now.
struct Coming {
    namespaces: BTreeSet<String>,
    groups: BTreeSet<String>,
}

impl Coming {
    fn of(judged: &Judged) -> Self {
        let of_kind = |kind: &'static str| judged.permissions().iter().filter(move |object| object.key().kind == kind);
        let group = |object: &RenderedObject| object.object.pointer("/spec/group").and_then(Value::as_str).map(str::to_owned);
        Self {
            namespaces: of_kind("Namespace").map(|object| object.key().name).collect(),
            groups: of_kind("CustomResourceDefinition").filter_map(group).collect(),
        }
    }

    /// Whether "not found" is no answer but a matter of order.
    fn holds(&self, key: &ObjectKey) -> bool {
        self.namespaces.contains(&key.namespace) || self.groups.contains(&key.group)
    }
}

async fn one(client: &Client, value: &Value, manager: &'static str, coming: &Coming) -> Result<(Action, Vec<FieldChange>), ClusterError> {
    let live = object::get(client, value).await?;
    match object::apply_over(client, value, live.as_ref(), Apply { manager, dry_run: true }).await {
        Ok(applied) => Ok(compare(live.as_ref(), &applied.object)),
        Err(ClusterError::NotFound { .. }) if live.is_none() && coming.holds(&ObjectKey::of(value)) => Ok((Action::Create, Vec::new())),
        Err(error) => Err(error),
    }
}
