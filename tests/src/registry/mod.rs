//! A real OCI registry on loopback: TLS with an authority of its own, and basic authentication, or none.

mod chart;
mod image;

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use serde_json::json;

pub use self::chart::PushedChart;
use crate::encode::base64;
use crate::eventually::until;
use crate::folder::TempFolder;
use crate::pki::Authority;
use crate::port::free_port;
use crate::process::{Process, Program};
use crate::tools::Tools;

const PATIENCE: Duration = Duration::from_secs(60);

/// What `htpasswd -nbB` makes of [`Registry::USER`] and [`Registry::PASSWORD`].
const HTPASSWD: &str = "testbed:$2b$04$ykjcMLHVp.7PxfyDD.oF2upE3PBA7Ul9YAv.9sl992U1dOHdCq84u\n";

/// The path under which charts and images lie, as a vendor's account would have it.
const BASE: &str = "platform";

/// A running registry. It ends when this value is dropped, or with the test process.
#[derive(Debug)]
pub struct Registry {
    port: u16,
    authority: Authority,
    ca_file: PathBuf,
    docker_config: PathBuf,
    authenticated: bool,
    helm: PathBuf,
    program: Program,
    process: Mutex<Process>,
    folder: TempFolder,
}

impl Registry {
    /// The one user of a registry with authentication.
    pub const USER: &str = "testbed";

    /// Their password. It protects nothing: the registry is on loopback and gone with the test.
    pub const PASSWORD: &str = "testbed-password";

    /// A registry that wants the one user's password.
    ///
    /// # Panics
    /// It cannot be started.
    pub async fn start() -> Self {
        Self::new(true).await.unwrap_or_else(|error| panic!("{error:#}"))
    }

    /// A registry that serves everybody.
    ///
    /// # Panics
    /// It cannot be started.
    pub async fn start_anonymous() -> Self {
        Self::new(false).await.unwrap_or_else(|error| panic!("{error:#}"))
    }

    async fn new(authenticated: bool) -> Result<Self> {
        let tools = Tools::registry().await?;
        let folder = TempFolder::new("registry")?;
        let authority = Authority::new("testbed-registry-ca")?;
        let port = free_port();
        let server = authority.server("registry", &["127.0.0.1", "localhost"])?;
        folder.write("server.crt", server.certificate)?;
        folder.write("server.key", server.key)?;
        folder.write("htpasswd", HTPASSWD)?;
        let ca_file = folder.write("ca.crt", authority.certificate())?;
        let docker_config = folder.write("config.json", docker_config(port, authenticated))?;
        let config = folder.write("registry.yml", config(&folder, port, authenticated))?;
        let program = Program::new("registry", tools.path("registry"))
            .only_given_env()
            .env("OTEL_TRACES_EXPORTER", "none")
            .arg("serve")
            .arg(&config)
            .grace(Duration::from_millis(500));
        let process = Mutex::new(program.start(&folder)?);
        let registry =
            Self { port, authority, ca_file, docker_config, authenticated, helm: tools.path("helm").to_owned(), program, process, folder };
        registry.until_ready().await?;
        Ok(registry)
    }

    /// `127.0.0.1:<port>`.
    #[must_use]
    pub fn host(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// What a bundle calls `chartBase`: `oci://127.0.0.1:<port>/platform`.
    #[must_use]
    pub fn chart_base(&self) -> String {
        format!("oci://{}/{BASE}", self.host())
    }

    /// The file with the certificate of the authority that signed the registry's.
    #[must_use]
    pub fn ca_file(&self) -> &Path {
        &self.ca_file
    }

    /// The certificate itself, PEM.
    #[must_use]
    pub fn ca(&self) -> String {
        self.authority.certificate()
    }

    /// A file in the form of docker's `config.json` with the user's password for this registry (without, if it asks for none),
    /// mode 0600.
    #[must_use]
    pub fn docker_config(&self) -> &Path {
        &self.docker_config
    }

    /// The same form with a password that is wrong.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn wrong_docker_config(&self) -> Result<PathBuf> {
        let config = auths(self.port, "not-the-password");
        self.folder.write("wrong-config.json", config)
    }

    /// Whether it wants a password.
    #[must_use]
    pub fn authenticated(&self) -> bool {
        self.authenticated
    }

    /// The folder that goes with it.
    #[must_use]
    pub fn folder(&self) -> &TempFolder {
        &self.folder
    }

    /// Stops serving; what was pushed stays.
    ///
    /// # Errors
    /// It does not end.
    pub async fn stop(&self) -> Result<()> {
        let stopped = self.process.lock().expect("no holder of this lock panics").stop();
        stopped.await.map(drop)
    }

    /// Serves again at the same address.
    ///
    /// # Errors
    /// It does not come up.
    pub async fn restart(&self) -> Result<()> {
        let started = self.program.start(&self.folder)?;
        *self.process.lock().expect("no holder of this lock panics") = started;
        self.until_ready().await
    }

    /// Puts other bytes in the place of a stored blob or manifest, as a registry that was broken into would: it goes on
    /// serving them under the old digest.
    ///
    /// # Errors
    /// There is no blob of this digest.
    pub fn falsify(&self, digest: &str, bytes: &[u8]) -> Result<()> {
        let path = self.blob(digest)?;
        std::fs::write(&path, bytes).with_context(|| format!("writing {}", path.display()))
    }

    /// Puts the right bytes back, also where there are none any more.
    ///
    /// # Errors
    /// The digest is none, or its folder is gone.
    pub fn restore(&self, digest: &str, bytes: &[u8]) -> Result<()> {
        let path = self.place(digest)?;
        std::fs::write(&path, bytes).with_context(|| format!("writing {}", path.display()))
    }

    /// Removes a stored blob or manifest.
    ///
    /// # Errors
    /// There is no blob of this digest.
    pub fn lose(&self, digest: &str) -> Result<()> {
        let path = self.blob(digest)?;
        std::fs::remove_file(&path).with_context(|| format!("removing {}", path.display()))
    }

    /// The bytes of a stored blob or manifest.
    ///
    /// # Errors
    /// There is no blob of this digest.
    pub fn read(&self, digest: &str) -> Result<Vec<u8>> {
        let path = self.blob(digest)?;
        std::fs::read(&path).with_context(|| format!("reading {}", path.display()))
    }

    fn blob(&self, digest: &str) -> Result<PathBuf> {
        let path = self.place(digest)?;
        ensure!(path.is_file(), "the registry has no blob {digest}");
        Ok(path)
    }

    fn place(&self, digest: &str) -> Result<PathBuf> {
        let Some(hex) = digest.strip_prefix("sha256:").filter(|hex| hex.len() == 64) else {
            bail!("{digest} is no sha256 digest");
        };
        let path = format!("storage/docker/registry/v2/blobs/sha256/{}/{hex}/data", &hex[..2]);
        Ok(self.folder.join(path))
    }

    /// An HTTP client that trusts the registry. Requests want [`Registry::authorize`].
    pub(crate) fn http(&self) -> Result<reqwest::Client> {
        let client = reqwest::Client::builder().no_proxy().tls_certs_only([reqwest::Certificate::from_pem(self.ca().as_bytes())?]);
        client.build().context("an HTTP client")
    }

    fn authorize(&self, request: reqwest::RequestBuilder) -> reqwest::RequestBuilder {
        if self.authenticated { request.basic_auth(Self::USER, Some(Self::PASSWORD)) } else { request }
    }

    async fn until_ready(&self) -> Result<()> {
        let http = self.http()?;
        let url = format!("https://{}/v2/", self.host());
        let ready = until("the registry's /v2/", PATIENCE, || async {
            let running = self.process.lock().expect("no holder of this lock panics").ensure_running();
            if let Err(ended) = running {
                return Ok(Err(ended));
            }
            let answer = self.authorize(http.get(&url)).send().await.context("GET /v2/")?;
            ensure!(answer.status().is_success(), "GET /v2/: {}", answer.status());
            Ok(Ok(()))
        });
        ready.await?
    }
}

fn docker_config(port: u16, authenticated: bool) -> String {
    if authenticated { auths(port, Registry::PASSWORD) } else { json!({ "auths": {} }).to_string() }
}

fn auths(port: u16, password: &str) -> String {
    let host = format!("127.0.0.1:{port}");
    let auth = base64(format!("{}:{password}", Registry::USER));
    json!({ "auths": { host: { "auth": auth } } }).to_string()
}

fn config(folder: &TempFolder, port: u16, authenticated: bool) -> String {
    let mut config = json!({
        "version": "0.1",
        "log": { "level": "info", "fields": { "service": "registry" } },
        "storage": {
            "filesystem": { "rootdirectory": folder.join("storage") },
            "delete": { "enabled": true },
        },
        "http": {
            "addr": format!("127.0.0.1:{port}"),
            "secret": uuid::Uuid::new_v4().to_string(),
            "tls": { "certificate": folder.join("server.crt"), "key": folder.join("server.key") },
        },
    });
    if authenticated {
        config["auth"] = json!({ "htpasswd": { "realm": "testbed", "path": folder.join("htpasswd") } });
    }
    config.to_string()
}
