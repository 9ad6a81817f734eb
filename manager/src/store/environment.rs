//! Environments: a cluster's place in the update process, with the registry that it pulls from.

use agent_api::manifest::Registry;
use agent_api::name::DnsLabel;
use jiff::Timestamp;

use super::{Store, StoreError, from_json, millis, parse, taken, time, to_json};

/// An environment.
#[derive(Clone, Debug)]
pub struct Environment {
    /// Its name, unique; it stands in manifests.
    pub name: DnsLabel,
    /// Name of its cluster.
    pub cluster: DnsLabel,
    /// Where its charts come from.
    pub registry: Registry,
    /// When it was made.
    pub created_at: Timestamp,
}

type Row = (String, String, String, i64);

fn row((name, cluster, registry, created_at): Row) -> Result<Environment, StoreError> {
    Ok(Environment {
        name: parse("environment name", &name)?,
        cluster: parse("cluster name", &cluster)?,
        registry: from_json("registry", &registry)?,
        created_at: time(created_at)?,
    })
}

impl Store {
    /// Makes an environment for the cluster with this id.
    ///
    /// # Errors
    /// [`StoreError::Taken`]: the name, or the cluster has one already.
    pub async fn create_environment(
        &self,
        name: &DnsLabel,
        cluster_id: &str,
        registry: &Registry,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        sqlx::query("INSERT INTO environments (name, cluster_id, registry, created_at) VALUES ($1, $2, $3, $4)")
            .bind(name.as_str())
            .bind(cluster_id)
            .bind(to_json("registry", registry)?)
            .bind(millis(now))
            .execute(&self.pool)
            .await
            .map_err(taken("environment", name.as_str()))?;
        Ok(())
    }

    /// All environments, by name.
    ///
    /// # Errors
    /// The database.
    pub async fn environments(&self) -> Result<Vec<Environment>, StoreError> {
        let rows: Vec<Row> = sqlx::query_as(
            "SELECT e.name, c.name, e.registry, e.created_at FROM environments e JOIN clusters c ON c.id = e.cluster_id ORDER BY e.name",
        )
        .fetch_all(&self.pool)
        .await?;
        rows.into_iter().map(row).collect()
    }

    /// One environment.
    ///
    /// # Errors
    /// The database.
    pub async fn environment(&self, name: &str) -> Result<Option<Environment>, StoreError> {
        let found: Option<Row> = sqlx::query_as(
            "SELECT e.name, c.name, e.registry, e.created_at FROM environments e JOIN clusters c ON c.id = e.cluster_id WHERE e.name = $1",
        )
        .bind(name)
        .fetch_optional(&self.pool)
        .await?;
        found.map(row).transpose()
    }
}
