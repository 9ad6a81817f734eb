//! The staged bundle: file `platform-pending.json` and the answer of `GET /v1/platform/pending`.

use serde::{Deserialize, Serialize};

use crate::digest::Sha256;

/// Largest pending document that is read: 4 MiB (a manifest of 1 MiB, escaped).
pub const MAX_BYTES: u64 = 4 << 20;

/// The one bundle that waits for approval, or was last approved; it stays after a sync.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PendingBundle {
    /// Identity of the bundle.
    pub sha256: Sha256,
    /// When the executor staged it.
    pub received_at: jiff::Timestamp,
    /// Uid of the cluster's `kube-system` Namespace as the executor sees it; null while it has no access to the cluster.
    pub cluster_uid: Option<String>,
    /// The manifest's exact text.
    pub manifest: String,
}
