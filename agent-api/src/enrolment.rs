//! Enrolment: a one-time token becomes a key pair, then a certificate request becomes a certificate.

use serde::{Deserialize, Serialize};

use crate::name::ExecutorId;
use crate::secret::Secret;

/// Path that redeems a token.
pub const ENROLL_PATH: &str = "/v1/pcm/enroll";
/// Path that signs the first certificate request of an executor.
pub const SIGN_PATH: &str = "/v1/pcm/cert/sign";
/// Path that renews a certificate: signed, and with the certificate that is to be followed; the key may be a new one.
pub const RENEW_PATH: &str = "/v1/pcm/cert/renew";
/// Path of the channel over long poll.
pub const POLL_PATH: &str = "/v1/commands/poll/executor";
/// Path of the channel over WebSocket.
pub const CHANNEL_PATH: &str = "/v1/commands/ws/executor";

/// `POST /v1/pcm/enroll`: no client certificate, no signature; the token is good once.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct EnrollRequest {
    /// The one-time token.
    pub token: Secret,
    /// `pcm_infra_uuid`.
    pub executor_id: ExecutorId,
}

/// What a redeemed token is worth.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct EnrollResponse {
    /// Organisation id, the common name of certificates.
    pub organisation: String,
    /// `https://host[:port]` of the manager for executors.
    pub endpoint: String,
    /// Name of the signing key.
    pub access_key: String,
    /// The signing key.
    pub secret_key: Secret,
    /// PEM of the CA that signed the endpoint's certificate and will sign the executor's.
    pub ca: String,
}

/// `POST /v1/pcm/cert/sign`, signed, no client certificate, 409 while the executor has an unexpired one; and
/// `POST /v1/pcm/cert/renew`, signed, with the present certificate, which is taken until the new one is used.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SignRequest {
    /// PKCS#10 request in PEM; CN = organisation, one DNS or IP SAN = endpoint host.
    pub csr: String,
}

/// The certificate.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SignResponse {
    /// PEM of the leaf, then of the CA.
    pub certificate: String,
    /// When it ends: 30 days from now.
    pub not_after: jiff::Timestamp,
}
