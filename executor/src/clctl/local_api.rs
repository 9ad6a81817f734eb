//! A client of the executor's local API: one GET, read whole, and the reasons why there is no answer.

use std::time::Duration;

use agent_api::problem::Problem;
use clap::{ArgAction, Args};
use serde::de::DeserializeOwned;

use crate::error_code::{Code, Coded};
use crate::terminal::{chain, talk};

/// Where the local API listens unless told otherwise.
pub(crate) const DEFAULT_ENDPOINT: &str = "http://127.0.0.1:9999";
/// How long a connection may take to stand.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long an answer may take.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Where it is, and whether requests are told.
#[derive(Args)]
pub(crate) struct LocalApi {
    /// Address of the executor's local API.
    #[arg(long, value_name = "URL", env = "CLCTL_ENDPOINT", default_value = DEFAULT_ENDPOINT, value_parser = endpoint)]
    endpoint: String,
    /// Tell each request on stderr; -vv also what came back.
    #[arg(short, long, action = ArgAction::Count)]
    verbose: u8,
}

/// An address of a local API: http, or https through a proxy, with a host and without user or password.
pub(crate) fn endpoint(text: &str) -> Result<String, String> {
    let url = reqwest::Url::parse(text).map_err(|error| format!("{error}; http://host[:port] is needed"))?;
    let plain = url.username().is_empty() && url.password().is_none() && url.query().is_none() && url.fragment().is_none();
    if matches!(url.scheme(), "http" | "https") && url.has_host() && plain {
        Ok(text.trim_end_matches('/').to_owned())
    } else {
        Err("http://host[:port] is needed".into())
    }
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LocalApiError {
    /// Nobody there.
    #[error("the executor's local API does not answer at {endpoint}: {problem}")]
    Unreachable {
        /// Address.
        endpoint: String,
        /// What happened.
        problem: String,
    },
    /// A problem document.
    #[error("{}", .0.detail)]
    Refused(Problem),
    /// Something else answers, or of another version.
    #[error("{endpoint}: {problem}")]
    Answer {
        /// Address.
        endpoint: String,
        /// What is odd.
        problem: String,
    },
}

impl Coded for LocalApiError {
    fn code(&self) -> Code {
        match self {
            Self::Unreachable { .. } => Code::LocalApiUnreachable,
            Self::Refused(problem) => match problem.status {
                404 => Code::NotFound,
                503 => Code::ExecutorStopping,
                _ => Code::RequestRefused,
            },
            Self::Answer { .. } => Code::LocalApiAnswer,
        }
    }

    fn hints(&self) -> Vec<String> {
        match self {
            Self::Unreachable { .. } => vec![
                "on a connector VM see whether it runs: systemctl status clicklink-executor".into(),
                "on Kubernetes open a port-forward: kubectl -n <namespace> port-forward deployment/clicklink-connector-executor 9999:9999"
                    .into(),
            ],
            Self::Refused(problem) if problem.status == 404 => vec!["see all: clicklink clctl commands list".into()],
            Self::Refused(_) => Vec::new(),
            Self::Answer { .. } => {
                vec!["see that --endpoint or CLCTL_ENDPOINT leads to the executor, and that both are of one version".into()]
            }
        }
    }
}

impl LocalApi {
    /// Of another command's flag.
    pub(crate) fn at(endpoint: &str) -> Self {
        Self { endpoint: endpoint.to_owned(), verbose: 0 }
    }

    /// GET and read.
    pub(crate) async fn get<T: DeserializeOwned>(&self, path: &str, query: &[(&str, String)]) -> Result<T, LocalApiError> {
        let endpoint = self.endpoint.trim_end_matches('/');
        let odd = |problem: String| LocalApiError::Answer { endpoint: endpoint.to_owned(), problem };
        let unreachable =
            |error: reqwest::Error| LocalApiError::Unreachable { endpoint: endpoint.to_owned(), problem: chain(&error.without_url()) };
        let mut url = reqwest::Url::parse(&format!("{endpoint}{path}")).map_err(|error| odd(format!("not an address: {error}")))?;
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        let http = reqwest::Client::builder()
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .connect_timeout(CONNECT_TIMEOUT)
            .timeout(TIMEOUT)
            .build()
            .map_err(unreachable)?;
        self.tell(1, format_args!("GET {url}"));
        let response = http.get(url).send().await.map_err(unreachable)?;
        let status = response.status();
        let body = response.text().await.map_err(unreachable)?;
        self.tell(1, format_args!("HTTP {}, {} bytes", status.as_u16(), body.len()));
        self.tell(2, &body);
        if !status.is_success() {
            return Err(match serde_json::from_str(&body) {
                Ok(problem) => LocalApiError::Refused(problem),
                Err(_) => odd(format!("HTTP {}: this is not the executor's local API", status.as_u16())),
            });
        }
        serde_json::from_str(&body).map_err(|error| odd(format!("{path}: {error}")))
    }

    fn tell(&self, from: u8, line: impl std::fmt::Display) {
        if self.verbose >= from {
            talk(line);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_is_not_there_is_told_with_what_to_do() {
        for (endpoint, code) in [("http://127.0.0.1:1", Code::LocalApiUnreachable), ("nonsense", Code::LocalApiAnswer)] {
            let error = LocalApi::at(endpoint).get::<serde_json::Value>("/v1/commands", &[]).await.unwrap_err();
            assert_eq!(error.code(), code, "{endpoint}: {error}");
            assert!(!error.hints().is_empty());
        }
    }
}
