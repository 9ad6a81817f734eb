//! `/api/v1/tokens`: bearer tokens. One is shown once, when it is made.

use axum::extract::{Extension, Path, Request, State};
use axum::http::{Method, StatusCode};
use axum::routing::{delete, get};
use axum::{Json, Router};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::Shared;
use super::auth::Caller;
use super::body::Body;
use super::problem::ApiError;
use crate::domain::permission::Permission;
use crate::domain::token;
use crate::store::token::{Revoked, Token};

const PATH: &str = "/api/v1/tokens";

/// The routes.
pub fn routes() -> Router<Shared> {
    Router::new().route(PATH, get(list).post(create)).route("/api/v1/tokens/{name}", delete(revoke))
}

/// Whether a request is the one that makes a token.
#[must_use]
pub fn makes_one(request: &Request) -> bool {
    request.method() == Method::POST && request.uri().path() == PATH
}

/// A new token.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct NewToken {
    name: String,
}

/// What is answered, this once.
#[derive(Debug, Serialize)]
struct Created {
    name: String,
    token: agent_api::secret::Secret,
    permissions: Vec<Permission>,
    created_at: Timestamp,
}

async fn create(
    State(app): State<Shared>,
    Extension(caller): Extension<Caller>,
    Body(new): Body<NewToken>,
) -> Result<(StatusCode, Json<Created>), ApiError> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._@-".contains(c);
    if new.name.is_empty() || new.name.len() > 63 || !new.name.chars().all(plain) {
        return Err(ApiError::Invalid("name: 1–63 of letters, digits, `.`, `_`, `@` and `-` are expected".to_owned()));
    }
    let first = caller == Caller::Bootstrap;
    let secret = token::generate("nvm_").map_err(ApiError::internal)?;
    let permissions = vec![Permission::Admin];
    let now = Timestamp::now();
    if !app.inbound.store.create_token(&new.name, &token::hash(&secret), &permissions, first, now).await? {
        return Err(ApiError::Unauthenticated);
    }
    app.bootstrap.end();
    Ok((StatusCode::CREATED, Json(Created { name: new.name, token: secret, permissions, created_at: now })))
}

async fn list(State(app): State<Shared>) -> Result<Json<Vec<Token>>, ApiError> {
    Ok(Json(app.inbound.store.tokens().await?))
}

async fn revoke(State(app): State<Shared>, Path(name): Path<String>) -> Result<StatusCode, ApiError> {
    match app.inbound.store.revoke_token(&name, Timestamp::now()).await? {
        Revoked::Done => Ok(StatusCode::NO_CONTENT),
        Revoked::Unknown => Err(ApiError::NotFound { noun: "valid token", name }),
        Revoked::Last => Err(ApiError::LastToken(name)),
    }
}
