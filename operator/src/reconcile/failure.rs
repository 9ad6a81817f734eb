//! A request that failed, as a reason and a sentence of the status; and whether to ask again is worth anything.

use cluster::ClusterError;

use super::plan::Stopped;
use super::reason::Reason;

/// How the API server says that a field cannot change.
const IMMUTABLE: [&str; 4] =
    ["field is immutable", "is immutable after creation", "may not change once set", "Forbidden: updates to statefulset spec"];

/// What a failed write is told as.
#[must_use]
pub fn stopped(error: &ClusterError) -> Stopped {
    let reason = match error {
        ClusterError::Conflict { .. } => Reason::FieldConflict,
        ClusterError::Invalid { message, .. } if IMMUTABLE.iter().any(|words| message.contains(words)) => Reason::ImmutableField,
        ClusterError::Invalid { .. }
        | ClusterError::NotFound { .. }
        | ClusterError::AlreadyExists { .. }
        | ClusterError::Terminating { .. }
        // It was not even sent: the API server has no place for a name or kind like it.
        | ClusterError::Other { code: 0, .. } => Reason::ObjectRefused,
        ClusterError::Forbidden { .. } => Reason::Forbidden,
        ClusterError::WebhookFailed { .. } => Reason::WebhookFailed,
        ClusterError::Unauthorized { .. } | ClusterError::Unreachable { .. } | ClusterError::Other { .. } => Reason::ApiUnavailable,
    };
    Stopped::new(reason, error)
}

/// Whether a request had no answer: then nothing can be told either. Every other failure is an answer about one object.
#[must_use]
pub fn is_silence(error: &ClusterError) -> bool {
    matches!(error, ClusterError::Unreachable { .. } | ClusterError::Unauthorized { .. })
}

/// Whether a failure may pass although nobody changes the spec. `local` charts may be mended in their folder; what a digest pins may not.
#[must_use]
pub fn may_pass(reason: Reason, local: bool) -> bool {
    match reason {
        Reason::SecretNotFound
        | Reason::ChartUnavailable
        | Reason::OwnedByAnother
        | Reason::KedaNotServed
        | Reason::ImmutableField
        | Reason::FieldConflict
        | Reason::ObjectRefused
        | Reason::Forbidden
        | Reason::WebhookFailed
        | Reason::ApiUnavailable => true,
        Reason::ChartRefused
        | Reason::VersionMismatch
        | Reason::RenderFailed
        | Reason::RendersDifferently
        | Reason::ForbiddenObject
        | Reason::TooManyObjects
        | Reason::ReplicasBelowMinAvailable
        | Reason::RecreateUnderBudget => local,
        Reason::InvalidSpec
        | Reason::SecretInValues
        | Reason::SecretInPlainText
        | Reason::ValuePath
        | Reason::RolloutFailed
        | Reason::Maintenance
        | Reason::DisruptionBudgetExhausted
        | Reason::HeldByFinalizer
        | Reason::OnDelete
        | Reason::Partition
        | Reason::Progressing
        | Reason::AsDesired
        | Reason::NothingAsked
        | Reason::Uninstalling
        | Reason::Pods
        | Reason::NotObserved
        | Reason::NothingFound => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_failure_has_its_reason() {
        let about = || "Deployment.apps here/redis".to_owned();
        let invalid = |message: &str| ClusterError::Invalid { about: about(), message: message.into() };
        for (error, reason) in [
            (invalid("spec.selector: Invalid value: {}: field is immutable"), Reason::ImmutableField),
            (invalid("spec: Forbidden: updates to statefulset spec for fields other than 'replicas'"), Reason::ImmutableField),
            (invalid("data: Forbidden: field is immutable when `immutable` is set"), Reason::ImmutableField),
            (invalid("spec.clusterIPs[0]: Invalid value: [\"None\"]: may not change once set"), Reason::ImmutableField),
            (invalid("unknown field \"spec.replicass\""), Reason::ObjectRefused),
            (ClusterError::Conflict { about: about(), fields: vec![("kubectl-edit".into(), ".data.a".into())] }, Reason::FieldConflict),
            (ClusterError::Forbidden { about: about(), message: "exceeded quota".into() }, Reason::Forbidden),
            (ClusterError::Unreachable { about: about(), message: "refused".into() }, Reason::ApiUnavailable),
            (ClusterError::Other { about: about(), code: 500, message: "internal".into() }, Reason::ApiUnavailable),
            (ClusterError::Other { about: about(), code: 0, message: "a name that no URL can hold".into() }, Reason::ObjectRefused),
        ] {
            let told = stopped(&error);
            assert_eq!(told.reason, reason, "{error}");
            assert!(told.message.contains("here/redis"), "the object is named: {}", told.message);
        }
    }

    #[test]
    fn what_a_digest_pins_is_not_tried_again() {
        assert!(may_pass(Reason::RenderFailed, true) && !may_pass(Reason::RenderFailed, false));
        assert!(may_pass(Reason::SecretNotFound, false) && !may_pass(Reason::InvalidSpec, true));
    }
}
