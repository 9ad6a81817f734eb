//! Why AWS gave no login for a registry: which source or step, and in its own words. No message holds a credential.

use std::time::Duration;

/// Why there is no login for an ECR registry.
#[derive(Debug, thiserror::Error)]
pub enum AwsError {
    /// A mode of ECR, and a host that is none.
    #[error(
        "`{0}` is not the host of a private ECR registry (<account>.dkr.ecr.<region>.amazonaws.com and its like), and registry modes \
         `direct` and `mirror` send an AWS login to no other"
    )]
    NotEcr(String),
    /// The manifest contradicts itself.
    #[error("the bundle names region {stated}, but its registry {host} lies in {found}")]
    Region {
        /// Host of the registry.
        host: String,
        /// In its name.
        found: String,
        /// In the manifest.
        stated: String,
    },
    /// The manifest names no role.
    #[error("registry mode `direct` needs `registry.pullRoleArn`, and the bundle has none")]
    NoRole,
    /// The instance profile cannot be had.
    #[error(
        "registry mode `direct` takes its credentials from the EC2 instance profile and from nothing else, and the instance metadata \
         service (169.254.169.254, [fd00:ec2::254]) gives none: {step}: {problem}"
    )]
    Instance {
        /// What was asked for.
        step: &'static str,
        /// What happened.
        problem: String,
    },
    /// No ambient source has credentials.
    #[error("registry mode `mirror` takes this process's AWS credentials, and there are none:{}", list(.0))]
    Ambient(Vec<(&'static str, String)>),
    /// STS does not give the role.
    #[error("the pull role {role} cannot be assumed with the instance profile (STS in {region}): {problem}")]
    AssumeRole {
        /// ARN.
        role: String,
        /// Of the endpoint.
        region: String,
        /// In the words of STS.
        problem: String,
    },
    /// STS does not say who one is.
    #[error("AWS does not say whose credentials these are (STS in {region}): {problem}")]
    Identity {
        /// Of the endpoint.
        region: String,
        /// In the words of STS.
        problem: String,
    },
    /// ECR gives no token.
    #[error("ECR in {region} gives no login (GetAuthorizationToken, with {source_name}): {problem}")]
    Token {
        /// Of the endpoint.
        region: String,
        /// Where the credentials are from.
        source_name: String,
        /// In the words of ECR.
        problem: String,
    },
    /// A service does not answer: no connection, no trusted TLS, no answer in time.
    #[error("{service} in {region} cannot be reached: {problem}")]
    Unreachable {
        /// STS or ECR.
        service: &'static str,
        /// Of the endpoint.
        region: String,
        /// What happened.
        problem: String,
    },
    /// All steps together took too long.
    #[error("the login at ECR was not done within {}s", .0.as_secs())]
    Slow(Duration),
}

fn list(tried: &[(&'static str, String)]) -> String {
    tried.iter().map(|(source, problem)| format!("\n  - {source}: {problem}")).collect()
}
