//! How the services behave.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// Everything that the services know.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Scenario {
    /// E.g. `eu-west-1`.
    pub region: String,
    /// Host of STS in that region.
    pub sts: String,
    /// Host of ECR's API in that region.
    pub ecr: String,
    /// Host of the registry.
    pub registry: String,
    /// The metadata service.
    pub imds: Imds,
    /// What it gives.
    pub instance: Keys,
    /// The role that may be assumed.
    pub role: String,
    /// Whose credentials may assume it, and how its sessions have to be called.
    pub session: String,
    /// Whether STS refuses the role.
    pub deny_role: bool,
    /// Whether ECR refuses to give tokens.
    pub deny_token: bool,
    /// Credentials that may ask ECR by themselves, by the name of their identity.
    pub ambient: Vec<Keys>,
    /// How many tokens of ECR the registry calls expired, whatever was stated.
    pub revoked_tokens: usize,
    /// Life of the role's session, in seconds.
    pub session_life: i64,
    /// Life of a token of ECR, in seconds.
    pub token_life: i64,
    /// Paths of manifests that are there, with nothing in them.
    pub manifests: Vec<String>,
    /// Manifests and blobs by path, in base64. Blobs are sent by the store, to which the registry redirects.
    pub contents: BTreeMap<String, String>,
    /// A port of the machine's own loopback that is to be had in the cloud too.
    pub relayed_port: Option<u16>,
    /// Paths whose manifests may not be read.
    pub denied: Vec<String>,
    /// Another program that plays some of the services.
    pub elsewhere: Option<Elsewhere>,
}

/// A program outside of the cloud that is asked in the place of services in it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Elsewhere {
    /// Its port on the machine's own loopback.
    pub port: u16,
    /// Hosts of the services that it plays.
    pub hosts: Vec<String>,
    /// User and password, `AWS:…`, that its ECR gives and the registry here takes, at any time.
    pub login: String,
}

/// How the metadata service behaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Imds {
    /// As on an instance with an instance profile.
    Works,
    /// The same, with an IPv6 address alone.
    Ipv6,
    /// There is none, as on a workstation.
    Absent,
    /// It takes the connection and never answers, as where the hop limit is too low.
    Silent,
    /// Turned off: 403.
    Off,
    /// The instance has no profile.
    NoProfile,
    /// It gives what ended an hour ago.
    Stale,
}

/// A set of credentials.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Keys {
    /// Access key id.
    pub id: String,
    /// Secret access key.
    pub secret: String,
    /// Session token; empty for a user's.
    pub token: String,
}

impl Keys {
    /// Made-up credentials of a session.
    #[must_use]
    pub fn session(name: &str) -> Self {
        Self { id: format!("ASIA{}", name.to_uppercase()), secret: format!("secret-of-{name}"), token: format!("session-of-{name}") }
    }
}

impl Scenario {
    /// The store that the registry redirects to.
    pub const STORE: &'static str = "prod-starport-layer-bucket.s3.amazonaws.com";

    /// The account of the registry.
    pub const ACCOUNT: &'static str = "111122223333";

    /// An instance as it should be, in `eu-west-1`.
    #[must_use]
    pub fn new() -> Self {
        Self {
            region: "eu-west-1".into(),
            sts: "sts.eu-west-1.amazonaws.com".into(),
            ecr: "api.ecr.eu-west-1.amazonaws.com".into(),
            registry: "111122223333.dkr.ecr.eu-west-1.amazonaws.com".into(),
            imds: Imds::Works,
            instance: Keys::session("instance"),
            role: "arn:aws:iam::111122223333:role/env-test-ecr-puller".into(),
            session: "clicklink-env-test".into(),
            deny_role: false,
            deny_token: false,
            ambient: Vec::new(),
            revoked_tokens: 0,
            session_life: 3_600,
            token_life: 12 * 3_600,
            manifests: Vec::new(),
            contents: BTreeMap::new(),
            relayed_port: None,
            denied: Vec::new(),
            elsewhere: None,
        }
    }

    /// In another region, by the hosts of STS, ECR's API and the registry.
    #[must_use]
    pub fn at(mut self, region: &str, [sts, ecr, registry]: [&str; 3]) -> Self {
        self.region = region.into();
        (self.sts, self.ecr, self.registry) = (sts.into(), ecr.into(), registry.into());
        self
    }
}

impl Default for Scenario {
    fn default() -> Self {
        Self::new()
    }
}

/// What `aws-fake` is told on its command line.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Order {
    pub(super) scenario: Scenario,
    /// PEM of the server's certificate and key.
    pub(super) certificate: String,
    pub(super) key: String,
    /// Where each request is written down, a JSON object a line.
    pub(super) log: PathBuf,
    /// A file that is made when all ports are open.
    pub(super) ready: PathBuf,
    /// The way to the relayed port.
    pub(super) socket: PathBuf,
    /// The way to the other program.
    pub(super) elsewhere: PathBuf,
}

/// A request as it was written down.
pub(super) type Noted = BTreeMap<String, String>;
