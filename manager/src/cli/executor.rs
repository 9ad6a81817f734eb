//! `executor`: the connectors at customers', and what they were told.

use clap::Subcommand;
use serde_json::{Value, json};

use super::client::segment;
use super::output::{Column, Format, show};
use super::{CliError, Global, agreed, next, print, say};

const COLUMNS: [Column; 10] = [
    ("ID", "/id"),
    ("CLUSTER", "/cluster"),
    ("CONNECTED", "/connected"),
    ("AGE S", "/age_s"),
    ("VERSION", "/version"),
    ("STATUS", "/heartbeat/platform/status"),
    ("DRIFT", "/heartbeat/platform/drift"),
    ("LEFTOVERS", "/heartbeat/platform/leftovers"),
    ("CERTIFICATE UNTIL", "/certificate_expires_at"),
    ("REVOKED", "/revoked_at"),
];
const COMMANDS: [Column; 10] = [
    ("ID", "/id"),
    ("SEQUENCE", "/sequence"),
    ("ACTION", "/action"),
    ("SHA256", "/sha256"),
    ("PURPOSE", "/purpose"),
    ("STATUS", "/status"),
    ("ATTEMPTS", "/attempts"),
    ("STAGE", "/progress/stage"),
    ("CODE", "/code"),
    ("RESULT", "/result"),
];

/// Verbs of `executor`.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Print a one-time token by which an executor enrols for a cluster.
    Enroll {
        /// For which.
        #[arg(long)]
        cluster: String,
    },
    /// List executors.
    List,
    /// Show an executor with its last heartbeat.
    Get {
        /// Which.
        id: String,
    },
    /// Refuse the executor's key and certificates from now on, and end its connection; it may enrol anew.
    Revoke {
        /// Which.
        id: String,
        /// Do not ask. Nobody is asked either where stdin is no terminal, as in a script.
        #[arg(long, short = 'y')]
        yes: bool,
    },
    /// List the commands of an executor, oldest first.
    Commands {
        /// Which.
        id: String,
    },
}

/// Carries out a verb.
///
/// # Errors
/// See [`CliError`].
pub async fn run(verb: Verb, global: &Global) -> Result<(), CliError> {
    let client = global.client()?;
    match verb {
        Verb::Enroll { cluster } => {
            let answer = client.post(&format!("clusters/{}/enrolments", segment(&cluster)), &json!({})).await?;
            let text = |key: &str| answer.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
            match global.output {
                // The token alone, so that it can be piped into the command that asks for it.
                None | Some(Format::Table | Format::Name) => print(&format!("{}\n", text("token")))?,
                Some(Format::Json | Format::Yaml) => show(global, &answer, &[])?,
            }
            say("at the connector, within the hour:");
            next(&format!("clicklink clctl init --enroll {}", text("endpoint")));
            Ok(())
        }
        Verb::List => show(global, &client.get("executors").await?, &COLUMNS),
        Verb::Get { id } => show(global, &client.get(&format!("executors/{}", segment(&id))).await?, &COLUMNS),
        Verb::Revoke { id, yes } => {
            if !yes && !agreed(&format!("Cut executor {id} off, until it is enrolled again?")) {
                return Err(CliError::NotAgreed);
            }
            let revoked = client.post(&format!("executors/{}/revoke", segment(&id)), &json!({})).await?;
            show(global, &revoked, &COLUMNS)?;
            let cluster = revoked.get("cluster").and_then(Value::as_str).unwrap_or("NAME");
            say("if it is to come back:");
            next(&format!("navin-manager executor enroll --cluster {cluster}"));
            Ok(())
        }
        Verb::Commands { id } => show(global, &client.get(&format!("executors/{}/commands", segment(&id))).await?, &COMMANDS),
    }
}
