//! Who one is at a registry, and the headers that say so: obtained when they are wanted, again before they end, and again, once for a
//! request, when the registry takes them no more.

use std::collections::BTreeMap;
use std::time::Duration;

use agent_api::secret::Secret;
use jiff::Timestamp;
use reqwest::header::{HeaderMap, HeaderValue};
use reqwest::{StatusCode, Url};
use serde::Deserialize;
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::aws::{Ecr, EcrToken};
use super::challenge::{self, Challenge};
use super::transfer::{Arriving, Transfer, has_user};
use super::{PullError, accepted, sensitive};
use crate::registry_access::Credentials;

/// Largest answer of a token service: 1 MiB.
const MAX_TOKEN: u64 = 1 << 20;
/// A token is renewed this long before its end, or a tenth of its life, whichever is shorter.
const MARGIN: Duration = Duration::from_secs(300);
/// Life of a token whose service states none.
const DEFAULT_LIFE: u64 = 60;

/// How one logs in.
pub(super) enum Login {
    /// Not at all; some registries give tokens to everybody.
    Anonymous,
    /// With a user and a password, where the registry asks for them.
    Password(Credentials),
    /// With a token of ECR.
    Ecr(Box<Ecr>),
}

/// A login and what it has brought so far.
pub(super) struct Logins {
    pub(super) login: Login,
    host: String,
    /// By repository; for the whole registry under the empty name.
    grants: Mutex<BTreeMap<String, Grant>>,
}

#[derive(Clone)]
struct Grant {
    header: HeaderValue,
    /// When it is renewed; `None` for a password.
    fresh_until: Option<Instant>,
}

#[derive(Deserialize)]
struct TokenAnswer {
    #[serde(default)]
    token: Option<Secret>,
    #[serde(default)]
    access_token: Option<Secret>,
    #[serde(default)]
    expires_in: Option<u64>,
}

impl Grant {
    fn living(header: HeaderValue, life: Duration) -> Self {
        Self { header, fresh_until: Some(Instant::now() + life - MARGIN.min(life / 10)) }
    }

    fn is_fresh(&self) -> bool {
        self.fresh_until.is_none_or(|end| Instant::now() < end)
    }
}

impl Logins {
    pub(super) fn new(login: Login, host: String) -> Self {
        Self { login, host, grants: Mutex::default() }
    }

    /// The header to begin with: what is there, or what is got without being asked for.
    pub(super) async fn ready(&self, repository: &str) -> Result<Option<HeaderValue>, PullError> {
        let mut grants = self.grants.lock().await;
        if let Some(grant) = grants.get(repository).or_else(|| grants.get("")).filter(|grant| grant.is_fresh()) {
            return Ok(Some(grant.header.clone()));
        }
        let Login::Ecr(ecr) = &self.login else { return Ok(None) };
        let grant = ecr_grant(ecr.log_in().await?);
        grants.insert(String::new(), grant.clone());
        Ok(Some(grant.header))
    }

    /// The header after the registry refused `rejected`. Where another request has renewed it meanwhile, that one's.
    pub(super) async fn renew(
        &self,
        transfer: &Transfer,
        headers: &HeaderMap,
        rejected: Option<&HeaderValue>,
        repository: &str,
        reference: &str,
    ) -> Result<HeaderValue, PullError> {
        let mut grants = self.grants.lock().await;
        let known = grants.get(repository).or_else(|| grants.get(""));
        if let Some(grant) = known.filter(|grant| Some(&grant.header) != rejected && grant.is_fresh()) {
            return Ok(grant.header.clone());
        }
        let (key, grant) = match &self.login {
            Login::Ecr(ecr) => (Some(""), ecr_grant(ecr.log_in().await?)),
            Login::Anonymous | Login::Password(_) => {
                let challenges = challenge::all(headers);
                if let Some(bearer) = challenges.iter().find(|challenge| challenge.scheme == "bearer") {
                    // A token without a scope is good for `/v2/` alone.
                    (Some(repository).filter(|name| !name.is_empty()), self.token(transfer, bearer, repository, reference).await?)
                } else if challenges.iter().any(|challenge| challenge.scheme == "basic") {
                    let header = self.basic().ok_or_else(|| self.no_credentials(reference))?;
                    // The same password once more would only bring a locked account nearer.
                    if Some(&header) == rejected {
                        return Err(PullError::Unauthorized { reference: reference.to_owned(), said: String::new() });
                    }
                    (Some(""), Grant { header, fresh_until: None })
                } else {
                    return Err(PullError::Challenge { reference: reference.to_owned() });
                }
            }
        };
        if let Some(key) = key {
            grants.insert(key.to_owned(), grant.clone());
        }
        Ok(grant.header)
    }

    /// Whether a new login can be had without the registry saying where.
    pub(super) fn needs_no_challenge(&self) -> bool {
        matches!(self.login, Login::Ecr(_))
    }

    /// Drops what is known for a repository.
    pub(super) async fn forget(&self, repository: &str) {
        self.grants.lock().await.remove(repository);
    }

    /// Keeps a token of ECR for the whole registry.
    pub(super) async fn keep(&self, token: EcrToken) {
        self.grants.lock().await.insert(String::new(), ecr_grant(token));
    }

    fn basic(&self) -> Option<HeaderValue> {
        match &self.login {
            Login::Password(credentials) => credentials.basic(),
            Login::Anonymous | Login::Ecr(_) => None,
        }
    }

    /// For whoever is asked for a user and has none.
    pub(super) fn no_credentials(&self, reference: &str) -> PullError {
        PullError::NoCredentials { host: self.host.clone(), reference: reference.to_owned() }
    }

    /// A token from the service that the registry names.
    async fn token(&self, transfer: &Transfer, challenge: &Challenge, repository: &str, reference: &str) -> Result<Grant, PullError> {
        let odd = || PullError::Challenge { reference: reference.to_owned() };
        let mut realm = challenge.parameter("realm").and_then(|realm| Url::parse(realm).ok()).ok_or_else(odd)?;
        if realm.scheme() != "https" || has_user(&realm) {
            return Err(odd());
        }
        {
            let default_scope = if repository.is_empty() { None } else { Some(format!("repository:{repository}:pull")) };
            let mut query = realm.query_pairs_mut();
            if let Some(service) = challenge.parameter("service") {
                query.append_pair("service", service);
            }
            if let Some(scope) = challenge.parameter("scope").or(default_scope.as_deref()) {
                query.append_pair("scope", scope);
            }
        }
        let basic = self.basic();
        let anonymous = basic.is_none();
        let answer = transfer.ask_token(realm, basic, reference).await?;
        if answer.status() == StatusCode::UNAUTHORIZED && anonymous {
            return Err(self.no_credentials(reference));
        }
        let mut arriving = Arriving::new(MAX_TOKEN, None, reference);
        arriving.take(accepted(answer, reference).await?).await?;
        let answer: TokenAnswer = serde_json::from_slice(&arriving.unverified()).map_err(|_| odd())?;
        let token = answer.token.or(answer.access_token).filter(|token| !token.expose().is_empty()).ok_or_else(odd)?;
        let header = sensitive(&Secret::new(format!("Bearer {}", token.expose()))).ok_or_else(odd)?;
        // A life beyond a day is a day.
        let life = Duration::from_secs(answer.expires_in.unwrap_or(DEFAULT_LIFE).min(86_400));
        Ok(Grant::living(header, life))
    }
}

fn ecr_grant(token: EcrToken) -> Grant {
    let life = Duration::try_from(token.ends.duration_since(Timestamp::now())).unwrap_or_default();
    Grant::living(token.header, life)
}

impl Credentials {
    /// The header of Basic authentication; `None` where no header can hold it.
    pub(super) fn basic(&self) -> Option<HeaderValue> {
        use base64::Engine as _;
        let pair = Secret::new(format!("{}:{}", self.user, self.password.expose()));
        sensitive(&Secret::new(format!("Basic {}", base64::engine::general_purpose::STANDARD.encode(pair.expose()))))
    }
}
