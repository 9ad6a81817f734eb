//! A certificate authority for the testbed's servers and people.

use anyhow::{Context, Result};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    KeyUsagePurpose,
};

/// A certificate authority with its key in memory (ECDSA P-256).
#[derive(Debug)]
pub struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
}

/// A certificate and its private key (PKCS #8), both PEM.
#[derive(Debug, Clone)]
pub struct Identity {
    /// The certificate alone.
    pub certificate: String,
    /// Its key.
    pub key: String,
}

impl Authority {
    /// A new authority.
    ///
    /// # Errors
    /// The key or certificate cannot be made.
    pub fn new(common_name: &str) -> Result<Self> {
        let mut params = CertificateParams::new(Vec::<String>::new()).context("an authority's parameters")?;
        params.distinguished_name = distinguished_name(common_name, None);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign, KeyUsagePurpose::DigitalSignature];
        let key = KeyPair::generate().context("an authority's key")?;
        let issuer = CertifiedIssuer::self_signed(params, key).context("an authority's certificate")?;
        Ok(Self { issuer })
    }

    /// Its certificate, PEM.
    #[must_use]
    pub fn certificate(&self) -> String {
        self.issuer.pem()
    }

    /// A server's certificate for these host names and IP addresses.
    ///
    /// # Errors
    /// A name is not one, or the certificate cannot be made.
    pub fn server(&self, common_name: &str, hosts: &[&str]) -> Result<Identity> {
        let hosts: Vec<String> = hosts.iter().map(ToString::to_string).collect();
        let mut params = CertificateParams::new(hosts).context("a server's names")?;
        params.distinguished_name = distinguished_name(common_name, None);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        self.issue(&params)
    }

    /// A client's certificate; Kubernetes reads the common name as the user and the organisation as a group.
    ///
    /// # Errors
    /// The certificate cannot be made.
    pub fn client(&self, user: &str, group: Option<&str>) -> Result<Identity> {
        let mut params = CertificateParams::new(Vec::<String>::new()).context("a client's parameters")?;
        params.distinguished_name = distinguished_name(user, group);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        self.issue(&params)
    }

    fn issue(&self, params: &CertificateParams) -> Result<Identity> {
        let key = KeyPair::generate().context("a key")?;
        let certificate = params.signed_by(&key, &self.issuer).context("a certificate")?;
        Ok(Identity { certificate: certificate.pem(), key: key.serialize_pem() })
    }
}

fn distinguished_name(common_name: &str, organisation: Option<&str>) -> DistinguishedName {
    let mut name = DistinguishedName::new();
    name.push(DnType::CommonName, common_name);
    if let Some(organisation) = organisation {
        name.push(DnType::OrganizationName, organisation);
    }
    name
}
