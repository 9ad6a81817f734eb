//! Reasons of conditions: one word each, which programs may rely on.

/// Why a dimension is what it is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Reason {
    /// The spec breaks a rule of its schema.
    InvalidSpec,
    /// A value looks like a secret.
    SecretInValues,
    /// The chart produced an object that is not allowed.
    ForbiddenObject,
    /// A rendered object holds a secret in plain text.
    SecretInPlainText,
    /// Fewer pods than the budget asks for, once the chart's own counts are known.
    ReplicasBelowMinAvailable,
    /// A workload replaces all pods at once, whatever a budget says.
    RecreateUnderBudget,
    /// KEDA was asked for and its ScaledObject is not served.
    KedaNotServed,
    /// An object of this name is somebody else's.
    OwnedByAnother,
    /// A value path leads through something that is no map.
    ValuePath,
    /// A rollout gave up.
    RolloutFailed,
    /// Maintenance.
    Maintenance,
    /// Fewer pods are available than the budget asks for.
    DisruptionBudgetExhausted,
    /// A StatefulSet keeps old pods until somebody deletes them.
    OnDelete,
    /// A StatefulSet keeps old pods below its partition.
    Partition,
    /// Written, and not seen to be so yet.
    Progressing,
    /// Seen to be as desired.
    AsDesired,
    /// Nothing was asked for.
    NothingAsked,
    /// It is being removed.
    Uninstalling,
    /// Pods against what is wanted.
    Pods,
    /// Nobody could look.
    NotObserved,
    /// Nothing was found.
    NothingFound,
}

impl Reason {
    /// As in a condition.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::InvalidSpec => "InvalidSpec",
            Self::SecretInValues => "SecretInValues",
            Self::ForbiddenObject => "ForbiddenObject",
            Self::SecretInPlainText => "SecretInPlainText",
            Self::ReplicasBelowMinAvailable => "ReplicasBelowMinAvailable",
            Self::RecreateUnderBudget => "RecreateUnderBudget",
            Self::KedaNotServed => "KedaNotServed",
            Self::OwnedByAnother => "OwnedByAnother",
            Self::ValuePath => "ValuePath",
            Self::RolloutFailed => "RolloutFailed",
            Self::Maintenance => "Maintenance",
            Self::DisruptionBudgetExhausted => "DisruptionBudgetExhausted",
            Self::OnDelete => "OnDelete",
            Self::Partition => "Partition",
            Self::Progressing => "Progressing",
            Self::AsDesired => "AsDesired",
            Self::NothingAsked => "NothingAsked",
            Self::Uninstalling => "Uninstalling",
            Self::Pods => "Pods",
            Self::NotObserved => "NotObserved",
            Self::NothingFound => "NothingFound",
        }
    }
}
