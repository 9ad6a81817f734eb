//! `/api/v1/releases`. A release is checked when it is made, so that a proposal fails for nobody.

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::get;
use axum::{Json, Router};
use jiff::Timestamp;
use serde::Serialize;

use super::Shared;
use super::body::Body;
use super::problem::ApiError;
use crate::domain::release::{self, Release};
use crate::store::StoreError;
use crate::store::release::StoredRelease;

/// The routes.
pub fn routes() -> Router<Shared> {
    Router::new().route("/api/v1/releases", get(list).post(create)).route("/api/v1/releases/{name}", get(show))
}

/// A release as shown.
#[derive(Debug, Serialize)]
struct View {
    #[serde(flatten)]
    release: Release,
    created_at: Timestamp,
}

impl From<StoredRelease> for View {
    fn from(stored: StoredRelease) -> Self {
        Self { release: stored.release, created_at: stored.created_at }
    }
}

/// The same release again is no error.
async fn create(State(app): State<Shared>, Body(new): Body<Release>) -> Result<(StatusCode, Json<View>), ApiError> {
    release::check(&new)?;
    let status = match app.inbound.store.create_release(&new, Timestamp::now()).await {
        Ok(()) => StatusCode::CREATED,
        Err(StoreError::Taken { .. }) if find(&app, new.name.as_str()).await?.release == new => StatusCode::OK,
        Err(StoreError::Taken { name, .. }) => return Err(ApiError::ReleaseDiffers(name)),
        Err(error) => return Err(error.into()),
    };
    Ok((status, Json(find(&app, new.name.as_str()).await?.into())))
}

async fn list(State(app): State<Shared>) -> Result<Json<Vec<View>>, ApiError> {
    Ok(Json(app.inbound.store.releases().await?.into_iter().map(View::from).collect()))
}

async fn show(State(app): State<Shared>, Path(name): Path<String>) -> Result<Json<View>, ApiError> {
    Ok(Json(find(&app, &name).await?.into()))
}

/// A release by its name.
///
/// # Errors
/// [`ApiError::NotFound`].
pub async fn find(app: &Shared, name: &str) -> Result<StoredRelease, ApiError> {
    let found = app.inbound.store.release(name).await?;
    found.ok_or_else(|| ApiError::NotFound { noun: "release", name: name.to_owned() })
}
