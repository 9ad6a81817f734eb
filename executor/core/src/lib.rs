//! The executor's decisions: pure, synchronous, with time passed in.
//!
//! [`step`] takes the state, an event and the time, and answers with a [`Transition`]: one record for the journal, and effects that
//! can only be had by writing that record first ([`Transition::commit`]). [`bundle`] holds the rules that a bundle's rendered objects
//! must obey, [`drift`] how what is live departs from them, [`privilege`] what its roles and bindings let identities do. Deliberately absent: Kubernetes and HTTP clients, a runtime, a
//! clock, files.

pub mod bundle;
mod checks;
pub mod difference;
pub mod drift;
mod effect;
mod event;
mod hint;
pub mod privilege;
mod record;
mod refusal;
mod retention;
mod state;
mod status;
mod step;
mod sync;
mod transition;

pub use checks::{Approved, Expired, Writable};
pub use effect::{Effect, Read};
pub use event::{ApplyError, Event, Fact, ReadError, TokenBundle, TokenBundleError, UnpullableImages};
pub use record::{Outcome, Record, Stage};
pub use refusal::{EndCode, Refusal};
pub use retention::Retention;
pub use state::{Entry, Failure, Pending, PlatformRecord, Site, State};
pub use status::{ApprovalSeen, platform_status};
pub use step::{MAX_SEQUENCE, step};
pub use sync::CHECKS;
pub use transition::{Journal, Transition};
