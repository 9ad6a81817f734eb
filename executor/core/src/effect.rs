//! What the shell is asked to do. An effect is had only after its record is durable.

use std::collections::BTreeSet;
use std::sync::Arc;

use agent_api::approval::Capabilities;
use agent_api::frame::CommandProgress;
use agent_api::manifest::Bundle;
use agent_api::name::CommandId;
use agent_api::object::ObjectKey;

use crate::bundle::Judged;
use crate::checks::Approved;

/// One thing to do.
#[derive(Clone, Debug)]
pub enum Effect {
    /// Send `command_ack`.
    Acknowledge(CommandId),
    /// Send `command_result`, again until acknowledged.
    Deliver(CommandId),
    /// Rewrite the pending document from the state.
    Publish,
    /// Send a heartbeat now.
    Beat,
    /// Feed [`crate::Event::Continue`].
    Continue,
    /// Send `command_progress`; may be lost.
    Progress(CommandProgress),
    /// Read something and feed it back as a [`crate::Fact`].
    Read(CommandId, Read),
    /// Apply one component of an approved bundle, wait until it is ready, and feed [`crate::Fact::Applied`].
    Apply {
        /// Command.
        id: CommandId,
        /// The checked bundle.
        approved: Arc<Approved>,
        /// Index into the manifest's components.
        component: usize,
        /// Jobs that this installation has done; they are not written again.
        jobs_done: BTreeSet<ObjectKey>,
    },
}

/// Something to read. The token bundle is read once for a sync; later reads of that sync go through its token.
#[derive(Clone, Debug)]
pub enum Read {
    /// The token bundle's folder.
    TokenBundle,
    /// ServiceAccount `pcm-platform` in its home namespace.
    Account(String),
    /// The bundle's charts, rendered with these capabilities and judged for this home namespace.
    Render(Arc<Bundle>, Capabilities, String),
    /// The live permission objects.
    Permissions(Arc<Judged>),
    /// The images' existence in the bundle's registry.
    Images(Arc<Bundle>),
    /// What the API server would say to each object of the workload half; nothing is stored.
    DryRun {
        /// The checked bundle.
        approved: Arc<Approved>,
        /// Jobs that this installation has done.
        jobs_done: BTreeSet<ObjectKey>,
    },
}
