//! Both halves, object by object: what is live of each, and what the approval would change.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use agent_api::digest::Sha256;
use agent_api::kind::Half;
use agent_api::names::{FIELD_MANAGER_APPROVE, FIELD_MANAGER_EXECUTOR};
use agent_api::object::{ObjectKey, RenderedObject};
use cluster::{Client, ClusterError};
use executor_core::bundle::{Judged, stamped};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use serde_json::Value;

use super::super::plan::{Action, PlannedObject, created};
use super::super::rights;
use super::asked::{Answer, Question};
use super::gaps::Gaps;

/// Requests side by side: twice as many as elsewhere, since the API server lets one about a missing namespace wait for it.
const PARALLEL: usize = 16;

/// Both halves, each in the order of the bundle.
pub(super) struct Halves {
    pub(super) permissions: Vec<Seen>,
    pub(super) workload: Vec<Seen>,
    /// What cannot be applied as it is.
    pub(super) refused: Vec<ClusterError>,
}

/// An object, what is live of it where it could be read, and as what it would be created where that could be asked already.
pub(super) struct Seen {
    pub(super) planned: PlannedObject,
    pub(super) live: Option<Value>,
    pub(super) pinned: Option<Value>,
}

/// An object, as it is applied, and by whom.
type Asked<'a> = (&'a RenderedObject, Value, &'static str);

/// Reads and dry-runs both halves.
///
/// With `take_over`, fields of others are planned as they would be after they were taken over.
pub(super) async fn both(
    client: &Client,
    judged: &Judged,
    bundle: &Sha256,
    take_over: bool,
    gaps: &mut Gaps,
) -> Result<Halves, ClusterError> {
    let foreign: Vec<_> = judged.foreign_permissions().into_iter().map(RenderedObject::key).collect();
    let permissions = judged.permissions().iter().map(|object| (object, stamped(object, bundle), FIELD_MANAGER_APPROVE));
    let workload = judged.workload().iter().map(|object| (object, object.object.clone(), FIELD_MANAGER_EXECUTOR));
    let mut coming = Coming::of(judged);
    let mut refused: Vec<ClusterError> = Vec::new();
    let mut halves = Vec::new();
    for half in [permissions.collect::<Vec<_>>(), workload.collect()] {
        let mut seen = Vec::new();
        let answers = Asking { client, take_over, gaps, coming: &coming }.all(&half).await?;
        for ((rendered, ..), answer) in half.iter().zip(answers) {
            let key = rendered.key();
            match answer.action {
                Action::Unknown => gaps.unread(&key),
                _ if answer.estimate => gaps.undried(&key),
                Action::Create if key.kind == "Namespace" => drop(coming.missing.insert(key.name.clone())),
                _ => {}
            }
            if let Some(error) = answer.refused.as_ref().filter(|error| !refused.contains(error)) {
                refused.push(error.clone());
            }
            seen.push(line(rendered, answer, foreign.contains(&key)));
        }
        halves.push(seen);
    }
    let workload = halves.pop().unwrap_or_default();
    Ok(Halves { permissions: halves.pop().unwrap_or_default(), workload, refused })
}

struct Asking<'a> {
    client: &'a Client,
    take_over: bool,
    gaps: &'a Gaps,
    coming: &'a Coming,
}

impl Asking<'_> {
    /// One answer for each object. In a namespace that is not there yet nothing is live, and what may be asked depends on the kind alone: there
    /// one of each kind is asked for all.
    async fn all(&self, half: &[Asked<'_>]) -> Result<Vec<Answer>, ClusterError> {
        let mut answers: Vec<Option<Answer>> = half.iter().map(|_| None).collect();
        let (mut now, mut later, mut first) = (Vec::new(), Vec::new(), BTreeMap::new());
        for (i, (rendered, ..)) in half.iter().enumerate() {
            let key = rendered.key();
            if !self.coming.missing.contains(&key.namespace) {
                now.push(i);
                continue;
            }
            match first.entry((key.group, key.kind, key.namespace)) {
                Entry::Vacant(none) => {
                    none.insert(i);
                    now.push(i);
                }
                Entry::Occupied(asked) => later.push((i, *asked.get())),
            }
        }
        self.ask(half, &now, &mut answers).await?;
        let mut rest = Vec::new();
        for (i, alike) in later {
            match &answers[alike] {
                Some(Answer { action: Action::Create, estimate, .. }) => {
                    answers[i] = Some(Answer { estimate: *estimate, ..Answer::created() });
                }
                Some(_) | None => rest.push(i),
            }
        }
        self.ask(half, &rest, &mut answers).await?;
        Ok(answers.into_iter().flatten().collect())
    }

    async fn ask(&self, half: &[Asked<'_>], which: &[usize], answers: &mut [Option<Answer>]) -> Result<(), ClusterError> {
        let questions = which.iter().map(|i| async move {
            let (_, rendered, manager) = &half[*i];
            let question = Question { client: self.client, rendered, manager, take_over: self.take_over, gaps: self.gaps };
            question.ask(|key| self.coming.holds(key)).await.map(|answer| (*i, answer))
        });
        let questions: Vec<_> = questions.collect();
        let mut asked = stream::iter(questions).buffer_unordered(PARALLEL);
        while let Some((i, answer)) = asked.try_next().await? {
            answers[i] = Some(answer);
        }
        Ok(())
    }
}

fn line(rendered: &RenderedObject, answer: Answer, foreign: bool) -> Seen {
    let Answer { action, fields, estimate, replacement, unset, refused, taken, live, pinned } = answer;
    let permission = rendered.half() == Some(Half::Permissions);
    let told = !matches!(action, Action::Unchanged | Action::Refused);
    let fields = if permission && action == Action::Create { created(&rendered.object) } else { fields };
    let grants = if permission && told { rights::lines(&rendered.object) } else { Vec::new() };
    let refused = refused.map(|error| error.to_string());
    let (object, component) = (rendered.key().to_string(), rendered.component.clone());
    let approved_before = false;
    let uid = live.as_ref().and_then(|live| live.pointer("/metadata/uid")?.as_str()).map(str::to_owned);
    let planned = PlannedObject {
        object,
        component,
        action,
        estimate,
        foreign,
        fields,
        grants,
        approved_before,
        uid,
        replacement,
        unset,
        refused,
        taken,
    };
    Seen { planned, live, pinned }
}

/// What the bundle brings, so that it may be missing now.
struct Coming {
    namespaces: BTreeSet<String>,
    groups: BTreeSet<String>,
    /// Those of the namespaces that are not there yet.
    missing: BTreeSet<String>,
}

impl Coming {
    fn of(judged: &Judged) -> Self {
        let of_kind = |kind: &'static str| judged.permissions().iter().filter(move |object| object.key().kind == kind);
        let group = |object: &RenderedObject| object.object.pointer("/spec/group").and_then(Value::as_str).map(str::to_owned);
        Self {
            namespaces: of_kind("Namespace").map(|object| object.key().name).collect(),
            groups: of_kind("CustomResourceDefinition").filter_map(group).collect(),
            missing: BTreeSet::new(),
        }
    }

    /// Whether "not found" is no answer but a matter of order.
    fn holds(&self, key: &ObjectKey) -> bool {
        self.namespaces.contains(&key.namespace) || self.groups.contains(&key.group)
    }
}
