//! Proposals: the exact manifest that an environment was offered. The highest number is the newest one.

use agent_api::digest::Sha256;
use agent_api::manifest::Bundle;
use jiff::Timestamp;

use super::{Store, StoreError, millis, parse, time};

/// A proposal, without its manifest.
#[derive(Clone, Debug)]
pub struct Proposal {
    /// Its id.
    pub id: String,
    /// Its release.
    pub release: String,
    /// Identity of its manifest.
    pub sha256: Sha256,
    /// When it was made.
    pub created_at: Timestamp,
    /// Since when its attempts are counted.
    pub armed_at: Timestamp,
}

type Row = (String, String, String, i64, i64);

fn row((id, release, sha256, created_at, armed_at): Row) -> Result<Proposal, StoreError> {
    Ok(Proposal { id, release, sha256: parse("digest", &sha256)?, created_at: time(created_at)?, armed_at: time(armed_at)? })
}

impl Store {
    /// Makes a bundle the newest proposal of an environment; commands of former ones that no executor has are never sent again.
    ///
    /// # Errors
    /// The database.
    pub async fn create_proposal(&self, environment: &str, release: &str, bundle: &Bundle, now: Timestamp) -> Result<(), StoreError> {
        let mut write = self.write().await?;
        sqlx::query(
            "UPDATE commands SET status = 'superseded', ended_at = $1 \
             WHERE status = 'queued' AND proposal_id IN (SELECT id FROM proposals WHERE environment = $2)",
        )
        .bind(millis(now))
        .bind(environment)
        .execute(&mut *write)
        .await?;
        sqlx::query(
            "INSERT INTO proposals (id, environment, number, release, sha256, manifest, created_at, armed_at) \
             SELECT $1, $2, COALESCE(MAX(number), 0) + 1, $3, $4, $5, $6, $6 FROM proposals WHERE environment = $2",
        )
        .bind(uuid::Uuid::now_v7().to_string())
        .bind(environment)
        .bind(release)
        .bind(bundle.sha256().as_str())
        .bind(bundle.text())
        .bind(millis(now))
        .execute(&mut *write)
        .await?;
        write.commit().await?;
        Ok(())
    }

    /// The newest proposal of an environment.
    ///
    /// # Errors
    /// The database.
    pub async fn newest_proposal(&self, environment: &str) -> Result<Option<Proposal>, StoreError> {
        let found: Option<Row> = sqlx::query_as(
            "SELECT id, release, sha256, created_at, armed_at FROM proposals WHERE environment = $1 ORDER BY number DESC LIMIT 1",
        )
        .bind(environment)
        .fetch_optional(&self.pool)
        .await?;
        found.map(row).transpose()
    }

    /// Digest and exact text of the manifest that was last proposed to an environment, of this release if one is given.
    ///
    /// # Errors
    /// The database.
    pub async fn proposed_manifest(&self, environment: &str, release: Option<&str>) -> Result<Option<(String, String)>, StoreError> {
        Ok(sqlx::query_as(
            "SELECT sha256, manifest FROM proposals WHERE environment = $1 AND ($2 IS NULL OR release = $2) ORDER BY number DESC LIMIT 1",
        )
        .bind(environment)
        .bind(release)
        .fetch_optional(&self.pool)
        .await?)
    }

    /// Counts the attempts of a proposal anew from now.
    ///
    /// # Errors
    /// The database.
    pub async fn rearm(&self, proposal_id: &str, now: Timestamp) -> Result<(), StoreError> {
        sqlx::query("UPDATE proposals SET armed_at = $1 WHERE id = $2").bind(millis(now)).bind(proposal_id).execute(&self.pool).await?;
        Ok(())
    }
}
