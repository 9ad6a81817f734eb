//! `cluster`: customers' clusters.

use clap::Subcommand;
use serde_json::json;

use super::client::segment;
use super::output::{Column, show};
use super::{CliError, Global, next};

const COLUMNS: [Column; 5] =
    [("NAME", "/name"), ("ENVIRONMENT", "/environment"), ("EXECUTORS", "/executors"), ("CREATED", "/created_at"), ("ID", "/id")];

/// Verbs of `cluster`.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Make a cluster known.
    Create {
        /// Its name.
        name: String,
    },
    /// List clusters.
    List,
    /// Show a cluster.
    Get {
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
        Verb::Create { name } => {
            show(global, &client.post("clusters", &json!({ "name": name })).await?, &COLUMNS)?;
            next(&format!("navin-manager environment create NAME --cluster {name} --registry-mode MODE --chart-base oci://HOST/PATH"));
            Ok(())
        }
        Verb::List => show(global, &client.get("clusters").await?, &COLUMNS),
        Verb::Get { name } => show(global, &client.get(&format!("clusters/{}", segment(&name))).await?, &COLUMNS),
    }
}
