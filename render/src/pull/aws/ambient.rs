//! The AWS credentials of this process, from the places where AWS's own programs look, in their order.

use std::time::Duration;

use aws_config::ecs::EcsCredentialsProvider;
use aws_config::environment::EnvironmentVariableCredentialsProvider;
use aws_config::imds::credentials::ImdsCredentialsProvider;
use aws_config::profile::ProfileFileCredentialsProvider;
use aws_config::provider_config::ProviderConfig;
use aws_config::web_identity_token::WebIdentityTokenCredentialsProvider;
use aws_credential_types::provider::error::CredentialsError;
use aws_sdk_sts::config::{BehaviorVersion, Credentials, ProvideCredentials, Region};

use super::error::AwsError;
use super::http::Http;
use super::{chain, imds_limits, limits, retries};

/// How long one source may take.
const LIMIT: Duration = Duration::from_secs(6);

/// The credentials of the first source that has some, and its name. A source that is set up and fails ends the search.
pub(super) async fn credentials(http: &Http, region: &str) -> Result<(Credentials, &'static str), AwsError> {
    let config = ProviderConfig::default()
        .with_region(Some(Region::new(region.to_owned())))
        .with_behavior_version(Some(BehaviorVersion::latest()))
        .with_http_client(http.clone())
        .with_retry_config(retries())
        .with_timeout_config(limits());
    let sources: [(&'static str, Box<dyn ProvideCredentials>); 5] = [
        ("environment", Box::new(EnvironmentVariableCredentialsProvider::new())),
        ("profile", Box::new(ProfileFileCredentialsProvider::builder().configure(&config).build())),
        ("web identity", Box::new(WebIdentityTokenCredentialsProvider::builder().configure(&config).build())),
        ("container", Box::new(EcsCredentialsProvider::builder().configure(&config).build())),
        ("instance profile", Box::new(ImdsCredentialsProvider::builder().imds_client(imds_limits(&config)).build())),
    ];
    let mut tried = Vec::new();
    for (name, source) in sources {
        match tokio::time::timeout(LIMIT, source.provide_credentials()).await {
            Ok(Ok(credentials)) => return Ok((credentials, name)),
            Ok(Err(error)) => {
                let ends = !matches!(error, CredentialsError::CredentialsNotLoaded(_));
                tried.push((name, chain(&error)));
                if ends {
                    break;
                }
            }
            Err(_) => {
                tried.push((name, format!("no answer within {}s", LIMIT.as_secs())));
                break;
            }
        }
    }
    Err(AwsError::Ambient(tried))
}
