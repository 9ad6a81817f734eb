//! Bearer tokens, by their hash.

use agent_api::digest::Sha256;
use jiff::Timestamp;
use serde::Serialize;

use super::{Store, StoreError, from_json, millis, taken, time, times, to_json};
use crate::domain::permission::Permission;

/// A token, without what it is.
#[derive(Clone, Debug, Serialize)]
pub struct Token {
    /// Who holds it.
    pub name: String,
    /// What it may do.
    pub permissions: Vec<Permission>,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it was last shown; kept to the minute.
    pub last_used_at: Option<Timestamp>,
    /// Since when it is void.
    pub revoked_at: Option<Timestamp>,
}

/// What became of a revocation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Revoked {
    /// It is void now.
    Done,
    /// There is no such token.
    Unknown,
    /// Without it nobody could come in any more.
    Last,
}

type Row = (String, String, i64, Option<i64>, Option<i64>);

fn row((name, permissions, created_at, last_used_at, revoked_at): Row) -> Result<Token, StoreError> {
    Ok(Token {
        name,
        permissions: from_json("permission list", &permissions)?,
        created_at: time(created_at)?,
        last_used_at: times(last_used_at)?,
        revoked_at: times(revoked_at)?,
    })
}

impl Store {
    /// Makes a token. With `first` only while there is no other one; false if there is.
    ///
    /// # Errors
    /// [`StoreError::Taken`].
    pub async fn create_token(
        &self,
        name: &str,
        sha256: &Sha256,
        permissions: &[Permission],
        first: bool,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        let mut write = self.write().await?;
        let others: i64 = sqlx::query_scalar("SELECT COUNT(*) FROM tokens").fetch_one(&mut *write).await?;
        if first && others > 0 {
            return Ok(false);
        }
        sqlx::query("INSERT INTO tokens (name, sha256, permissions, created_at) VALUES ($1, $2, $3, $4)")
            .bind(name)
            .bind(sha256.as_str())
            .bind(to_json("permission list", &permissions)?)
            .bind(millis(now))
            .execute(&mut *write)
            .await
            .map_err(taken("token", name))?;
        write.commit().await?;
        Ok(true)
    }

    /// Whether there ever was a token.
    ///
    /// # Errors
    /// The database.
    pub async fn has_tokens(&self) -> Result<bool, StoreError> {
        let count: i64 = sqlx::query_scalar("SELECT COUNT(*) FROM tokens").fetch_one(&self.pool).await?;
        Ok(count > 0)
    }

    /// The token with this hash, unless it is void; notes that it was used.
    ///
    /// # Errors
    /// The database.
    pub async fn use_token(&self, sha256: &Sha256, now: Timestamp) -> Result<Option<Token>, StoreError> {
        let found: Option<Row> = sqlx::query_as(
            "SELECT name, permissions, created_at, last_used_at, revoked_at FROM tokens WHERE sha256 = $1 AND revoked_at IS NULL",
        )
        .bind(sha256.as_str())
        .fetch_optional(&self.pool)
        .await?;
        let Some(token) = found.map(row).transpose()? else { return Ok(None) };
        // To the minute: a reader should not make a write of every read.
        if token.last_used_at.is_none_or(|at| now.duration_since(at).as_secs() >= 60) {
            let update = "UPDATE tokens SET last_used_at = $1 WHERE sha256 = $2";
            sqlx::query(update).bind(millis(now)).bind(sha256.as_str()).execute(&self.pool).await?;
        }
        Ok(Some(token))
    }

    /// All tokens, void ones too, by name.
    ///
    /// # Errors
    /// The database.
    pub async fn tokens(&self) -> Result<Vec<Token>, StoreError> {
        let rows: Vec<Row> = sqlx::query_as("SELECT name, permissions, created_at, last_used_at, revoked_at FROM tokens ORDER BY name")
            .fetch_all(&self.pool)
            .await?;
        rows.into_iter().map(row).collect()
    }

    /// Makes a token void.
    ///
    /// # Errors
    /// The database.
    pub async fn revoke_token(&self, name: &str, now: Timestamp) -> Result<Revoked, StoreError> {
        let mut write = self.write().await?;
        let valid: Vec<String> = sqlx::query_scalar("SELECT name FROM tokens WHERE revoked_at IS NULL").fetch_all(&mut *write).await?;
        if !valid.iter().any(|other| other == name) {
            return Ok(Revoked::Unknown);
        }
        if valid.len() == 1 {
            return Ok(Revoked::Last);
        }
        sqlx::query("UPDATE tokens SET revoked_at = $1 WHERE name = $2").bind(millis(now)).bind(name).execute(&mut *write).await?;
        write.commit().await?;
        Ok(Revoked::Done)
    }
}
