//! `/api/v1/clusters`, and the one-time tokens by which executors enrol for one.

use agent_api::name::DnsLabel;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::{get, post};
use axum::{Json, Router};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::Shared;
use super::body::Body;
use super::problem::ApiError;
use crate::config;
use crate::domain::token;
use crate::store::cluster::Cluster;

/// The routes.
pub fn routes() -> Router<Shared> {
    Router::new()
        .route("/api/v1/clusters", get(list).post(create))
        .route("/api/v1/clusters/{name}", get(show))
        .route("/api/v1/clusters/{name}/enrolments", post(enrol))
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct NewCluster {
    name: DnsLabel,
}

/// A one-time token, shown this once.
#[derive(Debug, Serialize)]
struct Enrolment {
    cluster: DnsLabel,
    token: agent_api::secret::Secret,
    endpoint: String,
    expires_at: Timestamp,
}

async fn create(State(app): State<Shared>, Body(new): Body<NewCluster>) -> Result<(StatusCode, Json<Cluster>), ApiError> {
    app.inbound.store.create_cluster(&new.name, Timestamp::now()).await?;
    Ok((StatusCode::CREATED, Json(find(&app, new.name.as_str()).await?)))
}

async fn list(State(app): State<Shared>) -> Result<Json<Vec<Cluster>>, ApiError> {
    Ok(Json(app.inbound.store.clusters().await?))
}

async fn show(State(app): State<Shared>, Path(name): Path<String>) -> Result<Json<Cluster>, ApiError> {
    Ok(Json(find(&app, &name).await?))
}

async fn enrol(State(app): State<Shared>, Path(name): Path<String>) -> Result<(StatusCode, Json<Enrolment>), ApiError> {
    let cluster = find(&app, &name).await?;
    let token = token::generate("nve_").map_err(ApiError::internal)?;
    let now = Timestamp::now();
    let expires_at = now + config::ENROLMENT_LASTS;
    app.inbound.store.create_enrolment(&token::hash(&token), &cluster.id, now, expires_at).await?;
    Ok((StatusCode::CREATED, Json(Enrolment { cluster: cluster.name, token, endpoint: app.public_url.clone(), expires_at })))
}

/// A cluster by its name.
///
/// # Errors
/// [`ApiError::NotFound`].
pub async fn find(app: &Shared, name: &str) -> Result<Cluster, ApiError> {
    let found = app.inbound.store.cluster(name).await?;
    found.ok_or_else(|| ApiError::NotFound { noun: "cluster", name: name.to_owned() })
}
