//! Why a connector is not enrolled, and what to do about it.

use std::path::PathBuf;

use agent_api::name::ExecutorId;

use super::handoff;
use crate::error_code::{Code, Coded};
use crate::signed::SignedError;

/// Why a connector is not enrolled.
#[derive(Debug, thiserror::Error)]
pub(super) enum InitError {
    /// Neither `--enroll` nor `--handoff`.
    #[error("one of --enroll and --handoff is needed")]
    NoEntry,
    /// No token.
    #[error("no enrolment token: type it at the prompt, or give it as the first line of stdin")]
    NoToken,
    /// The prompt or stdin failed.
    #[error("the enrolment token cannot be read: {0}")]
    Token(std::io::Error),
    /// Configured, but the certificate was removed.
    #[error("the configuration is there, but {} is not", .0.display())]
    CertificateMissing(PathBuf),
    /// An address.
    #[error("`{0}` is not an address of the form https://host[:port]")]
    Endpoint(String),
    /// A file that was named.
    #[error("{}: {source}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// `handoff.yaml`, ours or the one that was named.
    #[error("{}: {problem}", path.display())]
    Handoff {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        problem: String,
    },
    /// The handoff is for another executor.
    #[error("the handoff is for executor {given}, but this deployment is {own}")]
    OtherIdentity {
        /// In the handoff.
        given: ExecutorId,
        /// Here.
        own: ExecutorId,
    },
    /// A file or folder could not be written.
    #[error("{}: {source}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// Key or request.
    #[error("the certificate request cannot be made: {0}")]
    Request(#[from] rcgen::Error),
    /// The private key that is there.
    #[error("{} is there and is not a private key in PEM", .0.display())]
    Key(PathBuf),
    /// The CA.
    #[error(transparent)]
    Signed(#[from] SignedError),
    /// No answer.
    #[error("{doing} at {url}")]
    Unreachable {
        /// What was being done.
        doing: &'static str,
        /// Address.
        url: String,
        /// Why.
        source: reqwest::Error,
    },
    /// An answer that is no success.
    #[error("{doing}: the manager answered {status}: {detail}")]
    Refused {
        /// What was being done.
        doing: &'static str,
        /// HTTP status.
        status: u16,
        /// The manager's code.
        code: String,
        /// The manager's words.
        detail: String,
    },
    /// An answer that cannot be read.
    #[error("{doing}: the manager's answer is not readable: {problem}")]
    Answer {
        /// What was being done.
        doing: &'static str,
        /// Why.
        problem: String,
    },
}

impl Coded for InitError {
    fn code(&self) -> Code {
        match self {
            Self::NoEntry => Code::Usage,
            Self::NoToken | Self::Token(_) => Code::EnrolmentTokenMissing,
            Self::CertificateMissing(_) => Code::CertificateMissing,
            Self::Endpoint(_) => Code::EndpointInvalid,
            Self::Unreadable { .. } => Code::FileUnreadable,
            Self::Handoff { .. } | Self::OtherIdentity { .. } => Code::HandoffInvalid,
            Self::Write { .. } => Code::FileNotWritten,
            Self::Request(_) | Self::Key(_) => Code::CertificateNotMade,
            Self::Signed(error) => error.code(),
            Self::Unreachable { .. } => Code::ManagerUnreachable,
            Self::Refused { code, .. } => refused(code),
            Self::Answer { .. } => Code::ManagerAnswer,
        }
    }

    fn hints(&self) -> Vec<String> {
        match self {
            Self::NoToken => vec!["your vendor makes one with: navin-manager executor enroll --cluster NAME".into()],
            Self::CertificateMissing(path) => vec![
                format!("put {} back from a backup; the manager signs no second one while it is valid", path.display()),
                "or ask for a new enrolment token and run it again with --force".into(),
            ],
            Self::Unreachable { .. } => {
                vec!["see the address, DNS, proxy and TLS; a private CA is named with --api-private-ca FILE; then run it again".into()]
            }
            Self::Refused { code, .. } => match refused(code) {
                Code::EnrolmentTokenInvalid => vec!["ask your vendor for a new token; it is good once, for one hour".into()],
                Code::CertificateUnexpired => vec![
                    "if a former run was interrupted here, its certificate was signed and is lost: ask your vendor, or wait until it ends"
                        .into(),
                    "if the connector works, nothing needs to be done: its certificate is renewed by itself".into(),
                ],
                Code::SignatureInvalid => vec![
                    "set the clock: timedatectl set-ntp true; then run it again".into(),
                    format!("or remove {} beside the configuration and begin with a new token", handoff::FILE),
                ],
                _ => Vec::new(),
            },
            Self::Key(path) => vec![format!("move {} away and run it again", path.display())],
            Self::OtherIdentity { .. } => vec!["use the handoff that was made for this deployment, or another --config".into()],
            Self::NoEntry
            | Self::Token(_)
            | Self::Endpoint(_)
            | Self::Unreadable { .. }
            | Self::Handoff { .. }
            | Self::Write { .. }
            | Self::Request(_)
            | Self::Signed(_)
            | Self::Answer { .. } => Vec::new(),
        }
    }
}

/// The manager's problem codes in ours.
fn refused(code: &str) -> Code {
    match code {
        "enrolment_token_invalid" => Code::EnrolmentTokenInvalid,
        "certificate_unexpired" => Code::CertificateUnexpired,
        "executor_elsewhere" => Code::ExecutorElsewhere,
        "signature_invalid" | "replayed" | "signed_before_start" => Code::SignatureInvalid,
        _ => Code::ManagerRefused,
    }
}
