//! `clicklink clctl`: commands for people, one noun a folder, one verb a file.

mod access_folder;
mod commands;
mod executor;
mod init;
mod namespace_prefix;
mod output;
mod platform;
mod question;
mod server;
mod ttl;

use std::process::ExitCode;

use clap::Subcommand;

/// Nouns.
#[derive(Subcommand)]
pub(crate) enum Clctl {
    /// Enrol this connector with its manager and write its configuration.
    Init(init::Init),
    /// Look at the commands that the executor has received.
    #[command(subcommand)]
    Commands(commands::Commands),
    /// Approve platform updates.
    #[command(subcommand)]
    Platform(platform::Platform),
    /// Give the executor access to the cluster.
    #[command(subcommand)]
    Executor(executor::Executor),
}

impl Clctl {
    /// Runs the command; everything it has to say is written.
    pub(crate) async fn run(self) -> ExitCode {
        match self {
            Self::Init(init) => init.run().await,
            Self::Commands(commands) => commands.run().await,
            Self::Platform(platform) => platform.run().await,
            Self::Executor(executor) => executor.run().await,
        }
    }
}
