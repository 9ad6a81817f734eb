//! `clicklink clctl`: commands for people, one noun a folder, one verb a file.

mod age;
mod client_certificate;
mod commands;
mod completion;
mod docker_config;
mod executor;
mod guard;
mod init;
mod local_api;
mod namespace_prefix;
mod output;
mod platform;
mod preflight;
mod registry;
mod requests;
mod server;
mod status;
mod ttl;

use std::process::ExitCode;

use clap::Subcommand;

/// Nouns.
#[derive(Subcommand)]
pub(crate) enum Clctl {
    /// Enrol this connector with its manager and write its configuration.
    Init(init::Init),
    /// Check this machine, the configuration, the manager and the cluster, and say what to mend.
    Preflight(preflight::Preflight),
    /// Show where the platform update stands, and the next step.
    Status(status::Status),
    /// Look at the commands that the executor has received.
    #[command(subcommand)]
    Commands(commands::Commands),
    /// Approve platform updates.
    #[command(subcommand)]
    Platform(platform::Platform),
    /// See what this machine may pull.
    #[command(subcommand)]
    Registry(registry::Registry),
    /// Give the executor access to the cluster.
    #[command(subcommand)]
    Executor(executor::Executor),
    /// Print a script that completes commands in your shell.
    Completion(completion::Completion),
}

impl Clctl {
    /// Runs the command; everything it has to say is written.
    pub(crate) async fn run(self) -> ExitCode {
        match self {
            Self::Init(init) => init.run().await,
            Self::Preflight(preflight) => preflight.run().await,
            Self::Status(status) => status.run().await,
            Self::Commands(commands) => commands.run().await,
            Self::Platform(platform) => platform.run().await,
            Self::Registry(registry) => registry.run().await,
            Self::Executor(executor) => executor.run().await,
            Self::Completion(completion) => completion.run(),
        }
    }
}
