//! Codes of errors about bundles, charts and registries: crates that know nothing of a person.

use agent_api::manifest::ManifestError;
use executor_core::bundle::Refusals;
use render::{EngineError, PullError, RegistryAccessError, RenderError};

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

impl Coded for PullError {
    fn code(&self) -> Code {
        match self {
            Self::NoCredentials { .. } | Self::Unauthorized { .. } | Self::Forbidden { .. } | Self::Mode(_) => Code::RegistryCredentials,
            Self::NotFound { .. } => Code::RegistryNotFound,
            Self::Client(_) | Self::Tls { .. } | Self::Transport { .. } => Code::RegistryUnreachable,
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
            Self::NoCredentials { host, .. } => {
                vec![format!("log in with `docker login {host}`, or name a docker config.json with --registry-config FILE")]
            }
            Self::Tls { .. } => vec!["name the registry's CA with --registry-ca-file FILE where it is a private one".into()],
            Self::Mode(_)
            | Self::Unauthorized { .. }
            | Self::Forbidden { .. }
            | Self::NotFound { .. }
            | Self::Client(_)
            | Self::Transport { .. }
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
            Self::Archive { .. } | Self::Identity { .. } => Code::ChartRefused,
            Self::Chart { source, .. } => source.code(),
            Self::Differs(_) => Code::ChartDiffers,
        }
    }

    fn hints(&self) -> Vec<String> {
        match self {
            Self::Registry(source) | Self::Pull { source, .. } | Self::Image { source, .. } => source.hints(),
            Self::Chart { source, .. } => source.hints(),
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
