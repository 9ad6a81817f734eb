//! `/healthz`, `/readyz` and `/metrics` on the health port: nothing that helps an attacker, and nothing that can be changed.

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

/// What the operator waits for, if for anything.
#[derive(Clone)]
pub struct Readiness(Arc<Mutex<Option<String>>>);

impl Default for Readiness {
    fn default() -> Self {
        Self(Arc::new(Mutex::new(Some("an answer of the API server".to_owned()))))
    }
}

impl Readiness {
    /// Not ready, and why.
    pub fn waits(&self, why: impl Into<String>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(why.into());
    }

    /// Ready: it leads and has read everything, or stands by.
    pub fn is_there(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    fn why_not(&self) -> Option<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
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
        Some(why) => (StatusCode::SERVICE_UNAVAILABLE, Json(json!({"status": "waiting", "for": why}))).into_response(),
    }
}

async fn metrics(State(registry): State<Arc<Registry>>) -> Response {
    let mut page = String::new();
    match text::encode(&mut page, &registry) {
        Ok(()) => ([(header::CONTENT_TYPE, OPENMETRICS)], page).into_response(),
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}
