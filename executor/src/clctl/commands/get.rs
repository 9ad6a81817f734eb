//! `clctl commands get <id> [-o]`.

use std::process::ExitCode;

use agent_api::command::CommandView;
use agent_api::name::CommandId;
use clap::Args;

use super::{HEADER, row};
use crate::clctl::local_api::LocalApi;
use crate::clctl::output::Output;
use crate::error_code::of_result;
use crate::terminal::{report, talk};

/// Arguments.
#[derive(Args)]
pub(crate) struct Get {
    #[command(flatten)]
    api: LocalApi,
    /// Command id, as `commands list` shows it.
    id: CommandId,
    /// Form of the output (default: a table on a terminal, JSON otherwise).
    #[arg(short, long)]
    output: Option<Output>,
}

impl Get {
    pub(super) async fn run(self) -> ExitCode {
        match self.api.get::<CommandView>(&format!("/v1/commands/{}", self.id), &[]).await {
            Ok(view) => {
                let output = Output::or_default(self.output);
                let exit = output.print(&view, &HEADER, || vec![row(&view)], || vec![view.id.to_string()]);
                // Where it is for a person; the page of a code of another version is not ours to name.
                if let Some(code) = view.code.as_deref().and_then(of_result).filter(|_| output == Output::Table) {
                    talk(format_args!("hint: {} See docs/errors/{}.md", code.meaning(), code.as_str()));
                }
                exit
            }
            Err(error) => report(&error),
        }
    }
}
