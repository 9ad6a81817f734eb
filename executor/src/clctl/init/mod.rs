//! `clctl init --enroll <url>` or `--handoff <file>`: credentials, a certificate and a configuration.
//!
//! What is there is kept. Each step leaves a file before the next begins, and a run that was interrupted is run again:
//! identity, key (nothing is asked before both are on disk), `handoff.yaml` (what the one-time token was worth), the credentials,
//! the certificate, last the configuration. With the configuration the steps' own files go.

mod configuration;
mod error;
mod handoff;
mod identity;
mod manager;
mod token;
mod write;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use agent_api::name::ExecutorId;
use agent_api::names::CLUSTER_DIR;
use clap::Args;

use self::error::InitError;
use self::handoff::Handoff;
use crate::clctl::client_certificate::ClientCertificate;
use crate::config::DEFAULT_PATH;
use crate::terminal::{report, talk};

/// Arguments.
#[derive(Args)]
pub(crate) struct Init {
    /// Enrolment address that the vendor gave you; the one-time token is asked for, or read from the first line of stdin.
    #[arg(long, value_name = "URL", required_unless_present = "handoff", conflicts_with = "handoff")]
    enroll: Option<String>,
    /// What a token was redeemed for elsewhere: a YAML file of mode 0600 with pcm_infra_uuid, organisation, endpoint, access_key,
    /// secret_key and ca.
    #[arg(long, value_name = "FILE")]
    handoff: Option<PathBuf>,
    /// Configuration file to write; keys and certificates go beside it.
    #[arg(long, value_name = "FILE", default_value = DEFAULT_PATH)]
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
    #[arg(long, value_name = "NAME")]
    cluster_name: Option<String>,
    /// Folder of the executor's state.
    #[arg(long, value_name = "DIR", default_value = "/var/lib/clicklink")]
    state_dir: PathBuf,
    /// Loopback port of the executor's local API.
    #[arg(long, value_name = "PORT", default_value_t = 9999)]
    api_port: u16,
    /// Replace configuration, credentials and certificate; the deployment's identity and its key are kept.
    #[arg(long)]
    force: bool,
}

/// Where everything lies.
struct Places {
    dir: PathBuf,
    tls: PathBuf,
    access: PathBuf,
}

impl Places {
    fn beside(config: &Path) -> Self {
        let dir = config.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new(".")).to_owned();
        Self { tls: dir.join("tls"), access: dir.join("access/executor"), dir }
    }

    fn key(&self) -> PathBuf {
        self.tls.join("client.key")
    }

    fn certificate(&self) -> PathBuf {
        self.tls.join("client.crt")
    }
}

impl Init {
    pub(super) async fn run(self) -> ExitCode {
        match self.converge().await {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => report(&error),
        }
    }

    async fn converge(&self) -> Result<(), InitError> {
        let places = Places::beside(&self.config);
        if self.config.exists() && !self.force {
            return self.kept(&places);
        }
        if let Some(url) = &self.enroll {
            manager::host(url)?;
        }
        for folder in [&places.dir, &places.tls, &places.access, &self.state_dir] {
            write::folder(folder)?;
        }
        let given = self.handoff.as_deref().map(handoff::read).transpose()?;
        let id = identity::settle(&self.config, &places.dir, given.as_ref().map(|given| given.pcm_infra_uuid))?;
        if self.force {
            note_unexpired(&places);
        }
        let key = identity::key(&places.key())?;
        let enrolled = match (given, handoff::resume(&places.dir, id)?) {
            (Some(given), _) => given,
            (None, Some(resumed)) => {
                talk(format_args!("an enrolment that was interrupted goes on; {} is used, no token is asked for", handoff::FILE));
                resumed
            }
            (None, None) => self.redeem(id).await?,
        };
        handoff::keep(&places.dir, &enrolled)?;
        write::file(&places.dir.join("access-key"), &enrolled.access_key)?;
        write::file(&places.dir.join("secret-key"), enrolled.secret_key.expose())?;
        write::file(&places.tls.join("ca.crt"), &enrolled.ca)?;
        self.certificate(&places, &enrolled, &key).await?;
        write::file(&self.config, &self.configuration(id, &enrolled.endpoint, &places))?;
        identity::clear(&places.dir)?;
        handoff::clear(&places.dir)?;
        talk(format_args!("wrote {}", self.config.display()));
        self.offer_access(&places);
        talk(format_args!("then start it: clicklink executor --config {}", self.config.display()));
        Ok(())
    }

    /// A finished enrolment: nothing is asked and nothing is changed.
    fn kept(&self, places: &Places) -> Result<(), InitError> {
        if !places.certificate().exists() {
            return Err(InitError::CertificateMissing(places.certificate()));
        }
        talk(format_args!("{} is there and is kept; --force replaces it and keeps the deployment's identity", self.config.display()));
        self.offer_access(places);
        Ok(())
    }

    async fn redeem(&self, id: ExecutorId) -> Result<Handoff, InitError> {
        let Some(url) = &self.enroll else { return Err(InitError::NoEntry) };
        let ca = self
            .api_private_ca
            .as_deref()
            .map(|path| std::fs::read_to_string(path).map_err(|source| InitError::Unreadable { path: path.to_owned(), source }));
        let response = manager::redeem(url, ca.transpose()?.as_deref(), id, token::read()?).await?;
        Ok(Handoff::of(id, response))
    }

    /// One that is there, belongs to the key and has not ended is kept: the manager would sign no second one.
    async fn certificate(&self, places: &Places, enrolled: &Handoff, key: &rcgen::KeyPair) -> Result<(), InitError> {
        let path = places.certificate();
        if !self.force && fits(places) {
            talk(format_args!("{} is there and is kept", path.display()));
            return Ok(());
        }
        let signed = manager::sign(enrolled, key).await?;
        write::file(&path, &signed.certificate)?;
        let (endpoint, id) = (&enrolled.endpoint, enrolled.pcm_infra_uuid);
        talk(format_args!("enrolled with {endpoint} as executor {id}; the certificate ends {}", signed.not_after));
        Ok(())
    }

    /// What a person runs next where the executor has no access yet.
    fn offer_access(&self, places: &Places) {
        if places.access.join(CLUSTER_DIR).exists() {
            return;
        }
        let (config, access) = (self.config.display(), places.access.display());
        talk("let the executor see the cluster, as cluster-admin:");
        for verb in ["grant", "apply"] {
            talk(format_args!("next: clicklink clctl executor access {verb} --cluster --config {config} --output-dir {access}"));
        }
    }
}

fn fits(places: &Places) -> bool {
    let Ok(certificate) = ClientCertificate::read(&places.certificate()) else { return false };
    certificate.not_after > jiff::Timestamp::now() && certificate.has_key(&places.key()).unwrap_or(false)
}

/// What the manager will answer, told before it is asked.
fn note_unexpired(places: &Places) {
    if let Ok(certificate) = ClientCertificate::read(&places.certificate())
        && certificate.not_after > jiff::Timestamp::now()
    {
        talk(format_args!(
            "note: the certificate in {} is valid until {}; until then the manager answers 409 to an enrolment of the same executor, and \
             everything stays as it is",
            places.certificate().display(),
            certificate.not_after
        ));
    }
}

#[cfg(test)]
mod tests;
