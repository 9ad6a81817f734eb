//! The local API on 127.0.0.1: what a person at this machine may see. It changes nothing.
//!
//! A web page must not read it: `Host` has to be loopback, and an `Origin` the same.

mod commands;
mod description;
mod platform;

use agent_api::problem::{MEDIA_TYPE, Problem};
use axum::Router;
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, get};

use crate::daemon::Daemon;

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

/// Why a request is answered with a problem document.
#[derive(Debug)]
pub(crate) enum LocalError {
    /// Not from this machine's loopback, or from a web page.
    Forbidden,
    /// No such thing.
    NotFound(String),
    /// A query that cannot be read.
    BadRequest(String),
    /// The daemon is stopping.
    Stopping,
}

impl IntoResponse for LocalError {
    fn into_response(self) -> Response {
        let (status, code, title, detail) = match self {
            Self::Forbidden => {
                let detail = "only requests to a loopback host, and from no other web origin, are answered".to_owned();
                (StatusCode::FORBIDDEN, "forbidden", "Forbidden", detail)
            }
            Self::NotFound(detail) => (StatusCode::NOT_FOUND, "not_found", "Not found", detail),
            Self::BadRequest(detail) => (StatusCode::BAD_REQUEST, "bad_request", "Bad request", detail),
            Self::Stopping => (StatusCode::SERVICE_UNAVAILABLE, "stopping", "Stopping", "the executor is stopping".to_owned()),
        };
        let problem = Problem { status: status.as_u16(), code: code.into(), title: title.into(), detail };
        (status, [(header::CONTENT_TYPE, MEDIA_TYPE)], serde_json::to_string(&problem).unwrap_or_default()).into_response()
    }
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
