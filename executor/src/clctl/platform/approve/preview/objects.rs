//! Each object of both halves: read, and dry-run.

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

use super::super::plan::{Action, FieldChange, PlannedObject, Replacement, Taken, applied, compare, created, replacement};
use super::super::{pins, rights};
use super::PreviewError;
use super::gaps::Gaps;

/// Requests side by side.
const PARALLEL: usize = 8;

/// Both halves, each in the order of the bundle.
pub(super) struct Halves {
    pub(super) permissions: Vec<Seen>,
    pub(super) workload: Vec<Seen>,
}

/// An object, and what is live of it where it could be read.
pub(super) struct Seen {
    pub(super) planned: PlannedObject,
    pub(super) live: Option<Value>,
}

/// Reads and dry-runs both halves.
///
/// With `take_over`, fields of others are planned as they would be after they were taken over.
pub(super) async fn both(
    client: &Client,
    judged: &Judged,
    bundle: &Sha256,
    take_over: bool,
    gaps: &mut Gaps,
) -> Result<Halves, PreviewError> {
    let foreign: Vec<_> = judged.foreign_permissions().into_iter().map(RenderedObject::key).collect();
    let permissions = judged.permissions().iter().map(|object| (object, stamped(object, bundle), FIELD_MANAGER_APPROVE));
    let workload = judged.workload().iter().map(|object| (object, object.object.clone(), FIELD_MANAGER_EXECUTOR));
    let coming = Coming::of(judged);
    let mut refused = Vec::new();
    let mut halves = Vec::new();
    for half in [permissions.collect::<Vec<_>>(), workload.collect()] {
        let mut seen = Vec::new();
        let asking = &*gaps;
        let answers: Vec<_> = stream::iter(half.into_iter().map(|(rendered, value, manager)| {
            let coming = &coming;
            async move { (rendered, one(client, &value, manager, coming, take_over, asking).await) }
        }))
        .buffered(PARALLEL)
        .collect()
        .await;
        for (rendered, answer) in answers {
            match answer {
                Ok(answer) => {
                    let key = rendered.key();
                    match answer.action {
                        Action::Unknown => gaps.unread(&key),
                        _ if answer.estimate => gaps.undried(&key),
                        _ => {}
                    }
                    seen.push(line(rendered, answer, foreign.contains(&key)));
                }
                Err(
                    error @ (ClusterError::Conflict { .. }
                    | ClusterError::Invalid { .. }
                    | ClusterError::Forbidden { .. }
                    | ClusterError::NotFound { .. }),
                ) => refused.push(error),
                Err(error) => return Err(error.into()),
            }
        }
        halves.push(seen);
    }
    if !refused.is_empty() {
        return Err(PreviewError::Refused(refused));
    }
    let workload = halves.pop().unwrap_or_default();
    Ok(Halves { permissions: halves.pop().unwrap_or_default(), workload })
}

fn line(rendered: &RenderedObject, answer: Answer, foreign: bool) -> Seen {
    let Answer { action, fields, estimate, replacement, taken, live } = answer;
    let permission = rendered.half() == Some(Half::Permissions);
    let fields = if permission && action == Action::Create { created(&rendered.object) } else { fields };
    let grants = if permission && action != Action::Unchanged { rights::lines(&rendered.object) } else { Vec::new() };
    let (object, component) = (rendered.key().to_string(), rendered.component.clone());
    Seen { planned: PlannedObject { object, component, action, estimate, foreign, fields, grants, replacement, taken }, live }
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

struct Answer {
    action: Action,
    fields: Vec<FieldChange>,
    estimate: bool,
    replacement: Option<Replacement>,
    taken: Vec<Taken>,
    live: Option<Value>,
}

impl Answer {
    fn new((action, fields): (Action, Vec<FieldChange>), live: Option<Value>) -> Self {
        Self { action, fields, estimate: false, replacement: None, taken: Vec::new(), live }
    }
}

async fn one(
    client: &Client,
    value: &Value,
    manager: &'static str,
    coming: &Coming,
    take_over: bool,
    gaps: &Gaps,
) -> Result<Answer, ClusterError> {
    let live = match object::get(client, value).await {
        Ok(live) => live,
        Err(error) if gaps.lets_pass(&error) => return Ok(Answer::new((Action::Unknown, Vec::new()), None)),
        Err(error) => return Err(error),
    };
    let estimate = live.as_ref().map(|live| applied(live, value, manager));
    let compared = |result: &Value| compare(live.as_ref(), result);
    if let (Some(live), Some(result)) = (&live, &estimate)
        && let Some(replacement) = replacement(live, value, result)
        && let Some(estimate) = could_be_made(client, value, manager, gaps).await
    {
        let (_, fields) = compared(result);
        return Ok(Answer { estimate, replacement: Some(replacement), ..Answer::new((Action::Replace, fields), Some(live.clone())) });
    }
    match object::apply_over(client, value, live.as_ref(), Apply { manager, dry_run: true }).await {
        Ok(applied) => Ok(Answer::new(compared(&applied.object), live)),
        Err(ClusterError::NotFound { .. }) if live.is_none() && coming.holds(&ObjectKey::of(value)) => {
            Ok(Answer::new((Action::Create, Vec::new()), None))
        }
        Err(ClusterError::Conflict { fields, .. }) if take_over && live.is_some() => {
            let taken = fields.into_iter().map(|(manager, field)| Taken { manager, field }).collect();
            let difference = compared(&object::forced(client, value, manager).await?);
            Ok(Answer { taken, ..Answer::new(difference, live) })
        }
        Err(error) if gaps.lets_pass(&error) => {
            let difference = compared(estimate.as_ref().unwrap_or(value));
            Ok(Answer { estimate: true, ..Answer::new(difference, live) })
        }
        Err(error) => Err(error),
    }
}

/// Whether an object could be made in the place of one that must go, asked under a name that nobody has: nobody should delete what then
/// cannot be made anew. `None` where not, so that the API server's own answer is told; else whether that was not asked but assumed.
async fn could_be_made(client: &Client, value: &Value, manager: &'static str, gaps: &Gaps) -> Option<bool> {
    let mut scratch = pins::scratch(value);
    match ObjectKey::of(value).kind.as_str() {
        // Its name is part of what it says, and it stays.
        "CustomResourceDefinition" => return Some(false),
        // There may be one in a cluster, and that may be the one that goes.
        "PriorityClass" => scratch.as_object_mut().map(|class| class.remove("globalDefault")),
        _ => None,
    };
    match object::create(client, &scratch, Apply { manager, dry_run: true }).await {
        Ok(_) => Some(false),
        Err(error) if gaps.lets_pass(&error) => Some(true),
        Err(_) => None,
    }
}
