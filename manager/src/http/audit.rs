//! Records each call of a writing route: who, what, with which result.

use agent_api::enrolment::POLL_PATH;
use axum::extract::{Request, State};
use axum::http::Method;
use axum::middleware::Next;
use axum::response::Response;
use jiff::Timestamp;

use super::Shared;
use crate::store::audit::Entry;

/// Who was found to be calling; put on the response by whoever found out.
#[derive(Clone, Debug)]
pub struct Who(pub String);

/// Puts on record what is not only read. A record that cannot be written is an error in the log; the answer stands.
pub async fn record(State(app): State<Shared>, request: Request, next: Next) -> Response {
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let response = next.run(request).await;
    // A poll is a connection, not a call.
    if method != Method::GET && method != Method::HEAD && path != POLL_PATH {
        let who = response.extensions().get::<Who>().map_or_else(|| "-".to_owned(), |who| who.0.clone());
        let entry = Entry { at: Timestamp::now(), who, method: method.to_string(), path, status: response.status().as_u16() };
        if let Err(error) = app.inbound.store.append_audit(&entry).await {
            tracing::error!(?entry, error = %crate::cli::chain(&error), "the audit record could not be written");
        }
    }
    response
}
