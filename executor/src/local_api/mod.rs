//! The local API on 127.0.0.1: what a person at this machine may see. It changes nothing.
//!
//! A web page must not read it: `Host` has to be loopback, and an `Origin` the same.

mod commands;
mod description;
mod platform;
mod problem;

use axum::Router;
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, get};

use crate::daemon::Daemon;
pub(crate) use platform::{ChannelState, ChannelView, DriftedObject, SyncView};
pub(crate) use problem::CODES;
use problem::LocalError;

/// The local API's part of the OpenAPI document.
#[derive(utoipa::OpenApi)]
#[openapi(paths(platform::show, platform::pending, commands::list, commands::show, description::show))]
pub(crate) struct Routes;

/// Every route.
pub(crate) fn routes() -> [(&'static str, MethodRouter<Daemon>); 5] {
    [
        ("/v1/platform", get(platform::show)),
        ("/v1/platform/pending", get(platform::pending)),
        ("/v1/commands", get(commands::list)),
        ("/v1/commands/{id}", get(commands::show)),
        ("/openapi.json", get(description::show)),
    ]
}

/// Binds the port and serves for ever.
pub(crate) async fn spawn(port: u16, daemon: Daemon) -> anyhow::Result<()> {
    use anyhow::Context as _;
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", port)).await.with_context(|| format!("local API on 127.0.0.1:{port}"))?;
    tokio::spawn(async move { axum::serve(listener, router(daemon)).await });
    Ok(())
}

fn router(daemon: Daemon) -> Router {
    let router = routes().into_iter().fold(Router::new(), |router, (path, route)| router.route(path, route));
    router
        .fallback(|| async { LocalError::NotFound("there is no such route".into()) })
        .method_not_allowed_fallback(|| async { LocalError::Method })
        .layer(middleware::from_fn(only_from_here))
        .with_state(daemon)
}

async fn only_from_here(request: Request, next: Next) -> Response {
    match from_here(request.headers()) {
        true => next.run(request).await,
        false => LocalError::Forbidden.into_response(),
    }
}

fn from_here(headers: &HeaderMap) -> bool {
    let text = |name| headers.get(name).map(HeaderValue::to_str);
    let host_is_loopback = match text(header::HOST) {
        Some(Ok(host)) => is_loopback(host),
        Some(Err(_)) | None => false,
    };
    let origin_is_loopback = match text(header::ORIGIN) {
        None => true,
        Some(Ok(origin)) => origin.strip_prefix("http://").is_some_and(is_loopback),
        Some(Err(_)) => false,
    };
    host_is_loopback && origin_is_loopback
}

fn is_loopback(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    matches!(name, "127.0.0.1" | "localhost" | "::1")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_web_page_elsewhere_is_not_answered() {
        let check = |host: Option<&str>, origin: Option<&str>, expected| {
            let mut headers = HeaderMap::new();
            for (name, value) in [(header::HOST, host), (header::ORIGIN, origin)] {
                value.map(|value| headers.insert(name, value.parse().unwrap()));
            }
            assert_eq!(from_here(&headers), expected, "{host:?} {origin:?}");
        };
        check(Some("127.0.0.1:9999"), None, true);
        check(Some("localhost:1"), None, true);
        check(Some("[::1]:9999"), None, true);
        check(Some("127.0.0.1:9999"), Some("http://127.0.0.1:9999"), true);
        check(Some("127.0.0.1:9999"), Some("https://evil.example"), false);
        check(Some("127.0.0.1:9999"), Some("null"), false);
        check(Some("evil.example"), None, false);
        check(Some("127.0.0.1.evil.example"), None, false);
        check(None, None, false);
    }
}
