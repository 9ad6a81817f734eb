//! `serve`: flags over file over defaults, then the server.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use tracing_subscriber::EnvFilter;

use super::CliError;
use crate::config::{self, ConfigError, File};
use crate::domain::admission::Rate;
use crate::serve::{self, Options};

/// Flags of `serve`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Folder of the database, keys and certificates; created with mode 0700.
    #[arg(long, env = "NAVIN_MANAGER_DATA_DIR")]
    data_dir: Option<PathBuf>,
    /// Where to listen [default: 127.0.0.1:8443].
    #[arg(long)]
    listen: Option<SocketAddr>,
    /// `https://host[:port]` under which executors reach this server [default: the listening address].
    #[arg(long)]
    public_url: Option<String>,
    /// Organisation id, decided at the first start.
    #[arg(long)]
    organisation: Option<String>,
    /// Configuration file (YAML): `data_dir`, `listen`, `public_url`, `organisation`, `heartbeat_interval_s`,
    /// `channel_connections_per_s`, `channel_connections_burst`, `executor_certificate_lasts_s`.
    #[arg(long)]
    config: Option<PathBuf>,
}

/// Runs the server.
///
/// # Errors
/// The configuration, or the server.
pub async fn run(args: Args) -> Result<(), CliError> {
    let filter = EnvFilter::try_from_env("NAVIN_MANAGER_LOG").unwrap_or_else(|_| EnvFilter::new("info"));
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).with_ansi(false).init();
    Ok(serve::run(options(args)?).await?)
}

fn options(args: Args) -> Result<Options, ConfigError> {
    let file = args.config.as_deref().map(File::read).transpose()?.unwrap_or_default();
    let data_dir = args.data_dir.or(file.data_dir).ok_or_else(|| ConfigError::Value {
        key: "data_dir",
        problem: "is needed: give --data-dir, or the key in the configuration file".to_owned(),
    })?;
    let default = || config::LISTEN.parse().map_err(|_| ConfigError::Value { key: "listen", problem: "not an address".to_owned() });
    let listen = args.listen.or(file.listen).map_or_else(default, Ok)?;
    let heartbeat_interval_s = file.heartbeat_interval_s.unwrap_or(config::HEARTBEAT_INTERVAL_S);
    if !(5..=300).contains(&heartbeat_interval_s) {
        return Err(ConfigError::Value { key: "heartbeat_interval_s", problem: "5–300 is expected".to_owned() });
    }
    let within = |key, value: u64, least: u64, most: u64| {
        if (least..=most).contains(&value) {
            Ok(())
        } else {
            Err(ConfigError::Value { key, problem: format!("{least}–{most} is expected") })
        }
    };
    let rate = Rate {
        per_second: file.channel_connections_per_s.unwrap_or(config::CHANNEL_RATE.per_second),
        burst: file.channel_connections_burst.unwrap_or(config::CHANNEL_RATE.burst),
    };
    within("channel_connections_per_s", rate.per_second.into(), 1, 10_000)?;
    within("channel_connections_burst", rate.burst.into(), 1, 10_000)?;
    let lasts_s = file.executor_certificate_lasts_s.unwrap_or(config::EXECUTOR_CERT_LASTS.as_secs());
    within("executor_certificate_lasts_s", lasts_s, 15, 366 * 24 * 3600)?;
    Ok(Options {
        data_dir,
        listen,
        public_url: args.public_url.or(file.public_url),
        organisation: args.organisation.or(file.organisation),
        heartbeat_interval_s,
        channel_rate: rate,
        executor_certificate_lasts: Duration::from_secs(lasts_s),
    })
}
