//! An OCI registry, as far as charts and images need it: one manifest and one layer by digest, and whether a manifest is there.
//!
//! Written on the HTTP client itself, so that three things hold for certain: credentials are sent to the registry they belong to and
//! to the token service it names, never along a redirect; nothing is fetched but over TLS; every size is bounded and every digest
//! computed here. Deliberately absent: tags and pushing. How one logs in is in `pull/login.rs`, ECR in `pull/aws.rs`.

use agent_api::digest::OciDigest;
use agent_api::manifest::{Chart, Manifest as Bundle, RegistryMode};
use agent_api::secret::Secret;
use reqwest::header::{CONTENT_TYPE, HeaderValue};
use reqwest::{Method, Response, StatusCode, Url};
use serde::Deserialize;

use crate::archive;
use crate::registry_access::RegistryAccess;

mod answer;
mod aws;
mod challenge;
mod error;
mod login;
mod retry;
mod transfer;
mod who;

use answer::{Refusal, accepted};
pub use aws::AwsError;
use aws::Ecr;
pub use error::PullError;
use login::{Login, Logins};
use transfer::{Arriving, Ask, Transfer};
pub use who::Who;

/// Largest manifest that is read: 4 MiB, what registries accept.
const MAX_MANIFEST: u64 = 4 << 20;
/// How often the rest of a cut transfer is asked for.
const MAX_RESUMES: usize = 4;

/// The host that serves what is named after Docker Hub.
const DOCKER_HUB_SERVER: &str = "registry-1.docker.io";
/// The names of Docker Hub.
const DOCKER_HUB: [&str; 2] = ["docker.io", "index.docker.io"];

const IMAGE_MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const HELM_CONFIG: &str = "application/vnd.cncf.helm.config.v1+json";
/// Media types of a chart's layer: Helm's, and the one it wrote before 3.7.
const HELM_CHART: [&str; 2] = ["application/vnd.cncf.helm.chart.content.v1.tar+gzip", "application/tar+gzip"];
/// What a digest may name. Charts are asked for with all of them: so an index or an image is told from what is not there.
const ANY_MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json, application/vnd.oci.image.index.v1+json, \
     application/vnd.docker.distribution.manifest.v2+json, application/vnd.docker.distribution.manifest.list.v2+json";

/// One registry, with one login.
pub(crate) struct Registry {
    transfer: Transfer,
    host: String,
    path: String,
    logins: Logins,
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

impl Registry {
    /// The registry of a bundle.
    pub(crate) fn new(bundle: &Bundle, access: &RegistryAccess) -> Result<Self, PullError> {
        let (host, path) = split_base(&bundle.registry.chart_base);
        let login = match (bundle.registry.mode, Ecr::of(bundle, &host, access.ca())?) {
            (_, Some(ecr)) => Login::Ecr(Box::new(ecr)),
            (RegistryMode::Basic, None) => access.credentials(server_of(&host)).cloned().map_or(Login::Anonymous, Login::Password),
            (RegistryMode::Anonymous | RegistryMode::Direct | RegistryMode::Mirror, None) => Login::Anonymous,
        };
        Ok(Self { transfer: Transfer::new(access)?, logins: Logins::new(login, host.clone()), host, path })
    }

    /// The registry of a host, with what access has for it.
    pub(crate) fn of_host(host: &str, access: &RegistryAccess) -> Result<Self, PullError> {
        let login = access.credentials(server_of(host)).cloned().map_or(Login::Anonymous, Login::Password);
        let (host, path) = (host.to_owned(), String::new());
        Ok(Self { transfer: Transfer::new(access)?, logins: Logins::new(login, host.clone()), host, path })
    }

    /// Host and port.
    pub(crate) fn host(&self) -> &str {
        &self.host
    }

    /// The repository of a chart.
    pub(crate) fn repository(&self, chart: &Chart) -> String {
        if self.path.is_empty() { chart.name.clone() } else { format!("{}/{}", self.path, chart.name) }
    }

    /// The chart's archive, verified: the manifest against the pinned digest, the layer against the manifest.
    pub(crate) async fn chart(&self, chart: &Chart) -> Result<Vec<u8>, PullError> {
        let repository = self.repository(chart);
        let reference = format!("{}/{repository}@{}", self.host, chart.digest);
        let url = self.url(&repository, "manifests", &chart.digest)?;
        let ask = Ask { method: Method::GET, url, accept: ANY_MANIFEST, reference: &reference, from: 0 };
        let (sent_type, arrived) = self.download(ask, &repository, MAX_MANIFEST, None).await?;
        let layer = layer_of(&arrived.verified(&chart.digest)?, sent_type, &reference)?;
        if layer.size > archive::MAX_COMPRESSED {
            return Err(PullError::TooLarge { reference, limit: archive::MAX_COMPRESSED });
        }
        let url = self.url(&repository, "blobs", &layer.digest)?;
        let ask = Ask { method: Method::GET, url, accept: "*/*", reference: &reference, from: 0 };
        self.download(ask, &repository, layer.size, Some(layer.size)).await?.1.verified(&layer.digest)
    }

    /// Whether a manifest is there.
    pub(crate) async fn exists(&self, repository: &str, digest: &OciDigest) -> Result<bool, PullError> {
        let reference = format!("{}/{repository}@{digest}", self.host);
        let url = self.url(repository, "manifests", digest)?;
        let ask = Ask { method: Method::HEAD, url, accept: ANY_MANIFEST, reference: &reference, from: 0 };
        let answer = match self.get(&ask, repository).await {
            Ok(answer) => answer,
            Err(PullError::NotFound { .. }) => return Ok(false),
            Err(error) => return Err(error),
        };
        let said = answer.headers().get("docker-content-digest").and_then(|value| value.to_str().ok()).and_then(|text| text.parse().ok());
        match said {
            Some(found) if found != *digest => Err(PullError::Digest { reference, expected: digest.clone(), found }),
            Some(_) | None => Ok(true),
        }
    }

    /// Whether the registry lets this login in at all: its `/v2/`.
    pub(crate) async fn enter(&self) -> Result<(), PullError> {
        let text = format!("https://{}/v2/", server_of(&self.host));
        let url = Url::parse(&text).map_err(|_| PullError::Address(text))?;
        let ask = Ask { method: Method::GET, url, accept: "*/*", reference: &self.host, from: 0 };
        self.get(&ask, "").await.map(|_| ())
    }

    /// Media type and bytes, the rest asked for again where a transfer breaks off.
    async fn download<'a>(
        &self,
        mut ask: Ask<'a>,
        repository: &str,
        limit: u64,
        size: Option<u64>,
    ) -> Result<(Option<String>, Arriving<'a>), PullError> {
        let mut arriving = Arriving::new(limit, size, ask.reference);
        let (mut resumes, mut sent_type) = (0, None);
        loop {
            let answer = match self.get(&ask, repository).await {
                // There is no rest: what is there is shorter than was announced, and its digest tells.
                Err(PullError::Status { status: 416, .. }) if ask.from > 0 => return Ok((sent_type, arriving)),
                other => other?,
            };
            sent_type = answer.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).map(str::to_owned);
            match arriving.take(answer).await {
                Ok(()) => return Ok((sent_type, arriving)),
                Err(PullError::Transport { .. } | PullError::Short { .. }) if resumes < MAX_RESUMES => resumes += 1,
                Err(error) => return Err(error),
            }
            ask.from = arriving.length();
        }
    }

    fn url(&self, repository: &str, kind: &str, digest: &OciDigest) -> Result<Url, PullError> {
        let text = format!("https://{}/v2/{repository}/{kind}/{digest}", server_of(&self.host));
        Url::parse(&text).map_err(|_| PullError::Address(text))
    }

    /// One request, with the login that the registry asks for. A login that is refused is renewed once; a denial is a denial.
    async fn get(&self, ask: &Ask<'_>, repository: &str) -> Result<Response, PullError> {
        let mut authorization = self.logins.ready(repository).await?;
        let (mut renewed, mut forgotten) = (false, false);
        loop {
            let answer = self.transfer.send(ask, authorization.as_ref()).await?;
            let status = answer.status();
            if !matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
                return accepted(answer, ask.reference).await;
            }
            if answer.url().origin() != ask.url.origin() {
                // Its challenge could name anybody's token service.
                let problem = "to a place that wants a login of its own";
                return Err(PullError::Redirect { reference: ask.reference.to_owned(), problem });
            }
            let headers = answer.headers().clone();
            let refusal = self.refusal(answer, ask, authorization.as_ref()).await?;
            if status == StatusCode::UNAUTHORIZED && !renewed || refusal.is_expiry() && !renewed && self.logins.needs_no_challenge() {
                let renewal = self.logins.renew(&self.transfer, &headers, authorization.as_ref(), repository, ask.reference);
                authorization = Some(renewal.await?);
                renewed = true;
            } else if refusal.is_expiry() && !forgotten && !renewed {
                // Asked without a token the registry says where there is a new one.
                self.logins.forget(repository).await;
                authorization = None;
                forgotten = true;
            } else {
                return Err(match &self.logins.login {
                    Login::Anonymous => self.logins.no_credentials(ask.reference),
                    Login::Password(_) | Login::Ecr(_) => refusal.into_error(status, ask.reference),
                });
            }
        }
    }

    /// Why the registry says no: only the body of an answer tells.
    async fn refusal(&self, answer: Response, ask: &Ask<'_>, authorization: Option<&HeaderValue>) -> Result<Refusal, PullError> {
        if ask.method != Method::HEAD || answer.status() != StatusCode::FORBIDDEN {
            return Ok(Refusal::read(answer).await);
        }
        let ask = Ask { method: Method::GET, ..ask.clone() };
        Ok(Refusal::read(self.transfer.send(&ask, authorization).await?).await)
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

/// The one layer that is the chart.
fn layer_of(manifest: &[u8], sent_type: Option<String>, reference: &str) -> Result<Descriptor, PullError> {
    let wrong = |found: String| PullError::MediaType { reference: reference.to_owned(), found };
    let manifest: Manifest = serde_json::from_slice(manifest).map_err(|_| wrong("not an OCI manifest".to_owned()))?;
    let media_type = manifest.media_type.or(sent_type).unwrap_or_else(|| IMAGE_MANIFEST.to_owned());
    if media_type != IMAGE_MANIFEST {
        return Err(wrong(described(&media_type)));
    }
    match manifest.config {
        Some(config) if config.media_type == HELM_CONFIG => {}
        Some(config) => return Err(wrong(described(&config.media_type))),
        None => return Err(wrong("no config".to_owned())),
    }
    let mut charts = manifest.layers.into_iter().filter(|layer| HELM_CHART.contains(&layer.media_type.as_str()));
    match (charts.next(), charts.next()) {
        (Some(layer), None) => Ok(layer),
        (None, _) => Err(wrong("no chart layer".to_owned())),
        (Some(_), Some(_)) => Err(wrong("more than one chart layer".to_owned())),
    }
}

/// A media type, with what it is where that is known.
fn described(media_type: &str) -> String {
    let what = match media_type {
        "application/vnd.oci.image.index.v1+json" | "application/vnd.docker.distribution.manifest.list.v2+json" => "an index of images",
        "application/vnd.oci.image.config.v1+json" | "application/vnd.docker.container.image.v1+json" => "a container image",
        "application/vnd.docker.distribution.manifest.v2+json" => "a container image",
        _ => return format!("{:.200}", media_type.escape_debug()),
    };
    format!("{what} ({media_type})")
}

#[cfg(test)]
mod tests;
