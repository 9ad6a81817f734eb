//! One object: what is live of it, and the API server's answers to what it would make of it. Everything is a dry run.
//!
//! Beside the apply that will really happen, a workload object that is live is created under a scratch name, as it will be pinned: what
//! the two answers differ in is content of others that an apply leaves, and that the pins deny.

use agent_api::names::FIELD_MANAGER_EXECUTOR;
use agent_api::object::ObjectKey;
use cluster::object::{self, Apply};
use cluster::{Client, ClusterError};
use executor_core::bundle::pins;
use serde_json::Value;

use super::super::plan::{Action, FieldChange, Replacement, Taken, applied, compare, differing, remaining, replacement, unset};
use super::super::{pins::DRY, take_over};
use super::gaps::Gaps;

/// The API server's words of a namespace that goes (Kubernetes, admission plug-in NamespaceLifecycle).
const TERMINATING: &str = "because it is being terminated";

/// What was found.
pub(super) struct Answer {
    pub(super) action: Action,
    pub(super) fields: Vec<FieldChange>,
    pub(super) estimate: bool,
    pub(super) replacement: Option<Replacement>,
    pub(super) unset: Vec<String>,
    /// Why it cannot be applied as it is.
    pub(super) refused: Option<ClusterError>,
    pub(super) taken: Vec<Taken>,
    pub(super) live: Option<Value>,
    pub(super) pinned: Option<Value>,
}

impl Answer {
    /// Nothing is live of it.
    pub(super) fn created() -> Self {
        Self::new((Action::Create, Vec::new()), None)
    }

    fn new((action, fields): (Action, Vec<FieldChange>), live: Option<Value>) -> Self {
        let (estimate, replacement, unset, refused, taken, pinned) = (false, None, Vec::new(), None, Vec::new(), None);
        Self { action, fields, estimate, replacement, unset, refused, taken, live, pinned }
    }
}

/// What every object of a namespace is refused for is told of the namespace.
fn of_its_namespace(key: &ObjectKey, error: ClusterError) -> ClusterError {
    match &error {
        ClusterError::Forbidden { message, .. } if message.contains(TERMINATING) => ClusterError::Forbidden {
            about: format!("Namespace {}", key.namespace),
            message: "it is being deleted, and nothing can be made in it until it is gone".into(),
        },
        _ => error,
    }
}

/// Whether a quota stands in the way of another object, in the API server's words (admission plug-in ResourceQuota).
fn has_no_room(error: &ClusterError) -> bool {
    matches!(error, ClusterError::Forbidden { message, .. } if message.contains("exceeded quota"))
}

/// What is refused of a new object under a scratch name is told of the object itself: that name nobody knows.
fn tried(key: &ObjectKey, error: ClusterError) -> ClusterError {
    let about = format!("{key}, tried as a new object under another name");
    match error {
        ClusterError::Forbidden { message, .. } => ClusterError::Forbidden { about, message },
        ClusterError::Invalid { message, .. } => ClusterError::Invalid { about, message },
        ClusterError::NotFound { message, .. } => ClusterError::NotFound { about, message },
        ClusterError::AlreadyExists { about: scratch } => {
            ClusterError::Invalid { about, message: format!("somebody has made {scratch}; only approvals use such names: delete it") }
        }
        error => error,
    }
}

/// What is asked, and by whom.
pub(super) struct Question<'a> {
    pub(super) client: &'a Client,
    /// As it is applied, with its stamps.
    pub(super) rendered: &'a Value,
    /// Who applies it.
    pub(super) manager: &'static str,
    /// Whether fields of others are taken over.
    pub(super) take_over: bool,
    /// What may be left unanswered.
    pub(super) gaps: &'a Gaps,
}

impl Question<'_> {
    /// Asks. `comes` tells of a missing namespace or kind whether the bundle brings it.
    pub(super) async fn ask(&self, comes: impl Fn(&ObjectKey) -> bool) -> Result<Answer, ClusterError> {
        let (live, answer) = match object::get(self.client, self.rendered).await {
            Ok(Some(live)) => (Some(live.clone()), self.over(live).await),
            Ok(None) => (None, self.missing(comes).await),
            Err(error) if self.gaps.lets_pass(&error) => (None, Ok(Answer::new((Action::Unknown, Vec::new()), None))),
            Err(error) => (None, Err(error)),
        };
        match answer {
            Err(
                error @ (ClusterError::Conflict { .. }
                | ClusterError::Invalid { .. }
                | ClusterError::Forbidden { .. }
                | ClusterError::NotFound { .. }
                | ClusterError::Terminating { .. }),
            ) => {
                let refused = Some(of_its_namespace(&ObjectKey::of(self.rendered), error));
                Ok(Answer { refused, ..Answer::new((Action::Refused, Vec::new()), live) })
            }
            answer => answer,
        }
    }

    /// What an apply over a live object would do.
    async fn over(&self, live: Value) -> Result<Answer, ClusterError> {
        let estimate = applied(&live, self.rendered, self.manager);
        if let Some(replacement) = replacement(&live, self.rendered, &estimate)
            && let Some(estimated) = self.could_be_made().await
        {
            let (_, fields) = compare(Some(&live), &estimate);
            let replaced = Answer::new((Action::Replace, fields), Some(live));
            return Ok(Answer { estimate: estimated, replacement: Some(replacement), ..replaced });
        }
        match object::apply_over(self.client, self.rendered, Some(&live), self.how()).await {
            Ok(applied) => self.applied(live, &applied.object, Vec::new()).await,
            Err(ClusterError::Conflict { fields, .. }) if self.take_over => {
                let forced = object::forced(self.client, self.rendered, self.manager).await?;
                self.applied(live, &forced, fields).await
            }
            Err(error @ ClusterError::Invalid { .. }) => match unset(&live, self.rendered) {
                Some((fields, mended)) if self.could_be_made().await.is_some() => {
                    let result = applied(&mended, self.rendered, self.manager);
                    Ok(Answer { unset: fields, ..Answer::new(compare(Some(&live), &result), Some(live)) })
                }
                Some(_) | None => Err(error),
            },
            Err(error) if self.gaps.lets_pass(&error) => {
                Ok(Answer { estimate: true, ..Answer::new(compare(Some(&live), &estimate), Some(live)) })
            }
            Err(error) => Err(error),
        }
    }

    async fn missing(&self, comes: impl Fn(&ObjectKey) -> bool) -> Result<Answer, ClusterError> {
        let created = Answer::created();
        match object::apply_over(self.client, self.rendered, None, self.how()).await {
            // What admission makes of it now is what is agreed to, also where nothing is live to compare it with.
            Ok(_) => Ok(Answer { pinned: self.created(None).await?, ..created }),
            Err(ClusterError::NotFound { .. }) if comes(&ObjectKey::of(self.rendered)) => Ok(created),
            Err(error) if self.gaps.lets_pass(&error) => Ok(Answer { estimate: true, ..created }),
            Err(error) => Err(error),
        }
    }

    /// `result` is what the apply would make of the live object, with the fields in conflict taken over from their managers.
    async fn applied(&self, live: Value, result: &Value, conflicts: Vec<(String, String)>) -> Result<Answer, ClusterError> {
        let (action, mut fields) = compare(Some(&live), result);
        let given_up = self.given_up(&live, &conflicts);
        let taken = conflicts.into_iter().map(|(manager, field)| Taken { manager, field }).collect();
        let mut answer = Answer { taken, ..Answer::new((action, Vec::new()), None) };
        if let Some(created) = self.created(Some(&live)).await? {
            let mut remaining = remaining(&pins::compared(self.rendered, result), &pins::compared(self.rendered, &created));
            remaining.retain(|field| given_up.iter().all(|gone| gone.path != field.path));
            if !remaining.is_empty() {
                answer.action = Action::Replace;
                answer.replacement = Some(Replacement::of_remaining(&ObjectKey::of(self.rendered), &remaining));
                fields.extend(remaining);
            }
            answer.pinned = Some(created);
        }
        fields.extend(given_up);
        Ok(Answer { fields, live: Some(live), ..answer })
    }

    /// What vanishes with the ownership of a tool that applied whole objects.
    fn given_up(&self, live: &Value, conflicts: &[(String, String)]) -> Vec<FieldChange> {
        let after = take_over::moved(live, conflicts, self.manager).map(|moved| applied(&moved, self.rendered, self.manager));
        let before = || object::content(&applied(live, self.rendered, self.manager));
        after.map(|after| differing(&before(), &object::content(&after))).unwrap_or_default()
    }

    /// A workload object as it will be pinned; `None` where that may not be asked, and for a permission, which is not pinned. Where a quota has no
    /// room for one more of its kind, it is tried in the place of the live one, which takes none.
    async fn created(&self, live: Option<&Value>) -> Result<Option<Value>, ClusterError> {
        if self.manager != FIELD_MANAGER_EXECUTOR {
            return Ok(None);
        }
        match object::create(self.client, &pins::scratch(self.rendered), DRY).await {
            Ok(created) => Ok(Some(created)),
            Err(error) if self.gaps.lets_pass(&error) => Ok(None),
            Err(error) => {
                if let Some(live) = live.filter(|_| has_no_room(&error))
                    && let Ok(replaced) = object::replaced(self.client, &pins::in_place(self.rendered, live), live, DRY.manager).await
                {
                    return Ok(Some(replaced));
                }
                Err(tried(&ObjectKey::of(self.rendered), error))
            }
        }
    }

    /// Whether an object could be made in the place of one that must go, asked under a name that nobody has: nobody should delete what
    /// then cannot be made anew. `None` where not, so that the API server's own answer is told; else whether that was not asked but assumed.
    async fn could_be_made(&self) -> Option<bool> {
        let mut scratch = pins::scratch(self.rendered);
        match ObjectKey::of(self.rendered).kind.as_str() {
            // Its name is part of what it says, and it stays.
            "CustomResourceDefinition" => return Some(false),
            // There may be one in a cluster, and that may be the one that goes.
            "PriorityClass" => scratch.as_object_mut().map(|class| class.remove("globalDefault")),
            _ => None,
        };
        match object::create(self.client, &scratch, self.how()).await {
            Ok(_) => Some(false),
            // What goes leaves its room.
            Err(error) if self.gaps.lets_pass(&error) || has_no_room(&error) => Some(true),
            Err(_) => None,
        }
    }

    fn how(&self) -> Apply {
        Apply { manager: self.manager, dry_run: true }
    }
}
