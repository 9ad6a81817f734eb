//! Enrolment: one-time tokens, and the executors that they become.

use agent_api::digest::Sha256;
use agent_api::name::ExecutorId;
use jiff::Timestamp;

use super::{Store, StoreError, millis, times};
use crate::domain::enrolment::{self, Refusal};

/// What a new executor gets.
#[derive(Debug)]
pub struct NewKeys<'a> {
    /// Name of its signing key.
    pub access_key: &'a str,
    /// The sealed key.
    pub sealed_secret: &'a [u8],
}

impl Store {
    /// Keeps a new one-time token.
    ///
    /// # Errors
    /// The database.
    pub async fn create_enrolment(
        &self,
        token_sha256: &Sha256,
        cluster_id: &str,
        now: Timestamp,
        expires_at: Timestamp,
    ) -> Result<(), StoreError> {
        sqlx::query("INSERT INTO enrolments (token_sha256, cluster_id, created_at, expires_at) VALUES ($1, $2, $3, $4)")
            .bind(token_sha256.as_str())
            .bind(cluster_id)
            .bind(millis(now))
            .bind(millis(expires_at))
            .execute(&self.pool)
            .await?;
        Ok(())
    }

    /// Redeems a token: the token is used up and the executor is there, or neither.
    ///
    /// # Errors
    /// The database; the inner error is the rule that was broken.
    pub async fn redeem(
        &self,
        token_sha256: &Sha256,
        executor: ExecutorId,
        keys: NewKeys<'_>,
        now: Timestamp,
    ) -> Result<Result<(), Refusal>, StoreError> {
        let mut write = self.write().await?;
        let token: Option<(String, i64, Option<i64>)> =
            sqlx::query_as("SELECT cluster_id, expires_at, used_at FROM enrolments WHERE token_sha256 = $1")
                .bind(token_sha256.as_str())
                .fetch_optional(&mut *write)
                .await?;
        let Some((cluster_id, expires_at, used_at)) = token else { return Ok(Err(Refusal::Token)) };
        let known: Option<(String, Option<i64>, Option<i64>)> =
            sqlx::query_as("SELECT cluster_id, cert_not_after, revoked_at FROM executors WHERE id = $1")
                .bind(executor.to_string())
                .fetch_optional(&mut *write)
                .await?;
        let token = enrolment::Token { expires_at: super::time(expires_at)?, used: used_at.is_some() };
        let known = match known {
            Some((cluster, not_after, revoked_at)) => {
                // A revoked one's certificate keeps nobody out: it is good for nothing.
                let certificate_until = if revoked_at.is_some() { None } else { times(not_after)? };
                Some(enrolment::Known { same_cluster: cluster == cluster_id, certificate_until })
            }
            None => None,
        };
        if let Err(refusal) = enrolment::may_enroll(&token, known.as_ref(), now) {
            return Ok(Err(refusal));
        }
        sqlx::query("UPDATE enrolments SET used_at = $1 WHERE token_sha256 = $2")
            .bind(millis(now))
            .bind(token_sha256.as_str())
            .execute(&mut *write)
            .await?;
        sqlx::query(
            "INSERT INTO executors (id, cluster_id, access_key, sealed_secret, enrolled_at) VALUES ($1, $2, $3, $4, $5) \
             ON CONFLICT (id) DO UPDATE SET access_key = excluded.access_key, sealed_secret = excluded.sealed_secret, \
             enrolled_at = excluded.enrolled_at, cert_serial = NULL, cert_key_sha256 = NULL, cert_not_after = NULL, \
             next_cert_serial = NULL, next_cert_key_sha256 = NULL, next_cert_not_after = NULL, revoked_at = NULL",
        )
        .bind(executor.to_string())
        .bind(&cluster_id)
        .bind(keys.access_key)
        .bind(keys.sealed_secret)
        .bind(millis(now))
        .execute(&mut *write)
        .await?;
        write.commit().await?;
        Ok(Ok(()))
    }

    /// Binds a certificate to an executor, unless it has an unexpired one: false then.
    ///
    /// # Errors
    /// The database.
    pub async fn bind_certificate(
        &self,
        executor: ExecutorId,
        serial: &str,
        key_sha256: &str,
        not_after: Timestamp,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        let bound = sqlx::query(
            "UPDATE executors SET cert_serial = $1, cert_key_sha256 = $2, cert_not_after = $3, \
             next_cert_serial = NULL, next_cert_key_sha256 = NULL, next_cert_not_after = NULL WHERE id = $4 AND (cert_not_after IS NULL OR cert_not_after <= $5)",
        )
        .bind(serial)
        .bind(key_sha256)
        .bind(millis(not_after))
        .bind(executor.to_string())
        .bind(millis(now))
        .execute(&self.pool)
        .await?;
        Ok(bound.rows_affected() == 1)
    }

    /// Binds the certificate that is to follow the present one, in the place of one that was never used.
    ///
    /// # Errors
    /// The database.
    pub async fn bind_next_certificate(
        &self,
        executor: ExecutorId,
        serial: &str,
        key_sha256: &str,
        not_after: Timestamp,
    ) -> Result<(), StoreError> {
        sqlx::query("UPDATE executors SET next_cert_serial = $1, next_cert_key_sha256 = $2, next_cert_not_after = $3 WHERE id = $4")
            .bind(serial)
            .bind(key_sha256)
            .bind(millis(not_after))
            .bind(executor.to_string())
            .execute(&self.pool)
            .await?;
        Ok(())
    }

    /// The next certificate was used: it is the present one, and the former one is good no more.
    ///
    /// # Errors
    /// The database.
    pub async fn use_next_certificate(&self, executor: ExecutorId, serial: &str) -> Result<(), StoreError> {
        sqlx::query(
            "UPDATE executors SET cert_serial = next_cert_serial, cert_key_sha256 = next_cert_key_sha256, \
             cert_not_after = next_cert_not_after, next_cert_serial = NULL, next_cert_key_sha256 = NULL, next_cert_not_after = NULL \
             WHERE id = $1 AND next_cert_serial = $2",
        )
        .bind(executor.to_string())
        .bind(serial)
        .execute(&self.pool)
        .await?;
        Ok(())
    }
}
