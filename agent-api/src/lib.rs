//! The contract: every type that crosses a process boundary, with its digest and its signature.
//!
//! Pure data and hashing. Deliberately absent: I/O, async, Kubernetes and HTTP clients, and any decision about what may happen.
//! Unknown fields of a message are ignored and a field is never reused with another meaning.

pub use uuid::Uuid;

pub mod access;
pub mod approval;
pub mod chain;
pub mod command;
pub mod digest;
pub mod enrolment;
pub mod frame;
pub mod heartbeat;
pub mod kind;
pub mod manifest;
pub mod name;
pub mod object;
pub mod pending;
pub mod platform_approval;
pub mod problem;
pub mod secret;
pub mod signature;
pub mod strict_json;
pub mod values;

/// Label and annotation keys of ours; all lie under `clicklink.io/`.
pub mod keys {
    /// Label, value `platform`, on every object of a bundle.
    pub const MANAGED_BY: &str = "clicklink.io/managed-by";
    /// The value of [`MANAGED_BY`].
    pub const MANAGED_BY_PLATFORM: &str = "platform";
    /// Label on every object of a bundle: the component's name; absent on the bundle's own `objects` and added Namespaces.
    pub const COMPONENT: &str = "clicklink.io/component";
    /// Label, value `true`, on every workload object that an approval covers.
    pub const PINNED: &str = "clicklink.io/pinned";
    /// Annotation: sha256 of the approved manifest, on permission objects and on ServiceAccount `pcm-platform`.
    pub const BUNDLE_SHA256: &str = "clicklink.io/bundle-sha256";
    /// Annotation: digest of a permission object as approved, before this annotation and the bundle's were added.
    pub const CONTENT_SHA256: &str = "clicklink.io/content-sha256";
    /// Annotation on `pcm-platform`: digest of the whole rendered workload half.
    pub const WORKLOAD_SHA256: &str = "clicklink.io/workload-sha256";
    /// Annotation on `pcm-platform`: who approved, as the API server names them.
    pub const APPROVED_BY: &str = "clicklink.io/approved-by";
    /// Annotation on `pcm-platform`: RFC 3339 UTC.
    pub const APPROVED_AT: &str = "clicklink.io/approved-at";
    /// Annotation on `pcm-platform`: RFC 3339 UTC, as granted.
    pub const EXPIRES_AT: &str = "clicklink.io/expires-at";
    /// Annotation on `pcm-platform`: UUIDv7 of this installation; a Job is run once for each.
    pub const INSTALL_ID: &str = "clicklink.io/install-id";
}

/// Names that are the same on both sides of a boundary.
pub mod names {
    /// The identity that applies the workload half while an approval lasts.
    pub const PCM_PLATFORM: &str = "pcm-platform";
    /// The identity that observes, and carries out the life cycle of services.
    pub const PCM_EXECUTOR: &str = "pcm-executor";
    /// Field manager of everything that the executor applies.
    pub const FIELD_MANAGER_EXECUTOR: &str = "clicklink-executor";
    /// Field manager of everything that a person's `approve` applies.
    pub const FIELD_MANAGER_APPROVE: &str = "clicklink-approve";
    /// Admission policy (and binding) that bounds what `pcm-platform` may ever touch.
    pub const SCOPE_GUARD: &str = "pcm-platform-scope-guard";
    /// Admission policy (and binding) that compares what `pcm-platform` writes with what was approved.
    pub const APPROVED_POLICY: &str = "pcm-platform-approved";
    /// The same for the values of Secrets.
    pub const APPROVED_SECRETS_POLICY: &str = "pcm-platform-approved-secrets";
    /// All policies that bound `pcm-platform`.
    pub const PLATFORM_POLICIES: [&str; 3] = [SCOPE_GUARD, APPROVED_POLICY, APPROVED_SECRETS_POLICY];
    /// Secret of the home namespace that holds the approved values of Secrets.
    pub const PINS_SECRET: &str = "pcm-platform-pins";
    /// Role (and binding) of the home namespace: `pcm-platform` may read the approval that holds.
    pub const APPROVAL_ROLE: &str = "pcm-platform-approval";
    /// Admission policy (and binding) that keeps `pcm-executor` inside the service prefix.
    pub const PREFIX_GUARD: &str = "pcm-executor-prefix-guard";
    /// Namespace of both identities on a connector VM.
    pub const HOME_NAMESPACE_VM: &str = "clicklink-system";
    /// Secret that carries the token bundle into the connector's pod.
    pub const PLATFORM_BUNDLE_SECRET: &str = "clicklink-platform-bundle";
    /// Folder of the token bundle inside the access folder.
    pub const PLATFORM_DIR: &str = "_platform";
    /// Folder of `pcm-executor`'s access bundle inside the access folder.
    pub const CLUSTER_DIR: &str = "_cluster";
    /// File of the staged bundle inside the access folder.
    pub const PENDING_FILE: &str = "platform-pending.json";
}
