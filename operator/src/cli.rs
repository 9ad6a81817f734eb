//! The command line. stdout is data, stderr is talk.

use std::ffi::OsString;
use std::io::Write as _;
use std::process::ExitCode;

use agent_api::chain::chain;
use clap::{CommandFactory as _, Parser, Subcommand};

use crate::generate::{self, RbacFile};
use crate::run::RunError;
use crate::run_arguments::RunArguments;

/// The Navin Platform Operator: carries out ManagedComponents in a cluster.
#[derive(Debug, Parser)]
#[command(name = "navin-operator", version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Carry out the ManagedComponents of some namespaces.
    Run(Box<RunArguments>),
    /// Confine this process and become the chart engine.
    #[command(name = render::confine::SUBCOMMAND, hide = true)]
    EngineSandbox {
        /// The engine's path and its arguments.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true)]
        engine: Vec<OsString>,
    },
    /// Print the CustomResourceDefinition of ManagedComponent.
    #[command(hide = true)]
    Crd,
    /// Print a file of operator/config/rbac.
    #[command(hide = true)]
    Rbac {
        /// Which one.
        file: RbacFile,
    },
    /// Print the operator's Deployment.
    #[command(hide = true)]
    Deployment,
    /// Print the command-line reference in Markdown.
    #[command(hide = true)]
    Reference,
}

/// Runs the program.
#[must_use]
pub fn main() -> ExitCode {
    let text = match Arguments::parse().command {
        Command::Run(arguments) => return run(*arguments),
        Command::EngineSandbox { engine } => return render::confined_main(engine),
        Command::Crd => generate::crd(),
        Command::Rbac { file } => generate::rbac(file),
        Command::Deployment => generate::deployment(),
        Command::Reference => command_line::reference::markdown(Arguments::command()),
    };
    // A closed pipe (`| head`) is no error.
    match std::io::stdout().lock().write_all(text.as_bytes()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => ExitCode::FAILURE,
        Ok(()) | Err(_) => ExitCode::SUCCESS,
    }
}

fn run(arguments: RunArguments) -> ExitCode {
    let ended = arguments.check().map_err(RunError::from).and_then(crate::run::run);
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(std::io::stderr().lock(), "navin-operator: {}", chain(&error));
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_sound() {
        Arguments::command().debug_assert();
    }
}
