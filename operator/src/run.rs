//! `navin-operator run`: from flags to a running operator, and its orderly end.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use cluster::Client;
use cluster::address::{AddressError, ApiAddress};
use cluster::connect::{self, ConnectError, Connection};
use cluster::guard::{self, Credentials, GuardError, MAX_BYTES};
use render::pinned::ChartPuller;
use render::{Engine, EngineError, RegistryAccess, RegistryAccessError};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, Layer as _};

use crate::chart::Charts;
use crate::controller::Operator;
use crate::controller::rendering::Renderings;
use crate::health::{self, Readiness, Waits, figures::Figures};
use crate::leader::{Leader, fence::fenced};
use crate::run_arguments::{Access, LogFormat, Options, OptionsError};

/// How long what is under way may take after SIGTERM. What is cut off then is put right by whoever leads next.
const GRACE: Duration = Duration::from_secs(10);
/// Pause before the API server is asked again at the start.
const PAUSE: Duration = Duration::from_secs(2);
/// Threads of the runtime: enough for every worker that computes at the same time on the machines that this runs on.
const THREADS: usize = 2;

/// Why the operator does not run.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// Flags that do not fit.
    #[error(transparent)]
    Options(#[from] OptionsError),
    /// The kubeconfig cannot be read.
    #[error("--kubeconfig: {} cannot be read", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The guard refuses it.
    #[error("--kubeconfig")]
    Guard(#[from] GuardError),
    /// Its address is none.
    #[error("--kubeconfig: {0}")]
    Address(AddressError),
    /// It leads elsewhere.
    #[error("--kubeconfig leads to {found}, --api-server says {expected}")]
    Elsewhere {
        /// In the kubeconfig.
        found: ApiAddress,
        /// As given.
        expected: ApiAddress,
    },
    /// There is no connection.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// Registry credentials or authorities.
    #[error(transparent)]
    Registry(#[from] RegistryAccessError),
    /// The chart engine.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The health port.
    #[error("--listen: cannot listen on {0}")]
    Listen(std::net::SocketAddr, #[source] std::io::Error),
    /// Runtime or signals.
    #[error("the process cannot be set up")]
    Process(#[from] std::io::Error),
}

/// Runs until SIGTERM or SIGINT.
///
/// # Errors
/// What keeps it from starting; see [`RunError`]. An API server that does not answer is waited for.
pub fn run(options: Options) -> Result<(), RunError> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(THREADS).enable_all().build()?;
    let ended = runtime.block_on(running(options));
    runtime.shutdown_background();
    ended
}

async fn running(options: Options) -> Result<(), RunError> {
    start_log(&options);
    let stop = stop_signal()?;
    let connection = connect(&options.access).await?;
    let access = RegistryAccess::load(options.registry_config.as_deref(), options.registry_ca_file.as_deref())?;
    let engine = Arc::new(Engine::locate().await?);
    if !Engine::landlock() {
        warn!("this kernel has no Landlock: charts are rendered with the other bounds alone");
    }
    let charts = Charts::new(options.charts_dir.clone(), ChartPuller::new(access));
    let renderings = Arc::new(Renderings::new(charts, engine));
    let (readiness, figures) = (Readiness::default(), Figures::default());
    let listener = TcpListener::bind(options.listen).await.map_err(|error| RunError::Listen(options.listen, error))?;
    tokio::spawn(health_port::for_ever(listener, health::router(readiness.clone(), &figures)));
    let identity = format!("{}_{}", host(), uuid::Uuid::new_v4());
    let leader = Leader::new(connection.client.clone(), options.lease_namespace.as_str(), identity);
    info!(version = env!("CARGO_PKG_VERSION"), server = connection.server, "the operator runs");
    Terms { options, client: connection.client, leader, renderings, readiness, figures }.serve(stop).await;
    info!("the operator has ended");
    Ok(())
}

/// Terms of leadership, one after another.
struct Terms {
    options: Options,
    client: Client,
    leader: Leader,
    renderings: Arc<Renderings>,
    readiness: Readiness,
    figures: Figures,
}

impl Terms {
    async fn serve(mut self, stop: CancellationToken) {
        while !stop.is_cancelled() {
            tokio::select! {
                () = stop.cancelled() => return,
                () = self.leader.lead(&self.readiness) => {}
            }
            self.figures.leader.set(1);
            self.term(&stop).await;
            self.figures.leader.set(0);
            self.figures.components.set(0);
            self.figures.queue.set(0);
        }
    }

    /// One term: until the Lease is lost, or the process is to end.
    async fn term(&mut self, stop: &CancellationToken) {
        let client = fenced(self.client.clone(), self.leader.deadline());
        let (namespaces, renderings, figures) = (&self.options.namespaces, &self.renderings, &self.figures);
        let readiness = &self.readiness;
        let work = async {
            let operator = loop {
                match Operator::start(client.clone(), namespaces, Arc::clone(renderings), figures.clone()).await {
                    Ok(operator) => break operator,
                    Err(error) => {
                        warn!("the API server does not say what it serves: {error}");
                        readiness.waits(Waits::Discovery);
                    }
                }
                tokio::select! {
                    () = stop.cancelled() => return,
                    () = tokio::time::sleep(PAUSE) => {}
                }
            };
            operator.run(readiness.clone(), stop.clone()).await;
        };
        let bounded = async {
            tokio::select! {
                () = work => {}
                () = async { stop.cancelled().await; tokio::time::sleep(GRACE).await } => warn!("what was under way is cut off"),
            }
        };
        let lost = tokio::select! {
            () = bounded => false,
            () = self.leader.hold() => true,
        };
        if !lost {
            self.leader.release().await;
        }
    }
}

async fn connect(access: &Access) -> Result<Connection, RunError> {
    let Access::Kubeconfig { path, api_server } = access else { return Ok(connect::in_cluster().await?) };
    let read = |source| RunError::Read { path: path.clone(), source };
    if std::fs::metadata(path).map_err(read)?.len() > MAX_BYTES as u64 {
        return Err(GuardError::TooLarge.into());
    }
    let text = std::fs::read_to_string(path).map_err(read)?;
    let guarded = guard::parse_with(&text, Credentials::TokenOrCertificate)?;
    let found: ApiAddress = guarded.server.parse().map_err(RunError::Address)?;
    if found != *api_server {
        return Err(RunError::Elsewhere { found, expected: api_server.clone() });
    }
    Ok(connect::guarded(&guarded).await?)
}

fn start_log(options: &Options) {
    let lines = tracing_subscriber::fmt::layer().with_writer(std::io::stderr).with_ansi(false).with_target(false);
    let lines = match options.log_format {
        LogFormat::Json => lines.json().flatten_event(true).with_current_span(false).with_span_list(false).boxed(),
        LogFormat::Text => lines.boxed(),
    };
    // Of libraries only what went wrong; of watches, which begin again for ever, the operator tells itself.
    let filter =
        EnvFilter::new(format!("warn,kube_runtime=error,navin_operator={level},cluster={level},render={level}", level = options.log_level));
    tracing_subscriber::registry().with(filter).with(lines).init();
}

fn stop_signal() -> Result<CancellationToken, std::io::Error> {
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    let stop = CancellationToken::new();
    let told = stop.clone();
    tokio::spawn(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        info!("the operator is to end");
        told.cancel();
    });
    Ok(stop)
}

/// The pod's name, as Kubernetes gives it.
fn host() -> String {
    std::env::var("HOSTNAME").ok().filter(|name| !name.is_empty()).unwrap_or_else(|| "operator".to_owned())
}
