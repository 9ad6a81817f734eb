//! `POST /v1/pcm/cert/sign`: an enrolled executor's first certificate, and another one when it has ended.

use agent_api::enrolment::{SignRequest, SignResponse};
use axum::extract::State;
use axum::{Extension, Json};
use jiff::Timestamp;

use super::Shared;
use super::body::Body;
use super::problem::ApiError;
use super::signed::Signed;
use crate::domain::enrolment::Refusal;
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
    let checked = request::check(&body.csr, &app.organisation, &app.host)?;
    let issued = app.authority.sign_executor(&checked, &app.organisation, &app.host).map_err(ApiError::internal)?;
    let (serial, key, now) = (&issued.serial, issued.key_sha256.as_str(), Timestamp::now());
    if !app.inbound.store.bind_certificate(signed.executor, serial, key, issued.not_after, now).await? {
        return Err(Refusal::HasCertificate.into());
    }
    tracing::info!(executor = %signed.executor, serial, not_after = %issued.not_after, "certificate signed");
    Ok(Json(SignResponse { certificate: issued.chain, not_after: issued.not_after }))
}
