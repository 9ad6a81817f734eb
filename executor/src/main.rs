//! `clicklink`: the connector's one program. `executor` is the daemon, `clctl` is for people.

mod access_folder;
mod approval;
mod channel;
mod clctl;
mod config;
mod daemon;
mod error_code;
mod health;
mod heartbeat;
mod journal;
mod local_api;
mod log;
mod observe;
mod openapi;
mod service_manager;
mod signed;
mod terminal;
mod token_renewal;
mod worker;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{CommandFactory as _, Parser, Subcommand};

use crate::error_code::Code;

/// How long blocking calls may take to end once all else has ended.
const SHUTDOWN: std::time::Duration = std::time::Duration::from_secs(1);

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
    Reference {
        /// The index of errors instead.
        #[arg(long)]
        errors: bool,
    },
    /// Print the OpenAPI document of the local API and the health port.
    #[command(hide = true)]
    Openapi,
    /// Confine this process and become the chart engine.
    #[command(name = render::confine::SUBCOMMAND, hide = true)]
    EngineSandbox {
        /// The engine's path and its arguments.
        #[arg(trailing_var_arg = true, required = true)]
        engine: Vec<std::ffi::OsString>,
    },
}

fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => return misunderstood(&error),
    };
    match arguments.command {
        Command::EngineSandbox { engine } => render::confined_main(engine),
        Command::Reference { errors } => {
            let text = if errors { error_code::index() } else { command_line::reference::markdown(command_line()) };
            terminal::data(text.trim_end());
            ExitCode::SUCCESS
        }
        Command::Openapi => {
            terminal::data(openapi::text());
            ExitCode::SUCCESS
        }
        Command::Executor { config } => on_runtime(daemon::main(&config)),
        Command::Clctl(command) => on_runtime(command.run()),
    }
}

/// All commands and flags.
fn command_line() -> clap::Command {
    Arguments::command()
}

/// Help and version are data and no errors; all else is one with a code.
fn misunderstood(error: &clap::Error) -> ExitCode {
    let text = error.render().to_string();
    if !error.use_stderr() {
        terminal::data(text.trim_end());
        return ExitCode::SUCCESS;
    }
    match text.strip_prefix("error: ") {
        Some(problem) => terminal::fail(Code::Usage, problem.trim_end()),
        // A noun without a verb is answered with its help.
        None => {
            terminal::talk(text.trim_end());
            ExitCode::from(Code::Usage.exit())
        }
    }
}

fn on_runtime(task: impl Future<Output = ExitCode>) -> ExitCode {
    match tokio::runtime::Runtime::new() {
        Ok(runtime) => {
            let exit = runtime.block_on(task);
            // A blocking call that hangs, on a dead disk or a dead name server, must not hold up the end.
            runtime.shutdown_timeout(SHUTDOWN);
            exit
        }
        Err(error) => terminal::fail(Code::Internal, format_args!("the runtime could not start: {error}")),
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
