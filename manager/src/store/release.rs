//! Releases: what is proposed to many environments. A release never changes.

use jiff::Timestamp;

use super::{Store, StoreError, from_json, millis, taken, time, to_json};
use crate::domain::release::Release;

/// A release as stored.
#[derive(Clone, Debug)]
pub struct StoredRelease {
    /// What it says.
    pub release: Release,
    /// When it was made.
    pub created_at: Timestamp,
}

fn row((document, created_at): (String, i64)) -> Result<StoredRelease, StoreError> {
    Ok(StoredRelease { release: from_json("release", &document)?, created_at: time(created_at)? })
}

impl Store {
    /// Makes a release.
    ///
    /// # Errors
    /// [`StoreError::Taken`].
    pub async fn create_release(&self, release: &Release, now: Timestamp) -> Result<(), StoreError> {
        sqlx::query("INSERT INTO releases (name, document, created_at) VALUES ($1, $2, $3)")
            .bind(release.name.as_str())
            .bind(to_json("release", release)?)
            .bind(millis(now))
            .execute(&self.pool)
            .await
            .map_err(taken("release", release.name.as_str()))?;
        Ok(())
    }

    /// All releases, oldest first.
    ///
    /// # Errors
    /// The database.
    pub async fn releases(&self) -> Result<Vec<StoredRelease>, StoreError> {
        let rows: Vec<(String, i64)> =
            sqlx::query_as("SELECT document, created_at FROM releases ORDER BY created_at, name").fetch_all(&self.pool).await?;
        rows.into_iter().map(row).collect()
    }

    /// One release.
    ///
    /// # Errors
    /// The database.
    pub async fn release(&self, name: &str) -> Result<Option<StoredRelease>, StoreError> {
        let found: Option<(String, i64)> =
            sqlx::query_as("SELECT document, created_at FROM releases WHERE name = $1").bind(name).fetch_optional(&self.pool).await?;
        found.map(row).transpose()
    }
}
