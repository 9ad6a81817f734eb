//! `audit`: the append-only record of who did what.

use clap::Subcommand;
use jiff::Timestamp;
use serde_json::Value;

use super::client::{ClientError, segment};
use super::{CliError, Global, print};

/// Verbs of `audit`.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Print the record, one JSON object a line whatever --output says: calls of writing routes, and approvals that executors reported.
    Export {
        /// Only what is not older than this, e.g. 2026-11-30T00:00:00Z.
        #[arg(long)]
        since: Option<Timestamp>,
        /// Only entries behind this `number`: where the last export ended.
        #[arg(long, default_value_t = 0)]
        after: i64,
    },
}

/// Carries out a verb.
///
/// # Errors
/// See [`CliError`].
pub async fn run(verb: Verb, global: &Global) -> Result<(), CliError> {
    let client = global.client()?;
    let Verb::Export { since, mut after } = verb;
    let since = since.map(|since| format!("&since={}", segment(&since.to_string()))).unwrap_or_default();
    loop {
        let page = client.get(&format!("audit?after={after}{since}")).await?;
        let entries = page.get("entries").and_then(Value::as_array).ok_or(ClientError::Foreign(reqwest::StatusCode::OK))?;
        print(&entries.iter().map(|entry| format!("{entry}\n")).collect::<String>())?;
        match (page.get("more").and_then(Value::as_bool), page.get("next").and_then(Value::as_i64)) {
            (Some(true), Some(next)) if next > after => after = next,
            _ => return Ok(()),
        }
    }
}
