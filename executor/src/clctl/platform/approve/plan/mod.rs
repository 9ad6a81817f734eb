//! What an approval would change, as data: each object with its action and the fields that differ, what is left over, and who may do
//! what more. Pure; what is live comes from `preview`.
//!
//! A Secret's values are masked in [`difference`], before anything can show them.

mod difference;
mod document;
mod estimate;
mod leftover;
mod remaining;
mod replacement;
mod summary;
mod unset;

use executor_core::bundle::Interception;
use executor_core::privilege::{Comparison, PodAccess};
use serde::Serialize;

pub(super) use difference::{compare, created, fields_of as differing};
pub(super) use estimate::applied;
pub(super) use executor_core::difference::FieldChange;
pub(super) use leftover::{Leftover, leftovers};
pub(super) use remaining::remaining;
pub(super) use replacement::{Replacement, replacement};
pub(super) use summary::{Counts, Summary};
pub(super) use unset::unset;

/// The whole plan.
#[derive(Debug, Serialize)]
pub(super) struct Plan {
    pub(super) cluster: ClusterHeading,
    pub(super) bundle: BundleHeading,
    /// What could not be asked or read, and is an estimate or not known for that; empty where everything was answered by the cluster.
    pub(super) estimates: Vec<String>,
    pub(super) permissions: Vec<PlannedObject>,
    pub(super) workload: Vec<PlannedObject>,
    /// Objects of former bundles that this one lacks and that are still in the cluster.
    pub(super) leftovers: Vec<Leftover>,
    pub(super) privileges: Comparison,
    /// What the workload half's pods run as, and how they reach into their nodes.
    pub(super) pods: Vec<PodAccess>,
    /// Webhooks of the bundle that see requests and ignore their own failures.
    pub(super) webhooks: Vec<WebhookLine>,
    /// Whether what must be replaced will be (`--replace`).
    pub(super) replace: bool,
    /// Secrets that somebody else fills; created where they are missing.
    pub(super) placeholder_secrets: Vec<String>,
    /// Those of them that are missing.
    pub(super) missing_placeholder_secrets: Vec<String>,
    pub(super) warnings: Vec<String>,
}

/// Which cluster.
#[derive(Debug, Serialize)]
pub(super) struct ClusterHeading {
    pub(super) server: String,
    pub(super) context: Option<String>,
    pub(super) uid: String,
    pub(super) kubernetes: String,
    /// Whether the staged document named this cluster.
    pub(super) checked: bool,
}

/// Which bundle.
#[derive(Debug, Serialize)]
pub(super) struct BundleHeading {
    pub(super) sha256: String,
    pub(super) environment: String,
    pub(super) created_at: jiff::Timestamp,
    pub(super) received_at: Option<jiff::Timestamp>,
    pub(super) workload_sha256: String,
    pub(super) namespaces: Vec<String>,
}

/// One object.
#[derive(Debug, Serialize)]
pub(super) struct PlannedObject {
    pub(super) object: String,
    pub(super) component: Option<String>,
    pub(super) action: Action,
    /// The API server was not asked what an apply would do: it is worked out from what is live.
    pub(super) estimate: bool,
    /// It lies in a namespace that is not the bundle's.
    pub(super) foreign: bool,
    pub(super) fields: Vec<FieldChange>,
    /// What a role or binding says, one line a rule; empty where nothing changes.
    pub(super) grants: Vec<String>,
    /// It is a Job of the very bundle that is approved already: where it has run for this installation it is not run again, and what is gone of it
    /// is no change.
    pub(super) approved_before: bool,
    /// Of the live one.
    #[serde(skip)]
    pub(super) uid: Option<String>,
    /// Why it must be replaced, and how.
    pub(super) replacement: Option<Replacement>,
    /// Fields that are unset with the person's credentials, since the executor's apply would be refused with them.
    pub(super) unset: Vec<String>,
    /// Why it cannot be applied as it is.
    pub(super) refused: Option<String>,
    /// Fields that are taken over from others; empty unless that was asked for.
    pub(super) taken: Vec<Taken>,
}

/// A field whose ownership is moved.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub(super) struct Taken {
    /// Who owns it now.
    pub(super) manager: String,
    /// Which, as the API server names it.
    pub(super) field: String,
}

/// What happens to it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Action {
    Create,
    Change,
    /// Deleted and made anew, since no apply can change what differs.
    Replace,
    Unchanged,
    /// It may not be read.
    Unknown,
    /// The API server does not take it as it is, or fields of others stand in the way; nothing is approved with it.
    Refused,
}

/// A webhook of the bundle.
#[derive(Debug, Serialize)]
pub(super) struct WebhookLine {
    pub(super) configuration: String,
    pub(super) webhook: String,
    pub(super) intercepts: String,
    pub(super) timeout_seconds: u64,
}

impl From<&Interception> for WebhookLine {
    fn from(interception: &Interception) -> Self {
        Self {
            configuration: interception.configuration.clone(),
            webhook: interception.webhook.clone(),
            intercepts: interception.intercepts.clone(),
            timeout_seconds: interception.timeout_seconds,
        }
    }
}

impl Plan {
    /// All objects of both halves.
    pub(super) fn objects(&self) -> impl Iterator<Item = &PlannedObject> {
        self.permissions.iter().chain(&self.workload)
    }

    /// Whether applying would change anything but stamps and the token, as far as is known.
    pub(super) fn changes(&self) -> bool {
        let changed = self.objects().any(|object| object.action != Action::Unchanged && !object.approved_before);
        changed || !self.missing_placeholder_secrets.is_empty() || self.leftovers.iter().any(|leftover| leftover.pruned)
    }

    /// Marks the Jobs that are not there, of a bundle that is approved already: whether they have run the executor alone knows.
    pub(super) fn is_approved_before(&mut self) {
        for object in self.workload.iter_mut().filter(|object| object.action == Action::Create && object.object.starts_with("Job.batch ")) {
            object.approved_before = true;
        }
    }

    /// What no apply can change.
    pub(super) fn replacements(&self) -> impl Iterator<Item = (&str, &Replacement)> {
        self.objects().filter_map(|object| Some((object.object.as_str(), object.replacement.as_ref()?)))
    }
}
