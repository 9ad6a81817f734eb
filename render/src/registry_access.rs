//! With whose credentials charts are pulled, and which further certificate authority is trusted.
//!
//! Credentials come from a docker `config.json`: its `auths` only. Credential helpers and stores are programs of others and are not
//! run. Deliberately absent: any guess where that file lies; the caller says.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use agent_api::secret::Secret;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use serde::Deserialize;

/// Largest credentials or CA file that is read: 1 MiB.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// What the two files are called.
const CREDENTIALS_FILE: &str = "registry credentials file";
const CA_FILE: &str = "registry CA file";

/// The key under which docker keeps the credentials of Docker Hub, and the host that serves its images.
const DOCKER_HUB: (&str, &str) = ("index.docker.io", "registry-1.docker.io");

/// Access to registries: credentials by host, and extra trusted certificates. Its `Debug` shows hosts only.
#[derive(Clone, Debug, Default)]
pub struct RegistryAccess {
    credentials: BTreeMap<String, Credentials>,
    ca: Vec<reqwest::Certificate>,
}

/// A user and a password for one registry.
#[derive(Clone, Debug)]
pub(crate) struct Credentials {
    pub(crate) user: String,
    pub(crate) password: Secret,
}

/// Why access to registries could not be read.
#[derive(Debug, thiserror::Error)]
pub enum RegistryAccessError {
    /// A file cannot be read.
    #[error("the {what} {path} cannot be read")]
    Read {
        /// What it is to be.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// A file is larger than this program reads.
    #[error("the {what} {path} is larger than {MAX_FILE_BYTES} bytes")]
    TooLarge {
        /// What it is to be.
        what: &'static str,
        /// The file.
        path: PathBuf,
    },
    /// The credentials file is not docker's `config.json`.
    #[error("the {CREDENTIALS_FILE} {path} is not a docker config.json: {problem}")]
    Credentials {
        /// The file.
        path: PathBuf,
        /// What is wrong, without any credential.
        problem: String,
    },
    /// The CA file holds no certificate, or what is none.
    #[error("the {CA_FILE} {path} {problem}")]
    Ca {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        problem: String,
    },
}

#[derive(Deserialize)]
struct DockerConfig {
    #[serde(default)]
    auths: BTreeMap<String, DockerAuth>,
}

#[derive(Deserialize)]
struct DockerAuth {
    #[serde(default)]
    auth: Option<Secret>,
    #[serde(default)]
    username: Option<String>,
    #[serde(default)]
    password: Option<Secret>,
}

impl RegistryAccess {
    /// No credentials, and the system's certificate authorities.
    #[must_use]
    pub fn anonymous() -> Self {
        Self::default()
    }

    /// Reads a docker `config.json` and a PEM bundle of certificate authorities that are trusted beside the system's.
    ///
    /// # Errors
    /// A given file that is missing, too large or malformed. Entries without credentials are allowed and mean none.
    pub fn load(credentials_file: Option<&Path>, ca_file: Option<&Path>) -> Result<Self, RegistryAccessError> {
        let credentials = match credentials_file {
            Some(path) => parse_credentials(&read(CREDENTIALS_FILE, path)?)
                .map_err(|problem| RegistryAccessError::Credentials { path: path.to_owned(), problem })?,
            None => BTreeMap::new(),
        };
        let ca = match ca_file {
            Some(path) => {
                let pem = read(CA_FILE, path)?;
                parse_ca(&pem).map_err(|problem| RegistryAccessError::Ca { path: path.to_owned(), problem })?
            }
            None => Vec::new(),
        };
        Ok(Self { credentials, ca })
    }

    /// The registries that there are credentials for, `host[:port]`.
    pub fn hosts(&self) -> impl Iterator<Item = &str> {
        self.credentials.keys().map(String::as_str)
    }

    /// The credentials for a registry host (`host[:port]`).
    pub(crate) fn credentials(&self, host: &str) -> Option<&Credentials> {
        self.credentials.get(&host.to_ascii_lowercase())
    }

    /// Certificate authorities beside the system's.
    pub(crate) fn ca(&self) -> &[reqwest::Certificate] {
        &self.ca
    }
}

/// Certificates that TLS can take as authorities: what it cannot would only be found with the first connection, as another fault.
fn parse_ca(pem: &[u8]) -> Result<Vec<reqwest::Certificate>, String> {
    let mut authorities = Vec::new();
    for (i, der) in CertificateDer::pem_slice_iter(pem).enumerate() {
        let wrong = |problem: String| format!("is wrong in certificate {}: {problem}", i + 1);
        let der = der.map_err(|error| wrong(error.to_string()))?;
        rustls::RootCertStore::empty().add(der.clone()).map_err(|error| wrong(error.to_string()))?;
        authorities.push(reqwest::Certificate::from_der(&der).map_err(|error| wrong(error.to_string()))?);
    }
    if authorities.is_empty() { Err("holds no PEM certificate".into()) } else { Ok(authorities) }
}

fn read(what: &'static str, path: &Path) -> Result<Vec<u8>, RegistryAccessError> {
    let error = |source| RegistryAccessError::Read { what, path: path.to_owned(), source };
    let size = std::fs::metadata(path).map_err(error)?.len();
    if size > MAX_FILE_BYTES {
        return Err(RegistryAccessError::TooLarge { what, path: path.to_owned() });
    }
    std::fs::read(path).map_err(error)
}

fn parse_credentials(bytes: &[u8]) -> Result<BTreeMap<String, Credentials>, String> {
    // The parser's own message may quote what it read; only the place is told.
    let config: DockerConfig =
        serde_json::from_slice(bytes).map_err(|error| format!("line {}, column {}", error.line(), error.column()))?;
    let mut found = BTreeMap::new();
    for (key, entry) in config.auths {
        let host = host_of(&key);
        if let Some(credentials) = entry.read().map_err(|problem| format!("auths.{key}: {problem}"))? {
            found.insert(host, credentials);
        }
    }
    Ok(found)
}

impl DockerAuth {
    fn read(self) -> Result<Option<Credentials>, &'static str> {
        if let (Some(user), Some(password)) = (self.username, self.password) {
            return Ok(Some(Credentials { user, password }));
        }
        let Some(auth) = self.auth.filter(|auth| !auth.expose().is_empty()) else { return Ok(None) };
        let decoded = STANDARD.decode(auth.expose().trim()).map_err(|_| "`auth` is not base64")?;
        let text = Secret::new(String::from_utf8(decoded).map_err(|_| "`auth` is not UTF-8")?);
        let (user, password) = text.expose().split_once(':').ok_or("`auth` has no colon between user and password")?;
        Ok(Some(Credentials { user: user.to_owned(), password: Secret::new(password.trim_end_matches('\0').to_owned()) }))
    }
}

/// The registry host of a key in `auths`: docker writes hosts, and for old registries URLs.
fn host_of(key: &str) -> String {
    let rest = key.trim_start_matches("https://").trim_start_matches("http://");
    let host = rest.split('/').next().unwrap_or_default().to_ascii_lowercase();
    if host == DOCKER_HUB.0 || host == "docker.io" { DOCKER_HUB.1.to_owned() } else { host }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user_and_password(text: &str, host: &str) -> Option<(String, String)> {
        let access = RegistryAccess { credentials: parse_credentials(text.as_bytes()).unwrap(), ca: Vec::new() };
        access.credentials(host).map(|found| (found.user.clone(), found.password.expose().to_owned()))
    }

    #[test]
    fn docker_config_in_its_forms() {
        let both = Some(("u".to_owned(), "p:w".to_owned()));
        let auth = STANDARD.encode("u:p:w");
        for (text, host, expected) in [
            (format!(r#"{{"auths":{{"r.example:5000":{{"auth":"{auth}"}}}}}}"#), "R.example:5000", both.clone()),
            (format!(r#"{{"auths":{{"https://r.example/v1/":{{"auth":"{auth}"}}}},"credsStore":"x"}}"#), "r.example", both.clone()),
            (format!(r#"{{"auths":{{"https://index.docker.io/v1/":{{"auth":"{auth}"}}}}}}"#), "registry-1.docker.io", both.clone()),
            (r#"{"auths":{"r":{"username":"u","password":"p:w"}}}"#.to_owned(), "r", both),
            (r#"{"auths":{"r":{}}}"#.to_owned(), "r", None),
            (format!(r#"{{"auths":{{"r":{{"auth":"{auth}"}}}}}}"#), "r:443", None),
            ("{}".to_owned(), "r", None),
        ] {
            assert_eq!(user_and_password(&text, host), expected, "{text}");
        }
    }

    #[test]
    fn a_ca_file_holds_authorities_and_nothing_else() {
        let good = include_str!("../tests/ca.pem");
        let odd = "-----BEGIN CERTIFICATE-----\nYWJj\n-----END CERTIFICATE-----\n";
        let torn = "-----BEGIN CERTIFICATE-----\nYWJj\n";
        for (text, expected) in [
            (good.to_owned(), Ok(1)),
            (format!("# a comment\n{good}\n{good}"), Ok(2)),
            (String::new(), Err("holds no PEM certificate")),
            ("hello".to_owned(), Err("holds no PEM certificate")),
            (odd.to_owned(), Err("is wrong in certificate 1: ")),
            (format!("{good}{odd}"), Err("is wrong in certificate 2: ")),
            (torn.to_owned(), Err("is wrong in certificate 1: ")),
        ] {
            match (parse_ca(text.as_bytes()).map(|found| found.len()), expected) {
                (Ok(found), Ok(expected)) => assert_eq!(found, expected, "{text}"),
                (Err(found), Err(expected)) => assert!(found.starts_with(expected), "{found}"),
                (found, expected) => panic!("{text}: {found:?}, expected {expected:?}"),
            }
        }
    }

    #[test]
    fn an_error_names_the_place_and_no_credential() {
        for text in [r#"{"auths":{"r":{"auth":"hunter2!"}}}"#, r#"{"auths":{"r":"hunter2!"}}"#, "hunter2!"] {
            let problem = parse_credentials(text.as_bytes()).unwrap_err();
            assert!(!problem.contains("hunter2"), "{problem}");
        }
    }

    #[test]
    fn debug_shows_no_password() {
        let access = RegistryAccess {
            credentials: parse_credentials(br#"{"auths":{"r":{"username":"u","password":"hunter2"}}}"#).unwrap(),
            ca: Vec::new(),
        };
        assert!(!format!("{access:?}").contains("hunter2"));
    }
}
