//! What the local API answers instead of what was asked for: problem documents with stable codes, each with a page in
//! `docs/errors/http/`.

use agent_api::problem::{MEDIA_TYPE, Problem};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};

/// Why a request is answered with a problem document.
#[derive(Debug)]
pub(crate) enum LocalError {
    /// Not from this machine's loopback, or from a web page.
    Forbidden,
    /// No such thing.
    NotFound(String),
    /// The path is right, the method is not.
    Method,
    /// A query that cannot be read.
    BadRequest(String),
    /// The daemon is stopping.
    Stopping,
}

/// A stable code: name, status, title, and what it means in one sentence.
pub(crate) struct LocalCode {
    pub(crate) name: &'static str,
    pub(crate) status: StatusCode,
    title: &'static str,
    pub(crate) meaning: &'static str,
}

const FORBIDDEN: LocalCode = LocalCode {
    name: "forbidden",
    status: StatusCode::FORBIDDEN,
    title: "Forbidden",
    meaning: "The request was not made to a loopback host, or came from a web page.",
};
const NOT_FOUND: LocalCode = LocalCode {
    name: "not_found",
    status: StatusCode::NOT_FOUND,
    title: "Not found",
    meaning: "There is no such thing, or no such route.",
};
const METHOD_NOT_ALLOWED: LocalCode = LocalCode {
    name: "method_not_allowed",
    status: StatusCode::METHOD_NOT_ALLOWED,
    title: "Method not allowed",
    meaning: "The path is right, the method is not.",
};
const BAD_REQUEST: LocalCode =
    LocalCode { name: "bad_request", status: StatusCode::BAD_REQUEST, title: "Bad request", meaning: "A filter or an id cannot be read." };
const STOPPING: LocalCode =
    LocalCode { name: "stopping", status: StatusCode::SERVICE_UNAVAILABLE, title: "Stopping", meaning: "The executor is stopping." };

/// All codes, in the order of the index.
pub(crate) const CODES: [&LocalCode; 5] = [&FORBIDDEN, &NOT_FOUND, &METHOD_NOT_ALLOWED, &BAD_REQUEST, &STOPPING];

impl LocalError {
    fn code(&self) -> &'static LocalCode {
        match self {
            Self::Forbidden => &FORBIDDEN,
            Self::NotFound(_) => &NOT_FOUND,
            Self::Method => &METHOD_NOT_ALLOWED,
            Self::BadRequest(_) => &BAD_REQUEST,
            Self::Stopping => &STOPPING,
        }
    }
}

impl IntoResponse for LocalError {
    fn into_response(self) -> Response {
        let LocalCode { name, status, title, .. } = *self.code();
        let detail = match self {
            Self::Forbidden => "only requests to a loopback host, and from no other web origin, are answered".to_owned(),
            Self::Method => "the local API only shows: GET is its one method".to_owned(),
            Self::NotFound(detail) | Self::BadRequest(detail) => detail,
            Self::Stopping => "the executor is stopping".to_owned(),
        };
        let problem = Problem { status: status.as_u16(), code: name.into(), title: title.into(), detail };
        (status, [(header::CONTENT_TYPE, MEDIA_TYPE)], serde_json::to_string(&problem).unwrap_or_default()).into_response()
    }
}
