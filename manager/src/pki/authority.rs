//! The manager's certificate authority. It signs its own server's certificate and those of executors, nothing else.

use std::net::IpAddr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use agent_api::digest::Sha256;
use jiff::Timestamp;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose,
    PublicKeyData, SanType, SerialNumber,
};

use super::peer;
use super::request::CheckedRequest;
use crate::config;
use crate::serve::data_dir::{self, DataDir, DataDirError};

/// Why a certificate was not made.
#[derive(Debug, thiserror::Error)]
pub enum AuthorityError {
    /// Reading or writing the key files.
    #[error(transparent)]
    Files(#[from] DataDirError),
    /// Certificate and key are not both there.
    #[error("of `ca.crt` and `ca.key` only one is there; restore the other, or remove both and enrol all executors again")]
    Half,
    /// A key or certificate could not be made or read.
    #[error("a certificate or key could not be made or read")]
    Certificate(#[from] rcgen::Error),
    /// What was made is not readable.
    #[error("the new certificate is not readable")]
    Unreadable,
    /// No random serial number.
    #[error(transparent)]
    Random(#[from] crate::domain::token::NoRandom),
}

/// The authority.
#[derive(Debug)]
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pem: String,
}

/// A certificate for an executor.
#[derive(Debug)]
pub struct Issued {
    /// PEM of the leaf, then of the authority.
    pub chain: String,
    /// Serial number, lower-case hex.
    pub serial: String,
    /// sha256 of its public key.
    pub key_sha256: Sha256,
    /// When it ends.
    pub not_after: Timestamp,
}

impl Authority {
    /// Reads the authority from the data folder; makes it at the first start.
    ///
    /// # Errors
    /// Files that are missing, unreadable or not writable.
    pub fn open(dir: &DataDir) -> Result<Self, AuthorityError> {
        let (pem, key) = match (dir.read(data_dir::CA_CERT)?, dir.read(data_dir::CA_KEY)?) {
            (Some(pem), Some(key)) => (pem, key),
            (None, None) => {
                let (pem, key) = create()?;
                dir.write(data_dir::CA_KEY, key.as_bytes(), 0o600)?;
                dir.write(data_dir::CA_CERT, pem.as_bytes(), 0o644)?;
                (pem, key)
            }
            (Some(_), None) | (None, Some(_)) => return Err(AuthorityError::Half),
        };
        Ok(Self { issuer: Issuer::from_ca_cert_pem(&pem, KeyPair::from_pem(&key)?)?, pem })
    }

    /// PEM of its certificate.
    #[must_use]
    pub fn pem(&self) -> &str {
        &self.pem
    }

    /// Signs an executor's request: what the certificate says is decided here, only the key is the request's.
    ///
    /// # Errors
    /// The certificate cannot be made.
    pub fn sign_executor(
        &self,
        request: &CheckedRequest,
        organisation: &str,
        host: &str,
        lasts: Duration,
    ) -> Result<Issued, AuthorityError> {
        let mut params = leaf(organisation, host, lasts)?;
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        let certificate = params.signed_by(request.public_key(), &self.issuer)?;
        let read = peer::Peer::of(certificate.der()).ok_or(AuthorityError::Unreadable)?;
        Ok(Issued {
            chain: format!("{}{}", certificate.pem(), self.pem),
            serial: read.serial,
            key_sha256: read.key_sha256,
            not_after: read.not_after,
        })
    }

    /// Makes a server certificate for a host, with a new key: PEM of both.
    ///
    /// # Errors
    /// The certificate cannot be made.
    pub fn sign_server(&self, host: &str) -> Result<(String, String), AuthorityError> {
        let key = KeyPair::generate()?;
        let mut params = leaf("navin-manager", host, config::SERVER_CERT_LASTS)?;
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        Ok((params.signed_by(&key, &self.issuer)?.pem(), key.serialize_pem()))
    }
}

fn create() -> Result<(String, String), AuthorityError> {
    let key = KeyPair::generate()?;
    let mut params = CertificateParams::default();
    params.distinguished_name = common_name(&format!("navin-manager CA {}", &Sha256::of(&key.subject_public_key_info()).as_str()[..8]));
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params.serial_number = Some(serial()?);
    lasting(&mut params, config::CA_LASTS);
    Ok((params.self_signed(&key)?.pem(), key.serialize_pem()))
}

fn leaf(name: &str, host: &str, lasts: Duration) -> Result<CertificateParams, AuthorityError> {
    let mut params = CertificateParams::default();
    params.distinguished_name = common_name(name);
    params.subject_alt_names = vec![san(host)?];
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.serial_number = Some(serial()?);
    params.use_authority_key_identifier_extension = true;
    lasting(&mut params, lasts);
    Ok(params)
}

/// The alternative name of a host: an IP address (brackets of a URL left out) or a DNS name.
fn san(host: &str) -> Result<SanType, rcgen::Error> {
    match host.trim_matches(['[', ']']).parse::<IpAddr>() {
        Ok(address) => Ok(SanType::IpAddress(address)),
        Err(_) => Ok(SanType::DnsName(host.to_ascii_lowercase().try_into()?)),
    }
}

fn common_name(name: &str) -> DistinguishedName {
    let mut names = DistinguishedName::new();
    names.push(DnType::CommonName, name);
    names
}

fn lasting(params: &mut CertificateParams, lasts: Duration) {
    // Whole seconds: a certificate knows no smaller ones.
    let now = Duration::from_secs(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs());
    let epoch = rcgen::date_time_ymd(1970, 1, 1);
    params.not_before = epoch + now.saturating_sub(config::CLOCK_SKEW);
    params.not_after = epoch + now + lasts;
}

/// 127 random bits, never 0 and never negative.
fn serial() -> Result<SerialNumber, crate::domain::token::NoRandom> {
    let mut bytes = [0; 16];
    aws_lc_rs::rand::fill(&mut bytes).map_err(|_| crate::domain::token::NoRandom)?;
    bytes[0] = bytes[0] & 0x3f | 0x40;
    Ok(SerialNumber::from_slice(&bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pki::request::{self, tests::csr};

    #[test]
    fn an_executor_gets_what_the_manager_decides() {
        let parent = tempfile::tempdir().unwrap();
        let dir = DataDir::open(&parent.path().join("d")).unwrap();
        let authority = Authority::open(&dir).unwrap();
        assert_eq!(Authority::open(&dir).unwrap().pem(), authority.pem());
        let request = request::check(&csr("org-1", &["127.0.0.1"]), "org-1", "127.0.0.1").unwrap();
        let issued = authority.sign_executor(&request, "org-1", "127.0.0.1", config::EXECUTOR_CERT_LASTS).unwrap();
        let days = issued.not_after.duration_since(Timestamp::now()).as_hours() / 24;
        assert!((29..=30).contains(&days), "{days}");
        let pem = rustls_pki_types::CertificateDer::from_pem_slice_first(&issued.chain);
        let peer = peer::Peer::of(&pem).unwrap();
        assert_eq!((peer.serial, peer.key_sha256), (issued.serial, issued.key_sha256));
        assert_eq!(peer.common_name.as_deref(), Some("org-1"));
    }

    trait First {
        fn from_pem_slice_first(pem: &str) -> Self;
    }

    impl First for rustls_pki_types::CertificateDer<'static> {
        fn from_pem_slice_first(pem: &str) -> Self {
            use rustls_pki_types::pem::PemObject as _;
            Self::from_pem_slice(pem.as_bytes()).unwrap()
        }
    }
}
