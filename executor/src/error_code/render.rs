//! Codes of errors about bundles, charts and registries: crates that know nothing of a person.

use agent_api::manifest::ManifestError;
use executor_core::bundle::Refusals;
use render::{AwsError, EngineError, PullError, RegistryAccessError, RenderError};

use super::{Code, Coded};

impl Coded for EngineError {
    fn code(&self) -> Code {
        match self {
            Self::Missing(_) | Self::Protocol { .. } | Self::Run { .. } | Self::Ended { .. } | Self::Answer(_) => Code::ChartEngine,
            Self::Chart(_) => Code::ChartNotRendered,
            Self::Time | Self::Cpu | Self::Memory | Self::Output | Self::Object { .. } => Code::ChartStopped,
        }
    }
}

impl Coded for RegistryAccessError {
    fn code(&self) -> Code {
        match self {
            Self::Read { .. } | Self::TooLarge { .. } | Self::Credentials { .. } | Self::Ca { .. } => Code::RegistryAccess,
        }
    }
}

impl Coded for AwsError {
    fn code(&self) -> Code {
        match self {
            Self::NotEcr(_) | Self::Region { .. } | Self::NoRole => Code::RegistryPlace,
            Self::Instance { .. } => Code::InstanceProfile,
            Self::Ambient(_) => Code::AwsCredentials,
            Self::AssumeRole { .. } | Self::Identity { .. } | Self::Token { .. } => Code::AwsRefused,
            Self::Unreachable { .. } | Self::Slow(_) => Code::RegistryUnreachable,
        }
    }

    fn hints(&self) -> Vec<String> {
        match self {
            Self::Instance { .. } => vec![
                "run this on the connector's EC2 instance; the service answers there to: curl -sS -m 2 -X PUT -H \
                 'x-aws-ec2-metadata-token-ttl-seconds: 60' http://169.254.169.254/latest/api/token"
                    .into(),
            ],
            Self::Ambient(_) => vec!["see what AWS's own program finds: aws sts get-caller-identity".into()],
            Self::AssumeRole { .. } | Self::Identity { .. } | Self::Token { .. } => {
                vec!["see who this is and what it may pull: clicklink clctl registry check".into()]
            }
            Self::Unreachable { .. } => vec![
                "see that this machine reaches it; where a proxy opens TLS, name its CA with --registry-ca-file FILE (the executor: registry.ca_file)".into(),
            ],
            Self::NotEcr(_) | Self::Region { .. } | Self::NoRole | Self::Slow(_) => Vec::new(),
        }
    }
}

impl Coded for PullError {
    fn code(&self) -> Code {
        match self {
            Self::Aws(error) => error.code(),
            Self::NoCredentials { .. } | Self::Unauthorized { .. } | Self::Forbidden { .. } => Code::RegistryCredentials,
            Self::NotFound { .. } => Code::RegistryNotFound,
            Self::Client(_) | Self::Tls { .. } | Self::Transport { .. } | Self::Short { .. } | Self::Busy { .. } => {
                Code::RegistryUnreachable
            }
            Self::Address(_)
            | Self::Status { .. }
            | Self::Challenge { .. }
            | Self::Redirect { .. }
            | Self::Digest { .. }
            | Self::MediaType { .. }
            | Self::TooLarge { .. } => Code::RegistryAnswer,
        }
    }

    fn hints(&self) -> Vec<String> {
        match self {
            Self::Aws(error) => error.hints(),
            Self::NoCredentials { host, .. } => {
                vec![format!("log in with `docker login {host}`, or name a docker config.json with --registry-config FILE")]
            }
            Self::Tls { .. } => vec!["name the registry's CA with --registry-ca-file FILE where it is a private one".into()],
            Self::Unauthorized { reference, .. } => {
                let host = reference.split('/').next().unwrap_or_default();
                vec![format!(
                    "user and password are not taken: log in anew with `docker login {host}`, or name another docker config.json with \
                     --registry-config FILE (the executor: registry.credentials_file)"
                )]
            }
            Self::Forbidden { .. } => vec!["see who this is and what it may pull: clicklink clctl registry check".into()],
            Self::NotFound { .. }
            | Self::Client(_)
            | Self::Transport { .. }
            | Self::Short { .. }
            | Self::Busy { .. }
            | Self::Address(_)
            | Self::Status { .. }
            | Self::Challenge { .. }
            | Self::Redirect { .. }
            | Self::Digest { .. }
            | Self::MediaType { .. }
            | Self::TooLarge { .. } => Vec::new(),
        }
    }
}

impl Coded for RenderError {
    fn code(&self) -> Code {
        match self {
            Self::Registry(source) | Self::Pull { source, .. } | Self::Image { source, .. } => source.code(),
            Self::Images { missing, .. } if missing.is_empty() => Code::RegistryCredentials,
            Self::Images { .. } => Code::RegistryNotFound,
            Self::Archive { .. } | Self::Identity { .. } => Code::ChartRefused,
            Self::Chart { source, .. } => source.code(),
            Self::Differs(_) => Code::ChartDiffers,
        }
    }

    fn hints(&self) -> Vec<String> {
        match self {
            Self::Registry(source) | Self::Pull { source, .. } | Self::Image { source, .. } => source.hints(),
            Self::Chart { source, .. } => source.hints(),
            Self::Images { missing, denied } => {
                let copy = "copy the missing images into the registry, digests unchanged".to_owned();
                let allow =
                    "allow this login to pull the denied images; who it is and what it may pull: clicklink clctl registry check".to_owned();
                [(copy, missing.is_empty()), (allow, denied.is_empty())]
                    .into_iter()
                    .filter(|(_, none)| !none)
                    .map(|(hint, _)| hint)
                    .collect()
            }
            Self::Archive { .. } | Self::Identity { .. } | Self::Differs(_) => Vec::new(),
        }
    }
}

impl Coded for ManifestError {
    fn code(&self) -> Code {
        match self {
            Self::TooLarge(_) | Self::Json(_) | Self::Rule { .. } => Code::BundleRefused,
        }
    }
}

impl Coded for Refusals {
    fn code(&self) -> Code {
        Code::BundleRefused
    }
}
