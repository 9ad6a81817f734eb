//! What can happen to the executor.

use std::sync::Arc;

use agent_api::approval::Approval;
use agent_api::command::Command;
use agent_api::frame::ObjectOutcome;
use agent_api::name::CommandId;
use agent_api::object::ObjectKey;
use serde_json::Value;

use crate::bundle::Judged;

/// An event, in the order in which the daemon's loop takes them.
#[derive(Clone, Debug)]
pub enum Event {
    /// The daemon has loaded its state.
    Started,
    /// The channel is up.
    Connected,
    /// A command has arrived, perhaps not for the first time.
    Command(Command),
    /// The manager has stored a result.
    Acknowledged(CommandId),
    /// Something may be able to begin.
    Continue,
    /// Some time has passed: what is not acknowledged is delivered again, and what could not begin for want of a record is tried again.
    Tick,
    /// Some time has passed: what is beyond the retention may be forgotten.
    Retain,
    /// The running sync has learned something.
    Sync(CommandId, Fact),
}

/// What a sync learns, each in answer to one [`crate::Read`] or [`crate::Effect::Apply`].
#[derive(Clone, Debug)]
pub enum Fact {
    /// The token bundle's approval.
    TokenBundle(Result<TokenBundle, TokenBundleError>),
    /// ServiceAccount `pcm-platform`, live.
    Account(Result<Option<Value>, ReadError>),
    /// The bundle, rendered here and judged.
    Rendered(Result<Arc<Judged>, String>),
    /// The live objects, one for each of [`Judged::permissions`], in that order.
    Permissions(Result<Vec<Option<Value>>, ReadError>),
    /// Images of the bundle's own registry that no node could pull.
    Images(Result<UnpullableImages, String>),
    /// What the API server would not take, a sentence each; empty where it would take everything.
    DryRun(Result<Vec<String>, ReadError>),
    /// A Job of the bundle has completed.
    JobDone(ObjectKey),
    /// A component is applied and ready, or is not; with what was written either way.
    Applied(Vec<ObjectOutcome>, Result<(), ApplyError>),
}

/// What a token bundle says without its secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenBundle {
    /// Its `approval.json`.
    pub approval: Approval,
    /// The token's own end.
    pub token_expires_at: jiff::Timestamp,
}

impl TokenBundle {
    /// The end that is obeyed: the earlier of the two.
    #[must_use]
    pub fn expires_at(&self) -> jiff::Timestamp {
        self.token_expires_at.min(self.approval.expires_at)
    }
}

/// Why there is no usable token bundle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TokenBundleError {
    /// No folder, or an empty one.
    Absent,
    /// A key is missing or unreadable.
    Damaged(String),
}

/// Images that the bundle's own registry does not give; both empty when it gives all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UnpullableImages {
    /// Not there, by their references.
    pub missing: Vec<String>,
    /// Refused to the executor's login (401, 403): a sentence each that begins with the reference.
    pub denied: Vec<String>,
}

/// Why the cluster did not answer a read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReadError {
    /// Another token bundle took the place of the one that the sync began with, or none is there any more.
    Replaced,
    /// 401: the API server does not take the token any more.
    Unauthorized,
    /// Anything else, as a sentence.
    Other(String),
}

/// Why a component did not get ready.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ApplyError {
    /// Another token bundle took the place of the one that the sync began with, or none is there any more.
    Replaced,
    /// The approval ended before a write.
    Expired,
    /// 401: the API server does not take the token any more.
    Unauthorized,
    /// Anything else, as a sentence.
    Other(String),
}
