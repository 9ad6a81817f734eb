//! `clctl platform`: the person's side of platform updates.

mod approve;

use std::process::ExitCode;

use clap::Subcommand;

/// Verbs.
#[derive(Subcommand)]
pub(crate) enum Platform {
    /// Approve the staged bundle: apply its permissions half with your own credentials, and let the executor apply the rest.
    Approve(Box<approve::Approve>),
}

impl Platform {
    pub(crate) async fn run(self) -> ExitCode {
        match self {
            Self::Approve(approve) => approve.run().await,
        }
    }
}
