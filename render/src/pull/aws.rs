//! The login at ECR: credentials, the pull role in mode `direct`, and the token that the registry takes as a password.
//!
//! Mode `direct` knows one source, the EC2 instance profile; mode `mirror` takes what the process has. Deliberately absent: the
//! loader that the AWS libraries come with, which reads endpoints, regions and roles from wherever it finds some.

mod ambient;
mod error;
mod http;
mod instance;
mod place;

use std::time::Duration;

use agent_api::chain::chain;
use agent_api::manifest::{Manifest, RegistryMode};
use agent_api::secret::Secret;
use aws_config::imds;
use aws_config::provider_config::ProviderConfig;
use aws_sdk_sts::config::retry::RetryConfig;
use aws_sdk_sts::config::timeout::TimeoutConfig;
use aws_sdk_sts::config::{BehaviorVersion, Credentials, Region};
use aws_sdk_sts::error::ProvideErrorMetadata;
use aws_smithy_runtime_api::client::orchestrator::HttpResponse;
use aws_smithy_runtime_api::client::result::SdkError;
use jiff::Timestamp;
use reqwest::header::HeaderValue;

use super::{PullError, sensitive};
pub use error::AwsError;
use http::Http;
use place::EcrPlace;

/// How long the whole login may take.
const LOGIN_LIMIT: Duration = Duration::from_secs(15);
/// How long one try at a service may take, and all of them.
const ATTEMPT_LIMIT: Duration = Duration::from_secs(3);
const OPERATION_LIMIT: Duration = Duration::from_secs(7);
/// Tries at a service.
const ATTEMPTS: u32 = 2;
/// Longest name of a role's session.
const MAX_SESSION_NAME: usize = 64;

/// An ECR registry and how one logs in there.
#[derive(Debug)]
pub(super) struct Ecr {
    place: EcrPlace,
    source: Source,
    /// Name of the role's session, by which the vendor's audit log knows the environment.
    session: String,
    http: Http,
}

#[derive(Debug)]
enum Source {
    Instance { role: String },
    Ambient,
}

/// Credentials, and where they are from.
struct Obtained {
    credentials: Credentials,
    /// E.g. `environment`, or `role ARN by instance profile NAME`.
    source: String,
}

/// What the registry takes, and until when.
pub(super) struct EcrToken {
    pub(super) header: HeaderValue,
    pub(super) ends: Timestamp,
}

impl Ecr {
    /// The login for a manifest of mode `direct` or `mirror`; `None` for the others.
    pub(super) fn of(manifest: &Manifest, host: &str, ca: &[reqwest::Certificate]) -> Result<Option<Self>, PullError> {
        let registry = &manifest.registry;
        let source = match registry.mode {
            RegistryMode::Basic | RegistryMode::Anonymous => return Ok(None),
            RegistryMode::Direct => Source::Instance { role: registry.pull_role_arn.clone().ok_or(AwsError::NoRole)? },
            RegistryMode::Mirror => Source::Ambient,
        };
        let place = EcrPlace::of(host, registry.region.as_deref())?;
        let session = format!("clicklink-{}", manifest.environment.as_str()).chars().take(MAX_SESSION_NAME).collect();
        Ok(Some(Self { place, source, session, http: Http::new(ca)? }))
    }

    /// Credentials and, with them, a token.
    pub(super) async fn log_in(&self) -> Result<EcrToken, AwsError> {
        let steps = async { self.token(&self.credentials().await?).await };
        tokio::time::timeout(LOGIN_LIMIT, steps).await.unwrap_or(Err(AwsError::Slow(LOGIN_LIMIT)))
    }

    /// As [`Self::log_in`], with the name of whose credentials these are, and where they are from.
    pub(super) async fn introduce(&self) -> Result<(EcrToken, String, String), AwsError> {
        let steps = async {
            let obtained = self.credentials().await?;
            // A network may let pass what a login needs and not this.
            let name = self.identity(&obtained).await.unwrap_or_else(|error| format!("unknown: {error}"));
            Ok((self.token(&obtained).await?, name, obtained.source))
        };
        tokio::time::timeout(LOGIN_LIMIT, steps).await.unwrap_or(Err(AwsError::Slow(LOGIN_LIMIT)))
    }

    /// The credentials that ECR is asked with.
    async fn credentials(&self) -> Result<Obtained, AwsError> {
        match &self.source {
            Source::Instance { role } => {
                let (profile, name) = instance::credentials(&self.http.local).await?;
                let credentials = self.assume(role, profile).await?;
                Ok(Obtained { credentials, source: format!("role {role}, by instance profile {name}") })
            }
            Source::Ambient => {
                let (credentials, name) = ambient::credentials(&self.http, &self.place.region).await?;
                Ok(Obtained { credentials, source: name.to_owned() })
            }
        }
    }

    async fn assume(&self, role: &str, profile: Credentials) -> Result<Credentials, AwsError> {
        let wrong = |problem| AwsError::AssumeRole { role: role.to_owned(), region: self.place.region.clone(), problem };
        let answer = self.sts(profile).assume_role().role_arn(role).role_session_name(&self.session).send().await;
        let answer = answer.map_err(|error| self.failed("STS", error, wrong))?;
        let given = answer.credentials.ok_or_else(|| wrong("the answer holds no credentials".into()))?;
        let mut credentials = Credentials::builder()
            .access_key_id(given.access_key_id)
            .secret_access_key(given.secret_access_key)
            .session_token(given.session_token)
            .provider_name("pull role");
        credentials.set_expiry(std::time::SystemTime::try_from(given.expiration).ok());
        Ok(credentials.build())
    }

    /// The ARN of whom these credentials belong to.
    async fn identity(&self, obtained: &Obtained) -> Result<String, AwsError> {
        let wrong = |problem| AwsError::Identity { region: self.place.region.clone(), problem };
        let answer = self.sts(obtained.credentials.clone()).get_caller_identity().send().await;
        let answer = answer.map_err(|error| self.failed("STS", error, wrong))?;
        answer.arn.ok_or_else(|| wrong("the answer holds no ARN".into()))
    }

    /// A token of the registry.
    async fn token(&self, obtained: &Obtained) -> Result<EcrToken, AwsError> {
        let wrong = |problem: String| AwsError::Token { region: self.place.region.clone(), source_name: obtained.source.clone(), problem };
        let mut config = aws_sdk_ecr::Config::builder()
            .behavior_version(BehaviorVersion::latest())
            .region(Region::new(self.place.region.clone()))
            .use_dual_stack(self.place.dual_stack)
            .credentials_provider(obtained.credentials.clone())
            .http_client(self.http.clone())
            .retry_config(retries())
            .timeout_config(limits());
        config = match self.place.fips_api() {
            Some(api) => config.endpoint_url(api),
            None => config.use_fips(self.place.fips),
        };
        let answer = aws_sdk_ecr::Client::from_conf(config.build()).get_authorization_token().send().await;
        let answer = answer.map_err(|error| self.failed("ECR", error, wrong))?;
        let given = answer.authorization_data.unwrap_or_default().into_iter().next();
        let odd = || wrong("the answer holds no token".into());
        let given = given.ok_or_else(odd)?;
        // The token is `AWS:<password>` in base64: what Basic wants, as it is.
        let basic = Secret::new(format!("Basic {}", given.authorization_token.ok_or_else(odd)?));
        let header = sensitive(&basic).ok_or_else(odd)?;
        let stated = given.expires_at.and_then(|time| Timestamp::from_second(time.secs()).ok()).ok_or_else(odd)?;
        // A token does not outlive the session that it was made in.
        let session = obtained.credentials.expiry().and_then(|time| Timestamp::try_from(time).ok());
        Ok(EcrToken { header, ends: session.map_or(stated, |session| session.min(stated)) })
    }

    /// A service that said no, or one that did not answer at all.
    fn failed<E: ProvideErrorMetadata + std::error::Error + 'static>(
        &self,
        service: &'static str,
        error: SdkError<E, HttpResponse>,
        refused: impl Fn(String) -> AwsError,
    ) -> AwsError {
        match error {
            SdkError::DispatchFailure(_) | SdkError::TimeoutError(_) => {
                AwsError::Unreachable { service, region: self.place.region.clone(), problem: chain(&error) }
            }
            answered => refused(told(answered)),
        }
    }

    fn sts(&self, credentials: Credentials) -> aws_sdk_sts::Client {
        let config = aws_sdk_sts::Config::builder()
            .behavior_version(BehaviorVersion::latest())
            .region(Region::new(self.place.region.clone()))
            .use_fips(self.place.fips)
            .use_dual_stack(self.place.dual_stack)
            .credentials_provider(credentials)
            .http_client(self.http.clone())
            .retry_config(retries())
            .timeout_config(limits());
        aws_sdk_sts::Client::from_conf(config.build())
    }
}

fn retries() -> RetryConfig {
    RetryConfig::standard().with_max_attempts(ATTEMPTS).with_initial_backoff(Duration::from_millis(200))
}

fn limits() -> TimeoutConfig {
    TimeoutConfig::builder().operation_attempt_timeout(ATTEMPT_LIMIT).operation_timeout(OPERATION_LIMIT).build()
}

/// The AWS libraries' own client of the metadata service, as short-lived as ours.
fn imds_limits(config: &ProviderConfig) -> imds::Client {
    let second = Duration::from_secs(1);
    imds::Client::builder().configure(config).connect_timeout(second).read_timeout(second).max_attempts(ATTEMPTS).build()
}

/// A service's own code and message, else the status of an answer that has none, else what kept it from answering.
fn told<E: ProvideErrorMetadata + std::error::Error + 'static>(error: SdkError<E, HttpResponse>) -> String {
    match error.as_service_error().map(|service| (service.code(), service.message())) {
        Some((Some(code), Some(message))) => format!("{code}: {message}"),
        Some((Some(code), None)) => code.to_owned(),
        Some((None, _)) => {
            let status = error.raw_response().map(|answer| answer.status().as_u16()).unwrap_or_default();
            format!("the answer has status {status} and is not in the form of AWS's errors")
        }
        None => chain(&error),
    }
}
