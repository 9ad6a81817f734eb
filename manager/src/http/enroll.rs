//! `POST /v1/pcm/enroll`: a one-time token becomes an executor with a signing key.

use agent_api::enrolment::{EnrollRequest, EnrollResponse};
use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use axum::{Extension, Json};
use jiff::Timestamp;

use super::Shared;
use super::audit::Who;
use super::body::Body;
use super::problem::ApiError;
use crate::domain::token;
use crate::store::enrolment::NewKeys;

/// Redeems the token.
///
/// # Errors
/// The token is not good, or the id is somebody's already.
pub async fn enroll(State(app): State<Shared>, Body(request): Body<EnrollRequest>) -> Result<Response, ApiError> {
    let id = request.executor_id;
    let access_key = format!("ak-{}", uuid::Uuid::new_v4().simple());
    let secret_key = token::generate("").map_err(ApiError::internal)?;
    let sealed_secret = app.seal.seal(&secret_key, &id.to_string()).map_err(ApiError::internal)?;
    let keys = NewKeys { access_key: &access_key, sealed_secret: &sealed_secret };
    app.inbound.store.redeem(&token::hash(&request.token), id, keys, Timestamp::now()).await??;
    tracing::info!(executor = %id, "enrolled");
    let response = EnrollResponse {
        organisation: app.organisation.clone(),
        endpoint: app.public_url.clone(),
        access_key,
        secret_key,
        ca: app.authority.pem().to_owned(),
    };
    Ok((Extension(Who(format!("executor:{id}"))), Json(response)).into_response())
}
