//! An executor's certificate request: CN = organisation, one alternative name = the endpoint's host, nothing that asks for more.

use std::net::IpAddr;

use rcgen::{CertificateSigningRequestParams, DnType, DnValue, IsCa, PublicKey, SanType};

/// A request that was checked; only [`check`] makes one.
#[derive(Debug)]
pub struct CheckedRequest(CertificateSigningRequestParams);

impl CheckedRequest {
    /// The key to certify; its holder signed the request.
    #[must_use]
    pub fn public_key(&self) -> &PublicKey {
        &self.0.public_key
    }
}

/// Why a request is not signed.
#[derive(Debug, thiserror::Error)]
pub enum RequestError {
    /// No PKCS#10 request, or not signed by its own key.
    #[error("the certificate request is not readable: {0}")]
    Unreadable(rcgen::Error),
    /// Another common name.
    #[error("the request's common name must be the organisation `{expected}` and nothing else may stand in its subject")]
    Subject {
        /// What is right.
        expected: String,
    },
    /// Another alternative name.
    #[error("the request must have one subject alternative name, `{expected}`")]
    AlternativeName {
        /// What is right.
        expected: String,
    },
    /// It asks to be an authority.
    #[error("the request asks for a certificate authority")]
    Authority,
}

/// Reads and checks a request in PEM.
///
/// # Errors
/// The first rule that is broken.
pub fn check(pem: &str, organisation: &str, host: &str) -> Result<CheckedRequest, RequestError> {
    let request = CertificateSigningRequestParams::from_pem(pem).map_err(RequestError::Unreadable)?;
    let subject = &request.params.distinguished_name;
    let common_name = subject.get(&DnType::CommonName).and_then(text);
    if common_name != Some(organisation) || subject.iter().count() != 1 {
        return Err(RequestError::Subject { expected: organisation.to_owned() });
    }
    let host = host.trim_matches(['[', ']']);
    let right = match request.params.subject_alt_names.as_slice() {
        [SanType::IpAddress(address)] => host.parse::<IpAddr>().is_ok_and(|host| host == *address),
        [SanType::DnsName(name)] => name.as_str().eq_ignore_ascii_case(host),
        _ => false,
    };
    if !right {
        return Err(RequestError::AlternativeName { expected: host.to_owned() });
    }
    match request.params.is_ca {
        IsCa::Ca(_) => Err(RequestError::Authority),
        IsCa::NoCa | IsCa::ExplicitNoCa => Ok(CheckedRequest(request)),
    }
}

fn text(value: &DnValue) -> Option<&str> {
    match value {
        DnValue::Utf8String(text) => Some(text),
        DnValue::PrintableString(text) => Some(text.as_str()),
        DnValue::Ia5String(text) => Some(text.as_str()),
        _ => None,
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use rcgen::{BasicConstraints, CertificateParams, KeyPair};

    /// A request for tests.
    pub fn csr(common_name: &str, names: &[&str]) -> String {
        made(common_name, names, |_| {})
    }

    fn made(common_name: &str, names: &[&str], change: impl Fn(&mut CertificateParams)) -> String {
        let mut params = CertificateParams::new(names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>()).unwrap();
        params.distinguished_name = rcgen::DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, common_name);
        change(&mut params);
        params.serialize_request(&KeyPair::generate().unwrap()).unwrap().pem().unwrap()
    }

    fn refused(pem: &str, expected: &str) {
        let error = check(pem, "org-1", "manager.example").expect_err(expected).to_string();
        assert!(error.contains(expected), "{error}");
    }

    #[test]
    fn only_what_was_agreed_is_signed() {
        assert!(check(&csr("org-1", &["Manager.example"]), "org-1", "manager.example").is_ok());
        assert!(check(&csr("org-1", &["::1"]), "org-1", "[::1]").is_ok());
        refused(&csr("org-2", &["manager.example"]), "common name");
        refused(&csr("org-1", &[]), "one subject alternative name");
        refused(&csr("org-1", &["manager.example", "other.example"]), "one subject alternative name");
        refused(&csr("org-1", &["other.example"]), "one subject alternative name");
        refused("-----BEGIN X-----", "not readable");
        let two = |params: &mut CertificateParams| params.distinguished_name.push(DnType::OrganizationName, "x");
        refused(&made("org-1", &["manager.example"], two), "nothing else");
        let ca = |params: &mut CertificateParams| params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        refused(&made("org-1", &["manager.example"], ca), "authority");
    }
}
