//! `clctl commands`: what the executor's local API knows of commands.

mod get;
mod list;

use std::process::ExitCode;

use agent_api::command::CommandView;
use clap::Subcommand;

use crate::clctl::age;

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

const HEADER: [&str; 8] = ["ID", "ACTION", "TARGET", "BUNDLE", "STATUS", "CODE", "AGE", "RESULT"];

fn row(view: &CommandView) -> Vec<String> {
    vec![
        view.id.to_string(),
        view.action.clone(),
        view.target.clone(),
        view.sha256.as_ref().map(|sha256| sha256.short().to_owned()).unwrap_or_default(),
        view.status.as_str().to_owned(),
        view.code.clone().unwrap_or_default(),
        age::since(view.created_at, jiff::Timestamp::now()),
        view.result.clone().or_else(|| view.stage.clone()).unwrap_or_default(),
    ]
}
