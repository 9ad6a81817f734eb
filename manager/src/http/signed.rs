//! Who an executor's request is from: its signature, its nonce, and its client certificate must all be the same executor's.

use agent_api::enrolment::{POLL_PATH, SIGN_PATH};
use agent_api::name::ExecutorId;
use agent_api::signature::{self, Headers};
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::HeaderMap;
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use jiff::Timestamp;

use super::Shared;
use super::audit::Who;
use super::nonce::Seen;
use super::problem::ApiError;
use crate::config;
use crate::pki::peer::Peer;
use crate::store::executor::{Certificate, Credentials};

/// The executor that a request is from; only [`verify`] makes one.
#[derive(Clone, Debug)]
pub struct Signed {
    /// Its id.
    pub executor: ExecutorId,
}

/// Lets a request through if it is an executor's.
pub async fn verify(State(app): State<Shared>, request: Request, next: Next) -> Response {
    match check(&app, request).await {
        Ok((signed, mut request)) => {
            let who = Who(format!("executor:{}", signed.executor));
            request.extensions_mut().insert(signed);
            let mut response = next.run(request).await;
            response.extensions_mut().insert(who);
            response
        }
        Err(error) => {
            tracing::warn!(error = %agent_api::chain::chain(&error), "an executor's request was refused");
            error.into_response()
        }
    }
}

async fn check(app: &Shared, request: Request) -> Result<(Signed, Request), ApiError> {
    let (parts, body) = request.into_parts();
    let headers = headers(&parts.headers)?;
    let claim = signature::claim(&headers)?;
    let credentials = app.inbound.store.credentials(&claim.access_key).await?.ok_or(ApiError::UnknownKey)?;
    let certificate = match parts.uri.path() {
        SIGN_PATH => None,
        _ => Some(certificate(parts.extensions.get::<Peer>(), &credentials, &app.organisation)?),
    };
    let most = if parts.uri.path() == POLL_PATH { config::MAX_POLL_BODY } else { config::MAX_SIGNED_BODY };
    let body = to_bytes(body, most).await.map_err(|_| ApiError::TooLarge(most))?;
    let secret = app.seal.open(&credentials.sealed_secret, &credentials.id.to_string()).map_err(ApiError::internal)?;
    let target = parts.uri.path_and_query().map_or("/", |target| target.as_str());
    let now = Timestamp::now().as_second();
    signature::verify(&claim, &headers, &secret, parts.method.as_str(), target, &body, now)?;
    // Told to nobody but the holder of the key.
    if credentials.revoked {
        return Err(ApiError::Revoked);
    }
    let before_start = app.started_at.as_second() - claim.created;
    if before_start > 0 {
        return Err(ApiError::BeforeStart(before_start));
    }
    match app.nonces.see(&claim, now) {
        Seen::New => {}
        Seen::Before => return Err(ApiError::Replayed),
        Seen::Full => return Err(ApiError::TooMany),
    }
    if let Some(Bound::Next(serial)) = certificate {
        app.inbound.store.use_next_certificate(credentials.id, &serial).await?;
    }
    Ok((Signed { executor: credentials.id }, Request::from_parts(parts, Body::from(body))))
}

fn headers(map: &HeaderMap) -> Result<Headers, ApiError> {
    let one = |name: &'static str| {
        let mut values = map.get_all(name).iter();
        match (values.next().and_then(|value| value.to_str().ok()), values.next()) {
            (Some(value), None) => Ok(value.to_owned()),
            _ => Err(signature::SignatureError::Malformed(name)),
        }
    };
    Ok(Headers {
        content_digest: one(signature::CONTENT_DIGEST)?,
        signature_input: one(signature::SIGNATURE_INPUT)?,
        signature: one(signature::SIGNATURE)?,
    })
}

/// Which of an executor's certificates a request came with.
enum Bound {
    Present,
    /// The renewed one, by its serial number; from now on it is the present one.
    Next(String),
}

/// TLS has verified that it is ours and has not ended when the connection began; here, that it is this executor's and still good.
fn certificate(peer: Option<&Peer>, credentials: &Credentials, organisation: &str) -> Result<Bound, ApiError> {
    let peer = peer.ok_or(ApiError::CertificateRequired)?;
    if peer.common_name.as_deref() != Some(organisation) || Timestamp::now() >= peer.not_after {
        return Err(ApiError::CertificateMismatch);
    }
    let is = |known: &Option<Certificate>| {
        known.as_ref().is_some_and(|known| known.serial == peer.serial && known.key_sha256 == peer.key_sha256.as_str())
    };
    if is(&credentials.certificate) {
        Ok(Bound::Present)
    } else if is(&credentials.next_certificate) {
        Ok(Bound::Next(peer.serial.clone()))
    } else {
        Err(ApiError::CertificateMismatch)
    }
}
