//! `PlatformApproval` (`clicklink.io/v1alpha1`): what a person approved, kept in the cluster, and what admission compares writes with.
//!
//! One named [`CURRENT`] in the home namespace holds; former ones are kept beside it without what gives a right.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::digest::Sha256;
use crate::name::InstallId;
use crate::object::ObjectKey;

/// `apiVersion`.
pub const API_VERSION: &str = "clicklink.io/v1alpha1";
/// API group; no bundle may define kinds in it.
pub const GROUP: &str = "clicklink.io";
/// Kind.
pub const KIND: &str = "PlatformApproval";
/// Resource.
pub const RESOURCE: &str = "platformapprovals";
/// Name of the one that holds.
pub const CURRENT: &str = "current";
/// So many former ones are kept.
pub const KEPT: usize = 10;

/// `spec`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PlatformApprovalSpec {
    /// The approved bundle.
    pub sha256: Sha256,
    /// Digest of its rendered workload half.
    pub workload_sha256: Sha256,
    /// Who, as the API server named them.
    pub approved_by: String,
    /// When.
    pub approved_at: jiff::Timestamp,
    /// Until when, as granted by the API server.
    pub expires_at: jiff::Timestamp,
    /// The installation of the platform.
    pub install_id: InstallId,
    /// How many workload objects it covers.
    pub objects: u32,
    /// Ids of the credentials that may write, as the API server names them to admission: `JTI=<jti>`. Empty in a former one.
    #[serde(default)]
    pub credentials: Vec<String>,
    /// Each workload object whole, as approved, by [`key`]; without what the cluster chooses, and without the values of Secrets. Empty in a
    /// former one.
    #[serde(default)]
    pub workloads: BTreeMap<String, Value>,
}

impl PlatformApprovalSpec {
    /// Whether a token was given under it, and none of it was taken back.
    #[must_use]
    pub fn is_given(&self) -> bool {
        is_given(&self.credentials)
    }

    /// Whether both are of one bundle with one workload half.
    #[must_use]
    pub fn is_of_the_same(&self, other: &Self) -> bool {
        self.sha256 == other.sha256 && self.workload_sha256 == other.workload_sha256
    }

    /// This approval before its own token is given, where `former` of the same bundle holds: who gave that one, and its tokens.
    #[must_use]
    pub fn awaiting(&self, former: &Self) -> Self {
        let tokens = former.credentials.iter().filter(|id| id.starts_with(TOKEN_ID));
        Self {
            approved_by: former.approved_by.clone(),
            approved_at: former.approved_at,
            expires_at: former.expires_at,
            credentials: self.credentials.iter().chain(tokens).cloned().collect(),
            ..self.clone()
        }
    }
}

/// How the API server names a ServiceAccount token to admission, before its `jti`.
pub const TOKEN_ID: &str = "JTI=";

/// Whether a token may write under an approval with these credentials; one that was cut off before it was given knows a probe at most.
#[must_use]
fn is_given(credentials: &[String]) -> bool {
    credentials.iter().any(|id| id.starts_with(TOKEN_ID))
}

/// Whether an approval is for a record: a person's, that was given, or given and ended. Not what was cut off before, and not the ended one of
/// nothing that stands where somebody removed one.
#[must_use]
pub fn is_for_record(approved_by: &str, credentials: &[String]) -> bool {
    !approved_by.is_empty() && (credentials.is_empty() || is_given(credentials))
}

/// An object's key in [`PlatformApprovalSpec::workloads`]: `group/Kind/namespace/name`.
#[must_use]
pub fn key(object: &ObjectKey) -> String {
    format!("{}/{}/{}/{}", object.group, object.kind, object.namespace, object.name)
}

/// The object of a [`key`]; empty parts where it has none.
#[must_use]
pub fn object_of(key: &str) -> ObjectKey {
    let mut parts = key.splitn(4, '/').map(str::to_owned);
    let mut next = || parts.next().unwrap_or_default();
    ObjectKey { group: next(), kind: next(), namespace: next(), name: next() }
}

/// Key of a Secret's value among the pins: `<namespace>_<name>_<key>`. `_` is in no namespace or name.
#[must_use]
pub fn pin_key(secret: &ObjectKey, key: &str) -> String {
    format!("{}_{}_{key}", secret.namespace, secret.name)
}

/// Name of a former approval: 12 digits of its sha256, and the second it was given in.
#[must_use]
pub fn former_name(spec: &PlatformApprovalSpec) -> String {
    format!("{}-{}", spec.sha256.short(), spec.approved_at.as_second())
}
