//! Requests to the manager: TLS 1.3, the client certificate, the signature.
//!
//! The proxy is the environment's (`HTTPS_PROXY`, `ALL_PROXY`, `NO_PROXY` with names, suffixes, addresses and CIDRs): this is the way
//! out of the customer's network. The API server and the metadata address have clients of their own, which know no proxy.

mod certificate;
mod files;

use std::path::PathBuf;
use std::sync::Arc;

use agent_api::secret::Secret;
use agent_api::signature::{self, KeyPair};

pub(crate) use certificate::{Certificate, CertificateError, certificate_request};
use files::Files;

use crate::config::Api;

/// Why a request could not be made.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SignedError {
    /// A credential file is missing or unreadable.
    #[error("{path}: {source}; enrol with `clicklink clctl init --enroll <url>`", path = path.display())]
    File {
        /// File.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// Not PEM, or not a key pair.
    #[error("the client certificate or CA file is damaged")]
    Tls(#[source] reqwest::Error),
}

/// A client for one endpoint, with its key.
#[derive(Clone)]
pub(crate) struct Signed {
    http: reqwest::Client,
    endpoint: String,
    key: KeyPair,
    files: Option<Arc<Files>>,
}

impl Signed {
    /// Reads all credentials from the files that the configuration names.
    pub(crate) fn load(api: &Api) -> Result<Self, SignedError> {
        let files = Files::new(api);
        files.settle()?;
        Self::from_files(Arc::new(files))
    }

    /// Reads the same files again; somebody may have enrolled anew, or the certificate was renewed.
    pub(crate) fn reload(&self) -> Result<Self, SignedError> {
        match &self.files {
            Some(files) => Self::from_files(Arc::clone(files)),
            None => Ok(self.clone()),
        }
    }

    fn from_files(files: Arc<Files>) -> Result<Self, SignedError> {
        let read = files.read()?;
        let identity = reqwest::Identity::from_pem(read.identity.expose().as_bytes()).map_err(SignedError::Tls)?;
        let http = client(read.ca.as_deref())?.identity(identity).build().map_err(SignedError::Tls)?;
        Ok(Self { http, endpoint: files.endpoint().to_owned(), key: read.key, files: Some(files) })
    }

    /// A client without a certificate, for enrolment.
    pub(crate) fn unauthenticated(endpoint: &str, key: KeyPair, ca: Option<&str>) -> Result<Self, SignedError> {
        let http = client(ca)?.build().map_err(SignedError::Tls)?;
        Ok(Self { http, endpoint: endpoint.trim_end_matches('/').to_owned(), key, files: None })
    }

    /// The client certificate as it lies on disk; none for a client without one.
    pub(crate) fn certificate(&self) -> Option<Result<Certificate, CertificateError>> {
        self.files.as_ref().map(|files| files.certificate())
    }

    /// Puts a new key and its certificate in place of the former ones, both or neither.
    pub(crate) fn replace_certificate(&self, key: &Secret, certificate: &str) -> Result<(), SignedError> {
        self.files.as_ref().map_or(Ok(()), |files| files.replace(key, certificate))
    }

    /// Clears away what an interrupted renewal left. Only for the daemon, which alone renews.
    pub(crate) fn tidy(&self) {
        if let Some(files) = &self.files {
            files.tidy();
        }
    }

    /// `https://host[:port]`.
    pub(crate) fn endpoint(&self) -> &str {
        &self.endpoint
    }

    /// A signed request.
    pub(crate) fn request(&self, method: reqwest::Method, target: &str, body: Vec<u8>) -> reqwest::RequestBuilder {
        let created = jiff::Timestamp::now().as_second();
        let nonce = uuid::Uuid::new_v4().to_string();
        let headers = signature::sign(&self.key, method.as_str(), target, &body, created, &nonce);
        self.http
            .request(method, format!("{}{target}", self.endpoint))
            .header(signature::CONTENT_DIGEST, headers.content_digest)
            .header(signature::SIGNATURE_INPUT, headers.signature_input)
            .header(signature::SIGNATURE, headers.signature)
            .body(body)
    }
}

/// TLS 1.3 only, HTTP/1.1 (the WebSocket upgrade needs it), no redirects (they would carry signatures elsewhere).
pub(crate) fn client(ca: Option<&str>) -> Result<reqwest::ClientBuilder, SignedError> {
    let mut builder = reqwest::Client::builder()
        .http1_only()
        .tls_version_min(reqwest::tls::Version::TLS_1_3)
        .redirect(reqwest::redirect::Policy::none())
        .connect_timeout(std::time::Duration::from_secs(10));
    if let Some(ca) = ca {
        builder = builder.tls_certs_merge(reqwest::Certificate::from_pem_bundle(ca.as_bytes()).map_err(SignedError::Tls)?);
    }
    Ok(builder)
}
