//! `serve`: flags over file over defaults, then the server.

use std::net::SocketAddr;
use std::path::PathBuf;

use tracing_subscriber::EnvFilter;

use super::CliError;
use crate::config::{self, ConfigError, File};
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
    /// Configuration file (YAML): `data_dir`, `listen`, `public_url`, `organisation`, `heartbeat_interval_s`.
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
    Ok(Options {
        data_dir,
        listen,
        public_url: args.public_url.or(file.public_url),
        organisation: args.organisation.or(file.organisation),
        heartbeat_interval_s,
    })
}
