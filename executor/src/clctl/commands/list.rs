//! `clctl commands list [--status] [--action] [-o]`.

use std::process::ExitCode;

use agent_api::command::CommandView;
use clap::{Args, ValueEnum};

use super::{HEADER, row};
use crate::clctl::local_api::LocalApi;
use crate::clctl::output::Output;
use crate::terminal::report;

/// Arguments.
#[derive(Args)]
pub(crate) struct List {
    #[command(flatten)]
    api: LocalApi,
    /// Only commands of this status.
    #[arg(long)]
    status: Option<Status>,
    /// Only commands of this action, e.g. sync_platform.
    #[arg(long)]
    action: Option<String>,
    /// Form of the output (default: a table on a terminal, JSON otherwise).
    #[arg(short, long)]
    output: Option<Output>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Status {
    Pending,
    Running,
    Completed,
    Failed,
}

impl List {
    pub(super) async fn run(self) -> ExitCode {
        let mut query = Vec::new();
        if let Some(status) = self.status.and_then(|status| status.to_possible_value()) {
            query.push(("status", status.get_name().to_owned()));
        }
        if let Some(action) = self.action {
            query.push(("action", action));
        }
        match self.api.get::<Vec<CommandView>>("/v1/commands", &query).await {
            Ok(views) => Output::or_default(self.output).print(
                &views,
                &HEADER,
                || views.iter().map(row).collect(),
                || views.iter().map(|view| view.id.to_string()).collect(),
            ),
            Err(error) => report(&error),
        }
    }
}
