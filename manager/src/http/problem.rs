//! Every error of the HTTP interfaces, and its stable code.

use agent_api::problem::{MEDIA_TYPE, Problem};
use agent_api::signature::SignatureError;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};

use super::code::Code;
use crate::channel::fleet::FleetError;
use crate::channel::poll::PollError;
use crate::domain::enrolment::Refusal;
use crate::domain::release::ReleaseError;
use crate::pki::request::RequestError;
use crate::store::StoreError;

/// Why a request was not carried out.
#[derive(Debug, thiserror::Error)]
pub enum ApiError {
    /// No or no valid bearer token.
    #[error("a valid bearer token is needed")]
    Unauthenticated,
    /// The token may not do this.
    #[error("this token may not do this")]
    Forbidden,
    /// Something named is not there.
    #[error("{noun} `{name}` is not there")]
    NotFound {
        /// What.
        noun: &'static str,
        /// Its name.
        name: String,
    },
    /// No such path.
    #[error("there is nothing at this path")]
    NoRoute,
    /// Another method.
    #[error("this path does not take this method")]
    Method,
    /// The body or a parameter is not right.
    #[error("{0}")]
    Invalid(String),
    /// The body is too large.
    #[error("the body is larger than {0} bytes")]
    TooLarge(usize),
    /// The request took too long.
    #[error("the request was not complete after {0} s")]
    Slow(u64),
    /// The name is in use.
    #[error("{noun} `{name}` is there already")]
    Taken {
        /// What.
        noun: &'static str,
        /// Its name.
        name: String,
    },
    /// A release never changes.
    #[error("release `{0}` is there already with another content; a release never changes, give this one another name")]
    ReleaseDiffers(String),
    /// A cluster has one environment.
    #[error("cluster `{cluster}` has the environment `{environment}`; a cluster has one")]
    ClusterHasEnvironment {
        /// Which.
        cluster: String,
        /// Its environment.
        environment: String,
    },
    /// The last valid token.
    #[error("`{0}` is the last valid token; nobody could come in any more")]
    LastToken(String),
    /// A release becomes no manifest.
    #[error(transparent)]
    Release(#[from] ReleaseError),
    /// Nothing was proposed yet.
    #[error("nothing was proposed to environment `{0}`{of}", of = .1.as_ref().map(|r| format!(" of release `{r}`")).unwrap_or_default())]
    NothingProposed(String, Option<String>),
    /// Enrolment.
    #[error(transparent)]
    Enrolment(#[from] Refusal),
    /// A certificate request.
    #[error(transparent)]
    CertificateRequest(#[from] RequestError),
    /// A signature.
    #[error("{0}")]
    Signature(#[from] SignatureError),
    /// A key that nobody has.
    #[error("the signing key is not known")]
    UnknownKey,
    /// A nonce seen before.
    #[error("this request was seen before; sign it anew")]
    Replayed,
    /// A request from before this process's time: nonces live in memory, so that it cannot be told from a replay.
    #[error(
        "this request was signed {0} s before this server started and cannot be told from a replay; sign it anew, and set the clock (NTP)"
    )]
    BeforeStart(i64),
    /// Too many requests of one key.
    #[error("too many requests with this key; wait some minutes")]
    TooMany,
    /// No room for another connection in this second.
    #[error("executors are let in one after the other; there is room for this one in {0} s")]
    Busy(u64),
    /// A poll.
    #[error(transparent)]
    Poll(#[from] PollError),
    /// The executor was revoked.
    #[error("this executor was revoked: its key and certificates are refused; enrol it anew with a fresh one-time token")]
    Revoked,
    /// No client certificate.
    #[error("a client certificate is needed")]
    CertificateRequired,
    /// Somebody else's client certificate.
    #[error("the client certificate is not the one of the executor that signed")]
    CertificateMismatch,
    /// The WebSocket request is not right.
    #[error("{0}")]
    Upgrade(String),
    /// Ours to mend; the log has more.
    #[error("something failed here; the server's log says what")]
    Internal(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl ApiError {
    /// Takes any error as ours to mend.
    pub fn internal(error: impl std::error::Error + Send + Sync + 'static) -> Self {
        Self::Internal(Box::new(error))
    }

    /// Its stable code.
    #[must_use]
    pub fn code(&self) -> Code {
        match self {
            Self::Unauthenticated => Code::Unauthenticated,
            Self::Forbidden => Code::Forbidden,
            Self::NotFound { .. } | Self::NoRoute => Code::NotFound,
            Self::Method => Code::MethodNotAllowed,
            Self::Invalid(_) => Code::InvalidRequest,
            Self::TooLarge(_) => Code::TooLarge,
            Self::Slow(_) => Code::Timeout,
            Self::Taken { .. } | Self::ReleaseDiffers(_) => Code::AlreadyExists,
            Self::ClusterHasEnvironment { .. } => Code::ClusterHasEnvironment,
            Self::LastToken(_) => Code::LastToken,
            Self::Release(ReleaseError::Secrets(_)) => Code::ValuesSecret,
            Self::Release(ReleaseError::Namespace(_) | ReleaseError::Manifest(_)) => Code::ManifestRefused,
            Self::NothingProposed(..) => Code::NothingProposed,
            Self::Enrolment(Refusal::Token) => Code::EnrolmentTokenInvalid,
            Self::Enrolment(Refusal::OtherCluster) => Code::ExecutorElsewhere,
            Self::Enrolment(Refusal::HasCertificate) => Code::CertificateUnexpired,
            Self::CertificateRequest(_) => Code::CertificateRequestRefused,
            Self::Signature(SignatureError::Window(_)) => Code::ClockApart,
            Self::Signature(_) | Self::UnknownKey => Code::SignatureInvalid,
            Self::Replayed => Code::Replayed,
            Self::BeforeStart(_) => Code::SignedBeforeStart,
            Self::TooMany => Code::TooManyRequests,
            Self::Busy(_) => Code::Busy,
            Self::Poll(PollError::Unknown) => Code::PollSessionUnknown,
            Self::Poll(PollError::Overtaken) => Code::PollOvertaken,
            Self::Poll(PollError::Protocol { .. }) => Code::FrameRefused,
            Self::Poll(PollError::Stopping) => Code::Stopping,
            Self::Revoked | Self::Poll(PollError::Revoked) => Code::ExecutorRevoked,
            Self::CertificateRequired => Code::CertificateRequired,
            Self::CertificateMismatch => Code::CertificateMismatch,
            Self::Upgrade(_) => Code::UpgradeRefused,
            Self::Internal(_) | Self::Poll(PollError::Store(_)) | Self::Release(ReleaseError::Json(_)) => Code::Internal,
        }
    }
}

impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Taken { noun, name } => Self::Taken { noun, name },
            StoreError::Database(_) | StoreError::Migrate(_) | StoreError::Damaged { .. } => Self::internal(error),
        }
    }
}

impl From<FleetError> for ApiError {
    fn from(error: FleetError) -> Self {
        Self::internal(error)
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let code = self.code();
        let status = code.status();
        if status == StatusCode::INTERNAL_SERVER_ERROR {
            tracing::error!(error = %agent_api::chain::chain(&self), "internal error");
        }
        let (name, title) = (code.name().to_owned(), code.title().to_owned());
        let problem = Problem { status: status.as_u16(), code: name, title, detail: self.to_string() };
        let mut response = (status, axum::Json(problem)).into_response();
        response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(MEDIA_TYPE));
        if let Self::Busy(seconds) = self {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        if status == StatusCode::UNAUTHORIZED {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}
