//! `POST /v1/pcm/cert/sign`: an enrolled executor's first certificate, and another one when it has ended. `POST /v1/pcm/cert/renew`: the
//! next one, while the present one is good.

use agent_api::enrolment::{SignRequest, SignResponse};
use axum::extract::State;
use axum::{Extension, Json};
use jiff::Timestamp;

use super::Shared;
use super::body::Body;
use super::problem::ApiError;
use super::signed::Signed;
use crate::domain::enrolment::Refusal;
use crate::pki::authority::Issued;
use crate::pki::request;

/// Signs the request and binds the certificate's serial number and key to the executor.
///
/// # Errors
/// The request is not right, or the executor has an unexpired certificate.
pub async fn sign(
    State(app): State<Shared>,
    Extension(signed): Extension<Signed>,
    Body(body): Body<SignRequest>,
) -> Result<Json<SignResponse>, ApiError> {
    let issued = issue(&app, &body)?;
    let (serial, key, now) = (&issued.serial, issued.key_sha256.as_str(), Timestamp::now());
    if !app.inbound.store.bind_certificate(signed.executor, serial, key, issued.not_after, now).await? {
        return Err(Refusal::HasCertificate.into());
    }
    tracing::info!(executor = %signed.executor, serial, not_after = %issued.not_after, "certificate signed");
    Ok(Json(SignResponse { certificate: issued.chain, not_after: issued.not_after }))
}

/// Signs the request; the present certificate is good until the new one is used.
///
/// # Errors
/// The request is not right.
pub async fn renew(
    State(app): State<Shared>,
    Extension(signed): Extension<Signed>,
    Body(body): Body<SignRequest>,
) -> Result<Json<SignResponse>, ApiError> {
    let issued = issue(&app, &body)?;
    app.inbound.store.bind_next_certificate(signed.executor, &issued.serial, issued.key_sha256.as_str(), issued.not_after).await?;
    tracing::info!(executor = %signed.executor, serial = issued.serial, not_after = %issued.not_after, "certificate renewed");
    Ok(Json(SignResponse { certificate: issued.chain, not_after: issued.not_after }))
}

fn issue(app: &Shared, body: &SignRequest) -> Result<Issued, ApiError> {
    let checked = request::check(&body.csr, &app.organisation, &app.host)?;
    app.authority.sign_executor(&checked, &app.organisation, &app.host, app.executor_certificate_lasts).map_err(ApiError::internal)
}
