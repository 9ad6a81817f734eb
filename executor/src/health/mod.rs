//! The health port: `/livez`, `/readyz`, `/healthz` and `/metrics`, for kubelets, service monitors and people, on all addresses.
//!
//! Anybody in reach may ask, so that an answer holds states and figures only: no name, address, digest, version, path or error text.
//! Answers come from the daemon's main loop; when it does not answer in time, that is the answer.

mod condition;
mod metrics;

use std::net::Ipv4Addr;
use std::time::Duration;

use axum::Router;
use axum::routing::{MethodRouter, get};

use crate::daemon::{Daemon, Figures};

/// How long the main loop may take to answer before it counts as stuck. A heartbeat, or a slow disk's one write, fits in.
const ANSWER: Duration = Duration::from_secs(5);

/// The health port's part of the OpenAPI document.
#[derive(utoipa::OpenApi)]
#[openapi(paths(condition::livez, condition::readyz, condition::healthz, metrics::show))]
pub(crate) struct Routes;

/// The port cannot be had.
#[derive(Debug, thiserror::Error)]
#[error("health port {0}: {1}")]
pub(crate) struct HealthError(u16, #[source] std::io::Error);

/// Every route.
pub(crate) fn routes() -> [(&'static str, MethodRouter<Daemon>); 4] {
    [
        ("/livez", get(condition::livez)),
        ("/readyz", get(condition::readyz)),
        ("/healthz", get(condition::healthz)),
        ("/metrics", get(metrics::show)),
    ]
}

/// Binds the port and serves for ever.
pub(crate) async fn spawn(port: u16, daemon: Daemon) -> Result<(), HealthError> {
    let listener = tokio::net::TcpListener::bind((Ipv4Addr::UNSPECIFIED, port)).await.map_err(|source| HealthError(port, source))?;
    let router = routes().into_iter().fold(Router::new(), |router, (path, route)| router.route(path, route)).with_state(daemon);
    tokio::spawn(health_port::for_ever(listener, router));
    Ok(())
}

/// The figures, unless the main loop is stuck or has ended.
async fn figures(daemon: &Daemon) -> Option<Figures> {
    tokio::time::timeout(ANSWER, daemon.ask(crate::daemon::Running::figures)).await.ok().flatten()
}
