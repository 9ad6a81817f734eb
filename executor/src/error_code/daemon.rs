//! Codes of what keeps the daemon from starting.

use super::{Code, Coded};
use crate::config::ConfigError;
use crate::journal::JournalError;
use crate::signed::SignedError;

impl Coded for ConfigError {
    fn code(&self) -> Code {
        match self {
            Self::Read { source, .. } if source.kind() == std::io::ErrorKind::NotFound => Code::ConfigMissing,
            Self::Read { .. } => Code::ConfigUnreadable,
            Self::Parse { .. } | Self::NoPod(..) => Code::ConfigInvalid,
        }
    }
}

impl Coded for SignedError {
    fn code(&self) -> Code {
        match self {
            Self::File { source, .. } => match source.kind() {
                std::io::ErrorKind::NotFound | std::io::ErrorKind::PermissionDenied => Code::CredentialsMissing,
                // A disk that answers with an error may answer otherwise at the next start.
                _ => Code::FileUnreadable,
            },
            Self::Tls(_) => Code::CredentialsDamaged,
        }
    }
}

impl Coded for JournalError {
    fn code(&self) -> Code {
        match self {
            Self::Folder { .. } => Code::StateFolder,
            Self::InUse(_) => Code::StateFolderInUse,
            Self::Database { .. } => Code::JournalFailed,
            Self::Damaged { .. } | Self::KeptAside(_) => Code::JournalDamaged,
            Self::Newer { .. } => Code::JournalNewer,
            Self::Foreign(_) => Code::JournalForeign,
        }
    }
}

/// The code of an error that gathered context on its way through the start.
pub(crate) fn of_start(error: &anyhow::Error) -> Code {
    let one = |cause: &(dyn std::error::Error + 'static)| {
        None.or_else(|| cause.downcast_ref::<ConfigError>().map(Coded::code))
            .or_else(|| cause.downcast_ref::<SignedError>().map(Coded::code))
            .or_else(|| cause.downcast_ref::<JournalError>().map(Coded::code))
            .or_else(|| cause.downcast_ref::<render::EngineError>().map(Coded::code))
            .or_else(|| cause.downcast_ref::<render::RegistryAccessError>().map(Coded::code))
    };
    let listens = |cause: &(dyn std::error::Error + 'static)| {
        let kind = cause.downcast_ref::<std::io::Error>().map(std::io::Error::kind);
        matches!(kind, Some(std::io::ErrorKind::AddrInUse | std::io::ErrorKind::AddrNotAvailable)).then_some(Code::PortUnavailable)
    };
    error.chain().find_map(|cause| one(cause).or_else(|| listens(cause))).unwrap_or(Code::Internal)
}

#[cfg(test)]
mod tests {
    use anyhow::Context as _;

    use super::*;

    #[test]
    fn context_does_not_hide_the_code() {
        let in_use = JournalError::InUse("/s".into());
        assert_eq!(of_start(&anyhow::Error::from(in_use).context("start")), Code::StateFolderInUse);
        let taken: Result<(), _> = Err(std::io::Error::from(std::io::ErrorKind::AddrInUse));
        assert_eq!(of_start(&taken.context("local API").unwrap_err()), Code::PortUnavailable);
        assert_eq!(of_start(&anyhow::anyhow!("else")), Code::Internal);
    }
}
