//! The way to the manager: proxy, DNS, TCP, TLS, and whether it takes this connector's certificate and key.

use agent_api::enrolment::CHANNEL_PATH;
use agent_api::problem::Problem;
use hyper_util::client::proxy::matcher::Matcher;
use reqwest::{Method, Response, StatusCode, Url};
use tokio::net::{TcpStream, lookup_host};

use super::finding::Findings;
use crate::config::Config;
use crate::signed::{Signed, SignedError};
use crate::terminal::chain;

/// Why the manager gave no answer.
pub(super) enum NoAnswer {
    /// The request could not be made.
    Unsigned(SignedError),
    /// Nothing came back.
    Unreachable(reqwest::Error),
}

pub(super) async fn check(config: &Config, findings: &mut Findings) {
    let endpoint = &config.api.endpoint;
    let Some((host, port)) = host_and_port(endpoint) else {
        return findings.fail(format!("api.endpoint `{endpoint}` has no host"), "set api.endpoint to https://host[:port]");
    };
    let hop = match proxy(endpoint) {
        Some(proxy) => {
            findings.pass(format!("proxy {}:{} by HTTPS_PROXY", proxy.0, proxy.1));
            proxy
        }
        None => (host, port),
    };
    if !stands(&hop, findings).await {
        return;
    }
    match ask(config).await {
        Ok(answer) => judge(answer, findings).await,
        Err(NoAnswer::Unsigned(error)) => findings.skip(format!("TLS to {endpoint}: {}", chain(&error))),
        Err(NoAnswer::Unreachable(error)) => findings.fail(
            format!("{endpoint}: {}", chain(&error.without_url())),
            "TLS 1.3 must reach the manager unbroken; where a private CA signed its certificate it belongs into api.tls.ca_file",
        ),
    }
}

/// Whether DNS and TCP work.
async fn stands((host, port): &(String, u16), findings: &mut Findings) -> bool {
    let addresses: Vec<std::net::SocketAddr> = match lookup_host((host.as_str(), *port)).await {
        Ok(addresses) => addresses.collect(),
        Err(error) => {
            findings.fail(format!("DNS: {host}: {error}"), format!("see that `getent hosts {host}` answers on this machine"));
            return false;
        }
    };
    let shown: Vec<String> = addresses.iter().map(|address| address.ip().to_string()).collect();
    findings.pass(format!("DNS: {host} is {}", shown.join(", ")));
    match TcpStream::connect(addresses.as_slice()).await {
        Ok(_) => {
            findings.pass(format!("TCP: {host}:{port} is open"));
            true
        }
        Err(error) => {
            let fix = format!("let this machine out to {host} on port {port}, or set HTTPS_PROXY for the executor");
            findings.fail(format!("TCP: {host}:{port}: {error}"), fix);
            false
        }
    }
}

/// One signed request that changes nothing: the channel without an upgrade, which the manager refuses only after all its other checks.
pub(super) async fn ask(config: &Config) -> Result<Response, NoAnswer> {
    let signed = Signed::load(&config.api).map_err(NoAnswer::Unsigned)?;
    signed.request(Method::GET, CHANNEL_PATH, Vec::new()).send().await.map_err(NoAnswer::Unreachable)
}

async fn judge(answer: Response, findings: &mut Findings) {
    let status = answer.status();
    let body = answer.text().await.unwrap_or_default();
    let problem = serde_json::from_str::<Problem>(&body).ok();
    let code = problem.as_ref().map_or("", |problem| problem.code.as_str());
    if status == StatusCode::BAD_REQUEST && code == "upgrade_refused" {
        return findings.pass("TLS 1.3: the manager takes this connector's certificate and key");
    }
    let detail = problem.as_ref().map_or_else(|| body.chars().take(200).collect(), |problem| problem.detail.clone());
    let told = format!("the manager answered {}: {detail}", status.as_u16());
    match status {
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
            findings.fail(
                told,
                "see the clock and the certificate below; else ask for a new enrolment token and run clicklink clctl init --force",
            );
        }
        status if status.is_server_error() => {
            findings.fail(told, "the manager has a problem of its own: try again later, or tell its operator")
        }
        _ if problem.is_some() => findings.warn(told, "the manager may be of another version"),
        _ => findings.fail(told, "something else than the manager answers: see api.endpoint and the proxy"),
    }
}

fn host_and_port(url: &str) -> Option<(String, u16)> {
    let url = Url::parse(url).ok()?;
    let host = url.host_str()?.trim_start_matches('[').trim_end_matches(']').to_owned();
    Some((host, url.port_or_known_default()?))
}

/// As the HTTP client decides: HTTPS_PROXY or ALL_PROXY, unless NO_PROXY fits.
fn proxy(endpoint: &str) -> Option<(String, u16)> {
    let target = endpoint.parse::<hyper::Uri>().ok()?;
    let intercept = Matcher::from_env().intercept(&target)?;
    let uri = intercept.uri();
    let default = if uri.scheme_str() == Some("https") { 443 } else { 80 };
    Some((uri.host()?.to_owned(), uri.port_u16().unwrap_or(default)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_and_port_of_an_endpoint() {
        assert_eq!(host_and_port("https://m.example"), Some(("m.example".into(), 443)));
        assert_eq!(host_and_port("https://[::1]:8443/"), Some(("::1".into(), 8443)));
        assert_eq!(host_and_port("m.example"), None);
    }
}
