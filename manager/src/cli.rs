//! The command line. `serve` is the server; everything else asks the REST API and prints what it answers.

pub mod audit;
pub mod client;
pub mod cluster;
pub(crate) mod code;
pub mod environment;
pub mod executor;
pub mod output;
pub mod release;
pub mod serve;
pub mod token;

use std::io::Write as _;
use std::process::ExitCode;

use agent_api::chain::chain;
use clap::{CommandFactory as _, Parser, Subcommand};

use client::{Client, ClientError, Connect};
use output::Format;

/// The vendor's side of clicklink: proposes platform updates and carries them to executors.
#[derive(Debug, Parser)]
#[command(name = "navin-manager", version, propagate_version = true)]
struct Arguments {
    #[command(flatten)]
    global: Global,
    #[command(subcommand)]
    command: Command,
}

/// Options of all commands that ask the API.
#[derive(Debug, clap::Args)]
pub struct Global {
    #[command(flatten)]
    connect: Connect,
    /// How to print [default: table on a terminal, json otherwise].
    #[arg(short, long, global = true, value_enum)]
    output: Option<Format>,
}

impl Global {
    fn client(&self) -> Result<Client, CliError> {
        Ok(Client::new(&self.connect)?)
    }
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the server.
    Serve(serve::Args),
    /// Bearer tokens of the API.
    #[command(subcommand)]
    Token(token::Verb),
    /// Customers' clusters.
    #[command(subcommand)]
    Cluster(cluster::Verb),
    /// Environments: what is proposed to a cluster, and how far it is.
    #[command(subcommand)]
    Environment(environment::Verb),
    /// Releases: what is proposed.
    #[command(subcommand)]
    Release(release::Verb),
    /// Executors: the connectors at customers'.
    #[command(subcommand)]
    Executor(executor::Verb),
    /// The append-only record of who did what.
    #[command(subcommand)]
    Audit(audit::Verb),
    /// Print the command-line reference in Markdown.
    #[command(hide = true)]
    Reference {
        /// The index of HTTP problem codes instead.
        #[arg(long)]
        errors: bool,
    },
}

/// Why a command failed.
#[derive(Debug, thiserror::Error)]
pub enum CliError {
    /// Asking the API.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// The server.
    #[error(transparent)]
    Serve(#[from] crate::serve::ServeError),
    /// The configuration.
    #[error(transparent)]
    Config(#[from] crate::config::ConfigError),
    /// The content of a file.
    #[error("{path} is not right: {problem}")]
    Parse {
        /// Which.
        path: std::path::PathBuf,
        /// Place and reason.
        problem: String,
    },
    /// The person said no.
    #[error("not agreed: nothing was changed")]
    NotAgreed,
    /// Printing.
    #[error("the output could not be written")]
    Output(#[source] std::io::Error),
    /// The asynchronous runtime.
    #[error("the program could not be started")]
    Runtime(#[source] std::io::Error),
}

impl CliError {
    fn code(&self) -> &str {
        match self {
            Self::Client(error) => error.code(),
            Self::Parse { .. } => code::FILE_INVALID,
            Self::NotAgreed => code::NOT_AGREED,
            Self::Config(_) => code::CONFIG_INVALID,
            Self::Output(_) => code::FILE_NOT_WRITTEN,
            Self::Serve(_) | Self::Runtime(_) => code::SERVER_FAILED,
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::Client(error) => error.hint(),
            Self::Serve(_) | Self::Config(_) | Self::Parse { .. } | Self::NotAgreed | Self::Output(_) | Self::Runtime(_) => None,
        }
    }
}

/// Parses, runs, and maps the result to an exit code: 0 done, 1 failed, 2 wrongly used.
pub fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => return misunderstood(&error),
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(CliError::Runtime);
    match runtime.and_then(|runtime| runtime.block_on(run(arguments))) {
        Ok(()) => ExitCode::SUCCESS,
        // Whoever read our output has enough.
        Err(CliError::Output(error)) if error.kind() == std::io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            say(&format!("error[{}]: {}", error.code(), chain(&error)));
            if let Some(hint) = error.hint() {
                say(&format!("hint: {hint}"));
            }
            ExitCode::FAILURE
        }
    }
}

/// Help and version are data and no errors; all else is one with a code.
fn misunderstood(error: &clap::Error) -> ExitCode {
    let text = error.render().to_string();
    if !error.use_stderr() {
        return if print(&text).is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    }
    match text.strip_prefix("error: ") {
        Some(problem) => say(&format!("error[{}]: {}", code::USAGE, problem.trim_end())),
        // A noun without a verb is answered with its help.
        None => say(text.trim_end()),
    }
    ExitCode::from(2)
}

async fn run(arguments: Arguments) -> Result<(), CliError> {
    let global = arguments.global;
    match arguments.command {
        Command::Serve(args) => serve::run(args).await,
        Command::Token(verb) => token::run(verb, &global).await,
        Command::Cluster(verb) => cluster::run(verb, &global).await,
        Command::Environment(verb) => environment::run(verb, &global).await,
        Command::Release(verb) => release::run(verb, &global).await,
        Command::Executor(verb) => executor::run(verb, &global).await,
        Command::Audit(verb) => audit::run(verb, &global).await,
        Command::Reference { errors: true } => print(&crate::http::code::index()),
        Command::Reference { errors: false } => print(&command_line::reference::markdown(Arguments::command())),
    }
}

/// A line of talk for a person, on stderr; there is nowhere to report that it could not be written.
pub fn say(line: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{line}");
}

/// Whether the person agrees, where one is there to be asked.
fn agreed(question: &str) -> bool {
    command_line::question::agreed(question).unwrap_or_else(|unasked| {
        say(&unasked.to_string());
        false
    })
}

/// The next command to type, on stderr: what follows `next: ` is taken by a shell as it is; what has to be filled in is in capitals.
fn next(command: &str) {
    say(&format!("next: {command}"));
}

/// Data, on stdout.
fn print(data: &str) -> Result<(), CliError> {
    let mut stdout = std::io::stdout().lock();
    stdout.write_all(data.as_bytes()).and_then(|()| stdout.flush()).map_err(CliError::Output)
}
