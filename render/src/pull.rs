//! An OCI registry, as far as charts and images need it: one manifest and one layer by digest, and whether a manifest is there.
//!
//! Written on the HTTP client itself, so that three things hold for certain: credentials are sent to the registry they belong to and
//! to the token service it names, never along a redirect; nothing is fetched but over TLS; every size is bounded and every digest
//! computed here. Deliberately absent: tags, pushing, and the log-in at ECR.

use std::collections::BTreeMap;
use std::time::Duration;

use agent_api::digest::OciDigest;
use agent_api::manifest::{Chart, Registry as Place, RegistryMode};
use agent_api::secret::Secret;
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderValue, LOCATION};
use reqwest::{Client, Method, Response, StatusCode, Url};
use serde::Deserialize;
use tokio::sync::Mutex;

use crate::archive;
use crate::registry_access::{Credentials, RegistryAccess};

mod challenge;
mod error;

use challenge::Challenge;
pub use error::PullError;

/// Largest manifest that is read: 4 MiB, what registries accept.
const MAX_MANIFEST: u64 = 4 << 20;
/// Largest answer of a token service: 1 MiB.
const MAX_TOKEN: u64 = 1 << 20;
/// Redirects that are followed for one request.
const MAX_REDIRECTS: usize = 5;
/// How long a connection may take to stand.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// How long an answer may be silent.
const READ_TIMEOUT: Duration = Duration::from_secs(30);
/// How long one request may take in all.
const TOTAL_TIMEOUT: Duration = Duration::from_secs(300);

/// The host that serves what is named after Docker Hub.
const DOCKER_HUB_SERVER: &str = "registry-1.docker.io";
/// The names of Docker Hub.
const DOCKER_HUB: [&str; 2] = ["docker.io", "index.docker.io"];

const IMAGE_MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const HELM_CONFIG: &str = "application/vnd.cncf.helm.config.v1+json";
/// Media types of a chart's layer: Helm's, and the one it wrote before 3.7.
const HELM_CHART: [&str; 2] = ["application/vnd.cncf.helm.chart.content.v1.tar+gzip", "application/tar+gzip"];
/// What an image's digest may name.
const ANY_MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json, application/vnd.oci.image.index.v1+json, \
     application/vnd.docker.distribution.manifest.v2+json, application/vnd.docker.distribution.manifest.list.v2+json";

/// One registry, with one log-in.
pub(crate) struct Registry {
    client: Client,
    host: String,
    path: String,
    credentials: Option<Credentials>,
    /// `Authorization` by repository.
    authorizations: Mutex<BTreeMap<String, HeaderValue>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Manifest {
    #[serde(default)]
    media_type: Option<String>,
    #[serde(default)]
    config: Option<Descriptor>,
    #[serde(default)]
    layers: Vec<Descriptor>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Descriptor {
    media_type: String,
    digest: OciDigest,
    size: u64,
}

#[derive(Deserialize)]
struct TokenAnswer {
    #[serde(default)]
    token: Option<Secret>,
    #[serde(default)]
    access_token: Option<Secret>,
}

impl Registry {
    /// The registry of a bundle.
    pub(crate) fn new(place: &Place, access: &RegistryAccess) -> Result<Self, PullError> {
        let (host, path) = split_base(&place.chart_base);
        let credentials = match place.mode {
            RegistryMode::Basic => access.credentials(server_of(&host)).cloned(),
            RegistryMode::Anonymous => None,
            RegistryMode::Direct => return Err(PullError::Mode("direct")),
            RegistryMode::Mirror => return Err(PullError::Mode("mirror")),
        };
        let client = Client::builder()
            .https_only(true)
            .redirect(reqwest::redirect::Policy::none())
            .tls_certs_merge(access.ca().iter().cloned())
            .connect_timeout(CONNECT_TIMEOUT)
            .read_timeout(READ_TIMEOUT)
            .timeout(TOTAL_TIMEOUT)
            .user_agent(concat!("clicklink/", env!("CARGO_PKG_VERSION")))
            .build()
            .map_err(PullError::Client)?;
        Ok(Self { client, host, path, credentials, authorizations: Mutex::default() })
    }

    /// Host and port.
    pub(crate) fn host(&self) -> &str {
        &self.host
    }

    /// The chart's archive, verified: the manifest against the pinned digest, the layer against the manifest.
    pub(crate) async fn chart(&self, chart: &Chart) -> Result<Vec<u8>, PullError> {
        let repository = if self.path.is_empty() { chart.name.clone() } else { format!("{}/{}", self.path, chart.name) };
        let reference = format!("{}/{repository}@{}", self.host, chart.digest);
        let url = self.url(&repository, "manifests", &chart.digest)?;
        let answer = self.get(Method::GET, url, &repository, IMAGE_MANIFEST, &reference).await?;
        let sent_type = answer.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).map(str::to_owned);
        let bytes = verified(answer, MAX_MANIFEST, &chart.digest, &reference).await?;
        let layer = layer_of(&bytes, sent_type, &reference)?;
        if layer.size > archive::MAX_COMPRESSED {
            return Err(PullError::TooLarge { reference, limit: archive::MAX_COMPRESSED });
        }
        let url = self.url(&repository, "blobs", &layer.digest)?;
        let answer = self.get(Method::GET, url, &repository, "*/*", &reference).await?;
        verified(answer, layer.size, &layer.digest, &reference).await
    }

    /// Whether a manifest is there.
    pub(crate) async fn exists(&self, repository: &str, digest: &OciDigest) -> Result<bool, PullError> {
        let reference = format!("{}/{repository}@{digest}", self.host);
        let url = self.url(repository, "manifests", digest)?;
        match self.get(Method::HEAD, url, repository, ANY_MANIFEST, &reference).await {
            Ok(_) => Ok(true),
            Err(PullError::NotFound { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn url(&self, repository: &str, kind: &str, digest: &OciDigest) -> Result<Url, PullError> {
        let text = format!("https://{}/v2/{repository}/{kind}/{digest}", server_of(&self.host));
        Url::parse(&text).map_err(|_| PullError::Address(text))
    }

    /// One request, with the log-in that the registry asks for, at most once.
    async fn get(&self, method: Method, url: Url, repository: &str, accept: &str, reference: &str) -> Result<Response, PullError> {
        let known = self.authorizations.lock().await.get(repository).cloned();
        let answer = self.follow(method.clone(), url.clone(), known.as_ref(), accept, reference).await?;
        if answer.status() != StatusCode::UNAUTHORIZED {
            return accepted(answer, reference);
        }
        let authorization = self.log_in(&challenge::all(answer.headers()), repository, reference).await?;
        self.authorizations.lock().await.insert(repository.to_owned(), authorization.clone());
        accepted(self.follow(method, url, Some(&authorization), accept, reference).await?, reference)
    }

    /// Follows redirects over TLS; only the origin of the request sees its credentials.
    async fn follow(
        &self,
        method: Method,
        mut url: Url,
        authorization: Option<&HeaderValue>,
        accept: &str,
        reference: &str,
    ) -> Result<Response, PullError> {
        let origin = url.origin();
        for _ in 0..=MAX_REDIRECTS {
            let mut request = self.client.request(method.clone(), url.clone()).header(ACCEPT, accept);
            if let Some(authorization) = authorization.filter(|_| url.origin() == origin) {
                request = request.header(AUTHORIZATION, authorization.clone());
            }
            let answer = request.send().await.map_err(|error| PullError::transport(reference, error))?;
            if !answer.status().is_redirection() {
                return Ok(answer);
            }
            let target = answer.headers().get(LOCATION).and_then(|value| value.to_str().ok()).and_then(|value| url.join(value).ok());
            url = match target {
                Some(target) if target.scheme() == "https" => target,
                Some(_) => return Err(PullError::Redirect { reference: reference.to_owned(), problem: "to an address without TLS" }),
                None => return Err(PullError::Redirect { reference: reference.to_owned(), problem: "without a readable address" }),
            };
        }
        Err(PullError::Redirect { reference: reference.to_owned(), problem: "once too often" })
    }

    async fn log_in(&self, challenges: &[Challenge], repository: &str, reference: &str) -> Result<HeaderValue, PullError> {
        if let Some(bearer) = challenges.iter().find(|challenge| challenge.scheme == "bearer") {
            return self.token(bearer, repository, reference).await;
        }
        if challenges.iter().any(|challenge| challenge.scheme == "basic") {
            let credentials = self.credentials.as_ref().ok_or_else(|| self.no_credentials(reference))?;
            return credentials.basic().ok_or_else(|| self.no_credentials(reference));
        }
        Err(PullError::Challenge { reference: reference.to_owned() })
    }

    fn no_credentials(&self, reference: &str) -> PullError {
        PullError::NoCredentials { host: self.host.clone(), reference: reference.to_owned() }
    }

    /// A token from the service that the registry names. It is asked over TLS, and its redirects are not followed.
    async fn token(&self, challenge: &Challenge, repository: &str, reference: &str) -> Result<HeaderValue, PullError> {
        let odd = || PullError::Challenge { reference: reference.to_owned() };
        let mut realm = challenge.parameter("realm").and_then(|realm| Url::parse(realm).ok()).ok_or_else(odd)?;
        if realm.scheme() != "https" {
            return Err(odd());
        }
        let default_scope = format!("repository:{repository}:pull");
        {
            let mut query = realm.query_pairs_mut();
            if let Some(service) = challenge.parameter("service") {
                query.append_pair("service", service);
            }
            query.append_pair("scope", challenge.parameter("scope").unwrap_or(&default_scope));
        }
        let mut request = self.client.get(realm);
        if let Some(header) = self.credentials.as_ref().and_then(Credentials::basic) {
            request = request.header(AUTHORIZATION, header);
        }
        let answer = request.send().await.map_err(|error| PullError::transport(reference, error))?;
        if answer.status() == StatusCode::UNAUTHORIZED && self.credentials.is_none() {
            return Err(self.no_credentials(reference));
        }
        let bytes = bounded(accepted(answer, reference)?, MAX_TOKEN, reference).await?;
        let answer: TokenAnswer = serde_json::from_slice(&bytes).map_err(|_| odd())?;
        let token = answer.token.or(answer.access_token).ok_or_else(odd)?;
        sensitive(&Secret::new(format!("Bearer {}", token.expose()))).ok_or_else(odd)
    }
}

impl Credentials {
    fn basic(&self) -> Option<HeaderValue> {
        use base64::Engine as _;
        let pair = Secret::new(format!("{}:{}", self.user, self.password.expose()));
        sensitive(&Secret::new(format!("Basic {}", base64::engine::general_purpose::STANDARD.encode(pair.expose()))))
    }
}

/// A header whose `Debug` shows nothing; `None` for bytes that no header may have.
fn sensitive(text: &Secret) -> Option<HeaderValue> {
    let mut value = HeaderValue::from_str(text.expose()).ok()?;
    value.set_sensitive(true);
    Some(value)
}

/// `oci://host[:port]/path` as host and path. The manifest's own check has seen to the form.
fn split_base(base: &str) -> (String, String) {
    let rest = base.strip_prefix("oci://").unwrap_or(base);
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    (host.to_ascii_lowercase(), path.to_owned())
}

/// The host that answers for a registry's name.
fn server_of(host: &str) -> &str {
    if DOCKER_HUB.contains(&host) { DOCKER_HUB_SERVER } else { host }
}

fn accepted(answer: Response, reference: &str) -> Result<Response, PullError> {
    let reference = || reference.to_owned();
    match answer.status() {
        status if status.is_success() => Ok(answer),
        StatusCode::UNAUTHORIZED => Err(PullError::Unauthorized { reference: reference() }),
        StatusCode::FORBIDDEN => Err(PullError::Forbidden { reference: reference() }),
        StatusCode::NOT_FOUND => Err(PullError::NotFound { reference: reference() }),
        status => Err(PullError::Status { reference: reference(), status: status.as_u16() }),
    }
}

async fn bounded(mut answer: Response, limit: u64, reference: &str) -> Result<Vec<u8>, PullError> {
    let mut bytes = Vec::new();
    while let Some(chunk) = answer.chunk().await.map_err(|error| PullError::transport(reference, error))? {
        bytes.extend_from_slice(&chunk);
        if bytes.len() as u64 > limit {
            return Err(PullError::TooLarge { reference: reference.to_owned(), limit });
        }
    }
    Ok(bytes)
}

async fn verified(answer: Response, limit: u64, digest: &OciDigest, reference: &str) -> Result<Vec<u8>, PullError> {
    let bytes = bounded(answer, limit, reference).await?;
    let found = OciDigest::of(&bytes);
    if found == *digest { Ok(bytes) } else { Err(PullError::Digest { reference: reference.to_owned(), expected: digest.clone(), found }) }
}

/// The one layer that is the chart.
fn layer_of(manifest: &[u8], sent_type: Option<String>, reference: &str) -> Result<Descriptor, PullError> {
    let wrong = |found: String| PullError::MediaType { reference: reference.to_owned(), found };
    let manifest: Manifest = serde_json::from_slice(manifest).map_err(|_| wrong("not an OCI manifest".to_owned()))?;
    let media_type = manifest.media_type.or(sent_type).unwrap_or_else(|| IMAGE_MANIFEST.to_owned());
    if media_type != IMAGE_MANIFEST {
        return Err(wrong(media_type));
    }
    match manifest.config {
        Some(config) if config.media_type == HELM_CONFIG => {}
        Some(config) => return Err(wrong(config.media_type)),
        None => return Err(wrong("no config".to_owned())),
    }
    let mut charts = manifest.layers.into_iter().filter(|layer| HELM_CHART.contains(&layer.media_type.as_str()));
    match (charts.next(), charts.next()) {
        (Some(layer), None) => Ok(layer),
        (None, _) => Err(wrong("no chart layer".to_owned())),
        (Some(_), Some(_)) => Err(wrong("more than one chart layer".to_owned())),
    }
}

#[cfg(test)]
mod tests;
