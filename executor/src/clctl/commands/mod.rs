//! `clctl commands`: what the executor's local API knows of commands.

mod get;
mod list;

use std::process::ExitCode;

use agent_api::command::CommandView;
use agent_api::problem::Problem;
use clap::{Args, Subcommand};
use serde::de::DeserializeOwned;

use crate::terminal::{chain, fail};

/// Verbs.
#[derive(Subcommand)]
pub(crate) enum Commands {
    /// List commands, newest first.
    List(list::List),
    /// Show one command.
    #[command(visible_alias = "show")]
    Get(get::Get),
}

impl Commands {
    pub(super) async fn run(self) -> ExitCode {
        match self {
            Self::List(list) => list.run().await,
            Self::Get(get) => get.run().await,
        }
    }
}

/// The executor's local API.
#[derive(Args)]
struct LocalApi {
    /// Address of the executor's local API.
    #[arg(long, env = "CLCTL_ENDPOINT", default_value = "http://127.0.0.1:9999")]
    endpoint: String,
}

impl LocalApi {
    /// GET and read; on failure everything is said and the exit code is given.
    async fn get<T: DeserializeOwned>(&self, path: &str, query: &[(&str, String)]) -> Result<T, ExitCode> {
        let endpoint = self.endpoint.trim_end_matches('/');
        let pairs: Vec<String> = query.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let separator = if pairs.is_empty() { "" } else { "?" };
        let url = format!("{endpoint}{path}{separator}{}", pairs.join("&"));
        let http = reqwest::Client::builder().no_proxy().build().map_err(|error| fail(chain(&error)))?;
        let response = http.get(url).send().await.map_err(|error| {
            let next = "is the executor running? On Kubernetes open a port-forward: \
                        kubectl -n <namespace> port-forward deployment/clicklink-connector-executor 9999:9999";
            fail(format_args!("{endpoint}: {}\n{next}", chain(&error)))
        })?;
        let success = response.status().is_success();
        let body = response.text().await.map_err(|error| fail(chain(&error)))?;
        if !success {
            let detail = serde_json::from_str::<Problem>(&body).map_or(body, |problem| problem.detail);
            return Err(fail(detail));
        }
        serde_json::from_str(&body).map_err(|error| fail(format_args!("{endpoint}{path}: {error}")))
    }
}

const HEADER: [&str; 7] = ["ID", "ACTION", "TARGET", "BUNDLE", "STATUS", "AGE", "RESULT"];

fn row(view: &CommandView) -> Vec<String> {
    let age = jiff::Timestamp::now().duration_since(view.created_at).as_secs();
    vec![
        view.id.to_string(),
        view.action.clone(),
        view.target.clone(),
        view.sha256.as_ref().map(|sha256| sha256.short().to_owned()).unwrap_or_default(),
        view.status.as_str().to_owned(),
        format_age(age),
        view.result.clone().or_else(|| view.stage.clone()).unwrap_or_default(),
    ]
}

/// `12s`, `5m`, `3h`, `2d`, as kubectl shows ages.
fn format_age(seconds: i64) -> String {
    match seconds {
        ..120 => format!("{}s", seconds.max(0)),
        120..7200 => format!("{}m", seconds / 60),
        7200..172_800 => format!("{}h", seconds / 3600),
        _ => format!("{}d", seconds / 86_400),
    }
}
