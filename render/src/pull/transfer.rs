//! Requests over TLS: redirects followed without credentials, passing faults asked again, cut transfers taken up where they broke off.
//!
//! Deliberately absent: what an answer means, and logins.

use std::time::Duration;

use agent_api::digest::OciDigest;
use jiff::Timestamp;
use reqwest::header::{ACCEPT, AUTHORIZATION, HeaderValue, LOCATION, RANGE};
use reqwest::{Client, Method, Response, Url};

use super::retry;
use super::{PullError, RegistryAccess};

/// Redirects that are followed for one request.
const MAX_REDIRECTS: usize = 5;
/// How long a connection may take to stand.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// How long an answer may be silent.
const READ_TIMEOUT: Duration = Duration::from_secs(30);
/// How long one request may take in all.
const TOTAL_TIMEOUT: Duration = Duration::from_secs(300);

/// The client for a registry, what it redirects to, and its token service.
pub(super) struct Transfer {
    client: Client,
}

/// One request.
#[derive(Clone)]
pub(super) struct Ask<'a> {
    pub(super) method: Method,
    pub(super) url: Url,
    pub(super) accept: &'static str,
    /// `host/repository@digest`, for errors.
    pub(super) reference: &'a str,
    /// Bytes that are here already.
    pub(super) from: u64,
}

impl Transfer {
    /// Trusts the authorities of this access beside the system's.
    pub(super) fn new(access: &RegistryAccess) -> Result<Self, PullError> {
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
        Ok(Self { client })
    }

    /// The answer, whatever its status; asked again while it is a passing one.
    pub(super) async fn send(&self, ask: &Ask<'_>, authorization: Option<&HeaderValue>) -> Result<Response, PullError> {
        let mut pauses = retry::PAUSES.into_iter();
        loop {
            let (result, next) = (self.follow(ask, authorization).await, pauses.next());
            let pause = match (&result, next) {
                (Ok(answer), Some(own)) if retry::passing(answer.status()) => retry::pause(own, answer.headers(), Timestamp::now()),
                (Err(PullError::Transport { source, .. }), Some(own)) if retry::passing_error(source) => own,
                (Ok(_) | Err(_), _) => return result,
            };
            tokio::time::sleep(pause).await;
        }
    }

    /// Follows redirects over TLS; only the origin of the request sees its credentials.
    async fn follow(&self, ask: &Ask<'_>, authorization: Option<&HeaderValue>) -> Result<Response, PullError> {
        let refused = |problem| PullError::Redirect { reference: ask.reference.to_owned(), problem };
        let mut url = ask.url.clone();
        for _ in 0..=MAX_REDIRECTS {
            let mut request = self.client.request(ask.method.clone(), url.clone()).header(ACCEPT, ask.accept);
            if let Some(authorization) = authorization.filter(|_| url.origin() == ask.url.origin()) {
                request = request.header(AUTHORIZATION, authorization.clone());
            }
            if ask.from > 0 {
                request = request.header(RANGE, format!("bytes={}-", ask.from));
            }
            let answer = request.send().await.map_err(|error| PullError::transport(ask.reference, error))?;
            if !matches!(answer.status().as_u16(), 301 | 302 | 303 | 307 | 308) {
                return Ok(answer);
            }
            let target = answer.headers().get(LOCATION).and_then(|value| value.to_str().ok()).and_then(|value| url.join(value).ok());
            let target = target.ok_or_else(|| refused("without a readable address"))?;
            if target.scheme() != "https" {
                return Err(refused("to an address without TLS"));
            }
            if has_user(&target) {
                return Err(refused("to an address with a user in it"));
            }
            url = target;
        }
        Err(refused("once too often"))
    }

    /// A token service's answer. It is asked over TLS, and its redirects are not followed.
    pub(super) async fn ask_token(&self, realm: Url, basic: Option<HeaderValue>, reference: &str) -> Result<Response, PullError> {
        let mut pauses = retry::PAUSES.into_iter();
        loop {
            let mut request = self.client.get(realm.clone());
            if let Some(header) = &basic {
                request = request.header(AUTHORIZATION, header.clone());
            }
            let (result, next) = (request.send().await, pauses.next());
            let pause = match (&result, next) {
                (Ok(answer), Some(own)) if retry::passing(answer.status()) => retry::pause(own, answer.headers(), Timestamp::now()),
                (Err(error), Some(own)) if retry::passing_error(error) => own,
                (Ok(_) | Err(_), _) => return result.map_err(|error| PullError::transport(reference, error)),
            };
            tokio::time::sleep(pause).await;
        }
    }
}

/// Whether an address brings credentials of its own, which the HTTP client would send.
pub(super) fn has_user(url: &Url) -> bool {
    !url.username().is_empty() || url.password().is_some()
}

/// What has come of a blob or manifest.
pub(super) struct Arriving<'a> {
    bytes: Vec<u8>,
    limit: u64,
    /// Where it is known.
    size: Option<u64>,
    reference: &'a str,
}

impl<'a> Arriving<'a> {
    /// Nothing yet; at most `limit` bytes.
    pub(super) fn new(limit: u64, size: Option<u64>, reference: &'a str) -> Self {
        Self { bytes: Vec::new(), limit, size, reference }
    }

    /// How much is here.
    pub(super) fn length(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// Takes what an answer brings. `Err` with [`PullError::Transport`] or [`PullError::Short`] means that the rest can be asked for.
    pub(super) async fn take(&mut self, mut answer: Response) -> Result<(), PullError> {
        // A store that knows no ranges begins anew.
        if !continues(&answer, self.length()) {
            self.bytes.clear();
        }
        while let Some(chunk) = answer.chunk().await.map_err(|error| PullError::transport(self.reference, error))? {
            self.bytes.extend_from_slice(&chunk);
            if self.length() > self.limit {
                return Err(PullError::TooLarge { reference: self.reference.to_owned(), limit: self.limit });
            }
        }
        match self.size {
            Some(size) if self.length() < size => Err(PullError::Short { reference: self.reference.to_owned(), at: self.length(), size }),
            Some(_) | None => Ok(()),
        }
    }

    /// The bytes, if they are those of the digest.
    pub(super) fn verified(self, digest: &OciDigest) -> Result<Vec<u8>, PullError> {
        let found = OciDigest::of(&self.bytes);
        if found == *digest {
            return Ok(self.bytes);
        }
        Err(PullError::Digest { reference: self.reference.to_owned(), expected: digest.clone(), found })
    }

    /// The bytes, whatever they are.
    pub(super) fn unverified(self) -> Vec<u8> {
        self.bytes
    }
}

/// Whether an answer begins at this byte.
fn continues(answer: &Response, at: u64) -> bool {
    let range = answer.headers().get("content-range").and_then(|value| value.to_str().ok()).unwrap_or_default();
    let start = range.trim().strip_prefix("bytes ").and_then(|range| range.split('-').next()).and_then(|start| start.trim().parse().ok());
    at > 0 && answer.status().as_u16() == 206 && start == Some(at)
}
