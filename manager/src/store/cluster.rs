//! Clusters.

use agent_api::name::DnsLabel;
use jiff::Timestamp;
use serde::Serialize;

use super::{Store, StoreError, millis, parse, taken, time};

/// A customer's cluster.
#[derive(Clone, Debug, Serialize)]
pub struct Cluster {
    /// Its id, given here.
    pub id: String,
    /// Its name, unique.
    pub name: DnsLabel,
    /// Its environment, once it has one.
    pub environment: Option<String>,
    /// Executors enrolled for it.
    pub executors: i64,
    /// When it was made.
    pub created_at: Timestamp,
}

type Row = (String, String, i64, Option<String>, i64);

fn row((id, name, created_at, environment, executors): Row) -> Result<Cluster, StoreError> {
    Ok(Cluster { id, name: parse("cluster name", &name)?, environment, executors, created_at: time(created_at)? })
}

impl Store {
    /// Makes a cluster.
    ///
    /// # Errors
    /// [`StoreError::Taken`].
    pub async fn create_cluster(&self, name: &DnsLabel, now: Timestamp) -> Result<(), StoreError> {
        sqlx::query("INSERT INTO clusters (id, name, created_at) VALUES ($1, $2, $3)")
            .bind(uuid::Uuid::now_v7().to_string())
            .bind(name.as_str())
            .bind(millis(now))
            .execute(&self.pool)
            .await
            .map_err(taken("cluster", name.as_str()))?;
        Ok(())
    }

    /// All clusters, by name.
    ///
    /// # Errors
    /// The database.
    pub async fn clusters(&self) -> Result<Vec<Cluster>, StoreError> {
        let rows: Vec<Row> = sqlx::query_as(
            "SELECT c.id, c.name, c.created_at, (SELECT e.name FROM environments e WHERE e.cluster_id = c.id), \
             (SELECT COUNT(*) FROM executors x WHERE x.cluster_id = c.id) FROM clusters c ORDER BY c.name",
        )
        .fetch_all(&self.pool)
        .await?;
        rows.into_iter().map(row).collect()
    }

    /// One cluster, by its name.
    ///
    /// # Errors
    /// The database.
    pub async fn cluster(&self, name: &str) -> Result<Option<Cluster>, StoreError> {
        let found: Option<Row> = sqlx::query_as(
            "SELECT c.id, c.name, c.created_at, (SELECT e.name FROM environments e WHERE e.cluster_id = c.id), \
             (SELECT COUNT(*) FROM executors x WHERE x.cluster_id = c.id) FROM clusters c WHERE c.name = $1",
        )
        .bind(name)
        .fetch_optional(&self.pool)
        .await?;
        found.map(row).transpose()
    }
}
