//! What our own certificate says, and the request for the next one.

use agent_api::secret::Secret;
use jiff::{SignedDuration, Timestamp};
use x509_parser::pem::parse_x509_pem;

/// So long before its end a certificate is renewed; one that lasts less than three times this, when a third of its time is left.
const RENEW_BEFORE: SignedDuration = SignedDuration::from_hours(10 * 24);

/// What matters of a client certificate.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Certificate {
    /// Common name: the organisation.
    pub(crate) organisation: String,
    /// When it begins.
    pub(crate) not_before: Timestamp,
    /// When it ends.
    pub(crate) not_after: Timestamp,
}

/// Why a certificate is not read, or no request was made.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CertificateError {
    /// The file.
    #[error("the client certificate could not be read")]
    File(#[source] std::io::Error),
    /// Its content.
    #[error("the client certificate is damaged")]
    Damaged,
    /// The endpoint of the configuration has no host.
    #[error("the endpoint `{0}` has no host")]
    Endpoint(String),
    /// The request.
    #[error("a certificate request could not be made")]
    Request(#[from] rcgen::Error),
}

impl Certificate {
    /// Reads the first certificate of a PEM text.
    pub(crate) fn parse(pem: &str) -> Result<Self, CertificateError> {
        let (_, pem) = parse_x509_pem(pem.as_bytes()).map_err(|_| CertificateError::Damaged)?;
        let leaf = pem.parse_x509().map_err(|_| CertificateError::Damaged)?;
        let name = leaf.subject().iter_common_name().next().and_then(|name| name.as_str().ok()).ok_or(CertificateError::Damaged)?;
        let time = |at: x509_parser::time::ASN1Time| Timestamp::from_second(at.timestamp()).map_err(|_| CertificateError::Damaged);
        let validity = leaf.validity();
        Ok(Self { organisation: name.to_owned(), not_before: time(validity.not_before)?, not_after: time(validity.not_after)? })
    }

    /// When it is to be renewed.
    pub(crate) fn renew_at(&self) -> Timestamp {
        let third = self.not_after.duration_since(self.not_before) / 3;
        self.not_after - third.min(RENEW_BEFORE)
    }
}

/// A new key, which never leaves, and the request to certify it for an endpoint.
pub(crate) fn certificate_request(organisation: &str, endpoint: &str) -> Result<(Secret, String), CertificateError> {
    let no_host = || CertificateError::Endpoint(endpoint.to_owned());
    let url = reqwest::Url::parse(endpoint).map_err(|_| no_host())?;
    let host = url.host_str().ok_or_else(no_host)?.trim_matches(['[', ']']).to_owned();
    let mut parameters = rcgen::CertificateParams::new(vec![host])?;
    parameters.distinguished_name = rcgen::DistinguishedName::new();
    parameters.distinguished_name.push(rcgen::DnType::CommonName, organisation);
    let key = rcgen::KeyPair::generate()?;
    let request = parameters.serialize_request(&key)?.pem()?;
    Ok((Secret::new(key.serialize_pem()), request))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A certificate of one's own, and its key, in PEM.
    pub(crate) fn self_signed(organisation: &str) -> (String, String) {
        let mut parameters = rcgen::CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
        parameters.distinguished_name = rcgen::DistinguishedName::new();
        parameters.distinguished_name.push(rcgen::DnType::CommonName, organisation);
        parameters.not_before = rcgen::date_time_ymd(2026, 11, 1);
        parameters.not_after = rcgen::date_time_ymd(2026, 12, 1);
        let key = rcgen::KeyPair::generate().unwrap();
        (parameters.self_signed(&key).unwrap().pem(), key.serialize_pem())
    }

    #[test]
    fn read_and_renewed_ten_days_before_its_end() {
        let read = Certificate::parse(&self_signed("org-1").0).unwrap();
        assert_eq!(read.organisation, "org-1");
        assert_eq!(read.not_after, "2026-12-01T00:00:00Z".parse().unwrap());
        assert_eq!(read.renew_at(), "2026-11-21T00:00:00Z".parse().unwrap());
        let short = Certificate { not_after: read.not_before + SignedDuration::from_secs(90), ..read.clone() };
        assert_eq!(short.renew_at(), read.not_before + SignedDuration::from_secs(60));
        assert!(matches!(Certificate::parse("-----BEGIN X-----"), Err(CertificateError::Damaged)));
    }

    #[test]
    fn a_request_for_the_endpoints_host() {
        assert!(certificate_request("org-1", "https://[::1]:8443").unwrap().1.contains("CERTIFICATE REQUEST"));
        assert!(matches!(certificate_request("org-1", "nowhere"), Err(CertificateError::Endpoint(_))));
    }
}
