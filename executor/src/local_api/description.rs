//! `GET /openapi.json`.

use axum::http::header;
use axum::response::{IntoResponse, Response};

use crate::openapi;

/// This document.
#[utoipa::path(get, path = "/openapi.json", operation_id = "get_openapi", tag = "description", responses(
    (status = 200, description = "OpenAPI 3.1, of the local API and of the health port", content_type = "application/json"),
))]
pub(super) async fn show() -> Response {
    ([(header::CONTENT_TYPE, "application/json")], openapi::text()).into_response()
}
