//! A JSON body, read strictly: a duplicate key is refused, and an error names its place.

use agent_api::strict_json;
use axum::body::Bytes;
use axum::extract::{FromRequest, Request};
use serde::de::DeserializeOwned;

use super::problem::ApiError;
use crate::config;

/// The body as a type.
#[derive(Debug)]
pub struct Body<T>(pub T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for Body<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Self, ApiError> {
        let bytes = Bytes::from_request(request, state).await.map_err(|_| ApiError::TooLarge(config::MAX_BODY))?;
        let text = std::str::from_utf8(&bytes).map_err(|_| ApiError::Invalid("the body is not UTF-8".to_owned()))?;
        strict_json::from_str(text).map(Self).map_err(|error| ApiError::Invalid(error.to_string()))
    }
}
