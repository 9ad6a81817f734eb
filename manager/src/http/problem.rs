//! Every error of the HTTP interfaces, its status and its stable code.

use agent_api::problem::{MEDIA_TYPE, Problem};
use agent_api::signature::SignatureError;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};

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

    fn kind(&self) -> (StatusCode, &'static str, &'static str) {
        use StatusCode as S;
        match self {
            Self::Unauthenticated => (S::UNAUTHORIZED, "unauthenticated", "Not authenticated"),
            Self::Forbidden => (S::FORBIDDEN, "forbidden", "Not allowed"),
            Self::NotFound { .. } | Self::NoRoute => (S::NOT_FOUND, "not_found", "Not found"),
            Self::Method => (S::METHOD_NOT_ALLOWED, "method_not_allowed", "Method not allowed"),
            Self::Invalid(_) => (S::BAD_REQUEST, "invalid_request", "Invalid request"),
            Self::TooLarge(_) => (S::PAYLOAD_TOO_LARGE, "too_large", "Too large"),
            Self::Slow(_) => (S::REQUEST_TIMEOUT, "timeout", "Too slow"),
            Self::Taken { .. } | Self::ReleaseDiffers(_) => (S::CONFLICT, "already_exists", "Already there"),
            Self::ClusterHasEnvironment { .. } => (S::CONFLICT, "cluster_has_environment", "Cluster has an environment"),
            Self::LastToken(_) => (S::CONFLICT, "last_token", "Last token"),
            Self::Release(ReleaseError::Secrets(_)) => (S::UNPROCESSABLE_ENTITY, "values_secret", "Secrets in values"),
            Self::Release(ReleaseError::Namespace(_) | ReleaseError::Manifest(_)) => {
                (S::UNPROCESSABLE_ENTITY, "manifest_refused", "Manifest refused")
            }
            Self::NothingProposed(..) => (S::NOT_FOUND, "nothing_proposed", "Nothing proposed"),
            Self::Enrolment(Refusal::Token) => (S::UNAUTHORIZED, "enrolment_token_invalid", "Enrolment token not valid"),
            Self::Enrolment(Refusal::OtherCluster) => (S::CONFLICT, "executor_elsewhere", "Executor of another cluster"),
            Self::Enrolment(Refusal::HasCertificate) => (S::CONFLICT, "certificate_unexpired", "Certificate unexpired"),
            Self::CertificateRequest(_) => (S::UNPROCESSABLE_ENTITY, "certificate_request_refused", "Certificate request refused"),
            Self::Signature(SignatureError::Window(_)) => (S::UNAUTHORIZED, "clock_apart", "Clocks apart"),
            Self::Signature(_) | Self::UnknownKey => (S::UNAUTHORIZED, "signature_invalid", "Signature not valid"),
            Self::Replayed => (S::UNAUTHORIZED, "replayed", "Request replayed"),
            Self::BeforeStart(_) => (S::UNAUTHORIZED, "signed_before_start", "Signed before the server's start"),
            Self::TooMany => (S::TOO_MANY_REQUESTS, "too_many_requests", "Too many requests"),
            Self::Busy(_) => (S::SERVICE_UNAVAILABLE, "busy", "Busy"),
            Self::Poll(PollError::Unknown) => (S::CONFLICT, "poll_session_unknown", "Poll session not known"),
            Self::Poll(PollError::Overtaken) => (S::CONFLICT, "poll_overtaken", "Poll overtaken"),
            Self::Poll(PollError::Protocol { .. }) => (S::BAD_REQUEST, "frame_refused", "Frame refused"),
            Self::Poll(PollError::Stopping) => (S::SERVICE_UNAVAILABLE, "stopping", "Stopping"),
            Self::CertificateRequired => (S::UNAUTHORIZED, "certificate_required", "Certificate required"),
            Self::CertificateMismatch => (S::FORBIDDEN, "certificate_mismatch", "Another certificate"),
            Self::Upgrade(_) => (S::BAD_REQUEST, "upgrade_refused", "Upgrade refused"),
            Self::Internal(_) | Self::Poll(PollError::Store(_)) | Self::Release(ReleaseError::Json(_)) => {
                (S::INTERNAL_SERVER_ERROR, "internal", "Internal error")
            }
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
        let (status, code, title) = self.kind();
        if status == StatusCode::INTERNAL_SERVER_ERROR {
            tracing::error!(error = %agent_api::chain::chain(&self), "internal error");
        }
        let problem = Problem { status: status.as_u16(), code: code.to_owned(), title: title.to_owned(), detail: self.to_string() };
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
