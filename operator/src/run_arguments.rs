//! What the operator is told at its start: flags, and what they have to satisfy before anything is connected.

use std::net::SocketAddr;
use std::path::{Component, PathBuf};

use agent_api::name::DnsLabel;
use cluster::address::{AddressError, ApiAddress};
use tracing::level_filters::LevelFilter;

/// Folder of local charts.
pub const CHARTS_DIR: &str = "/charts";
/// Where health and metrics are served.
pub const LISTEN: &str = "0.0.0.0:8086";

/// Flags of the controller.
#[derive(Clone, Debug, clap::Args)]
pub struct RunArguments {
    /// Namespaces whose ManagedComponents are carried out, separated by commas; no other is watched.
    #[arg(long, required = true, value_delimiter = ',', env = "NAVIN_OPERATOR_NAMESPACES")]
    namespaces: Vec<DnsLabel>,
    /// Folder of local charts, mounted read-only.
    #[arg(long, default_value = CHARTS_DIR)]
    charts_dir: PathBuf,
    /// Kubeconfig outside a cluster, self-contained; only together with --api-server.
    #[arg(long, requires = "api_server")]
    kubeconfig: Option<PathBuf>,
    /// Address of the API server that the kubeconfig must lead to, https.
    #[arg(long, requires = "kubeconfig")]
    api_server: Option<String>,
    /// Namespace of the Lease by which one of several operators is the leader; one of --namespaces [default: the first].
    #[arg(long)]
    lease_namespace: Option<DnsLabel>,
    /// Where /healthz, /readyz and /metrics are served.
    #[arg(long, default_value = LISTEN)]
    listen: SocketAddr,
    /// Credentials for registries, in the form of docker's config.json; without it none.
    #[arg(long)]
    registry_config: Option<PathBuf>,
    /// Certificate authorities of registries, PEM, beside the system's.
    #[arg(long)]
    registry_ca_file: Option<PathBuf>,
    /// What is logged: off, error, warn, info, debug, trace.
    #[arg(long, default_value = "info")]
    log_level: LevelFilter,
    /// Form of the log on stderr.
    #[arg(long, value_enum, default_value_t = LogFormat::Json)]
    log_format: LogFormat,
}

/// Form of a log.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum LogFormat {
    /// One JSON object a line.
    Json,
    /// Lines for people.
    Text,
}

/// How the API server is reached.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Access {
    /// As the pod's ServiceAccount.
    InCluster,
    /// By a kubeconfig under the guard, which must lead to this address.
    Kubeconfig {
        /// The file.
        path: PathBuf,
        /// Where it must lead.
        api_server: ApiAddress,
    },
}

/// Flags that hold together.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Options {
    /// At least one, each once.
    pub namespaces: Vec<DnsLabel>,
    /// Absolute.
    pub charts_dir: PathBuf,
    /// The way to the API server.
    pub access: Access,
    /// One of `namespaces`, so that the operator needs no right anywhere else.
    pub lease_namespace: DnsLabel,
    /// Health and metrics.
    pub listen: SocketAddr,
    /// Credentials for registries.
    pub registry_config: Option<PathBuf>,
    /// Authorities of registries.
    pub registry_ca_file: Option<PathBuf>,
    /// Level of the log.
    pub log_level: LevelFilter,
    /// Form of the log.
    pub log_format: LogFormat,
}

/// Why flags are refused.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum OptionsError {
    /// No namespace.
    #[error("--namespaces: at least one is needed")]
    NoNamespace,
    /// The same namespace again.
    #[error("--namespaces: `{0}` is given twice")]
    Twice(DnsLabel),
    /// A relative path, or one with `..`.
    #[error("--charts-dir: `{}` is not an absolute path without `..`", .0.display())]
    ChartsDir(PathBuf),
    /// No https address.
    #[error("--api-server: {0}")]
    ApiServer(AddressError),
    /// A Lease in a namespace where the operator has no rights.
    #[error("--lease-namespace: `{0}` is not one of --namespaces")]
    LeaseNamespace(DnsLabel),
}

impl RunArguments {
    /// Checks what the single flags cannot know.
    ///
    /// # Errors
    /// The first flag that does not fit; see [`OptionsError`].
    pub fn check(self) -> Result<Options, OptionsError> {
        let first = self.namespaces.first().cloned().ok_or(OptionsError::NoNamespace)?;
        if let Some((_, twice)) = self.namespaces.iter().enumerate().find(|(i, name)| self.namespaces[..*i].contains(name)) {
            return Err(OptionsError::Twice(twice.clone()));
        }
        if !self.charts_dir.is_absolute() || self.charts_dir.components().any(|part| part == Component::ParentDir) {
            return Err(OptionsError::ChartsDir(self.charts_dir));
        }
        let access = match (self.kubeconfig, self.api_server) {
            (Some(path), Some(api_server)) => match api_server.parse() {
                Ok(api_server) => Access::Kubeconfig { path, api_server },
                Err(error) => return Err(OptionsError::ApiServer(error)),
            },
            // The command line has refused one without the other.
            (None, _) | (_, None) => Access::InCluster,
        };
        let lease_namespace = self.lease_namespace.unwrap_or(first);
        if !self.namespaces.contains(&lease_namespace) {
            return Err(OptionsError::LeaseNamespace(lease_namespace));
        }
        Ok(Options {
            namespaces: self.namespaces,
            charts_dir: self.charts_dir,
            access,
            lease_namespace,
            listen: self.listen,
            registry_config: self.registry_config,
            registry_ca_file: self.registry_ca_file,
            log_level: self.log_level,
            log_format: self.log_format,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser, Debug)]
    struct Line {
        #[command(flatten)]
        run: RunArguments,
    }

    fn parsed(line: &str) -> Result<Options, String> {
        let arguments = std::iter::once("navin-operator").chain(line.split_whitespace());
        let line = Line::try_parse_from(arguments).map_err(|error| error.to_string())?;
        line.run.check().map_err(|error| error.to_string())
    }

    #[test]
    fn in_a_cluster_the_namespaces_suffice() {
        let options = parsed("--namespaces navin-platform,toolhive-system").unwrap();
        let names: Vec<&str> = options.namespaces.iter().map(DnsLabel::as_str).collect();
        assert_eq!(names, ["navin-platform", "toolhive-system"]);
        assert_eq!((options.access, options.lease_namespace.as_str()), (Access::InCluster, "navin-platform"));
        assert_eq!(options.charts_dir, PathBuf::from("/charts"));
    }

    #[test]
    fn outside_a_cluster_file_and_address_go_together() {
        let options = parsed("--namespaces a --kubeconfig /k --api-server https://api.k8s.banque.example:6443").unwrap();
        let api_server = "https://API.k8s.banque.example:6443/".parse().unwrap();
        assert_eq!(options.access, Access::Kubeconfig { path: "/k".into(), api_server });
    }

    #[test]
    fn what_does_not_fit_is_refused_by_its_flag() {
        for (line, flag) in [
            ("", "--namespaces"),
            ("--namespaces A", "--namespaces"),
            ("--namespaces a,a", "--namespaces: `a` is given twice"),
            ("--namespaces a --kubeconfig /k", "--api-server"),
            ("--namespaces a --api-server https://h", "--kubeconfig"),
            ("--namespaces a --kubeconfig /k --api-server http://h", "--api-server: `http://h`"),
            ("--namespaces a --kubeconfig /k --api-server https://", "--api-server: `https://`"),
            ("--namespaces a --kubeconfig /k --api-server https://u@h", "--api-server: `https://u@h`"),
            ("--namespaces a --charts-dir charts", "--charts-dir: `charts`"),
            ("--namespaces a --charts-dir /charts/../etc", "--charts-dir: `/charts/../etc`"),
            ("--namespaces a --lease-namespace b", "--lease-namespace: `b`"),
            ("--namespaces a --listen nowhere", "--listen"),
        ] {
            let refused = parsed(line).unwrap_err();
            assert!(refused.contains(flag), "{line}: {refused}");
        }
    }
}
