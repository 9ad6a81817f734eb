//! The configuration file `/etc/clicklink/config.yaml`: keys, defaults, limits.

mod observability;
mod token_renew;

use std::path::{Path, PathBuf};
use std::time::Duration;

use agent_api::name::ExecutorId;
use serde::{Deserialize, Deserializer};

use observability::{DaemonObservability, Observability};

pub(crate) use token_renew::TokenRenew;

/// Where the configuration lies unless told otherwise.
pub(crate) const DEFAULT_PATH: &str = "/etc/clicklink/config.yaml";
/// Access bundles and the staged bundle, on a connector VM.
pub(crate) const ACCESS_DIR: &str = "/etc/clicklink/access/executor";
/// Where a pod finds its own ServiceAccount.
pub(crate) const SERVICE_ACCOUNT_DIR: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

/// The whole file. Unknown keys are refused by name.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Config {
    /// Identity of this deployment, sent with every request.
    pub(crate) pcm_infra_uuid: ExecutorId,
    /// Cloud, e.g. `aws`.
    pub(crate) cloud: String,
    /// Region of the cloud.
    pub(crate) region: String,
    /// A service lives in `<prefix><service>`; platform namespaces lie outside of it.
    #[serde(default = "default_prefix")]
    pub(crate) namespace_prefix: String,
    /// Whether heartbeats name cluster, region and account.
    #[serde(default = "yes")]
    pub(crate) report_infra_meta: bool,
    /// The manager.
    pub(crate) api: Api,
    /// The daemon.
    #[serde(default)]
    pub(crate) executor: Executor,
    /// Logs.
    #[serde(default)]
    pub(crate) observability: Observability,
    /// Charts.
    #[serde(default)]
    pub(crate) registry: Registry,
    /// Heartbeats.
    #[serde(default)]
    pub(crate) heartbeat: Heartbeat,
    /// Log format.
    #[serde(default)]
    pub(crate) log: Log,
    /// The executor's own token.
    #[serde(default)]
    pub(crate) token_renew: TokenRenew,
    /// Blocks of other programs and of later versions: accepted, and said to be ignored.
    #[serde(default)]
    pub(crate) scraper: Ignored,
    #[serde(default)]
    pub(crate) troubleshooter: Ignored,
    #[serde(default)]
    pub(crate) instances: Ignored,
    #[serde(default)]
    pub(crate) metrics_port: Ignored,
}

/// A block that is accepted and ignored.
#[derive(Debug, Default)]
pub(crate) struct Ignored(pub(crate) bool);

impl<'de> Deserialize<'de> for Ignored {
    fn deserialize<D: Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
        serde::de::IgnoredAny::deserialize(reader).map(|_| Self(true))
    }
}

/// `api`: the manager.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Api {
    /// `https://host[:port]`.
    pub(crate) endpoint: String,
    /// File with the name of the signing key.
    #[serde(default = "default_access_key")]
    pub(crate) access_key_file: PathBuf,
    /// File with the signing key, 0600.
    #[serde(default = "default_secret_key")]
    pub(crate) secret_key_file: PathBuf,
    /// Client certificate.
    #[serde(default)]
    pub(crate) tls: Tls,
}

/// `api.tls`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Tls {
    /// Client certificate and chain.
    pub(crate) cert_file: PathBuf,
    /// Its key, 0600.
    pub(crate) key_file: PathBuf,
    /// Added to the system's roots.
    pub(crate) ca_file: PathBuf,
}

impl Default for Tls {
    fn default() -> Self {
        let tls = Path::new("/etc/clicklink/tls");
        Self { cert_file: tls.join("client.crt"), key_file: tls.join("client.key"), ca_file: tls.join("ca.crt") }
    }
}

/// `executor`: the daemon.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Executor {
    /// The one cluster.
    pub(crate) cluster: Cluster,
    /// Command database; its folder is the state folder.
    pub(crate) db_path: PathBuf,
    /// Loopback port of the local API.
    pub(crate) api_port: u16,
    /// Access bundles; on a VM also the staged bundle.
    pub(crate) access_dir: PathBuf,
    /// What the daemon shows of itself; lies over `observability`.
    pub(crate) observability: DaemonObservability,
}

impl Default for Executor {
    fn default() -> Self {
        Self {
            cluster: Cluster::default(),
            db_path: "/var/lib/clicklink/executor.db".into(),
            api_port: 9999,
            access_dir: ACCESS_DIR.into(),
            observability: DaemonObservability::default(),
        }
    }
}

/// `executor.cluster`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Cluster {
    /// Name, for heartbeats.
    pub(crate) name: Option<String>,
    /// Region, for heartbeats.
    pub(crate) region: Option<String>,
    /// Account, for heartbeats.
    pub(crate) account_id: Option<String>,
    /// Whether this is a pod that observes by its own ServiceAccount.
    pub(crate) in_cluster: bool,
}

/// `registry`: where charts are pulled with user and password.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Registry {
    /// In docker's `config.json` form, `auths` only.
    pub(crate) credentials_file: Option<PathBuf>,
    /// Added to the system's roots.
    pub(crate) ca_file: Option<PathBuf>,
}

/// `heartbeat`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Heartbeat {
    /// Until the manager sets another one, 5–300 s.
    #[serde(deserialize_with = "duration")]
    pub(crate) interval: Duration,
}

impl Default for Heartbeat {
    fn default() -> Self {
        Self { interval: Duration::from_secs(10) }
    }
}

/// `log`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Log {
    /// How a line of the log reads.
    pub(crate) format: LogFormat,
}

/// `log.format`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// One JSON object a line.
    Json,
}

/// Why the configuration is refused.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConfigError {
    /// Not readable.
    #[error("{path}: {source}; write it with `clicklink clctl init --enroll <url>`", path = path.display())]
    Read {
        /// File.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// Not YAML, an unknown or doubled key, a wrong type.
    #[error("{path}: {problem}", path = path.display())]
    Parse {
        /// File.
        path: PathBuf,
        /// Where and what.
        problem: String,
    },
    /// The key is for a pod, and this is none.
    #[error("executor.cluster.in_cluster is set, but {path}: {source}; outside a pod leave it out", path = .0.display(), source = .1)]
    NoPod(PathBuf, std::io::Error),
}

impl Config {
    /// Reads and checks the file.
    pub(crate) fn load(path: &Path) -> Result<Self, ConfigError> {
        let text = std::fs::read_to_string(path).map_err(|source| ConfigError::Read { path: path.into(), source })?;
        let refuse = |problem: String| ConfigError::Parse { path: path.into(), problem };
        let config: Self = serde_saphyr::from_str(&text).map_err(|error| refuse(error.to_string()))?;
        for (key, value) in [("cloud", &config.cloud), ("region", &config.region), ("namespace_prefix", &config.namespace_prefix)] {
            if value.is_empty() {
                return Err(refuse(format!("{key}: may not be empty")));
            }
        }
        if !config.api.endpoint.starts_with("https://") {
            return Err(refuse(format!("api.endpoint: `{}` does not begin with https://", config.api.endpoint)));
        }
        crate::log::filter(config.log_level()).map_err(|problem| refuse(format!("log_level: {problem}")))?;
        if !(5..=300).contains(&config.heartbeat.interval.as_secs()) {
            return Err(refuse("heartbeat.interval: 5s to 300s are allowed".into()));
        }
        config.token_renew.check().map_err(refuse)?;
        Ok(config)
    }

    /// Names of the blocks that are there and ignored.
    pub(crate) fn ignored(&self) -> Vec<&'static str> {
        let blocks = [
            ("scraper", &self.scraper),
            ("troubleshooter", &self.troubleshooter),
            ("instances", &self.instances),
            ("metrics_port", &self.metrics_port),
            ("observability.health_port", &self.observability.health_port),
            ("executor.observability.metrics_port", &self.executor.observability.metrics_port),
        ];
        blocks.into_iter().filter(|(_, block)| block.0).map(|(name, _)| name).collect()
    }

    /// The health port; `None` where it is not wanted.
    pub(crate) fn health_port(&self) -> Option<u16> {
        let own = &self.executor.observability;
        let wanted = own.enabled.unwrap_or(self.observability.enabled) && own.health_port != 0;
        wanted.then_some(own.health_port)
    }

    /// The daemon's log level, or filter.
    pub(crate) fn log_level(&self) -> &str {
        self.executor.observability.log_level.as_deref().unwrap_or(&self.observability.log_level)
    }

    /// The state folder.
    pub(crate) fn state_dir(&self) -> &Path {
        self.executor.db_path.parent().unwrap_or(Path::new("."))
    }

    /// The staged bundle's file: beside the access bundles on a VM, in the state folder in a pod.
    pub(crate) fn pending_file(&self) -> PathBuf {
        let dir = if self.executor.cluster.in_cluster { self.state_dir() } else { &self.executor.access_dir };
        dir.join(agent_api::names::PENDING_FILE)
    }
}

fn default_prefix() -> String {
    "ns-".into()
}

fn yes() -> bool {
    true
}

fn default_access_key() -> PathBuf {
    "/etc/clicklink/access-key".into()
}

fn default_secret_key() -> PathBuf {
    "/etc/clicklink/secret-key".into()
}

/// `10s`, `5m`, `2h`, `1m 30s`.
fn duration<'de, D: Deserializer<'de>>(reader: D) -> Result<Duration, D::Error> {
    let text = String::deserialize(reader)?;
    let parsed: jiff::SignedDuration = text.parse().map_err(serde::de::Error::custom)?;
    Duration::try_from(parsed).map_err(serde::de::Error::custom)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str =
        "pcm_infra_uuid: 019b0000-0000-7000-8000-000000000001\ncloud: aws\nregion: eu-west-1\napi:\n  endpoint: https://m:8443\n";

    fn check(text: &str, expected: Option<&str>) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("config.yaml");
        std::fs::write(&path, text).unwrap();
        match (Config::load(&path), expected) {
            (Ok(_), None) => {}
            (Err(error), Some(expected)) => assert!(error.to_string().contains(expected), "{error}\nshould hold {expected}"),
            (result, _) => panic!("{text}: {result:?}"),
        }
    }

    #[test]
    fn what_is_accepted_and_what_is_refused_by_name() {
        check(GOOD, None);
        check(&format!("{GOOD}scraper: {{interval: 2m}}\nmetrics_port: 1\n"), None);
        check(&format!("{GOOD}heartbeat:\n  interval: 30s\n"), None);
        check(&format!("{GOOD}heartbeat:\n  interval: 1s\n"), Some("heartbeat.interval"));
        check(&format!("{GOOD}token_renew: {{sweep_interval: 30s, requested_ttl: 10m}}\n"), None);
        check(&format!("{GOOD}token_renew: {{sweep_interval: 0s}}\n"), Some("token_renew.sweep_interval"));
        check(&format!("{GOOD}token_renew: {{requested_ttl: 9m59s}}\n"), Some("token_renew.requested_ttl"));
        check(&format!("{GOOD}token_renew: {{requested_ttl: 1d}}\n"), Some("requested_ttl"));
        check(&format!("{GOOD}token_renew: {{sweep: 1m}}\n"), Some("sweep"));
        check(&format!("{GOOD}observability:\n  log_level: inof\n"), Some("log_level: `inof`"));
        check(&format!("{GOOD}executor:\n  observability:\n    log_level: info,clicklink=debug\n"), None);
        check(&format!("{GOOD}registri: {{}}\n"), Some("registri"));
        check(&format!("{GOOD}cloud: gcp\n"), Some("cloud"));
        check(&GOOD.replace("aws", "''"), Some("cloud"));
        check(&GOOD.replace("https", "http"), Some("api.endpoint"));
        check(&GOOD.replace("pcm_infra_uuid", "#"), Some("pcm_infra_uuid"));
    }
    #[test]
    fn the_daemon_s_own_observability_lies_over_the_common_one() {
        let check = |block: &str, port: Option<u16>, level: &str| {
            let config: Config = serde_saphyr::from_str(&format!("{GOOD}{block}")).unwrap();
            assert_eq!((config.health_port(), config.log_level()), (port, level), "{block}");
        };
        check("", Some(8086), "info");
        check("observability: {enabled: false, log_level: warn}\n", None, "warn");
        check("observability: {health_port: 8080}\nexecutor: {observability: {log_level: debug}}\n", Some(8086), "debug");
        check("observability: {enabled: false}\nexecutor: {observability: {enabled: true, health_port: 9}}\n", Some(9), "info");
        check("executor: {observability: {health_port: 0}}\n", None, "info");
    }
}
