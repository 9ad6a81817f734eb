//! Why the token was not renewed, and what a person can do about it.

use agent_api::names::{CLUSTER_DIR, PCM_EXECUTOR};
use cluster::ClusterError;
use cluster::connect::ConnectError;
use cluster::token::TokenError;

use crate::access_folder::AccessFolderError;
use crate::error_code::{Code, Coded};
use crate::observe::AccessError;

/// Renders the access anew, applies it, and mints a token.
const GRANT: &str =
    "grant it: clicklink clctl executor access grant --cluster --force, then clicklink clctl executor access apply --cluster";
/// Mints a token.
const APPLY: &str = "clicklink clctl executor access apply --cluster mints another one";

/// Why not.
#[derive(Debug, thiserror::Error)]
pub(super) enum RenewalError {
    /// The bundle cannot be read.
    #[error(transparent)]
    Access(#[from] AccessError),
    /// The file is something else.
    #[error("{CLUSTER_DIR}/token: {0}")]
    Token(#[from] TokenError),
    /// The token is another account's, and none of another account is asked for.
    #[error("{CLUSTER_DIR}/token is not of the ServiceAccount {PCM_EXECUTOR}")]
    OtherAccount,
    /// The API server did not grant one.
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    /// The API server granted one that is not this account's.
    #[error("the API server granted a token that is not of the same account")]
    Odd,
    /// A person's is left alone.
    #[error("the access bundle was replaced meanwhile")]
    Exchanged,
    /// The new token is lost.
    #[error("the new token: {0}")]
    Write(#[source] AccessFolderError),
}

impl From<ConnectError> for RenewalError {
    fn from(error: ConnectError) -> Self {
        Self::Access(error.into())
    }
}

impl RenewalError {
    /// What is behind it: a failure is told again when this changes.
    pub(super) fn cause(&self) -> Code {
        match self {
            Self::Access(AccessError::Folder(error)) | Self::Write(error) => error.code(),
            Self::Access(AccessError::Kubeconfig(error)) => error.code(),
            Self::Access(AccessError::Connect(error)) => error.code(),
            Self::Cluster(error) => error.code(),
            Self::Token(_) | Self::OtherAccount | Self::Odd | Self::Exchanged => self.code(),
        }
    }
}

impl Coded for RenewalError {
    fn code(&self) -> Code {
        Code::TokenNotRenewed
    }

    fn hints(&self) -> Vec<String> {
        let hint = match self {
            Self::Cluster(ClusterError::Forbidden { .. }) => GRANT,
            Self::Cluster(ClusterError::Unauthorized { .. } | ClusterError::NotFound { .. }) | Self::Token(_) | Self::OtherAccount => APPLY,
            Self::Access(_) | Self::Write(_) => "see that the executor's user owns the folder and its files, and that its disk has room",
            Self::Exchanged => "nothing is to be done",
            Self::Cluster(_) | Self::Odd => "see whether the API server answers: clicklink clctl preflight",
        };
        vec![hint.to_owned()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_right_is_granted_and_an_ended_token_minted() {
        let about = || "token of ServiceAccount clicklink-system/pcm-executor".to_owned();
        let forbidden = RenewalError::from(ClusterError::Forbidden { about: about(), message: "cannot create".into() });
        assert_eq!(
            (forbidden.code(), forbidden.cause(), forbidden.hints()),
            (Code::TokenNotRenewed, Code::ClusterForbidden, vec![GRANT.to_owned()])
        );
        let ended = RenewalError::from(ClusterError::Unauthorized { about: about() });
        assert_eq!((ended.cause(), ended.hints()), (Code::ClusterUnauthorized, vec![APPLY.to_owned()]));
    }
}
