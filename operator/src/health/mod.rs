//! `/healthz`, `/readyz` and `/metrics` on the health port. Anybody in reach may ask, so that an answer holds states and figures only.

pub mod figures;

use std::sync::{Arc, Mutex, PoisonError};

use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use prometheus_client::encoding::text;
use prometheus_client::registry::Registry;
use serde_json::json;

use self::figures::Figures;

/// Media type of `/metrics`.
const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// What an operator that is not ready waits for. The log says why.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Waits {
    /// The Lease, which it can neither read nor write.
    Lease,
    /// What the API server serves.
    Discovery,
    /// Lists of components and their objects.
    Lists,
}

impl Waits {
    fn as_str(self) -> &'static str {
        match self {
            Self::Lease => "lease",
            Self::Discovery => "discovery",
            Self::Lists => "lists",
        }
    }
}

/// What the operator waits for, if for anything.
#[derive(Clone)]
pub struct Readiness(Arc<Mutex<Option<Waits>>>);

impl Default for Readiness {
    fn default() -> Self {
        Self(Arc::new(Mutex::new(Some(Waits::Lease))))
    }
}

impl Readiness {
    /// Not ready, and what for.
    pub fn waits(&self, what: Waits) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(what);
    }

    /// Ready: it leads and has read everything, or stands by.
    pub fn is_there(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    fn why_not(&self) -> Option<Waits> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The routes.
pub fn router(readiness: Readiness, figures: &Figures) -> Router {
    let registry = Arc::new(figures.registry());
    Router::new()
        .route("/healthz", get(|| async { Json(json!({"status": "ok"})) }))
        .route("/readyz", get(ready).with_state(readiness))
        .route("/metrics", get(metrics).with_state(registry))
}

async fn ready(State(readiness): State<Readiness>) -> Response {
    match readiness.why_not() {
        None => Json(json!({"status": "ok"})).into_response(),
        Some(why) => (StatusCode::SERVICE_UNAVAILABLE, Json(json!({"status": "waiting", "for": why.as_str()}))).into_response(),
    }
}

async fn metrics(State(registry): State<Arc<Registry>>) -> Response {
    let mut page = String::new();
    match text::encode(&mut page, &registry) {
        Ok(()) => ([(header::CONTENT_TYPE, OPENMETRICS)], page).into_response(),
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}
