//! `clctl registry`: the registry that charts and images are pulled from.

mod check;
mod report;

use std::process::ExitCode;

use clap::Subcommand;

/// Verbs.
#[derive(Subcommand)]
pub(crate) enum Registry {
    /// Log in as the executor would and ask for each chart and image of the bundle; nothing is pulled or changed.
    Check(Box<check::Check>),
}

impl Registry {
    pub(super) async fn run(self) -> ExitCode {
        match self {
            Self::Check(check) => check.run().await,
        }
    }
}
