//! Requests to the manager: TLS 1.3, the client certificate, the signature.

use std::path::{Path, PathBuf};

use agent_api::secret::Secret;
use agent_api::signature::{self, KeyPair};

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
}

impl Signed {
    /// Reads all credentials from the files that the configuration names.
    pub(crate) fn load(api: &Api) -> Result<Self, SignedError> {
        let key = KeyPair {
            access_key: read(&api.access_key_file)?.trim().to_owned(),
            secret_key: Secret::new(read(&api.secret_key_file)?.trim().to_owned()),
        };
        let identity = read(&api.tls.cert_file)? + "\n" + &read(&api.tls.key_file)?;
        let identity = reqwest::Identity::from_pem(identity.as_bytes()).map_err(SignedError::Tls)?;
        let ca = if api.tls.ca_file.exists() { Some(read(&api.tls.ca_file)?) } else { None };
        let http = client(ca.as_deref())?.identity(identity).build().map_err(SignedError::Tls)?;
        Ok(Self { http, endpoint: api.endpoint.trim_end_matches('/').to_owned(), key })
    }

    /// A client without a certificate, for enrolment.
    pub(crate) fn unauthenticated(endpoint: &str, key: KeyPair, ca: Option<&str>) -> Result<Self, SignedError> {
        let http = client(ca)?.build().map_err(SignedError::Tls)?;
        Ok(Self { http, endpoint: endpoint.trim_end_matches('/').to_owned(), key })
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

fn read(path: &Path) -> Result<String, SignedError> {
    std::fs::read_to_string(path).map_err(|source| SignedError::File { path: path.into(), source })
}
