//! The command line. stdout is data, stderr is talk.

use std::io::Write as _;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::generate::{self, RbacFile};

/// The Navin Platform Operator: carries out ManagedComponents in a cluster.
#[derive(Debug, Parser)]
#[command(name = "navin-operator", version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
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
}

/// Runs the program.
#[must_use]
pub fn main() -> ExitCode {
    let text = match Arguments::parse().command {
        Command::Crd => generate::crd(),
        Command::Rbac { file } => generate::rbac(file),
        Command::Deployment => generate::deployment(),
    };
    // A closed pipe (`| head`) is no error.
    match std::io::stdout().lock().write_all(text.as_bytes()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => ExitCode::FAILURE,
        Ok(()) | Err(_) => ExitCode::SUCCESS,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;

    #[test]
    fn the_command_line_is_sound() {
        Arguments::command().debug_assert();
    }
}
