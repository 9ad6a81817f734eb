//! `navin-manager serve`: opens the data folder, then listens until it is told to stop. Only this process writes the store.

pub mod bootstrap;
pub mod data_dir;
pub mod listener;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::net::TcpListener;
use tokio::time::{interval, timeout};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::channel::connections::Connections;
use crate::channel::counters::Counters;
use crate::channel::fleet::Fleet;
use crate::channel::inbound::Inbound;
use crate::channel::poll::Polls;
use crate::channel::progress::Progress;
use crate::config;
use crate::domain::admission::Rate;
use crate::domain::token::NoRandom;
use crate::http::{self, App};
use crate::pki::authority::{Authority, AuthorityError};
use crate::pki::seal::{Seal, SealError};
use crate::pki::server::{self, ServerCert, ServerCertError};
use crate::store::{Store, StoreError, setting};
use data_dir::{DataDir, DataDirError};

/// What `serve` is told, flags and file taken together.
#[derive(Clone, Debug)]
pub struct Options {
    /// The data folder.
    pub data_dir: PathBuf,
    /// Where to listen.
    pub listen: SocketAddr,
    /// `https://host[:port]` that executors are told; from the listening address if absent.
    pub public_url: Option<String>,
    /// Organisation id; made up at the first start if absent.
    pub organisation: Option<String>,
    /// Seconds between heartbeats.
    pub heartbeat_interval_s: u32,
    /// How fast executors are let in.
    pub channel_rate: Rate,
    /// How long executors' certificates are good.
    pub executor_certificate_lasts: Duration,
}

/// Why the server does not start, or stopped.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The data folder.
    #[error(transparent)]
    DataDir(#[from] DataDirError),
    /// The store.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The authority.
    #[error(transparent)]
    Authority(#[from] AuthorityError),
    /// The server's certificate.
    #[error(transparent)]
    Certificate(#[from] ServerCertError),
    /// The sealing key.
    #[error(transparent)]
    Seal(#[from] SealError),
    /// The random source.
    #[error(transparent)]
    Random(#[from] NoRandom),
    /// The address.
    #[error("could not listen on {address}")]
    Listen {
        /// Which.
        address: SocketAddr,
        /// Why.
        source: std::io::Error,
    },
    /// The signals.
    #[error("could not wait for signals")]
    Signals(#[source] std::io::Error),
    /// The public URL.
    #[error("public URL `{0}`: `https://host[:port]` without a path is expected")]
    PublicUrl(String),
    /// The organisation was decided at the first start.
    #[error("this data folder belongs to organisation `{stored}`, not `{given}`")]
    Organisation {
        /// In the store.
        stored: String,
        /// On the command line.
        given: String,
    },
}

/// Serves until SIGTERM or SIGINT.
///
/// # Errors
/// See [`ServeError`].
pub async fn run(options: Options) -> Result<(), ServeError> {
    let dir = Arc::new(DataDir::open(&options.data_dir)?);
    let listen_failed = |source| ServeError::Listen { address: options.listen, source };
    let socket = TcpListener::bind(options.listen).await.map_err(listen_failed)?;
    let address = socket.local_addr().map_err(listen_failed)?;
    let (public_url, host) = public(options.public_url.unwrap_or_else(|| format!("https://{address}")))?;

    let store = Store::open(&dir.path(data_dir::STORE)).await?;
    let organisation = organisation(&store, options.organisation).await?;
    let authority = Authority::open(&dir)?;
    let certificate = Arc::new(ServerCert::open(&dir, &authority, &host)?);
    let tls = TlsAcceptor::from(Arc::new(server::tls(&authority, Arc::clone(&certificate))?));
    let bootstrap = bootstrap::Bootstrap::open(Arc::clone(&dir), store.has_tokens().await?)?;

    let (stop, tasks, connections) = (CancellationToken::new(), TaskTracker::new(), Connections::default());
    let (fleet, deciding) = Fleet::new(store.clone(), connections.clone(), stop.clone());
    tasks.spawn(deciding);
    let heartbeat_interval_s = options.heartbeat_interval_s;
    let app = Arc::new(App {
        inbound: Inbound {
            store: store.clone(),
            fleet,
            progress: Progress::default(),
            counters: Counters::default(),
            heartbeat_interval_s,
        },
        connections,
        polls: Polls::default(),
        door: http::door::Door::new(options.channel_rate),
        executor_certificate_lasts: options.executor_certificate_lasts,
        seal: Seal::open_key(&dir)?,
        authority,
        bootstrap,
        organisation,
        public_url,
        host,
        nonces: http::nonce::Nonces::default(),
        started_at: Timestamp::now(),
        tasks: tasks.clone(),
        stop: stop.clone(),
    });
    tasks.spawn(renew(Arc::clone(&dir), Arc::clone(&app), certificate, stop.clone()));
    tasks.spawn(listener::run(socket, tls, http::router(Arc::clone(&app)), tasks.clone(), stop.clone()));

    tracing::info!(per_second = options.channel_rate.per_second, burst = options.channel_rate.burst, "executors are let in at this rate");
    crate::cli::say(&format!("listening on {} (address {address}, organisation {})", app.public_url, app.organisation));
    let signal = stop_signal().await.map_err(ServeError::Signals);
    crate::cli::say("stopping");
    stop.cancel();
    tasks.close();
    if timeout(config::DRAIN_WITHIN, tasks.wait()).await.is_err() {
        tracing::warn!("connections were still open and are cut");
    }
    store.close().await;
    signal
}

/// The URL without a trailing slash, and its host.
fn public(url: String) -> Result<(String, String), ServeError> {
    let url = url.trim_end_matches('/').to_owned();
    let parsed = reqwest::Url::parse(&url).map_err(|_| ServeError::PublicUrl(url.clone()))?;
    let plain = parsed.scheme() == "https" && parsed.path() == "/" && parsed.query().is_none() && parsed.username().is_empty();
    match parsed.host_str() {
        Some(host) if plain => Ok((url.clone(), host.to_owned())),
        _ => Err(ServeError::PublicUrl(url)),
    }
}

async fn organisation(store: &Store, given: Option<String>) -> Result<String, ServeError> {
    let new = given.clone().unwrap_or_else(|| format!("org-{}", &uuid::Uuid::new_v4().simple().to_string()[..8]));
    let stored = store.setting(setting::ORGANISATION, &new).await?;
    match given {
        Some(given) if given != stored => Err(ServeError::Organisation { stored, given }),
        Some(_) | None => Ok(stored),
    }
}

/// Looks from time to time whether the server's certificate wants renewing.
async fn renew(dir: Arc<DataDir>, app: http::Shared, certificate: Arc<ServerCert>, stop: CancellationToken) {
    let mut ticks = interval(config::SERVER_CERT_CHECK);
    while stop.run_until_cancelled(ticks.tick()).await.is_some() {
        if let Err(error) = certificate.refresh(&dir, &app.authority) {
            tracing::error!(error = %agent_api::chain::chain(&error), "the server's certificate could not be renewed");
        }
    }
}

async fn stop_signal() -> std::io::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(url: &str, expected: Option<(&str, &str)>) {
        let seen = public(url.to_owned()).ok();
        assert_eq!(seen.as_ref().map(|(url, host)| (url.as_str(), host.as_str())), expected, "{url}");
    }

    #[test]
    fn public_urls() {
        check("https://127.0.0.1:8443", Some(("https://127.0.0.1:8443", "127.0.0.1")));
        check("https://manager.example/", Some(("https://manager.example", "manager.example")));
        check("https://[::1]:8443", Some(("https://[::1]:8443", "[::1]")));
        check("http://manager.example", None);
        check("https://manager.example/path", None);
        check("manager.example", None);
    }
}
