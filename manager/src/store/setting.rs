//! Settings that are decided once, at the first start.

use super::{Store, StoreError};

/// Organisation id: the common name of executors' certificates.
pub const ORGANISATION: &str = "organisation";

impl Store {
    /// The value of a setting; `default` is stored, and returned, where there is none.
    ///
    /// # Errors
    /// The database.
    pub async fn setting(&self, key: &str, default: &str) -> Result<String, StoreError> {
        let insert = "INSERT INTO settings (key, value) VALUES ($1, $2) ON CONFLICT (key) DO NOTHING";
        sqlx::query(insert).bind(key).bind(default).execute(&self.pool).await?;
        Ok(sqlx::query_scalar("SELECT value FROM settings WHERE key = $1").bind(key).fetch_one(&self.pool).await?)
    }
}
