//! The AWS libraries' requests over this program's own HTTP client: one TLS stack, one set of trusted authorities, one proxy rule.
//!
//! Addresses on the machine itself (instance and container metadata) are asked without TLS and never through a proxy; everything
//! else over TLS only.

use std::net::IpAddr;
use std::time::Duration;

use aws_sdk_sts::config::http::{HttpRequest, HttpResponse};
use aws_sdk_sts::config::{HttpClient, RuntimeComponents};
use aws_sdk_sts::error::{BoxError, ConnectorError};
use aws_smithy_runtime_api::client::http::{HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpConnector};
use aws_smithy_runtime_api::http::StatusCode;
use reqwest::header::HeaderValue;
use reqwest::{Client, Method, Url};

use crate::pull::PullError;

/// Largest answer that is read: 1 MiB.
const MAX_ANSWER: usize = 1 << 20;
/// How long a connection may take to stand.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
/// How long one request may take, where the caller says nothing shorter.
const TOTAL_TIMEOUT: Duration = Duration::from_secs(10);

/// Headers with credentials, which no log may show.
const CREDENTIALS: [&str; 3] = ["authorization", "x-amz-security-token", "x-aws-ec2-metadata-token"];

/// Clients for AWS.
#[derive(Clone, Debug)]
pub(super) struct Http {
    outside: Client,
    /// For the machine's own metadata services.
    pub(super) local: Client,
}

impl Http {
    /// Trusts these authorities beside the system's.
    pub(super) fn new(ca: &[reqwest::Certificate]) -> Result<Self, PullError> {
        let plain = || {
            Client::builder()
                .redirect(reqwest::redirect::Policy::none())
                .connect_timeout(CONNECT_TIMEOUT)
                .timeout(TOTAL_TIMEOUT)
                .pool_max_idle_per_host(0)
        };
        let outside = plain().https_only(true).tls_certs_merge(ca.iter().cloned()).build().map_err(PullError::Client)?;
        let local = plain().no_proxy().build().map_err(PullError::Client)?;
        Ok(Self { outside, local })
    }

    fn client_for(&self, url: &Url) -> &Client {
        if is_local(url) { &self.local } else { &self.outside }
    }
}

/// Whether an address can only be this machine's, or its host's metadata service.
fn is_local(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    match host.trim_matches(['[', ']']).parse() {
        Ok(IpAddr::V4(address)) => address.is_loopback() || address.is_link_local(),
        // fd00:ec2::254 and fd00:ec2::23.
        Ok(IpAddr::V6(address)) => address.is_loopback() || address.segments()[..2] == [0xfd00, 0xec2],
        Err(_) => host == "localhost",
    }
}

impl HttpClient for Http {
    fn http_connector(&self, settings: &HttpConnectorSettings, _: &RuntimeComponents) -> SharedHttpConnector {
        let limit = settings.read_timeout().unwrap_or(TOTAL_TIMEOUT).min(TOTAL_TIMEOUT);
        SharedHttpConnector::new(Connector { http: self.clone(), limit })
    }
}

#[derive(Clone, Debug)]
struct Connector {
    http: Http,
    limit: Duration,
}

impl HttpConnector for Connector {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let this = self.clone();
        HttpConnectorFuture::new(async move { this.send(request).await })
    }
}

impl Connector {
    async fn send(&self, request: HttpRequest) -> Result<HttpResponse, ConnectorError> {
        let user = |error: BoxError| ConnectorError::user(error);
        let method: Method = request.method().parse().map_err(|_| user("an HTTP method that is none".into()))?;
        let url = Url::parse(request.uri()).map_err(|error| user(error.into()))?;
        let body = request.body().bytes().ok_or_else(|| user("a request whose body is a stream".into()))?.to_vec();
        let mut outgoing = self.http.client_for(&url).request(method, url).timeout(self.limit).body(body);
        for (name, value) in request.headers() {
            let mut value = HeaderValue::from_str(value).map_err(|error| user(error.into()))?;
            value.set_sensitive(CREDENTIALS.contains(&name.to_ascii_lowercase().as_str()));
            outgoing = outgoing.header(name, value);
        }
        let failed = |error: reqwest::Error| {
            let timeout = error.is_timeout();
            let error: BoxError = error.without_url().into();
            if timeout { ConnectorError::timeout(error) } else { ConnectorError::io(error) }
        };
        let mut answer = outgoing.send().await.map_err(failed)?;
        let status = StatusCode::try_from(answer.status().as_u16()).map_err(|error| user(error.into()))?;
        let mut bytes = Vec::new();
        while let Some(chunk) = answer.chunk().await.map_err(failed)? {
            bytes.extend_from_slice(&chunk);
            if bytes.len() > MAX_ANSWER {
                return Err(user(format!("an answer of more than {MAX_ANSWER} bytes").into()));
            }
        }
        let mut response = HttpResponse::new(status, bytes.into());
        for (name, value) in answer.headers() {
            if let Ok(value) = value.to_str() {
                response.headers_mut().append(name.as_str().to_owned(), value.to_owned());
            }
        }
        Ok(response)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_machine_s_own_addresses_are_asked_without_tls() {
        for (url, expected) in [
            ("http://169.254.169.254/latest/api/token", true),
            ("http://169.254.170.2/v2/credentials", true),
            ("http://[fd00:ec2::254]/", true),
            ("http://127.0.0.1:1/", true),
            ("http://localhost:1/", true),
            ("https://sts.eu-west-1.amazonaws.com/", false),
            ("http://169.254.169.254.evil.example/", false),
            ("http://10.0.0.1/", false),
        ] {
            assert_eq!(is_local(&Url::parse(url).unwrap()), expected, "{url}");
        }
    }
}
