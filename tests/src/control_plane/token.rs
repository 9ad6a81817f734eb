//! ServiceAccount tokens signed with the control plane's own key, for lifetimes that TokenRequest refuses (under 600 s, or past).

use anyhow::{Context, Result, anyhow};
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair};
use jiff::{SignedDuration, Timestamp};
use rcgen::{KeyPair, PublicKeyData};
use serde_json::json;

use crate::encode::{base64_url, sha256};

/// Issuer and audience of the control plane.
pub(super) const ISSUER: &str = "https://kubernetes.default.svc";

/// The key that signs ServiceAccount tokens (ECDSA P-256, so `ES256`).
#[derive(Debug)]
pub(super) struct ServiceAccountKey {
    pair: KeyPair,
}

impl ServiceAccountKey {
    pub(super) fn generate() -> Result<Self> {
        Ok(Self { pair: KeyPair::generate().context("a key for tokens")? })
    }

    pub(super) fn private_pem(&self) -> String {
        self.pair.serialize_pem()
    }

    pub(super) fn public_pem(&self) -> String {
        self.pair.public_key_pem()
    }

    /// A token as the API server's own. `lifetime` counts from now; a negative one makes a token that was issued an hour
    /// before its end and has expired.
    pub(super) fn sign(&self, account: &Account<'_>, now: Timestamp, lifetime: SignedDuration) -> Result<SignedToken> {
        let expires = now.checked_add(lifetime).context("the token's end")?;
        let issued = if expires > now { now } else { expires - SignedDuration::from_hours(1) };
        self.sign_between(account, issued, expires)
    }

    /// A token that was issued and ends at these times.
    pub(super) fn sign_between(&self, account: &Account<'_>, issued: Timestamp, expires: Timestamp) -> Result<SignedToken> {
        let id = uuid::Uuid::new_v4().to_string();
        let header = json!({ "alg": "ES256", "kid": base64_url(sha256(self.pair.subject_public_key_info())) });
        let claims = json!({
            "aud": [ISSUER],
            "exp": expires.as_second(),
            "iat": issued.as_second(),
            "iss": ISSUER,
            "jti": id,
            "kubernetes.io": {
                "namespace": account.namespace,
                "serviceaccount": { "name": account.name, "uid": account.uid },
            },
            "nbf": issued.as_second(),
            "sub": format!("system:serviceaccount:{}:{}", account.namespace, account.name),
        });
        let signed = format!("{}.{}", base64_url(header.to_string()), base64_url(claims.to_string()));
        let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, self.pair.serialized_der())
            .map_err(|error| anyhow!("the key for tokens: {error}"))?;
        let signature = pair.sign(&SystemRandom::new(), signed.as_bytes()).map_err(|error| anyhow!("signing a token: {error}"))?;
        Ok(SignedToken { token: format!("{signed}.{}", base64_url(signature.as_ref())), id, expires })
    }
}

/// The ServiceAccount a token is for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Account<'a> {
    pub(super) namespace: &'a str,
    pub(super) name: &'a str,
    pub(super) uid: &'a str,
}

/// A token signed by the testbed.
#[derive(Debug, Clone)]
pub struct SignedToken {
    /// The JWT.
    pub token: String,
    /// Its `jti`: the API server tells admission `JTI=<id>` as the credential's id.
    pub id: String,
    /// When it ends.
    pub expires: Timestamp,
}
