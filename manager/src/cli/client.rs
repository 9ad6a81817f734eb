//! The REST API's client: where it is, who we are, and what its problem documents mean for the person.

use std::path::{Path, PathBuf};

use agent_api::problem::Problem;
use agent_api::secret::Secret;
use reqwest::redirect::Policy;
use reqwest::{Certificate, Method, StatusCode};
use serde_json::Value;

use super::code;
use crate::config;

/// Options that say where the API is and who asks.
#[derive(Debug, clap::Args)]
pub struct Connect {
    /// Where the server is.
    #[arg(long, global = true, env = "NAVIN_MANAGER_ENDPOINT", default_value = config::ENDPOINT)]
    pub endpoint: String,
    /// File that holds the bearer token; the variable NAVIN_MANAGER_TOKEN holds the token itself.
    #[arg(long, global = true, env = "NAVIN_MANAGER_TOKEN_FILE")]
    pub token_file: Option<PathBuf>,
    /// PEM of the server's certificate authority [default: the system's].
    #[arg(long, global = true, env = "NAVIN_MANAGER_CA_FILE")]
    pub ca_file: Option<PathBuf>,
}

/// Why the API did not do it.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// No token was given.
    #[error("no bearer token was given")]
    NoToken,
    /// A file.
    #[error("{path} could not be read")]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The server did not answer.
    #[error("{endpoint} could not be asked")]
    Transport {
        /// Where.
        endpoint: String,
        /// Why.
        source: reqwest::Error,
    },
    /// The server said no.
    #[error("{}", .0.detail)]
    Problem(Problem),
    /// Something else answered.
    #[error("the answer (HTTP {0}) is not this API's")]
    Foreign(StatusCode),
}

impl ClientError {
    /// Its stable code: the server's where it said something.
    #[must_use]
    pub fn code(&self) -> &str {
        match self {
            Self::Problem(problem) => &problem.code,
            Self::NoToken => code::NO_TOKEN,
            Self::File { .. } => code::FILE_UNREADABLE,
            Self::Transport { .. } => code::MANAGER_UNREACHABLE,
            Self::Foreign(_) => code::MANAGER_ANSWER,
        }
    }

    /// What to do next, where that is known.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::NoToken => {
                "give --token-file FILE or set NAVIN_MANAGER_TOKEN; the first token is made by `navin-manager token create NAME --data-dir DIR`"
            }
            Self::Transport { .. } => {
                "is `navin-manager serve` running? The address is --endpoint, the certificate authority --ca-file (its ca.crt lies in the server's data folder)"
            }
            Self::File { .. } | Self::Foreign(_) => return None,
            Self::Problem(problem) => {
                let told = next_step(&problem.code).map(str::to_owned);
                return told.or_else(|| Some(format!("docs/errors/http/{}.md says why, and what to do", problem.code)));
            }
        };
        Some(hint.to_owned())
    }
}

fn next_step(code: &str) -> Option<&'static str> {
    Some(match code {
        "unauthenticated" => {
            "the token may be revoked: `navin-manager token list` with another one; --token-file or NAVIN_MANAGER_TOKEN says which is used"
        }
        "not_found" => "see what is there: `navin-manager cluster|environment|release|executor list`",
        "values_secret" => "put the secret into a Kubernetes Secret and name it in the values (existingSecret, secretKeyRef)",
        "nothing_proposed" => "propose a release: `navin-manager release propose NAME --environment ENV`",
        "last_token" => "make another one first: `navin-manager token create NAME`",
        "cluster_has_environment" => "use that one, or make another cluster: `navin-manager cluster create NAME`",
        _ => return None,
    })
}

/// A client with a token.
#[derive(Debug)]
pub struct Client {
    http: reqwest::Client,
    endpoint: String,
    token: Secret,
}

impl Client {
    /// A client with the token from file or environment.
    ///
    /// # Errors
    /// No token, or files that cannot be read.
    pub fn new(connect: &Connect) -> Result<Self, ClientError> {
        let token = match (&connect.token_file, std::env::var("NAVIN_MANAGER_TOKEN")) {
            (Some(path), _) => read(path)?,
            (None, Ok(token)) if !token.trim().is_empty() => token,
            (None, _) => return Err(ClientError::NoToken),
        };
        Self::with_token(connect, Secret::new(token.trim().to_owned()))
    }

    /// A client with this token.
    ///
    /// # Errors
    /// The certificate authority's file.
    pub fn with_token(connect: &Connect, token: Secret) -> Result<Self, ClientError> {
        let endpoint = connect.endpoint.trim_end_matches('/').to_owned();
        let failed = |source| ClientError::Transport { endpoint: endpoint.clone(), source };
        let mut http = reqwest::Client::builder().https_only(true).redirect(Policy::none()).timeout(config::CLIENT_TIMEOUT);
        if let Some(path) = &connect.ca_file {
            http = http.tls_certs_only(Certificate::from_pem_bundle(read(path)?.as_bytes()).map_err(failed)?);
        }
        let http = http.build().map_err(failed)?;
        Ok(Self { http, endpoint, token })
    }

    /// `GET` of a path.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn get(&self, path: &str) -> Result<Value, ClientError> {
        self.json(Method::GET, path, None).await
    }

    /// `GET` of a path, as the exact text.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn text(&self, path: &str) -> Result<String, ClientError> {
        self.send(Method::GET, path, None).await
    }

    /// `POST` to a path.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn post(&self, path: &str, body: &Value) -> Result<Value, ClientError> {
        self.json(Method::POST, path, Some(body)).await
    }

    /// `DELETE` of a path.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn delete(&self, path: &str) -> Result<(), ClientError> {
        self.send(Method::DELETE, path, None).await.map(drop)
    }

    async fn json(&self, method: Method, path: &str, body: Option<&Value>) -> Result<Value, ClientError> {
        let text = self.send(method, path, body).await?;
        serde_json::from_str(&text).map_err(|_| ClientError::Foreign(StatusCode::OK))
    }

    async fn send(&self, method: Method, path: &str, body: Option<&Value>) -> Result<String, ClientError> {
        let failed = |source| ClientError::Transport { endpoint: self.endpoint.clone(), source };
        let mut request = self.http.request(method, format!("{}/api/v1/{path}", self.endpoint)).bearer_auth(self.token.expose());
        if let Some(body) = body {
            request = request.json(body);
        }
        let response = request.send().await.map_err(failed)?;
        let status = response.status();
        let text = response.text().await.map_err(failed)?;
        if status.is_success() {
            return Ok(text);
        }
        Err(serde_json::from_str(&text).map_or(ClientError::Foreign(status), ClientError::Problem))
    }
}

/// A file's text.
///
/// # Errors
/// [`ClientError::File`].
pub fn read(path: &Path) -> Result<String, ClientError> {
    std::fs::read_to_string(path).map_err(|source| ClientError::File { path: path.to_owned(), source })
}

/// A name as a part of a path.
#[must_use]
pub fn segment(name: &str) -> String {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._~".contains(byte);
    name.bytes().map(|byte| if plain(&byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_cannot_leave_their_place() {
        assert_eq!(segment("platform-1.0"), "platform-1.0");
        assert_eq!(segment("a/../b?c d"), "a%2F..%2Fb%3Fc%20d");
    }
}
