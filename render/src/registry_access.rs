//! With whose credentials charts are pulled, and which further certificate authority is trusted.
//!
//! Credentials come from a docker `config.json`: its `auths` only. Credential helpers and stores are programs of others and are not
//! run. Deliberately absent: any guess where that file lies; the caller says.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use agent_api::secret::Secret;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;

/// Largest credentials or CA file that is read: 1 MiB.
const MAX_FILE_BYTES: u64 = 1 << 20;

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
    #[error("cannot read {path}")]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// A file is larger than this program reads.
    #[error("{path} is larger than {MAX_FILE_BYTES} bytes")]
    TooLarge {
        /// The file.
        path: PathBuf,
    },
    /// The credentials file is not docker's `config.json`.
    #[error("{path} is not a docker config.json: {problem}")]
    Credentials {
        /// The file.
        path: PathBuf,
        /// What is wrong, without any credential.
        problem: String,
    },
    /// The CA file holds no certificate.
    #[error("{path} holds no PEM certificate")]
    Ca {
        /// The file.
        path: PathBuf,
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
            Some(path) => {
                parse_credentials(&read(path)?).map_err(|problem| RegistryAccessError::Credentials { path: path.to_owned(), problem })?
            }
            None => BTreeMap::new(),
        };
        let ca = match ca_file {
            Some(path) => reqwest::Certificate::from_pem_bundle(&read(path)?)
                .ok()
                .filter(|certificates| !certificates.is_empty())
                .ok_or_else(|| RegistryAccessError::Ca { path: path.to_owned() })?,
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

fn read(path: &Path) -> Result<Vec<u8>, RegistryAccessError> {
    let error = |source| RegistryAccessError::Read { path: path.to_owned(), source };
    let size = std::fs::metadata(path).map_err(error)?.len();
    if size > MAX_FILE_BYTES {
        return Err(RegistryAccessError::TooLarge { path: path.to_owned() });
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
