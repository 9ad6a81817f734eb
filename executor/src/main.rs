//! `clicklink`: the connector's one program. `executor` is the daemon, `clctl` is for people.

mod approval;
mod channel;
mod clctl;
mod config;
mod daemon;
mod heartbeat;
mod journal;
mod local_api;
mod observe;
mod reference;
mod signed;
mod terminal;
mod worker;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{CommandFactory as _, Parser, Subcommand};

/// Connector between a vendor's platform updates and your Kubernetes cluster.
#[derive(Parser)]
#[command(name = "clicklink", version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run the executor daemon.
    Executor {
        /// Configuration file.
        #[arg(long, default_value = config::DEFAULT_PATH, env = "CLICKLINK_CONFIG")]
        config: PathBuf,
    },
    /// Commands for people: approve platform updates, grant access, look at commands.
    #[command(subcommand)]
    Clctl(Box<clctl::Clctl>),
    /// Print the command-line reference in Markdown.
    #[command(hide = true)]
    Reference,
    /// Confine this process and become the chart engine.
    #[command(name = render::confine::SUBCOMMAND, hide = true)]
    EngineSandbox {
        /// The engine's path and its arguments.
        #[arg(trailing_var_arg = true, required = true)]
        engine: Vec<std::ffi::OsString>,
    },
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match arguments.command {
        Command::EngineSandbox { engine } => render::confined_main(engine),
        Command::Reference => {
            terminal::data(reference::markdown(Arguments::command()).trim_end());
            ExitCode::SUCCESS
        }
        Command::Executor { config } => on_runtime(daemon::main(&config)),
        Command::Clctl(command) => on_runtime(command.run()),
    }
}

fn on_runtime(task: impl Future<Output = ExitCode>) -> ExitCode {
    match tokio::runtime::Runtime::new() {
        Ok(runtime) => runtime.block_on(task),
        Err(error) => terminal::fail(format_args!("the runtime could not start: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_sound() {
        Arguments::command().debug_assert();
    }

    /// PEM begins with hyphens, so that it must not be taken for another flag.
    #[test]
    fn whoever_asks_for_ca_data_takes_pem() {
        fn walk(command: &clap::Command, seen: &mut Vec<String>) {
            for argument in command.get_arguments().filter(|argument| argument.get_long() == Some("ca-data")) {
                assert!(argument.is_allow_hyphen_values_set(), "{} --ca-data", command.get_name());
                seen.push(command.get_name().to_owned());
            }
            command.get_subcommands().for_each(|child| walk(child, seen));
        }
        let mut seen = Vec::new();
        walk(&Arguments::command(), &mut seen);
        seen.sort();
        assert_eq!(seen, ["apply", "approve", "grant"]);
    }
}
