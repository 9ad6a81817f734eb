//! The record: `GET /api/v1/audit` exports it, and [`record`] puts each call of a writing route on it.

use agent_api::enrolment::POLL_PATH;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, Request, State};
use axum::http::Method;
use axum::middleware::Next;
use axum::response::Response;
use axum::routing::get;
use axum::{Json, Router};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::Shared;
use super::problem::ApiError;
use crate::config;
use crate::store::audit::Entry;

/// The routes.
pub fn routes() -> Router<Shared> {
    Router::new().route("/api/v1/audit", get(export))
}

/// Which part of the record.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Part {
    /// Behind this number.
    #[serde(default)]
    after: i64,
    /// Not older than this.
    since: Option<Timestamp>,
    /// So many entries at most.
    limit: Option<u32>,
}

/// A page of the record.
#[derive(Debug, Serialize)]
struct Page {
    entries: Vec<Entry>,
    /// What to give as `after` for the next page, now or later.
    next: i64,
    /// Whether there may be more now.
    more: bool,
}

async fn export(State(app): State<Shared>, part: Result<Query<Part>, QueryRejection>) -> Result<Json<Page>, ApiError> {
    let Query(part) = part.map_err(|rejection| ApiError::Invalid(rejection.body_text()))?;
    let limit = part.limit.unwrap_or(config::AUDIT_PAGE);
    if !(1..=config::AUDIT_PAGE).contains(&limit) {
        return Err(ApiError::Invalid(format!("limit: 1–{} is expected", config::AUDIT_PAGE)));
    }
    let entries = app.inbound.store.audit(part.after, part.since, limit).await?;
    let next = entries.last().map_or(part.after, |last| last.number);
    Ok(Json(Page { more: entries.len() == limit as usize, next, entries }))
}

/// Who was found to be calling; put on the response by whoever found out.
#[derive(Clone, Debug)]
pub struct Who(pub String);

/// Puts on record what is not only read. A record that cannot be written is an error in the log; the answer stands.
pub async fn record(State(app): State<Shared>, request: Request, next: Next) -> Response {
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let response = next.run(request).await;
    // A poll is a connection, not a call.
    if method != Method::GET && method != Method::HEAD && path != POLL_PATH {
        let who = response.extensions().get::<Who>().map_or("-", |who| who.0.as_str());
        let status = response.status().as_u16();
        if let Err(error) = app.inbound.store.append_call(who, method.as_str(), &path, status, Timestamp::now()).await {
            let error = agent_api::chain::chain(&error);
            tracing::error!(who, %method, path, status, %error, "the audit record could not be written");
        }
    }
    response
}
