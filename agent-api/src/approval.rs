//! `approval.json`: what a person approved, beside the token that was minted for it. It holds no secret.

use serde::{Deserialize, Serialize};

use crate::digest::Sha256;
use crate::name::InstallId;

/// What `approve` writes and the executor checks.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Approval {
    /// The approved bundle.
    pub bundle_sha256: Sha256,
    /// Digest of its rendered workload half.
    pub workload_sha256: Sha256,
    /// Uid of the cluster's `kube-system` Namespace.
    pub cluster_uid: String,
    /// This installation of the platform.
    pub install_id: InstallId,
    /// Who, as the API server named them.
    pub approved_by: String,
    /// When.
    pub approved_at: jiff::Timestamp,
    /// Until when, as granted by the API server.
    pub expires_at: jiff::Timestamp,
    /// Home namespace of `pcm-platform`.
    pub home_namespace: String,
    /// What charts were told of the cluster.
    pub capabilities: Capabilities,
    /// Who rendered.
    pub versions: Versions,
    /// Objects of former bundles that this one lacks and that are still in the cluster.
    #[serde(default)]
    pub leftovers: u32,
}

/// What a chart may ask of the cluster (Helm's `.Capabilities`). Read once by `approve`, used again by the executor: installing CRDs
/// changes the answer.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Capabilities {
    /// `gitVersion` of the API server, e.g. `v1.37.2`.
    pub kube_version: String,
    /// Every served `group/version` and `group/version/Kind`, sorted, no other.
    pub api_versions: Vec<String>,
    /// The server's own words; absent in older approvals.
    #[serde(default, skip_serializing_if = "ServerWords::is_empty")]
    pub server: Box<ServerWords>,
}

/// What an API server says of itself that its `gitVersion` and what it serves do not tell.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct ServerWords {
    /// Major version; empty: what `kube_version` says.
    #[serde(default)]
    pub major: String,
    /// Minor version, which may differ from that of `kube_version`: `32+`. Empty as `major`.
    #[serde(default)]
    pub minor: String,
    /// Groups whose own server did not answer: what they serve is unknown, and none of it is in `api_versions`. Sorted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unknown_groups: Vec<String>,
}

impl ServerWords {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Versions of what rendered; a difference is named in a refusal.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Versions {
    /// clicklink's.
    pub clicklink: String,
    /// The chart engine's, e.g. `helm v4.3.1`.
    pub engine: String,
}
