//! Bearer tokens of the REST API.

use agent_api::secret::Secret;
use axum::extract::{Request, State};
use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use jiff::Timestamp;

use super::Shared;
use super::audit::Who;
use super::problem::ApiError;
use crate::domain::permission::Permission;
use crate::domain::token;

/// Who calls.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Caller {
    /// The holder of a bearer token.
    Token {
        /// Its name.
        name: String,
        /// What it may do.
        permissions: Vec<Permission>,
    },
    /// Whoever can read the server's data folder, while there is no token.
    Bootstrap,
}

impl Caller {
    /// Whether the caller may do what needs this permission.
    ///
    /// # Errors
    /// [`ApiError::Forbidden`].
    pub fn require(&self, needed: Permission) -> Result<(), ApiError> {
        match self {
            Self::Token { permissions, .. } if permissions.contains(&needed) => Ok(()),
            Self::Token { .. } | Self::Bootstrap => Err(ApiError::Forbidden),
        }
    }

    fn who(&self) -> Who {
        match self {
            Self::Token { name, .. } => Who(format!("token:{name}")),
            Self::Bootstrap => Who("bootstrap".to_owned()),
        }
    }
}

/// Finds out who calls; all that is not making the first token needs [`Permission::Admin`] for now.
pub async fn bearer(State(app): State<Shared>, mut request: Request, next: Next) -> Response {
    // Read before anything is waited for: a request cannot be shared between threads.
    let shown = shown(request.headers());
    let caller = match caller(&app, shown).await {
        Ok(caller) => caller,
        Err(error) => return error.into_response(),
    };
    let who = caller.who();
    let allowed = match caller {
        // The one thing that it is good for judges it there.
        Caller::Bootstrap if super::token::makes_one(&request) => Ok(()),
        Caller::Bootstrap | Caller::Token { .. } => caller.require(Permission::Admin),
    };
    request.extensions_mut().insert(caller);
    let mut response = match allowed {
        Ok(()) => next.run(request).await,
        Err(error) => error.into_response(),
    };
    response.extensions_mut().insert(who);
    response
}

fn shown(headers: &HeaderMap) -> Option<Secret> {
    let header = headers.get(AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = header.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| Secret::new(token.trim().to_owned()))
}

async fn caller(app: &Shared, shown: Option<Secret>) -> Result<Caller, ApiError> {
    let sha256 = token::hash(&shown.ok_or(ApiError::Unauthenticated)?);
    if let Some(found) = app.inbound.store.use_token(&sha256, Timestamp::now()).await? {
        return Ok(Caller::Token { name: found.name, permissions: found.permissions });
    }
    if app.bootstrap.is(&sha256) && !app.inbound.store.has_tokens().await? {
        return Ok(Caller::Bootstrap);
    }
    Err(ApiError::Unauthenticated)
}
