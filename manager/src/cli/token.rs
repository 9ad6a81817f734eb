//! `token`: bearer tokens of the API. The first one is made with the bootstrap token from the server's data folder.

use std::path::PathBuf;

use agent_api::secret::Secret;
use clap::Subcommand;
use serde_json::{Value, json};

use super::client::{Client, Connect, read, segment};
use super::output::{Column, Format, show};
use super::{CliError, Global, next, print, say};
use crate::serve::data_dir::{BOOTSTRAP_TOKEN, CA_CERT};

const COLUMNS: [Column; 5] = [
    ("NAME", "/name"),
    ("PERMISSIONS", "/permissions"),
    ("CREATED", "/created_at"),
    ("LAST USED", "/last_used_at"),
    ("REVOKED", "/revoked_at"),
];

/// Verbs of `token`.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Make a token and print it, this once.
    Create {
        /// Who will hold it.
        name: String,
        /// The server's data folder, for the first token: its bootstrap token and certificate authority are used.
        #[arg(long)]
        data_dir: Option<PathBuf>,
        /// A copy of the bootstrap token, for the first token.
        #[arg(long, conflicts_with = "data_dir")]
        bootstrap_file: Option<PathBuf>,
    },
    /// List tokens.
    List,
    /// Make a token void.
    Revoke {
        /// Which.
        name: String,
    },
}

/// Carries out a verb.
///
/// # Errors
/// See [`CliError`].
pub async fn run(verb: Verb, global: &Global) -> Result<(), CliError> {
    match verb {
        Verb::Create { name, data_dir, bootstrap_file } => create(&name, data_dir, bootstrap_file, global).await,
        Verb::List => show(global, &global.client()?.get("tokens").await?, &COLUMNS),
        Verb::Revoke { name } => {
            global.client()?.delete(&format!("tokens/{}", segment(&name))).await?;
            next("navin-manager token list");
            Ok(())
        }
    }
}

async fn create(name: &str, data_dir: Option<PathBuf>, bootstrap_file: Option<PathBuf>, global: &Global) -> Result<(), CliError> {
    let file = bootstrap_file.or_else(|| data_dir.as_ref().map(|dir| dir.join(BOOTSTRAP_TOKEN)).filter(|file| file.exists()));
    let connect = &global.connect;
    let connect = Connect {
        endpoint: connect.endpoint.clone(),
        token_file: connect.token_file.clone(),
        ca_file: connect.ca_file.clone().or_else(|| data_dir.map(|dir| dir.join(CA_CERT))),
    };
    let client = match file {
        Some(file) => Client::with_token(&connect, Secret::new(read(&file)?.trim().to_owned()))?,
        None => Client::new(&connect)?,
    };
    let created = client.post("tokens", &json!({ "name": name })).await?;
    match global.output {
        // The token alone, so that `> file` is all it takes; there is nothing else to show.
        None | Some(Format::Table | Format::Name) => {
            print(&format!("{}\n", created.get("token").and_then(Value::as_str).unwrap_or_default()))?;
        }
        Some(Format::Json | Format::Yaml) => show(global, &created, &COLUMNS)?,
    }
    say("keep it in a file of mode 0600, and:");
    next("navin-manager cluster create NAME --token-file FILE");
    Ok(())
}
