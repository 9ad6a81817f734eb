//! `clctl init --enroll <url>`: the one-time token becomes credentials, a certificate and a configuration.
//!
//! What is there is kept: a run that was interrupted is run again, and goes on where a file is missing.

use std::io::{BufRead as _, IsTerminal as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use agent_api::enrolment::{ENROLL_PATH, EnrollRequest, EnrollResponse, SIGN_PATH, SignRequest, SignResponse};
use agent_api::name::ExecutorId;
use agent_api::problem::Problem;
use agent_api::secret::Secret;
use agent_api::signature::KeyPair;
use anyhow::{Context as _, bail};
use clap::Args;
use serde::de::DeserializeOwned;

use crate::config::DEFAULT_PATH;
use crate::signed::Signed;
use crate::terminal::{fail, talk};

/// Arguments.
#[derive(Args)]
pub(crate) struct Init {
    /// Enrolment address that the vendor gave you; the one-time token is asked for, or read from the first line of stdin.
    #[arg(long, value_name = "URL")]
    enroll: String,
    /// Configuration file to write; keys and certificates go beside it.
    #[arg(long, default_value = DEFAULT_PATH)]
    config: PathBuf,
    /// PEM file of a private CA that signed the enrolment address's certificate.
    #[arg(long, value_name = "FILE")]
    api_private_ca: Option<PathBuf>,
    /// Cloud that the cluster runs in.
    #[arg(long, default_value = "aws")]
    cloud: String,
    /// Region that the cluster runs in.
    #[arg(long)]
    region: String,
    /// Name of the cluster, for heartbeats.
    #[arg(long)]
    cluster_name: Option<String>,
    /// Folder of the executor's state.
    #[arg(long, default_value = "/var/lib/clicklink")]
    state_dir: PathBuf,
    /// Loopback port of the executor's local API.
    #[arg(long, default_value_t = 9999)]
    api_port: u16,
    /// Replace a configuration that is there; the deployment's identity is kept.
    #[arg(long)]
    force: bool,
}

impl Init {
    pub(super) async fn run(self) -> ExitCode {
        match self.enrol().await {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => fail(format_args!("{error:#}")),
        }
    }

    async fn enrol(&self) -> anyhow::Result<()> {
        let identity = known_identity(&self.config);
        if self.config.exists() && !self.force {
            bail!("{} is there already; --force replaces it and keeps the deployment's identity", self.config.display());
        }
        let executor_id = identity.unwrap_or_else(|| ExecutorId(uuid::Uuid::now_v7()));
        let dir = self.config.parent().unwrap_or(Path::new(".")).to_owned();
        let tls = dir.join("tls");
        let access_dir = dir.join("access/executor");
        for folder in [&dir, &tls, &access_dir, &self.state_dir] {
            make_folder(folder)?;
        }
        let ca = self.api_private_ca.as_deref().map(std::fs::read_to_string).transpose().context("--api-private-ca")?;
        let enrolled = self.redeem(executor_id, ca.as_deref()).await?;
        write(&dir.join("access-key"), &enrolled.access_key)?;
        write(&dir.join("secret-key"), enrolled.secret_key.expose())?;
        write(&tls.join("ca.crt"), &enrolled.ca)?;
        let (key, certificate) = sign(&enrolled).await?;
        write(&tls.join("client.key"), key.expose())?;
        write(&tls.join("client.crt"), &certificate.certificate)?;
        write(&self.config, &self.render(executor_id, &enrolled.endpoint, &dir, &access_dir))?;
        talk(format_args!("enrolled with {} as executor {executor_id}; the certificate ends {}", enrolled.endpoint, certificate.not_after));
        talk(format_args!("wrote {}", self.config.display()));
        talk("next: let the executor see the cluster, as cluster-admin:");
        let config = self.config.display();
        talk(format_args!("  clicklink clctl executor access grant --cluster --config {config} --output-dir {}", access_dir.display()));
        talk(format_args!("  clicklink clctl executor access apply --cluster --config {config} --output-dir {}", access_dir.display()));
        talk(format_args!("then start it: clicklink executor --config {config}"));
        Ok(())
    }

    async fn redeem(&self, executor_id: ExecutorId, ca: Option<&str>) -> anyhow::Result<EnrollResponse> {
        let request = EnrollRequest { token: read_token()?, executor_id };
        let http = crate::signed::client(ca)?.build()?;
        let url = format!("{}{ENROLL_PATH}", self.enroll.trim_end_matches('/'));
        let response = http.post(&url).json(&request).send().await.with_context(|| format!("enrolment at {url}"))?;
        answer(response).await.context("enrolment")
    }

    fn render(&self, id: ExecutorId, endpoint: &str, dir: &Path, access_dir: &Path) -> String {
        let dir = dir.display();
        let quote = |text: &str| serde_json::Value::from(text).to_string();
        let name = self.cluster_name.as_deref().map(|name| format!("    name: {}\n", quote(name))).unwrap_or_default();
        format!(
            "# Written by `clicklink clctl init`. It holds no credential, only where they lie.\n\
             pcm_infra_uuid: {id}\ncloud: {}\nregion: {}\nnamespace_prefix: ns-\n\
             api:\n  endpoint: {}\n  access_key_file: {dir}/access-key\n  secret_key_file: {dir}/secret-key\n  \
             tls:\n    cert_file: {dir}/tls/client.crt\n    key_file: {dir}/tls/client.key\n    ca_file: {dir}/tls/ca.crt\n\
             executor:\n  db_path: {}/executor.db\n  api_port: {}\n  access_dir: {}\n  cluster:\n{name}    region: {}\n",
            quote(&self.cloud),
            quote(&self.region),
            quote(endpoint),
            self.state_dir.display(),
            self.api_port,
            access_dir.display(),
            quote(&self.region),
        )
    }
}

/// A key made here, which never leaves, and the certificate for it.
async fn sign(enrolled: &EnrollResponse) -> anyhow::Result<(Secret, SignResponse)> {
    let host = host(&enrolled.endpoint)?;
    let mut parameters = rcgen::CertificateParams::new(vec![host])?;
    parameters.distinguished_name = rcgen::DistinguishedName::new();
    parameters.distinguished_name.push(rcgen::DnType::CommonName, &enrolled.organisation);
    let key = rcgen::KeyPair::generate()?;
    let csr = parameters.serialize_request(&key)?.pem()?;
    let pair = KeyPair { access_key: enrolled.access_key.clone(), secret_key: enrolled.secret_key.clone() };
    let signed = Signed::unauthenticated(&enrolled.endpoint, pair, Some(&enrolled.ca))?;
    let body = serde_json::to_vec(&SignRequest { csr })?;
    let request = signed.request(reqwest::Method::POST, SIGN_PATH, body).header("content-type", "application/json");
    let response = answer(request.send().await.context("certificate signing")?).await.context("certificate signing")?;
    Ok((Secret::new(key.serialize_pem()), response))
}

fn host(endpoint: &str) -> anyhow::Result<String> {
    let url = reqwest::Url::parse(endpoint).with_context(|| format!("endpoint {endpoint}"))?;
    let host = url.host_str().with_context(|| format!("endpoint {endpoint} has no host"))?;
    Ok(host.trim_start_matches('[').trim_end_matches(']').to_owned())
}

async fn answer<T: DeserializeOwned>(response: reqwest::Response) -> anyhow::Result<T> {
    let status = response.status();
    let body = response.text().await?;
    if !status.is_success() {
        let detail = serde_json::from_str::<Problem>(&body).map_or(body, |problem| problem.detail);
        bail!("the manager answered {}: {detail}", status.as_u16());
    }
    serde_json::from_str(&body).context("the manager's answer is not readable")
}

/// From a hidden prompt, or the first line of stdin; never from an argument, which every process could read.
fn read_token() -> anyhow::Result<Secret> {
    let line = if std::io::stdin().is_terminal() {
        rpassword::prompt_password("One-time enrolment token: ")?
    } else {
        let mut line = String::new();
        std::io::stdin().lock().read_line(&mut line)?;
        line
    };
    let token = line.trim().to_owned();
    if token.is_empty() {
        bail!("no enrolment token: type it at the prompt, or give it as the first line of stdin");
    }
    Ok(Secret::new(token))
}

/// The identity in a configuration that is there.
fn known_identity(config: &Path) -> Option<ExecutorId> {
    let text = std::fs::read_to_string(config).ok()?;
    text.lines().find_map(|line| line.strip_prefix("pcm_infra_uuid:")).and_then(|id| id.trim().parse().ok())
}

fn make_folder(path: &Path) -> anyhow::Result<()> {
    use std::os::unix::fs::DirBuilderExt as _;
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path).with_context(|| path.display().to_string())
}

/// Written whole beside its place with mode 0600, then renamed there.
fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    let dir = path.parent().unwrap_or(Path::new("."));
    let beside = dir.join(format!(".{}.{}", path.file_name().unwrap_or_default().display(), uuid::Uuid::new_v4()));
    let attempt = || -> std::io::Result<()> {
        let mut file = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&beside)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        std::fs::rename(&beside, path)
    };
    attempt().inspect_err(|_| drop(std::fs::remove_file(&beside))).with_context(|| path.display().to_string())
}
