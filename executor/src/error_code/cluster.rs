//! Codes of errors about Kubernetes: the cluster crate's, which knows nothing of a person.

use cluster::ClusterError;
use cluster::connect::ConnectError;
use cluster::guard::GuardError;
use cluster::readiness::WaitError;

use super::{Code, Coded};

impl Coded for ClusterError {
    fn code(&self) -> Code {
        match self {
            Self::Unauthorized { .. } => Code::ClusterUnauthorized,
            Self::Forbidden { .. } => Code::ClusterForbidden,
            Self::Conflict { .. } => Code::FieldConflict,
            Self::AlreadyExists { .. } => Code::ObjectExists,
            Self::Invalid { .. } => Code::ObjectRefused,
            Self::NotFound { .. } => Code::ObjectNotFound,
            Self::Terminating { .. } => Code::ObjectGoing,
            Self::WebhookFailed { .. } => Code::WebhookFailed,
            Self::Unreachable { .. } => Code::ClusterUnreachable,
            Self::Other { .. } => Code::ClusterError,
        }
    }

    fn hints(&self) -> Vec<String> {
        match self {
            Self::Unauthorized { .. } => vec!["see whether `kubectl auth whoami` works with the same kubeconfig and context".into()],
            Self::WebhookFailed { webhook, .. } => {
                vec![format!(
                    "see who serves it: kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations -o custom-columns=KIND:.kind,NAME:.metadata.name,WEBHOOKS:.webhooks[*].name | grep {webhook}"
                )]
            }
            Self::Forbidden { .. }
            | Self::Conflict { .. }
            | Self::AlreadyExists { .. }
            | Self::Invalid { .. }
            | Self::NotFound { .. }
            | Self::Terminating { .. }
            | Self::Unreachable { .. }
            | Self::Other { .. } => Vec::new(),
        }
    }
}

impl Coded for ConnectError {
    fn code(&self) -> Code {
        match self {
            Self::ContextNeeded(_) | Self::Context { .. } => Code::ContextNeeded,
            Self::Kubeconfig(_) | Self::Client(_) | Self::InCluster(_) => Code::KubeconfigUnusable,
            Self::Server(_) | Self::Ca => Code::ServerAddress,
        }
    }

    fn hints(&self) -> Vec<String> {
        match self {
            Self::ContextNeeded(_) | Self::Context { .. } => vec!["see them: kubectl config get-contexts".into()],
            Self::Kubeconfig(_) => vec!["name a kubeconfig with --kubeconfig FILE or KUBECONFIG".into()],
            Self::Client(_) | Self::InCluster(_) | Self::Server(_) | Self::Ca => Vec::new(),
        }
    }
}

impl Coded for GuardError {
    fn code(&self) -> Code {
        match self {
            Self::TooLarge | Self::Yaml(_) | Self::Field { .. } => Code::KubeconfigRefused,
        }
    }
}

impl Coded for WaitError {
    fn code(&self) -> Code {
        match self {
            Self::Failed { .. } | Self::Gone { .. } | Self::TimedOut { .. } => Code::NotReady,
            Self::Cluster(error) => error.code(),
        }
    }
}
