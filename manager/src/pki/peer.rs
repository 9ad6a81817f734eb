//! What a certificate says about its holder.

use agent_api::digest::Sha256;
use jiff::Timestamp;
use rustls_pki_types::CertificateDer;
use x509_parser::prelude::{FromDer as _, X509Certificate};

/// A certificate that was verified in the TLS handshake; it goes along with each request of that connection.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Peer {
    /// Serial number, lower-case hex.
    pub serial: String,
    /// sha256 of the public key (SubjectPublicKeyInfo).
    pub key_sha256: Sha256,
    /// Common name.
    pub common_name: Option<String>,
    /// When it ends.
    pub not_after: Timestamp,
}

impl Peer {
    /// Reads a certificate; none if it is not one.
    #[must_use]
    pub fn of(der: &CertificateDer<'_>) -> Option<Self> {
        let (_, certificate) = X509Certificate::from_der(der).ok()?;
        let common_name = certificate.subject().iter_common_name().next().and_then(|name| name.as_str().ok()).map(str::to_owned);
        Some(Self {
            serial: certificate.raw_serial().iter().map(|byte| format!("{byte:02x}")).collect(),
            key_sha256: Sha256::of(certificate.public_key().raw),
            common_name,
            not_after: Timestamp::from_second(certificate.validity().not_after.timestamp()).ok()?,
        })
    }
}
