//! `clctl executor access`: the standing access of `pcm-executor`. `grant` renders it for review and applies nothing; `apply` applies
//! what was rendered, and mints the token.

mod apply;
mod bundle;
mod grant;
mod objects;
mod prefix_guard;

pub(crate) use objects::READS;

use std::path::PathBuf;
use std::process::ExitCode;

use agent_api::name::DnsLabel;
use agent_api::names::HOME_NAMESPACE_VM;
use clap::{Args, Subcommand};

use crate::config::ACCESS_DIR;

/// Verbs.
#[derive(Subcommand)]
pub(crate) enum Access {
    /// Render the access bundle for review; nothing is applied.
    Grant(grant::Grant),
    /// Apply the access bundle with your credentials, and mint its token.
    Apply(apply::Apply),
}

impl Access {
    pub(crate) async fn run(self) -> ExitCode {
        match self {
            Self::Grant(grant) => grant.run().await,
            Self::Apply(apply) => apply.run().await,
        }
    }
}

/// Arguments of both verbs.
#[derive(Args)]
struct Shared {
    /// Access to the whole cluster: one bundle for every service.
    #[arg(long, required = true)]
    cluster: bool,
    /// The connector's configuration; only its namespace prefix is read.
    #[arg(long, value_name = "FILE", env = "CLCTL_EXECUTOR_CONFIG")]
    config: Option<PathBuf>,
    /// Namespace of the account: that of the connector in a cluster, else clicklink-system.
    #[arg(long, value_name = "NAMESPACE")]
    sa_namespace: Option<DnsLabel>,
    /// Context of your kubeconfig: a name, or a pattern with * that fits one.
    #[arg(long, env = "CLCTL_CONTEXT")]
    context: Option<String>,
    /// Your kubeconfig (default: KUBECONFIG, else ~/.kube/config).
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Address of the API server that the executor is told (default: the context's).
    #[arg(long, value_name = "URL")]
    server: Option<String>,
    /// CA of that address, PEM or base64 of it (default: the context's).
    #[arg(long, value_name = "DATA", allow_hyphen_values = true)]
    ca_data: Option<String>,
    /// The executor's access folder.
    #[arg(long, value_name = "DIR", default_value = ACCESS_DIR, env = "CLCTL_EXECUTOR_OUTPUT_DIR")]
    output_dir: PathBuf,
    /// Replace a rendered bundle that says something else.
    #[arg(long)]
    force: bool,
    /// Show what would be done; change nothing.
    #[arg(long)]
    dry_run: bool,
}

impl Shared {
    /// The account's namespace where none is rendered yet.
    fn home(&self) -> String {
        self.sa_namespace.as_ref().map_or_else(|| HOME_NAMESPACE_VM.to_owned(), ToString::to_string)
    }
}
