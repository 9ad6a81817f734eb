//! The heartbeat: what was observed, never what was asked for. Every part that was read from a cluster says when.

use serde::{Deserialize, Serialize};

use crate::digest::Sha256;
use crate::name::{DnsLabel, ExecutorId};
use crate::platform_approval::KEPT;

/// All that one heartbeat says.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Heartbeat {
    /// The daemon.
    pub executor: ExecutorInfo,
    /// Its cluster.
    pub cluster: ClusterInfo,
    /// Each access bundle.
    pub access: AccessInfo,
    /// The platform update.
    pub platform: Platform,
    /// The pending bundle's components, in its order.
    pub components: Vec<ComponentState>,
    /// The journal.
    pub commands: CommandCounts,
    /// The approval that holds and the former ones that the cluster still keeps, the newest first; see [`ApprovalRecord::MOST`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub approvals: Vec<ApprovalRecord>,
}

/// The daemon.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ExecutorInfo {
    /// Identity.
    pub id: ExecutorId,
    /// clicklink's version.
    pub version: String,
    /// When the process started.
    pub started_at: jiff::Timestamp,
    /// Seconds since then.
    pub uptime_s: u64,
    /// Where it runs.
    pub kind: ExecutorKind,
}

/// Where an executor runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "lowercase")]
pub enum ExecutorKind {
    /// A connector VM.
    Vm,
    /// A pod.
    Pod,
}

/// The cluster as seen through `pcm-executor`.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ClusterInfo {
    /// Uid of the `kube-system` Namespace.
    pub uid: Option<String>,
    /// Name, region, account: left out with `report_infra_meta: false`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Cloud region.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub region: Option<String>,
    /// Cloud account.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account_id: Option<String>,
    /// `gitVersion` of the API server.
    pub kubernetes_version: Option<String>,
    /// API address in use.
    pub api_address: Option<String>,
    /// Whether the last read succeeded.
    pub reachable: bool,
    /// When that was.
    pub observed_at: Option<jiff::Timestamp>,
}

/// State of the access bundles.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct AccessInfo {
    /// `pcm-executor`'s, folder `_cluster`.
    pub cluster: AccessState,
    /// `pcm-platform`'s, folder `_platform`.
    pub platform: AccessState,
}

/// State of one access bundle.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "lowercase")]
pub enum AccessState {
    /// There and valid.
    Ok,
    /// Valid for less than ten minutes more.
    Expiring,
    /// Its token has ended.
    Expired,
    /// Not there.
    Absent,
}

impl AccessState {
    /// All.
    pub const ALL: [Self; 4] = [Self::Ok, Self::Expiring, Self::Expired, Self::Absent];

    /// As on the wire.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Expiring => "expiring",
            Self::Expired => "expired",
            Self::Absent => "absent",
        }
    }
}

/// The platform update.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Platform {
    /// Where it stands.
    pub status: PlatformStatus,
    /// The staged bundle.
    pub pending_sha256: Option<Sha256>,
    /// The bundle that the token bundle at hand approves.
    pub approved_sha256: Option<Sha256>,
    /// When that approval ends.
    pub approval_expires_at: Option<jiff::Timestamp>,
    /// The last bundle that was applied whole.
    pub applied_sha256: Option<Sha256>,
    /// Syncs of the pending bundle that began under an approval.
    pub attempts: u32,
    /// The last sync's end, for a person.
    pub message: Option<String>,
    /// Live workload objects that are not as they were approved; null while that is not known. Secrets and ConfigMaps are not looked at.
    #[serde(default)]
    pub drift: Option<u32>,
    /// Objects of former bundles that are still there.
    pub leftovers: u32,
}

/// First that holds, in this order.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum PlatformStatus {
    /// Nothing is pending.
    None,
    /// A sync runs.
    Syncing,
    /// The applied bundle is the pending one; stays so after the approval's end.
    Synced,
    /// The approved bundle is not the pending one, or the approval has ended.
    ApprovalRequired,
    /// The last sync of the pending bundle failed.
    Failed,
    /// Approved, not applied yet.
    Approved,
}

impl PlatformStatus {
    /// All, in the order in which they are tried.
    pub const ALL: [Self; 6] = [Self::None, Self::Syncing, Self::Synced, Self::ApprovalRequired, Self::Failed, Self::Approved];

    /// As on the wire.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Syncing => "syncing",
            Self::Synced => "synced",
            Self::ApprovalRequired => "approval_required",
            Self::Failed => "failed",
            Self::Approved => "approved",
        }
    }
}

/// One component, in the four dimensions.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ComponentState {
    /// Component.
    pub name: DnsLabel,
    /// Version of the chart that is applied; null before.
    pub chart_version: Option<String>,
    /// `app.kubernetes.io/version` of its workloads, where they carry it.
    pub app_version: Option<String>,
    /// Images of its live workloads.
    pub images: Vec<String>,
    /// See [`State`]; null while nobody could look.
    pub state: Option<State>,
    /// See [`Health`].
    pub health: Health,
    /// See [`OperationState`].
    pub operation_state: OperationState,
    /// See [`SecurityState`].
    pub security_state: SecurityState,
    /// Pods available.
    pub ready: u32,
    /// Pods wanted.
    pub desired: u32,
    /// What a person should know.
    pub message: Option<String>,
    /// When it was read.
    pub observed_at: Option<jiff::Timestamp>,
}

/// Observed on the status of Deployments: generations, replicas, conditions.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "crd", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// Not all objects are there yet.
    Installing,
    /// All there, not all ready.
    Starting,
    /// All ready.
    Started,
    /// Going down.
    Stopping,
    /// At zero by wish.
    Stopped,
    /// A rollout gave up.
    Failed,
    /// Being removed.
    Uninstalling,
}

/// Available pods against wanted ones.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "crd", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Health {
    /// All.
    Ok,
    /// Some.
    Warning,
    /// None.
    Critical,
    /// Nobody could look.
    Unknown,
}

/// The last operation that was asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "crd", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum OperationState {
    /// Under way.
    Running,
    /// Done.
    Succeeded,
    /// Given up.
    Failed,
    /// Held by a rule, e.g. for want of approval.
    Blocked,
    /// None.
    Idle,
}

/// Whether live workloads run only what the bundle names.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "crd", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum SecurityState {
    /// Every image is one of the bundle's.
    Compliant,
    /// Some is not.
    NonCompliant,
    /// Nobody could look.
    Unknown,
}

/// One approval as the cluster keeps it (`PlatformApproval`), without what it pins: who consented to what, when, and until when.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ApprovalRecord {
    /// The approved bundle.
    pub sha256: Sha256,
    /// Who, as the API server named them.
    pub approved_by: String,
    /// When. With `sha256` it tells approvals apart.
    pub approved_at: jiff::Timestamp,
    /// Until when; earlier than before once it was revoked.
    pub expires_at: jiff::Timestamp,
    /// How many workload objects it covers.
    pub objects: u32,
}

impl ApprovalRecord {
    /// So many a heartbeat holds: the one that holds, and the former ones.
    pub const MOST: usize = 1 + KEPT;
}

/// The journal in figures.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CommandCounts {
    /// Not begun.
    pub queued: u32,
    /// Begun.
    pub running: u32,
    /// Size of the journal's files.
    pub journal_bytes: u64,
    /// Why the journal takes no records at present, e.g. a full disk; absent while it does. Commands are not acknowledged meanwhile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub journal_error: Option<String>,
}
