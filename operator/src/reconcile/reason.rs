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
    /// A referenced Secret, or its key, is not there.
    SecretNotFound,
    /// The chart cannot be had: its registry, or the charts folder.
    ChartUnavailable,
    /// The chart's archive breaks a bound.
    ChartRefused,
    /// The chart is of another version than the spec says.
    VersionMismatch,
    /// The chart cannot be rendered.
    RenderFailed,
    /// Two renderings of the chart differ.
    RendersDifferently,
    /// The chart renders more objects than a component may have.
    TooManyObjects,
    /// A field cannot be changed on the live object.
    ImmutableField,
    /// Another manager owns a field with another value.
    FieldConflict,
    /// The API server, or admission, refuses an object.
    ObjectRefused,
    /// The operator may not do it.
    Forbidden,
    /// An admission webhook that must answer does not.
    WebhookFailed,
    /// The API server does not answer.
    ApiUnavailable,
    /// Something else holds an object that is being deleted.
    HeldByFinalizer,
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
            Self::SecretNotFound => "SecretNotFound",
            Self::ChartUnavailable => "ChartUnavailable",
            Self::ChartRefused => "ChartRefused",
            Self::VersionMismatch => "VersionMismatch",
            Self::RenderFailed => "RenderFailed",
            Self::RendersDifferently => "RendersDifferently",
            Self::TooManyObjects => "TooManyObjects",
            Self::ImmutableField => "ImmutableField",
            Self::FieldConflict => "FieldConflict",
            Self::ObjectRefused => "ObjectRefused",
            Self::Forbidden => "Forbidden",
            Self::WebhookFailed => "WebhookFailed",
            Self::ApiUnavailable => "ApiUnavailable",
            Self::HeldByFinalizer => "HeldByFinalizer",
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
