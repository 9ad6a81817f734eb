//! ServiceAccount tokens: asking for one, and reading what one says of itself.

use std::time::Duration;

use agent_api::secret::Secret;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use kube::Client;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::error::ClusterError;
use crate::request::{self, Ask};

/// The API server grants no shorter token.
pub const SHORTEST: Duration = Duration::from_secs(600);

/// Why a token cannot be read. The token is not repeated.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("the token is not a JSON Web Token with an `exp` claim")]
pub struct TokenError;

/// What a token says of itself; nobody verified it here.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Claims {
    /// End of life.
    pub expires_at: jiff::Timestamp,
    /// Begin of life.
    pub issued_at: Option<jiff::Timestamp>,
    /// Whose it is: `system:serviceaccount:<namespace>:<name>`.
    pub subject: Option<String>,
    /// Its id, which admission sees as `JTI=<jti>`.
    pub id: Option<String>,
}

/// Asks for a token of a ServiceAccount (`TokenRequest`); what is granted may be shorter, or longer, than asked.
///
/// # Errors
/// See [`ClusterError`].
pub async fn request(
    client: &Client,
    namespace: &str,
    service_account: &str,
    ttl: Duration,
) -> Result<(Secret, jiff::Timestamp), ClusterError> {
    let about = format!("token of ServiceAccount {namespace}/{service_account}");
    let body = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": ttl.as_secs()}});
    let path = format!("/api/v1/namespaces/{namespace}/serviceaccounts/{service_account}/token");
    let answer = request::send(client, &Ask::post(path, &body, about.clone())).await?;
    let text = |pointer: &str| answer.body.pointer(pointer).and_then(Value::as_str);
    let odd = || ClusterError::Other { about: about.clone(), code: 0, message: "the answer has no token or no expiry".into() };
    let expires_at = text("/status/expirationTimestamp").and_then(|time| time.parse::<jiff::Timestamp>().ok()).ok_or_else(odd)?;
    let token = Secret::new(text("/status/token").ok_or_else(odd)?.to_owned());
    // On some clouds the stated expiry and the token's own differ: the earlier counts.
    let expires_at = claims(&token).map_or(expires_at, |claims| claims.expires_at.min(expires_at));
    Ok((token, expires_at))
}

/// Reads a token's claims without verifying it.
///
/// # Errors
/// [`TokenError`] where it is no JWT or has no `exp`.
pub fn claims(token: &Secret) -> Result<Claims, TokenError> {
    #[derive(Deserialize)]
    struct Body {
        exp: i64,
        iat: Option<i64>,
        sub: Option<String>,
        jti: Option<String>,
    }
    let body = token.expose().trim().split('.').nth(1).ok_or(TokenError)?;
    let bytes = URL_SAFE_NO_PAD.decode(body.trim_end_matches('=')).map_err(|_not_base64| TokenError)?;
    let body: Body = serde_json::from_slice(&bytes).map_err(|_not_claims| TokenError)?;
    let time = |second| jiff::Timestamp::from_second(second).map_err(|_out_of_range| TokenError);
    Ok(Claims { expires_at: time(body.exp)?, issued_at: body.iat.map(time).transpose()?, subject: body.sub, id: body.jti })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(body: &str) -> Secret {
        Secret::new(format!("e30.{}.c2ln", URL_SAFE_NO_PAD.encode(body)))
    }

    #[test]
    fn claims_are_read() {
        let read = claims(&token(r#"{"exp":1800000000,"iat":1700000000,"jti":"a","sub":"s"}"#)).unwrap();
        assert_eq!((read.expires_at.as_second(), read.issued_at.map(|at| at.as_second())), (1_800_000_000, Some(1_700_000_000)));
        assert_eq!((read.id.as_deref(), read.subject.as_deref()), (Some("a"), Some("s")));
        let least = claims(&token(r#"{"exp":1800000000}"#)).unwrap();
        assert_eq!((least.issued_at, least.id, least.subject), (None, None, None));
    }

    #[test]
    fn what_is_no_token_is_refused() {
        for text in ["", "a.b", "a.!!.c"] {
            assert_eq!(claims(&Secret::new(text.into())), Err(TokenError), "{text}");
        }
        assert_eq!(claims(&token(r#"{"jti":"a"}"#)), Err(TokenError));
        assert_eq!(claims(&token(r#"{"exp":99999999999999999}"#)), Err(TokenError));
    }
}
