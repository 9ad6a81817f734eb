//! The reconcile steps, one a file; each decides and none does.
//!
//! fetch → [`validate`] → render → [`normalise`] → [`guard`] → [`transform`] → [`diff`] → apply → [`prune`] → [`observe`] → [`status`], and beside
//! them what holds an operation back: [`maintenance`], [`restart`]. [`plan`] is all of it in order, [`record`] what has to be on record before anything of it is done. Time and what is live come in
//! as arguments.

pub mod diff;
pub mod failure;
pub mod guard;
pub mod maintenance;
pub mod normalise;
pub mod observe;
pub mod operation;
pub mod plan;
pub mod prune;
pub mod reason;
pub mod record;
pub mod restart;
pub mod secret_names;
pub mod status;
pub mod transform;
pub mod unseen;
pub mod validate;
pub mod workload;

use std::collections::BTreeMap;

use agent_api::object::ObjectKey;
use serde_json::Value;

/// Field manager of everything that the operator writes.
pub const FIELD_MANAGER: &str = "navin-operator";

/// Live objects of a component's namespace, of the kinds that a component may have, whole: with `managedFields`, by which it is told who owns a
/// field.
pub type Live = BTreeMap<ObjectKey, Value>;

/// Live objects by their identities.
#[must_use]
pub fn live(objects: impl IntoIterator<Item = Value>) -> Live {
    objects.into_iter().map(|object| (ObjectKey::of(&object), object)).collect()
}
