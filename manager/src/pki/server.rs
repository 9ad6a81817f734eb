//! The server's certificate: kept in the data folder, made anew before its end and when the host changes, and the TLS that uses it.

use std::sync::{Arc, PoisonError, RwLock};

use jiff::Timestamp;
use rustls::crypto::aws_lc_rs::default_provider;
use rustls::server::{ClientHello, ResolvesServerCert, WebPkiClientVerifier};
use rustls::sign::CertifiedKey;
use rustls::{RootCertStore, ServerConfig};
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::{FromDer as _, X509Certificate};

use super::authority::{Authority, AuthorityError};
use crate::config;
use crate::serve::data_dir::{self, DataDir, DataDirError};

/// Why TLS cannot be offered.
#[derive(Debug, thiserror::Error)]
pub enum ServerCertError {
    /// The files.
    #[error(transparent)]
    Files(#[from] DataDirError),
    /// Making the certificate.
    #[error(transparent)]
    Authority(#[from] AuthorityError),
    /// A PEM file of ours.
    #[error("a certificate or key in the data folder is not readable")]
    Pem(#[from] rustls_pki_types::pem::Error),
    /// TLS.
    #[error("TLS could not be set up")]
    Tls(#[from] rustls::Error),
    /// The verifier of client certificates.
    #[error("the verifier of client certificates could not be set up")]
    Verifier(#[from] rustls::server::VerifierBuilderError),
}

/// The live certificate; handshakes read it, [`ServerCert::refresh`] replaces it.
#[derive(Debug)]
pub struct ServerCert {
    host: String,
    live: RwLock<Arc<CertifiedKey>>,
}

impl ServerCert {
    /// The certificate from the data folder, or a new one.
    ///
    /// # Errors
    /// It can be neither read nor made.
    pub fn open(dir: &DataDir, authority: &Authority, host: &str) -> Result<Self, ServerCertError> {
        let live = load(dir, authority, host, Timestamp::now())?;
        Ok(Self { host: host.to_owned(), live: RwLock::new(Arc::new(live)) })
    }

    /// Makes a new certificate if the live one is near its end.
    ///
    /// # Errors
    /// It cannot be made; the old one goes on.
    pub fn refresh(&self, dir: &DataDir, authority: &Authority) -> Result<(), ServerCertError> {
        let fresh = load(dir, authority, &self.host, Timestamp::now())?;
        *self.live.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(fresh);
        Ok(())
    }
}

impl ResolvesServerCert for ServerCert {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.live.read().unwrap_or_else(PoisonError::into_inner)))
    }
}

/// TLS 1.3 only; a client certificate may be absent, and must be of our authority when given.
///
/// # Errors
/// rustls refuses the pieces.
pub fn tls(authority: &Authority, certificate: Arc<ServerCert>) -> Result<ServerConfig, ServerCertError> {
    let provider = Arc::new(default_provider());
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(authority.pem().as_bytes())?)?;
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider)).allow_unauthenticated().build()?;
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_client_cert_verifier(verifier)
        .with_cert_resolver(certificate);
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

fn load(dir: &DataDir, authority: &Authority, host: &str, now: Timestamp) -> Result<CertifiedKey, ServerCertError> {
    if let (Some(cert), Some(key)) = (dir.read(data_dir::SERVER_CERT)?, dir.read(data_dir::SERVER_KEY)?)
        && serves(&cert, authority, host, now)
        && let Ok(key) = certified(&cert, &key)
        && key.keys_match().is_ok()
    {
        return Ok(key);
    }
    let (cert, key) = authority.sign_server(host)?;
    dir.write(data_dir::SERVER_KEY, key.as_bytes(), 0o600)?;
    dir.write(data_dir::SERVER_CERT, cert.as_bytes(), 0o600)?;
    certified(&cert, &key)
}

fn certified(cert: &str, key: &str) -> Result<CertifiedKey, ServerCertError> {
    let chain = CertificateDer::pem_slice_iter(cert.as_bytes()).collect::<Result<Vec<_>, _>>()?;
    Ok(CertifiedKey::from_der(chain, PrivateKeyDer::from_pem_slice(key.as_bytes())?, &default_provider())?)
}

/// Whether a certificate is for this host, of this authority, and far from its end.
fn serves(pem: &str, authority: &Authority, host: &str, now: Timestamp) -> bool {
    let Ok(der) = CertificateDer::from_pem_slice(pem.as_bytes()) else { return false };
    let Ok(ca) = CertificateDer::from_pem_slice(authority.pem().as_bytes()) else { return false };
    let (Ok((_, leaf)), Ok((_, ca))) = (X509Certificate::from_der(&der), X509Certificate::from_der(&ca)) else { return false };
    let left = leaf.validity().not_after.timestamp() - now.as_second();
    left > config::SERVER_CERT_RENEW.as_secs().cast_signed() && leaf.verify_signature(Some(ca.public_key())).is_ok() && names(&leaf, host)
}

fn names(leaf: &X509Certificate<'_>, host: &str) -> bool {
    let Ok(Some(names)) = leaf.subject_alternative_name() else { return false };
    let address = host.trim_matches(['[', ']']).parse::<std::net::IpAddr>().ok();
    names.value.general_names.iter().any(|name| match (name, address) {
        (GeneralName::DNSName(name), None) => name.eq_ignore_ascii_case(host),
        (GeneralName::IPAddress(bytes), Some(std::net::IpAddr::V4(v4))) => *bytes == v4.octets(),
        (GeneralName::IPAddress(bytes), Some(std::net::IpAddr::V6(v6))) => *bytes == v6.octets(),
        _ => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn made_anew_for_another_host_and_before_its_end() {
        let parent = tempfile::tempdir().unwrap();
        let dir = DataDir::open(&parent.path().join("d")).unwrap();
        let authority = Authority::open(&dir).unwrap();
        let read = || dir.read(data_dir::SERVER_CERT).unwrap().unwrap();
        ServerCert::open(&dir, &authority, "127.0.0.1").unwrap();
        let first = read();
        ServerCert::open(&dir, &authority, "127.0.0.1").unwrap();
        assert_eq!(read(), first);
        ServerCert::open(&dir, &authority, "manager.example").unwrap();
        let second = read();
        assert_ne!(second, first);
        load(&dir, &authority, "manager.example", Timestamp::now() + jiff::SignedDuration::from_hours(24 * 61)).unwrap();
        assert_ne!(read(), second);
    }
}
