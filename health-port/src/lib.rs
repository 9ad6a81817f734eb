//! Serves a port that strangers can reach: few connections at a time, one request each, each in bounded time.
//!
//! Deliberately absent: what is served, which is each process's own. An answer holds states and figures only.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tracing::debug;

/// Connections at a time; whoever comes beyond that is turned away.
const CONNECTIONS: usize = 32;
/// From the first byte to the last.
const REQUEST: Duration = Duration::from_secs(10);
/// Pause after an error of the listener itself, e.g. for want of file descriptors.
const PAUSE: Duration = Duration::from_millis(200);

/// Serves these routes on this listener, for ever.
pub async fn for_ever(listener: TcpListener, router: Router) {
    let places = Arc::new(Semaphore::new(CONNECTIONS));
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                let Ok(place) = Arc::clone(&places).try_acquire_owned() else { continue };
                let router = router.clone();
                tokio::spawn(async move {
                    one(stream, router).await;
                    drop(place);
                });
            }
            Err(error) => {
                debug!("health port: {error}");
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}

async fn one(stream: TcpStream, router: Router) {
    let service = TowerToHyperService::new(router);
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(REQUEST).keep_alive(false);
    let served = tokio::time::timeout(REQUEST, http.serve_connection(TokioIo::new(stream), service)).await;
    debug!(?served, "health port: a connection ended");
}
