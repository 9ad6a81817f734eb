//! Both halves, object by object: what is live of each, and what the approval would change.

use std::collections::BTreeSet;

use agent_api::digest::Sha256;
use agent_api::kind::Half;
use agent_api::names::{FIELD_MANAGER_APPROVE, FIELD_MANAGER_EXECUTOR};
use agent_api::object::{ObjectKey, RenderedObject};
use cluster::{Client, ClusterError};
use executor_core::bundle::{Judged, stamped};
use futures::{StreamExt as _, stream};
use serde_json::Value;

use super::super::plan::{Action, PlannedObject, created};
use super::super::rights;
use super::PreviewError;
use super::asked::{Answer, Question};
use super::gaps::Gaps;

/// Requests side by side: twice as many as elsewhere, since the API server lets one about a missing namespace wait for it.
const PARALLEL: usize = 16;

/// Both halves, each in the order of the bundle.
pub(super) struct Halves {
    pub(super) permissions: Vec<Seen>,
    pub(super) workload: Vec<Seen>,
}

/// An object, what is live of it where it could be read, and what of it will be pinned where that could be asked already.
pub(super) struct Seen {
    pub(super) planned: PlannedObject,
    pub(super) live: Option<Value>,
    pub(super) pinned: Option<Value>,
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
            async move {
                let question = Question { client, rendered: &value, manager, take_over, gaps: asking };
                (rendered, question.ask(|key| coming.holds(key)).await)
            }
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
    let Answer { action, fields, estimate, replacement, unset, taken, live, pinned } = answer;
    let permission = rendered.half() == Some(Half::Permissions);
    let fields = if permission && action == Action::Create { created(&rendered.object) } else { fields };
    let grants = if permission && action != Action::Unchanged { rights::lines(&rendered.object) } else { Vec::new() };
    let (object, component) = (rendered.key().to_string(), rendered.component.clone());
    let planned = PlannedObject { object, component, action, estimate, foreign, fields, grants, replacement, unset, taken };
    Seen { planned, live, pinned }
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
