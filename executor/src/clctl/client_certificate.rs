//! The connector's client certificate as it lies on disk: whose it is, until when, and whether the key beside it is its key.

use std::path::Path;

use x509_parser::extensions::GeneralName;
use x509_parser::pem::parse_x509_pem;

/// What a certificate says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct ClientCertificate {
    /// Organisation id.
    pub(crate) common_name: String,
    /// Host of the manager's endpoint.
    pub(crate) host: String,
    /// First moment.
    pub(crate) not_before: jiff::Timestamp,
    /// Last moment.
    pub(crate) not_after: jiff::Timestamp,
    public_key: Vec<u8>,
}

/// Why it cannot be read; the text says which file.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CertificateError {
    /// The file.
    #[error("{path}: {source}")]
    Read {
        /// The file.
        path: String,
        /// Why.
        source: std::io::Error,
    },
    /// Not a certificate in PEM, or not a key.
    #[error("{path}: {problem}")]
    Damaged {
        /// The file.
        path: String,
        /// What is wrong.
        problem: String,
    },
}

impl ClientCertificate {
    /// Reads the leaf, the first certificate of the file.
    pub(crate) fn read(path: &Path) -> Result<Self, CertificateError> {
        let bytes = std::fs::read(path).map_err(|source| CertificateError::Read { path: path.display().to_string(), source })?;
        parse(&bytes).ok_or_else(|| damaged(path, "not a certificate in PEM"))
    }

    /// Whether the private key in this file is the certificate's.
    pub(crate) fn has_key(&self, path: &Path) -> Result<bool, CertificateError> {
        let text = std::fs::read_to_string(path).map_err(|source| CertificateError::Read { path: path.display().to_string(), source })?;
        let key = rcgen::KeyPair::from_pem(&text).map_err(|_| damaged(path, "not a private key in PEM"))?;
        Ok(rcgen::PublicKeyData::subject_public_key_info(&key) == self.public_key)
    }
}

fn damaged(path: &Path, problem: &str) -> CertificateError {
    CertificateError::Damaged { path: path.display().to_string(), problem: problem.to_owned() }
}

fn parse(bytes: &[u8]) -> Option<ClientCertificate> {
    let (_, pem) = parse_x509_pem(bytes).ok()?;
    let certificate = pem.parse_x509().ok()?;
    let time = |time: x509_parser::time::ASN1Time| jiff::Timestamp::from_second(time.timestamp()).ok();
    let names = certificate.subject_alternative_name().ok().flatten();
    let host = names.and_then(|names| names.value.general_names.iter().find_map(host));
    Some(ClientCertificate {
        common_name: certificate.subject().iter_common_name().next().and_then(|name| name.as_str().ok()).unwrap_or_default().to_owned(),
        host: host.unwrap_or_default(),
        not_before: time(certificate.validity().not_before)?,
        not_after: time(certificate.validity().not_after)?,
        public_key: certificate.public_key().raw.to_vec(),
    })
}

fn host(name: &GeneralName<'_>) -> Option<String> {
    match name {
        GeneralName::DNSName(name) => Some((*name).to_owned()),
        GeneralName::IPAddress([a, b, c, d]) => Some(std::net::Ipv4Addr::new(*a, *b, *c, *d).to_string()),
        GeneralName::IPAddress(bytes) => <[u8; 16]>::try_from(*bytes).ok().map(|bytes| std::net::Ipv6Addr::from(bytes).to_string()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_knows_its_key() {
        let folder = tempfile::tempdir().unwrap();
        let (certificate, key, other) = (folder.path().join("c"), folder.path().join("k"), folder.path().join("o"));
        let made = rcgen::KeyPair::generate().unwrap();
        let mut parameters = rcgen::CertificateParams::new(vec!["m.example".to_owned()]).unwrap();
        parameters.distinguished_name = rcgen::DistinguishedName::new();
        parameters.distinguished_name.push(rcgen::DnType::CommonName, "org-1");
        std::fs::write(&certificate, parameters.self_signed(&made).unwrap().pem()).unwrap();
        std::fs::write(&key, made.serialize_pem()).unwrap();
        std::fs::write(&other, rcgen::KeyPair::generate().unwrap().serialize_pem()).unwrap();
        let read = ClientCertificate::read(&certificate).unwrap();
        assert_eq!((read.common_name.as_str(), read.host.as_str()), ("org-1", "m.example"));
        assert!(read.has_key(&key).unwrap());
        assert!(!read.has_key(&other).unwrap());
        assert!(matches!(read.has_key(&certificate), Err(CertificateError::Damaged { .. })));
        assert!(matches!(ClientCertificate::read(&key), Err(CertificateError::Damaged { .. })));
    }
}
