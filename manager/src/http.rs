//! The HTTP interfaces: `/api/v1` for people and their programs, `/v1` for executors. One resource a file; rules are `domain`'s.

pub mod audit;
pub mod auth;
pub mod body;
pub mod certificate;
pub mod channel;
pub mod cluster;
pub mod code;
pub mod door;
pub mod enroll;
pub mod environment;
pub mod executor;
pub mod metrics;
pub mod nonce;
pub mod poll;
pub mod problem;
pub mod release;
pub mod signed;
pub mod token;

use std::sync::Arc;
use std::time::Duration;

use agent_api::enrolment::{CHANNEL_PATH, ENROLL_PATH, POLL_PATH, RENEW_PATH, SIGN_PATH};
use axum::Router;
use axum::extract::{DefaultBodyLimit, Request};
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use jiff::Timestamp;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::channel::connections::Connections;
use crate::channel::inbound::Inbound;
use crate::channel::poll::Polls;
use crate::config;
use crate::pki::authority::Authority;
use crate::pki::seal::Seal;
use crate::serve::bootstrap::Bootstrap;
use problem::ApiError;

/// What handlers work with.
#[derive(Debug)]
pub struct App {
    /// Store, decisions, progress.
    pub inbound: Inbound,
    /// Who is connected.
    pub connections: Connections,
    /// Who polls.
    pub polls: Polls,
    /// Lets executors in at a bounded rate.
    pub door: door::Door,
    /// Signs certificates.
    pub authority: Authority,
    /// Seals signing keys.
    pub seal: Seal,
    /// The token that makes the first token.
    pub bootstrap: Bootstrap,
    /// How long executors' certificates are good.
    pub executor_certificate_lasts: Duration,
    /// Organisation id.
    pub organisation: String,
    /// `https://host[:port]` that executors are told.
    pub public_url: String,
    /// Its host.
    pub host: String,
    /// Nonces that were seen.
    pub nonces: nonce::Nonces,
    /// When this process started.
    pub started_at: Timestamp,
    /// What has to end before the process does.
    pub tasks: TaskTracker,
    /// Ends every connection.
    pub stop: CancellationToken,
}

/// Shared by all handlers.
pub type Shared = Arc<App>;

/// All routes.
pub fn router(app: Shared) -> Router {
    let api = Router::new()
        .merge(token::routes())
        .merge(cluster::routes())
        .merge(environment::routes())
        .merge(release::routes())
        .merge(executor::routes())
        .merge(audit::routes())
        .merge(metrics::routes())
        .layer(from_fn_with_state(Arc::clone(&app), auth::bearer));
    let signed = Router::new()
        .route(SIGN_PATH, post(certificate::sign))
        .route(RENEW_PATH, post(certificate::renew))
        .route(POLL_PATH, post(poll::poll).layer(DefaultBodyLimit::max(config::MAX_POLL_BODY)))
        .route(CHANNEL_PATH, get(channel::websocket))
        .layer(from_fn_with_state(Arc::clone(&app), signed::verify));
    Router::new()
        .merge(api)
        .merge(signed)
        .route(ENROLL_PATH, post(enroll::enroll))
        .fallback(|| async { ApiError::NoRoute })
        .method_not_allowed_fallback(|| async { ApiError::Method })
        .layer(DefaultBodyLimit::max(config::MAX_BODY))
        .layer(from_fn(in_time))
        .layer(from_fn_with_state(Arc::clone(&app), audit::record))
        .with_state(app)
}

/// Gives up on requests whose body does not come.
async fn in_time(request: Request, next: Next) -> Response {
    let slow = |_| ApiError::Slow(config::REQUEST_WITHIN.as_secs()).into_response();
    tokio::time::timeout(config::REQUEST_WITHIN, next.run(request)).await.unwrap_or_else(slow)
}
