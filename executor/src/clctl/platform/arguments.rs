//! Flags that several commands share: who acts, and where the executor's side is.

use std::path::{Path, PathBuf};

use agent_api::name::DnsLabel;
use agent_api::names::{HOME_NAMESPACE_VM, PLATFORM_BUNDLE_SECRET};
use clap::Args;
use cluster::connect::{self, ConnectError, Connection};

use super::pending::Source;
use super::token_bundle::Target;
use crate::clctl::local_api::{self, DEFAULT_ENDPOINT};
use crate::config::ACCESS_DIR;

/// Namespace that the connector's chart is installed in unless told otherwise; only for the command that is printed.
const DEFAULT_CONNECTOR_NAMESPACE: &str = "clicklink";

/// With whose credentials.
#[derive(Args)]
pub(super) struct Person {
    /// Context of your kubeconfig: a name, or a pattern with * that fits one.
    #[arg(long, env = "CLCTL_CONTEXT")]
    context: Option<String>,
    /// Your kubeconfig (default: KUBECONFIG, else ~/.kube/config).
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
}

impl Person {
    pub(super) async fn connect(&self) -> Result<Connection, ConnectError> {
        connect::person(self.kubeconfig.as_deref(), self.context.as_deref()).await
    }
}

/// Where the connector is, and its token bundle.
#[derive(Args)]
pub(in crate::clctl) struct Place {
    /// The executor's access folder.
    #[arg(long, value_name = "DIR", default_value = ACCESS_DIR, env = "CLCTL_EXECUTOR_OUTPUT_DIR")]
    output_dir: PathBuf,
    /// Kubernetes: the token bundle is a Secret in this namespace, the connector's.
    #[arg(long, value_name = "NAMESPACE")]
    secret_namespace: Option<DnsLabel>,
    /// Name of that Secret.
    #[arg(long, value_name = "NAME", default_value = PLATFORM_BUNDLE_SECRET)]
    secret_name: String,
}

impl Place {
    /// Home namespace of `pcm-platform`.
    pub(super) fn home(&self) -> &str {
        self.secret_namespace.as_ref().map_or(HOME_NAMESPACE_VM, DnsLabel::as_str)
    }

    pub(super) fn target(&self) -> Target {
        match &self.secret_namespace {
            Some(namespace) => Target::Secret { namespace: namespace.to_string(), name: self.secret_name.clone() },
            None => Target::Folder(self.output_dir.clone()),
        }
    }
}

/// Where the connector is, and what it has staged.
#[derive(Args)]
pub(in crate::clctl) struct Connector {
    #[command(flatten)]
    pub(in crate::clctl) place: Place,
    /// Address of the executor's local API: the staged bundle is read there, not in the access folder (default with --secret-namespace:
    /// http://127.0.0.1:9999).
    #[arg(long, value_name = "URL", value_parser = local_api::endpoint)]
    endpoint: Option<String>,
}

impl Connector {
    /// Where the staged bundle is read; `bundle` takes its place.
    pub(in crate::clctl) fn source(&self, bundle: Option<&Path>) -> Source {
        match (bundle, &self.endpoint, &self.place.secret_namespace) {
            (Some(file), _, _) => Source::File(file.to_owned()),
            (None, None, None) => Source::Staged(self.place.output_dir.clone()),
            // The variable gives an address and does not decide whether the local API is asked.
            (None, _, namespace) => Source::LocalApi {
                endpoint: self.endpoint(),
                namespace: namespace.as_ref().map_or_else(|| DEFAULT_CONNECTOR_NAMESPACE.to_owned(), ToString::to_string),
            },
        }
    }

    /// Address of the local API: the flag, else the variable, else where it listens unless told otherwise.
    pub(super) fn endpoint(&self) -> String {
        self.endpoint.clone().or_else(|| std::env::var("CLCTL_ENDPOINT").ok()).unwrap_or_else(|| DEFAULT_ENDPOINT.into())
    }
}
