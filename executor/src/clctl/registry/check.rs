//! `clctl registry check`: who one is at the bundle's registry, what one may pull there, and until when. Exit code 0, 2 where something
//! cannot be pulled, or an error's own where there is no login at all.
//!
//! Where no bundle is staged, the registries that the configuration has credentials for are logged in at: 2 where some do not let in, 1
//! where none does.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use render::registry_check::{check_host, check_registry};
use render::{AwsError, PullError, RegistryAccess, RegistryAccessError};

use super::report::{Checked, Registry};
use crate::clctl::docker_config;
use crate::clctl::output::Output;
use crate::clctl::platform::arguments::Connector;
use crate::clctl::platform::pending::{self, PendingError};
use crate::config::{Config, ConfigError, DEFAULT_PATH};
use crate::error_code::{Code, Coded};
use crate::terminal::{data, report, talk};

/// Exit code where something cannot be pulled.
const FAILED: u8 = 2;

/// Arguments.
#[derive(Args)]
pub(crate) struct Check {
    /// The connector's configuration, of which `registry` is read (default: /etc/clicklink/config.yaml where it is there).
    #[arg(long, value_name = "FILE", env = "CLICKLINK_CONFIG")]
    config: Option<PathBuf>,
    /// Take the manifest from this file instead of the staged bundle.
    #[arg(long, value_name = "FILE")]
    bundle: Option<PathBuf>,
    #[command(flatten)]
    connector: Connector,
    /// Registry credentials: a docker config.json (default: the configuration's, else ~/.docker/config.json where it is there).
    #[arg(long, value_name = "FILE")]
    registry_config: Option<PathBuf>,
    /// PEM file of a private CA that signed the registry's certificate (default: the configuration's).
    #[arg(long, value_name = "FILE")]
    registry_ca_file: Option<PathBuf>,
    /// Form of the output (default: a table on a terminal, JSON otherwise); `name` lists what cannot be pulled.
    #[arg(short, long)]
    output: Option<Output>,
}

/// Why nothing could be checked.
#[derive(Debug, thiserror::Error)]
enum CheckError {
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error(transparent)]
    Access(#[from] RegistryAccessError),
    #[error(transparent)]
    Pending(#[from] PendingError),
    #[error(transparent)]
    Pull(#[from] PullError),
}

impl Coded for CheckError {
    fn code(&self) -> Code {
        match self {
            Self::Config(error) => error.code(),
            Self::Access(error) => error.code(),
            Self::Pending(error) => error.code(),
            Self::Pull(error) => error.code(),
        }
    }

    fn hints(&self) -> Vec<String> {
        match self {
            Self::Config(error) => error.hints(),
            Self::Access(error) => error.hints(),
            Self::Pending(error) => error.hints(),
            Self::Pull(error) => hints(error),
        }
    }
}

/// Of an error's next steps those that are not this command itself.
fn hints(error: &PullError) -> Vec<String> {
    let ask = |what: &str| vec![format!("{what}; what each mode needs: docs/registries.md")];
    match error {
        PullError::Forbidden { .. } => ask("ask whoever runs the registry to let this identity in"),
        PullError::Aws(AwsError::AssumeRole { .. }) => {
            ask("let the instance profile assume the role, in its policy and in the role's trust")
        }
        PullError::Aws(AwsError::Identity { .. } | AwsError::Token { .. }) => ask("allow this identity ecr:GetAuthorizationToken"),
        other => other.hints(),
    }
}

impl Check {
    pub(super) async fn run(self) -> ExitCode {
        let checked = match self.check().await {
            Ok(checked) => checked,
            Err(error) => return report(&error),
        };
        let output = Output::or_default(self.output);
        if output == Output::Table {
            data(checked.text(jiff::Timestamp::now()));
        } else {
            let printed = output.print(&checked, &[], Vec::new, || checked.failures());
            if printed != ExitCode::SUCCESS {
                return printed;
            }
        }
        match checked.any_failed() {
            true if checked.nobody_is_let_in() => ExitCode::from(Code::RegistryCredentials.exit()),
            true => ExitCode::from(FAILED),
            false => ExitCode::SUCCESS,
        }
    }

    async fn check(&self) -> Result<Checked, CheckError> {
        let access = self.access()?;
        let source = self.connector.source(self.bundle.as_deref());
        match pending::take(&source).await {
            Ok(pending) => {
                let found = check_registry(pending.bundle.manifest(), &access).await?;
                Ok(Checked { bundle: Some(pending.bundle.sha256().to_string()), registries: vec![Registry::of(found)] })
            }
            Err(PendingError::NothingStaged(_)) if access.hosts().next().is_some() => {
                talk("note: no bundle is staged; the registries that there are credentials for are logged in at");
                let mut registries = Vec::new();
                for host in access.hosts() {
                    let found = check_host(host, &access).await;
                    if let Err(error) = &found {
                        hints(error).iter().for_each(|hint| talk(format_args!("hint: {host}: {hint}")));
                    }
                    registries.push(Registry::of_host(host, found));
                }
                Ok(Checked { bundle: None, registries })
            }
            Err(error) => Err(error.into()),
        }
    }

    fn access(&self) -> Result<RegistryAccess, CheckError> {
        let configured = match &self.config {
            Some(path) => Some(Config::load(path)?),
            None if std::path::Path::new(DEFAULT_PATH).exists() => Some(Config::load(DEFAULT_PATH.as_ref())?),
            None => None,
        };
        let configured = configured.map(|config| config.registry).unwrap_or_default();
        let credentials = self.registry_config.clone().or(configured.credentials_file).or_else(docker_config::own_file);
        let ca = self.registry_ca_file.clone().or(configured.ca_file);
        Ok(RegistryAccess::load(credentials.as_deref(), ca.as_deref())?)
    }
}
