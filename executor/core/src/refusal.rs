//! Why a command ends without success: refusals of the checks as an enum, and a stable code for every such end.
//!
//! The texts are what people read, and the end of a refusal (the command to run) is added elsewhere. The codes are for programs and for
//! the pages in `docs/errors/`; a code never changes its meaning.

use agent_api::approval::Versions;
use agent_api::digest::Sha256;
use agent_api::keys;
use agent_api::object::ObjectKey;

macro_rules! codes {
    ($($variant:ident $name:literal $meaning:literal,)+) => {
        /// Why a command ended without success.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum EndCode {
            $(#[doc = $meaning] $variant,)+
        }

        impl EndCode {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$variant,)+];

            /// As in a result's `code`.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $name,)+ }
            }

            /// One sentence.
            #[must_use]
            pub fn meaning(self) -> &'static str {
                match self { $(Self::$variant => $meaning,)+ }
            }
        }
    };
}

codes! {
    ApprovalMissing "approval_missing" "No approval was given yet.",
    ApprovalDamaged "approval_damaged" "The approval's token bundle cannot be read.",
    ApprovalOtherBundle "approval_other_bundle" "The approval at hand is for another bundle.",
    ApprovalExpired "approval_expired" "The approval has ended.",
    ApprovalExpiredDuringSync "approval_expired_during_sync" "The approval ended while its bundle was being applied.",
    PlatformTokenRefused "platform_token_refused" "The API server does not accept the platform token any more.",
    AccountMissing "account_missing" "ServiceAccount pcm-platform is not there.",
    AccountOtherBundle "account_other_bundle" "The live approval is for another bundle.",
    AccountUnstamped "account_unstamped" "ServiceAccount pcm-platform names no approved bundle.",
    PermissionMissing "permission_missing" "An approved permission object is not there.",
    PermissionOtherBundle "permission_other_bundle" "A permission object was approved with another bundle.",
    PermissionUnstamped "permission_unstamped" "A permission object was not applied by an approval.",
    PermissionDiffers "permission_differs" "A permission object renders here to another content than was approved.",
    PermissionChanged "permission_changed" "A permission object was changed after the approval.",
    WorkloadDiffers "workload_differs" "The workload half renders here to something else than was approved.",
    ImagesMissing "images_missing" "Images of the bundle are not in its registry.",
    ImagesDenied "images_denied" "The bundle's registry does not let the executor pull images of it.",
    WorkloadRefused "workload_refused" "The API server would not take an object of the bundle.",
    SyncFailed "sync_failed" "The bundle could not be applied.",
    CommandDamaged "command_damaged" "The command's content is damaged.",
    ActionUnknown "action_unknown" "This version does not know the command's action.",
    DeadlinePassed "deadline_passed" "The command's deadline passed before it could begin.",
    CommandForgotten "command_forgotten" "The command is older than what the journal remembers.",
}

/// Why a sync is refused: a person has to approve.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Refusal {
    /// No token bundle.
    #[error("there is no approval yet")]
    NoApproval,
    /// A token bundle that cannot be read.
    #[error("the token bundle is damaged: {0}")]
    Damaged(String),
    /// Another bundle was approved.
    #[error("the approval at hand is for bundle {}, not for {}", found.short(), wanted.short())]
    OtherBundle {
        /// Approved.
        found: Sha256,
        /// The command's.
        wanted: Sha256,
    },
    /// Its end has come.
    #[error("the approval expired at {0:.0}")]
    Expired(jiff::Timestamp),
    /// Its end came between two writes.
    #[error("the approval expired during the sync; what is applied stays")]
    ExpiredDuringSync,
    /// 401 for the platform token.
    #[error("the API server does not accept the platform token any more")]
    Unauthorized,
    /// No account.
    #[error("ServiceAccount pcm-platform is not there")]
    NoAccount,
    /// The live annotation names another bundle.
    #[error("ServiceAccount pcm-platform is annotated with bundle {}, not with {}", found.get(..12).unwrap_or(found), wanted.short())]
    AccountOtherBundle {
        /// As it stands there.
        found: String,
        /// The command's.
        wanted: Sha256,
    },
    /// The live annotation is gone.
    #[error("ServiceAccount pcm-platform has no annotation {key}", key = keys::BUNDLE_SHA256)]
    AccountUnstamped,
    /// Not live.
    #[error("{0} is missing")]
    PermissionMissing(ObjectKey),
    /// Stamped with another bundle.
    #[error("{0} is stamped with another bundle")]
    PermissionOtherBundle(ObjectKey),
    /// Not stamped.
    #[error("{0} is not stamped by an approval")]
    PermissionUnstamped(ObjectKey),
    /// Stamped with another content.
    #[error("{0} was approved with another content than is rendered here")]
    PermissionDiffers(ObjectKey),
    /// A value that was rendered is not live.
    #[error("{key} was changed after the approval: {path}")]
    PermissionChanged {
        /// Object.
        key: ObjectKey,
        /// The first such value.
        path: String,
    },
    /// The live annotation names another workload half.
    #[error("the workload rendered here ({}) is not the one that was approved{}", rendered.short(), between(versions.as_deref()))]
    WorkloadDiffers {
        /// Here.
        rendered: Sha256,
        /// What it was approved with and what renders here, where they differ.
        versions: Option<Box<[Versions; 2]>>,
    },
}

fn between(versions: Option<&[Versions; 2]>) -> String {
    let Some([with, here]) = versions else { return String::new() };
    format!(" (approved with {}, {}; rendering here is {}, {})", with.clicklink, with.engine, here.clicklink, here.engine)
}

impl Refusal {
    /// Its stable code.
    #[must_use]
    pub fn code(&self) -> EndCode {
        match self {
            Self::NoApproval => EndCode::ApprovalMissing,
            Self::Damaged(_) => EndCode::ApprovalDamaged,
            Self::OtherBundle { .. } => EndCode::ApprovalOtherBundle,
            Self::Expired(_) => EndCode::ApprovalExpired,
            Self::ExpiredDuringSync => EndCode::ApprovalExpiredDuringSync,
            Self::Unauthorized => EndCode::PlatformTokenRefused,
            Self::NoAccount => EndCode::AccountMissing,
            Self::AccountOtherBundle { .. } => EndCode::AccountOtherBundle,
            Self::AccountUnstamped => EndCode::AccountUnstamped,
            Self::PermissionMissing(_) => EndCode::PermissionMissing,
            Self::PermissionOtherBundle(_) => EndCode::PermissionOtherBundle,
            Self::PermissionUnstamped(_) => EndCode::PermissionUnstamped,
            Self::PermissionDiffers(_) => EndCode::PermissionDiffers,
            Self::PermissionChanged { .. } => EndCode::PermissionChanged,
            Self::WorkloadDiffers { .. } => EndCode::WorkloadDiffers,
        }
    }
}
