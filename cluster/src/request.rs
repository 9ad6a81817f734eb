//! One request to the API server: time limit, bounded retries, and the status document turned into an error.
//!
//! The retry policy is data. kube's own retry layer is switched off in every connection of ours, so that nothing is tried twice over.

use std::time::Duration;

use http::{HeaderMap, Method, Request, StatusCode};
use http_body_util::BodyExt as _;
use kube::Client;
use kube::client::Body;
use kube::core::Status;
use serde_json::Value;

use crate::error::ClusterError;
use crate::told;

/// How often and how long.
struct Retry {
    attempts: u32,
    first_pause: Duration,
    longest_pause: Duration,
    /// Longest pause that the API server may ask for (`Retry-After`); it is not asked before, unless it wants more than this.
    longest_asked_for: Duration,
    /// How long one try may take, its answer included.
    request: Duration,
}

/// Five tries over about four seconds: longer than a leader change of etcd, shorter than a person's patience. Everything that we send may be
/// sent again: reads, applies, deletes and dry runs by their nature; a replacement names the version that it replaces; whoever creates
/// knows what to do about "is there already"; of two tokens only the one that came back is ever approved.
const RETRY: Retry = Retry {
    attempts: 5,
    first_pause: Duration::from_millis(250),
    longest_pause: Duration::from_secs(4),
    longest_asked_for: Duration::from_secs(30),
    request: Duration::from_secs(45),
};

/// The API server's text for a path that it does not serve.
const NOT_SERVED: &[u8] = b"404 page not found";

/// Media types that we send.
#[derive(Clone, Copy)]
pub(crate) enum Content {
    Json,
    Apply,
    /// A JSON merge patch (RFC 7386) that names the version that it changes.
    Merge,
}

/// What is asked.
pub(crate) struct Ask<'a> {
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) body: Option<(&'a Value, Content)>,
    /// Object or request, for errors.
    pub(crate) about: String,
    /// The body is a Secret.
    pub(crate) secret: bool,
}

impl Ask<'_> {
    pub(crate) fn get(path: String, about: String) -> Self {
        Self { method: Method::GET, path, body: None, about, secret: false }
    }
}

impl<'a> Ask<'a> {
    pub(crate) fn post(path: String, body: &'a Value, about: String) -> Self {
        Self { method: Method::POST, path, body: Some((body, Content::Json)), about, secret: false }
    }
}

/// A good answer.
pub(crate) struct Answer {
    /// 201: the object was not there before.
    pub(crate) created: bool,
    pub(crate) body: Value,
}

/// Sends a request, again where the failure is transient.
pub(crate) async fn send(client: &Client, ask: &Ask<'_>) -> Result<Answer, ClusterError> {
    let mut pause = RETRY.first_pause;
    let mut attempt = 1;
    loop {
        match once(client, ask).await {
            Err(Failed { error, retry_after }) if may_succeed(ask, &error) && attempt < RETRY.attempts => {
                tracing::debug!(%error, attempt, "the request is repeated");
                tokio::time::sleep(retry_after.map_or(pause, |asked_for| asked_for.min(RETRY.longest_asked_for))).await;
                pause = (pause * 2).min(RETRY.longest_pause);
                attempt += 1;
            }
            Err(Failed { error, .. }) => return Err(error),
            Ok(answer) => return Ok(answer),
        }
    }
}

/// What names an older version, or another object of the name, conflicts for ever.
fn may_succeed(ask: &Ask<'_>, error: &ClusterError) -> bool {
    let exact = [Method::PUT, Method::DELETE].contains(&ask.method) || matches!(ask.body, Some((_, Content::Merge)));
    let stale = exact && matches!(error, ClusterError::Other { code: 409, .. });
    error.is_transient() && !stale
}

struct Failed {
    error: ClusterError,
    retry_after: Option<Duration>,
}

async fn once(client: &Client, ask: &Ask<'_>) -> Result<Answer, Failed> {
    let unreachable =
        |message: String| Failed { error: ClusterError::Unreachable { about: ask.about.clone(), message }, retry_after: None };
    let exchange = async {
        let request = build(ask).map_err(|error| Failed { error, retry_after: None })?;
        let response = client.send(request).await.map_err(|error| unreachable(told::client(&error)))?;
        let (head, body) = response.into_parts();
        let bytes = body.collect().await.map_err(|error| unreachable(told::client(&error)))?.to_bytes();
        Ok((head, bytes))
    };
    let (head, bytes) = tokio::time::timeout(RETRY.request, exchange)
        .await
        .map_err(|_elapsed| unreachable(format!("no answer within {} s", RETRY.request.as_secs())))??;
    read(ask, head.status, &bytes)
        .map_err(|failed| Failed { retry_after: failed.retry_after.or_else(|| retry_after(&head.headers)), ..failed })
}

/// In seconds; the form with a date is none that an API server, or what stands before it, uses.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds = headers.get(http::header::RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
    Some(Duration::from_secs(seconds))
}

fn read(ask: &Ask<'_>, status: StatusCode, bytes: &[u8]) -> Result<Answer, Failed> {
    let other = |code: StatusCode, message: String| Failed {
        error: ClusterError::Other { about: ask.about.clone(), code: code.as_u16(), message },
        retry_after: None,
    };
    if status.is_success() {
        let body = serde_json::from_slice(bytes).map_err(|error| other(StatusCode::OK, format!("the answer is not JSON: {error}")))?;
        return Ok(Answer { created: status == StatusCode::CREATED, body });
    }
    match serde_json::from_slice::<Status>(bytes) {
        Ok(mut document) if document.status.is_some() => {
            document.code = status.as_u16();
            let seconds = document.details.as_ref().map_or(0, |details| details.retry_after_seconds);
            let retry_after = (seconds > 0).then(|| Duration::from_secs(seconds.into()));
            Err(Failed { error: ClusterError::of(&ask.about, &document, ask.secret), retry_after })
        }
        // So the API server answers for a group that it does not serve.
        Ok(_) | Err(_) if status == StatusCode::NOT_FOUND && bytes.trim_ascii() == NOT_SERVED => {
            let message = "the API server does not serve this group and version".to_owned();
            Err(Failed { error: ClusterError::NotFound { about: ask.about.clone(), message }, retry_after: None })
        }
        // A proxy or load balancer answered, not the API server.
        Ok(_) | Err(_) if status == StatusCode::UNAUTHORIZED => {
            Err(Failed { error: ClusterError::Unauthorized { about: ask.about.clone() }, retry_after: None })
        }
        Ok(_) | Err(_) => Err(other(status, format!("HTTP {status} without a status document"))),
    }
}

fn build(ask: &Ask<'_>) -> Result<Request<Body>, ClusterError> {
    let wrong = |message: String| ClusterError::Other { about: ask.about.clone(), code: 0, message };
    let mut request = Request::builder().method(ask.method.clone()).uri(&ask.path).header(http::header::ACCEPT, "application/json");
    let body = match ask.body {
        None => Vec::new(),
        Some((value, content)) => {
            let media = match content {
                Content::Json => "application/json",
                Content::Apply => "application/apply-patch+yaml",
                Content::Merge => "application/merge-patch+json",
            };
            request = request.header(http::header::CONTENT_TYPE, media);
            serde_json::to_vec(value).map_err(|error| wrong(error.to_string()))?
        }
    };
    request.body(Body::from(body)).map_err(|error| wrong(error.to_string()))
}

#[cfg(test)]
mod tests;
