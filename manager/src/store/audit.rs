//! The record of who called which writing route with which result; append-only.

use jiff::Timestamp;

use super::{Store, StoreError, millis};

/// One call.
#[derive(Clone, Debug)]
pub struct Entry {
    /// When it ended.
    pub at: Timestamp,
    /// `token:<name>`, `executor:<id>`, or `-` for somebody unknown.
    pub who: String,
    /// HTTP method.
    pub method: String,
    /// Path, without query.
    pub path: String,
    /// HTTP status.
    pub status: u16,
}

impl Store {
    /// Appends an entry.
    ///
    /// # Errors
    /// The database.
    pub async fn append_audit(&self, entry: &Entry) -> Result<(), StoreError> {
        sqlx::query("INSERT INTO audit (id, at, who, method, path, status) VALUES ($1, $2, $3, $4, $5, $6)")
            .bind(uuid::Uuid::now_v7().to_string())
            .bind(millis(entry.at))
            .bind(&entry.who)
            .bind(&entry.method)
            .bind(&entry.path)
            .bind(i64::from(entry.status))
            .execute(&self.pool)
            .await?;
        Ok(())
    }
}
