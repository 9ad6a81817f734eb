//! From a TCP connection to requests: TLS, the peer's certificate, HTTP/1.1. No route is known here.

use std::pin::pin;
use std::sync::Arc;

use axum::Router;
use axum::extract::Request;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::channel::heard::Heard;
use crate::config;
use crate::pki::peer::Peer;

/// Accepts until `stop`; each connection is a task of `tasks`.
pub async fn run(socket: TcpListener, tls: TlsAcceptor, router: Router, tasks: TaskTracker, stop: CancellationToken) {
    let places = Arc::new(Semaphore::new(config::MAX_CONNECTIONS));
    let next = async || -> Option<_> {
        let place = Arc::clone(&places).acquire_owned().await.ok()?;
        Some((place, socket.accept().await))
    };
    while let Some(Some((place, accepted))) = stop.run_until_cancelled(next()).await {
        match accepted {
            Ok((stream, _)) => {
                let (tls, router, stop) = (tls.clone(), router.clone(), stop.clone());
                tasks.spawn(async move {
                    serve(stream, tls, router, stop).await;
                    drop(place);
                });
            }
            Err(error) => {
                // Out of file descriptors, most likely: others have to end first.
                tracing::error!(%error, "a connection could not be accepted");
                tokio::time::sleep(std::time::Duration::from_millis(100)).await;
            }
        }
    }
}

async fn serve(stream: TcpStream, tls: TlsAcceptor, router: Router, stop: CancellationToken) {
    // Frames are small and wanted at once.
    let _ = stream.set_nodelay(true);
    let stream = match timeout(config::HANDSHAKE_WITHIN, tls.accept(stream)).await {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => return tracing::debug!(%error, "TLS handshake failed"),
        Err(_) => return tracing::debug!("TLS handshake took too long"),
    };
    let peer = stream.get_ref().1.peer_certificates().and_then(|chain| chain.first()).and_then(Peer::of);
    let (heard, stream) = Heard::on(stream);
    let router = TowerToHyperService::new(router);
    let service = service_fn(move |request: hyper::Request<hyper::body::Incoming>| {
        let mut request: Request = request.map(axum::body::Body::new);
        request.extensions_mut().insert(heard.clone());
        if let Some(peer) = &peer {
            request.extensions_mut().insert(peer.clone());
        }
        router.call(request)
    });
    let mut http = hyper::server::conn::http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(config::HANDSHAKE_WITHIN);
    let mut connection = pin!(http.serve_connection(TokioIo::new(stream), service).with_upgrades());
    let ended = tokio::select! {
        ended = &mut connection => ended,
        () = stop.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "connection ended");
    }
}
