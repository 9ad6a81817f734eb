//! `environment`: what is proposed to a cluster, and how far it is.

use clap::{Subcommand, ValueEnum};
use serde_json::json;

use super::client::segment;
use super::output::{Column, show};
use super::{CliError, Global, next};

const COLUMNS: [Column; 9] = [
    ("NAME", "/name"),
    ("CLUSTER", "/cluster"),
    ("RELEASE", "/proposal/release"),
    ("SHA256", "/proposal/sha256"),
    ("STATUS", "/executors/0/platform/status"),
    ("DRIFT", "/executors/0/platform/drift"),
    ("RESEND", "/resend/reason"),
    ("ATTEMPTS", "/resend/attempts"),
    ("EXECUTORS", "/executors"),
];

const APPROVALS: [Column; 8] = [
    ("SHA256", "/sha256"),
    ("APPROVED BY", "/approved_by"),
    ("APPROVED AT", "/approved_at"),
    ("EXPIRES AT", "/expires_at"),
    ("REVOKED", "/revoked_at"),
    ("OBJECTS", "/objects"),
    ("EXECUTOR", "/executor"),
    ("REPORTED AT", "/reported_at"),
];

/// How executors and approvers log in at the registry.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum Mode {
    /// ECR, by the pull role, assumed from the EC2 instance profile.
    Direct,
    /// ECR, by ambient AWS credentials.
    Mirror,
    /// User and password.
    Basic,
    /// No log-in.
    Anonymous,
}

impl Mode {
    fn as_str(self) -> &'static str {
        match self {
            Self::Direct => "direct",
            Self::Mirror => "mirror",
            Self::Basic => "basic",
            Self::Anonymous => "anonymous",
        }
    }
}

/// Verbs of `environment`.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Make the environment of a cluster.
    Create {
        /// Its name (a DNS label); it stands in manifests.
        name: String,
        /// Its cluster.
        #[arg(long)]
        cluster: String,
        /// How one logs in at the registry.
        #[arg(long, value_enum)]
        registry_mode: Mode,
        /// Where the charts are: oci://host[:port]/path.
        #[arg(long)]
        chart_base: String,
        /// AWS region of an ECR registry.
        #[arg(long)]
        region: Option<String>,
        /// Role to assume in mode direct.
        #[arg(long)]
        pull_role_arn: Option<String>,
    },
    /// List environments.
    List,
    /// Show an environment.
    Get {
        /// Which.
        name: String,
    },
    /// List what people approved in the cluster, newest first, as its executors reported it.
    Approvals {
        /// Which.
        name: String,
    },
    /// Try the newest proposal again after all attempts failed.
    Rearm {
        /// Which.
        name: String,
    },
}

/// Carries out a verb.
///
/// # Errors
/// See [`CliError`].
pub async fn run(verb: Verb, global: &Global) -> Result<(), CliError> {
    let client = global.client()?;
    match verb {
        Verb::Create { name, cluster, registry_mode, chart_base, region, pull_role_arn } => {
            let mut registry = json!({ "mode": registry_mode.as_str(), "chartBase": chart_base });
            for (key, value) in [("region", region), ("pullRoleArn", pull_role_arn)] {
                if let Some(value) = value {
                    registry[key] = json!(value);
                }
            }
            let body = json!({ "name": name, "cluster": cluster, "registry": registry });
            show(global, &client.post("environments", &body).await?, &COLUMNS)?;
            next(&format!("navin-manager executor enroll --cluster {cluster}"));
            Ok(())
        }
        Verb::List => show(global, &client.get("environments").await?, &COLUMNS),
        Verb::Get { name } => show(global, &client.get(&format!("environments/{}", segment(&name))).await?, &COLUMNS),
        Verb::Approvals { name } => show(global, &client.get(&format!("environments/{}/approvals", segment(&name))).await?, &APPROVALS),
        Verb::Rearm { name } => {
            show(global, &client.post(&format!("environments/{}/rearm", segment(&name)), &json!({})).await?, &COLUMNS)?;
            next(&format!("navin-manager environment get {name}"));
            Ok(())
        }
    }
}
