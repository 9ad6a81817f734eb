//! Ways to an API server: as the person (their kubeconfig), as an access bundle (address, CA, token), as a pod.
//!
//! Only the person's way runs plugins, reads other files or takes a proxy. No way retries by itself: `request` does.

use std::collections::HashMap;
use std::path::Path;

use agent_api::secret::Secret;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::header::{HeaderName, HeaderValue, USER_AGENT};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject as _;

use crate::guard::{ClientCertificate, Guarded};
use crate::told;

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The kubeconfig cannot be read or is incomplete.
    #[error("kubeconfig: {0}")]
    Kubeconfig(String),
    /// Nothing says which context is meant.
    #[error("the kubeconfig has several contexts and none is current; choose one with --context: {}", .0.join(", "))]
    ContextNeeded(Vec<String>),
    /// The named context is not there, or a pattern fits several.
    #[error("context `{asked}` {problem}; there are: {}", contexts.join(", "))]
    Context {
        /// What was asked for.
        asked: String,
        /// What is wrong.
        problem: &'static str,
        /// All, or all that fit.
        contexts: Vec<String>,
    },
    /// An access bundle's address is not `https://host[:port][/path]`.
    #[error("the API server's address `{0}` is not of the form https://host[:port]")]
    Server(String),
    /// An access bundle's CA holds no certificate.
    #[error("the CA of the access bundle holds no PEM certificate")]
    Ca,
    /// The pod's environment or ServiceAccount files are missing.
    #[error("not in a pod: {0}")]
    InCluster(#[source] kube::config::InClusterError),
    /// TLS or credentials could not be set up.
    #[error("the connection could not be set up: {0}")]
    Client(String),
}

/// A connection, and what an access bundle for the same cluster needs to know of it.
pub struct Connection {
    /// The client.
    pub client: Client,
    /// Address of the API server.
    pub server: String,
    /// The CA's certificates; `None` where the system's roots are used.
    pub ca_pem: Option<Vec<u8>>,
    /// The kubeconfig's context.
    pub context: Option<String>,
    config: Config,
}

/// What the API server calls a credential's id among a user's extra fields.
const CREDENTIAL_ID: &str = "authentication.kubernetes.io/credential-id";

impl Connection {
    fn new(mut config: Config, context: Option<String>) -> Result<Self, ConnectError> {
        config.default_retry = false;
        config.headers.extend(user_agent());
        let client = Client::try_from(config.clone()).map_err(|error| ConnectError::Client(told::client(&error)))?;
        let ca_pem = config.root_cert.as_deref().map(to_pem);
        let server = config.cluster_url.to_string().trim_end_matches('/').to_owned();
        Ok(Self { client, server, ca_pem, context, config })
    }

    /// A client on connections of its own that acts as somebody else; admission is told that they came with this credential.
    ///
    /// # Errors
    /// [`ConnectError::Client`].
    pub fn impersonating(&self, user: &str, groups: &[&str], credential: Option<&str>) -> Result<Client, ConnectError> {
        let mut config = self.config.clone();
        config.auth_info.impersonate = Some(user.to_owned());
        config.auth_info.impersonate_groups = Some(groups.iter().map(|group| (*group).to_owned()).collect());
        config.auth_info.impersonate_user_extra = credential.map(|id| HashMap::from([(CREDENTIAL_ID.to_owned(), vec![id.to_owned()])]));
        Client::try_from(config).map_err(|error| ConnectError::Client(told::client(&error)))
    }
}

/// Who asks, for the API server's audit log: program, version and platform, as kubectl tells it.
fn user_agent() -> Option<(HeaderName, HeaderValue)> {
    let program = std::env::current_exe().ok()?;
    let program = program.file_name()?.to_str()?;
    let agent = format!("{program}/{} ({}/{})", env!("CARGO_PKG_VERSION"), std::env::consts::OS, std::env::consts::ARCH);
    Some((USER_AGENT, agent.try_into().ok()?))
}

/// The person's way: kubeconfig as kubectl takes it (`KUBECONFIG` or `~/.kube/config` unless a path is given; plugins, files, proxy).
///
/// `context` is a name, or a pattern with `*` that must fit one. Without it: the current context, or the only one.
///
/// # Errors
/// See [`ConnectError`]; where a context must be chosen, all are listed.
pub async fn person(kubeconfig: Option<&Path>, context: Option<&str>) -> Result<Connection, ConnectError> {
    let broken = |error| ConnectError::Kubeconfig(told::kubeconfig(&error));
    let file = match kubeconfig {
        Some(path) => Kubeconfig::read_from(path),
        None => Kubeconfig::read(),
    }
    .map_err(broken)?;
    let names: Vec<String> = file.contexts.iter().map(|context| context.name.clone()).collect();
    let current = file.current_context.as_deref().filter(|name| !name.is_empty());
    let chosen = choose(names, current, context)?;
    let options = KubeConfigOptions { context: Some(chosen.clone()), ..KubeConfigOptions::default() };
    let config = Config::from_custom_kubeconfig(file, &options).await.map_err(broken)?;
    Connection::new(config, Some(chosen))
}

fn choose(names: Vec<String>, current: Option<&str>, asked: Option<&str>) -> Result<String, ConnectError> {
    let Some(asked) = asked else {
        return match (current, names.as_slice()) {
            (Some(current), _) => Ok(current.to_owned()),
            (None, [only]) => Ok(only.clone()),
            (None, _) => Err(ConnectError::ContextNeeded(names)),
        };
    };
    if names.iter().any(|name| name == asked) {
        return Ok(asked.to_owned());
    }
    let fitting: Vec<String> = names.iter().filter(|name| fits(asked, name)).cloned().collect();
    match fitting.as_slice() {
        [one] => Ok(one.clone()),
        [] => Err(ConnectError::Context { asked: asked.to_owned(), problem: "is not in the kubeconfig", contexts: names }),
        _ => Err(ConnectError::Context { asked: asked.to_owned(), problem: "fits several contexts", contexts: fitting }),
    }
}

/// `*` stands for any text; without one the pattern is a name.
fn fits(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == name,
        Some((start, rest)) => name
            .strip_prefix(start)
            .is_some_and(|tail| (0..=tail.len()).filter(|at| tail.is_char_boundary(*at)).any(|at| fits(rest, &tail[at..]))),
    }
}

/// An access bundle's way: https only, its CA only (none given: the system's), its token only. No proxy, no file, no environment.
///
/// # Errors
/// [`ConnectError::Server`], [`ConnectError::Ca`], [`ConnectError::Client`].
pub async fn bearer(server: &str, ca_pem: &[u8], token: &Secret) -> Result<Connection, ConnectError> {
    let mut config = server_config(server, ca_pem)?;
    config.auth_info.token = Some(token.expose().trim().to_owned().into());
    Connection::new(config, None)
}

/// https only, and a CA where one is given.
fn server_config(server: &str, ca_pem: &[u8]) -> Result<Config, ConnectError> {
    let server = server.trim();
    let address = || ConnectError::Server(server.to_owned());
    let uri: http::Uri = server.parse().map_err(|_not_a_uri| address())?;
    let authority = uri.authority().ok_or_else(address)?;
    if uri.scheme_str() != Some("https") || authority.as_str().contains('@') || uri.query().is_some() {
        return Err(address());
    }
    let mut config = Config::new(uri);
    if !ca_pem.trim_ascii().is_empty() {
        let certificates: Result<Vec<Vec<u8>>, _> =
            CertificateDer::pem_slice_iter(ca_pem).map(|item| item.map(|certificate| certificate.to_vec())).collect();
        config.root_cert = Some(certificates.ok().filter(|found| !found.is_empty()).ok_or(ConnectError::Ca)?);
    }
    Ok(config)
}

/// A guarded kubeconfig's way: its address, its CA, its token or client certificate, and nothing else.
///
/// # Errors
/// [`ConnectError::Server`], [`ConnectError::Ca`], [`ConnectError::Client`].
pub async fn guarded(kubeconfig: &Guarded) -> Result<Connection, ConnectError> {
    let Some(ClientCertificate { certificate, key }) = &kubeconfig.certificate else {
        let none = Secret::new(String::new());
        return bearer(&kubeconfig.server, &kubeconfig.ca_pem, kubeconfig.token.as_ref().unwrap_or(&none)).await;
    };
    let mut config = server_config(&kubeconfig.server, &kubeconfig.ca_pem)?;
    config.auth_info.client_certificate_data = Some(STANDARD.encode(certificate));
    config.auth_info.client_key_data = Some(STANDARD.encode(key.expose()).into());
    Connection::new(config, None)
}

/// A pod's way: its projected ServiceAccount token, renewed by the kubelet and read again by the client.
///
/// # Errors
/// [`ConnectError::InCluster`] outside a pod.
pub async fn in_cluster() -> Result<Connection, ConnectError> {
    Connection::new(Config::incluster().map_err(ConnectError::InCluster)?, None)
}

fn to_pem(certificates: &[Vec<u8>]) -> Vec<u8> {
    let mut pem = String::new();
    for certificate in certificates {
        pem.push_str("-----BEGIN CERTIFICATE-----\n");
        for line in STANDARD.encode(certificate).as_bytes().chunks(64) {
            pem.push_str(&String::from_utf8_lossy(line));
            pem.push('\n');
        }
        pem.push_str("-----END CERTIFICATE-----\n");
    }
    pem.into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(current: Option<&str>, asked: Option<&str>) -> Result<String, String> {
        choose(vec!["eu-prod".into(), "eu-test".into(), "us".into()], current, asked).map_err(|error| error.to_string())
    }

    #[test]
    fn contexts_are_chosen_as_a_person_expects() {
        assert_eq!(chosen(Some("us"), None), Ok("us".into()));
        assert_eq!(chosen(None, Some("us")), Ok("us".into()));
        assert_eq!(chosen(None, Some("*prod")), Ok("eu-prod".into()));
        assert!(chosen(None, None).unwrap_err().ends_with("--context: eu-prod, eu-test, us"));
        assert_eq!(chosen(None, Some("eu-*")).unwrap_err(), "context `eu-*` fits several contexts; there are: eu-prod, eu-test");
        assert!(chosen(Some("us"), Some("zz")).unwrap_err().contains("is not in the kubeconfig"));
        assert_eq!(choose(vec!["one".into()], None, None).unwrap(), "one");
    }

    #[tokio::test]
    async fn an_access_bundle_is_https_or_nothing() {
        let token = Secret::new("t".into());
        for server in ["http://10.0.0.1", "https://user@10.0.0.1", "10.0.0.1", "https://a?x=y", ""] {
            let error = bearer(server, b"", &token).await.err().expect(server);
            assert!(matches!(error, ConnectError::Server(_)), "{server}: {error}");
        }
        assert!(matches!(bearer("https://10.0.0.1", b"no pem", &token).await.err(), Some(ConnectError::Ca)));
    }

    #[test]
    fn pem_round_trip() {
        let der = vec![vec![7_u8; 100], vec![1, 2, 3]];
        let read: Vec<Vec<u8>> = CertificateDer::pem_slice_iter(&to_pem(&der)).map(|item| item.unwrap().to_vec()).collect();
        assert_eq!(read, der);
    }
}
