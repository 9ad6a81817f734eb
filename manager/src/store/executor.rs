//! Executors: who they are, and what their last heartbeat said.

use agent_api::frame::Hello;
use agent_api::heartbeat::Heartbeat;
use agent_api::name::ExecutorId;
use jiff::Timestamp;

use super::{Store, StoreError, millis, parse, time, times, to_json};

/// What a request is checked against.
#[derive(Clone, Debug)]
pub struct Credentials {
    /// Whose they are.
    pub id: ExecutorId,
    /// The sealed signing key.
    pub sealed_secret: Vec<u8>,
    /// Its certificate.
    pub certificate: Option<Certificate>,
    /// The one that follows it, not used yet.
    pub next_certificate: Option<Certificate>,
    /// Whether they are good no more.
    pub revoked: bool,
}

/// What binds a certificate to an executor.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Certificate {
    /// Serial number, lower-case hex.
    pub serial: String,
    /// sha256 of its public key.
    pub key_sha256: String,
}

/// An executor as people see it.
#[derive(Clone, Debug)]
pub struct Executor {
    /// Its id.
    pub id: ExecutorId,
    /// Name of its cluster.
    pub cluster: String,
    /// When it enrolled.
    pub enrolled_at: Timestamp,
    /// When its certificate ends.
    pub cert_not_after: Option<Timestamp>,
    /// Since when its key and certificates are refused.
    pub revoked_at: Option<Timestamp>,
    /// clicklink's version, from its last `hello`.
    pub version: Option<String>,
    /// When its last heartbeat came.
    pub last_seen: Option<Timestamp>,
    /// What that said.
    pub heartbeat: Option<Heartbeat>,
}

/// Id, sealed key, serial number and key of the certificate and the next one, and the revocation.
type KeyRow = (String, Vec<u8>, Option<String>, Option<String>, Option<String>, Option<String>, Option<i64>);
type Row = (String, String, i64, Option<i64>, Option<i64>, Option<String>, Option<i64>, Option<String>);

/// A stored heartbeat; none if another version wrote it in a way that this one cannot read: the next one comes in seconds.
pub fn read_heartbeat(text: &str) -> Option<Heartbeat> {
    let read = serde_json::from_str(text);
    read.inspect_err(|error| tracing::warn!(%error, "a stored heartbeat is not readable")).ok()
}

fn row((id, cluster, enrolled_at, cert_not_after, revoked_at, version, last_seen, heartbeat): Row) -> Result<Executor, StoreError> {
    Ok(Executor {
        id: parse("executor id", &id)?,
        cluster,
        enrolled_at: time(enrolled_at)?,
        cert_not_after: times(cert_not_after)?,
        revoked_at: times(revoked_at)?,
        version,
        last_seen: times(last_seen)?,
        heartbeat: heartbeat.and_then(|text| read_heartbeat(&text)),
    })
}

impl Store {
    /// The executor that has this signing key.
    ///
    /// # Errors
    /// The database.
    pub async fn credentials(&self, access_key: &str) -> Result<Option<Credentials>, StoreError> {
        let found: Option<KeyRow> = sqlx::query_as(
            "SELECT id, sealed_secret, cert_serial, cert_key_sha256, next_cert_serial, next_cert_key_sha256, revoked_at \
             FROM executors WHERE access_key = $1",
        )
        .bind(access_key)
        .fetch_optional(&self.pool)
        .await?;
        let Some((id, sealed_secret, serial, key, next_serial, next_key, revoked_at)) = found else { return Ok(None) };
        let certificate = |serial: Option<String>, key: Option<String>| Some(Certificate { serial: serial?, key_sha256: key? });
        Ok(Some(Credentials {
            id: parse("executor id", &id)?,
            sealed_secret,
            certificate: certificate(serial, key),
            next_certificate: certificate(next_serial, next_key),
            revoked: revoked_at.is_some(),
        }))
    }

    /// All executors, or those of one cluster, in the order in which they enrolled.
    ///
    /// # Errors
    /// The database.
    pub async fn executors(&self, cluster: Option<&str>) -> Result<Vec<Executor>, StoreError> {
        let rows: Vec<Row> = sqlx::query_as(
            "SELECT x.id, c.name, x.enrolled_at, x.cert_not_after, x.revoked_at, x.version, x.last_seen, x.heartbeat \
             FROM executors x JOIN clusters c ON c.id = x.cluster_id WHERE $1 IS NULL OR c.name = $1 ORDER BY x.enrolled_at, x.id",
        )
        .bind(cluster)
        .fetch_all(&self.pool)
        .await?;
        rows.into_iter().map(row).collect()
    }

    /// One executor.
    ///
    /// # Errors
    /// The database.
    pub async fn executor(&self, id: ExecutorId) -> Result<Option<Executor>, StoreError> {
        let found: Option<Row> = sqlx::query_as(
            "SELECT x.id, c.name, x.enrolled_at, x.cert_not_after, x.revoked_at, x.version, x.last_seen, x.heartbeat \
             FROM executors x JOIN clusters c ON c.id = x.cluster_id WHERE x.id = $1",
        )
        .bind(id.to_string())
        .fetch_optional(&self.pool)
        .await?;
        found.map(row).transpose()
    }

    /// From now on the executor's key and certificates are refused; a second time changes nothing.
    ///
    /// # Errors
    /// The database.
    pub async fn revoke_executor(&self, id: ExecutorId, now: Timestamp) -> Result<(), StoreError> {
        sqlx::query("UPDATE executors SET revoked_at = COALESCE(revoked_at, $1) WHERE id = $2")
            .bind(millis(now))
            .bind(id.to_string())
            .execute(&self.pool)
            .await?;
        Ok(())
    }

    /// Whether the executor's key and certificates are refused.
    ///
    /// # Errors
    /// The database.
    pub async fn is_revoked(&self, id: ExecutorId) -> Result<bool, StoreError> {
        let revoked: Option<Option<i64>> =
            sqlx::query_scalar("SELECT revoked_at FROM executors WHERE id = $1").bind(id.to_string()).fetch_optional(&self.pool).await?;
        Ok(revoked.flatten().is_some())
    }

    /// The environment of an executor's cluster.
    ///
    /// # Errors
    /// The database.
    pub async fn environment_of(&self, id: ExecutorId) -> Result<Option<String>, StoreError> {
        Ok(sqlx::query_scalar("SELECT e.name FROM environments e JOIN executors x ON x.cluster_id = e.cluster_id WHERE x.id = $1")
            .bind(id.to_string())
            .fetch_optional(&self.pool)
            .await?)
    }

    /// Keeps what `hello` says; sequences go on above what the executor has journaled, also after this store was set back. A sequence
    /// that is further ahead than any restored store could be is not believed: it would use up the order for this executor.
    ///
    /// # Errors
    /// The database.
    pub async fn store_hello(&self, hello: &Hello) -> Result<(), StoreError> {
        let last = i64::try_from(hello.last_sequence).unwrap_or(i64::MAX);
        sqlx::query(
            "UPDATE executors SET version = $1, cluster_uid = COALESCE($2, cluster_uid), \
             last_sequence = CASE WHEN last_sequence < $3 AND $3 - last_sequence <= $5 THEN $3 ELSE last_sequence END WHERE id = $4",
        )
        .bind(&hello.version)
        .bind(&hello.cluster_uid)
        .bind(last)
        .bind(hello.executor_id.to_string())
        .bind(crate::config::SEQUENCE_AHEAD)
        .execute(&self.pool)
        .await?;
        Ok(())
    }

    /// Keeps the last heartbeat.
    ///
    /// # Errors
    /// The database.
    pub async fn store_heartbeat(&self, heartbeat: &Heartbeat, now: Timestamp) -> Result<(), StoreError> {
        let platform = &heartbeat.platform;
        let status = to_json("status", &platform.status)?;
        sqlx::query(
            "UPDATE executors SET last_seen = $1, heartbeat = $2, version = $3, cluster_uid = COALESCE($4, cluster_uid), \
             platform_status = $5, pending_sha256 = $6, approved_sha256 = $7, applied_sha256 = $8 WHERE id = $9",
        )
        .bind(millis(now))
        .bind(to_json("heartbeat", heartbeat)?)
        .bind(&heartbeat.executor.version)
        .bind(&heartbeat.cluster.uid)
        .bind(status.trim_matches('"'))
        .bind(platform.pending_sha256.as_ref().map(agent_api::digest::Sha256::as_str))
        .bind(platform.approved_sha256.as_ref().map(agent_api::digest::Sha256::as_str))
        .bind(platform.applied_sha256.as_ref().map(agent_api::digest::Sha256::as_str))
        .bind(heartbeat.executor.id.to_string())
        .execute(&self.pool)
        .await?;
        Ok(())
    }
}
