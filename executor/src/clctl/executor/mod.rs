//! `clctl executor`: what a person prepares for the executor.

mod access;

pub(crate) use access::READS;

use std::process::ExitCode;

use clap::Subcommand;

/// Nouns.
#[derive(Subcommand)]
pub(crate) enum Executor {
    /// The executor's own, standing access to the cluster.
    #[command(subcommand)]
    Access(access::Access),
}

impl Executor {
    pub(crate) async fn run(self) -> ExitCode {
        match self {
            Self::Access(access) => access.run().await,
        }
    }
}
