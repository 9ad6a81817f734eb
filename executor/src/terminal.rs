//! The one place that writes to stdout and stderr: stdout is data, stderr is talk.

use std::fmt::Display;
use std::io::{IsTerminal, Write};
use std::process::ExitCode;

/// Writes a line of data. A closed pipe (`| head`) is no error.
pub(crate) fn data(line: impl Display) {
    let _ = writeln!(std::io::stdout().lock(), "{line}");
}

/// Writes a line of talk.
pub(crate) fn talk(line: impl Display) {
    let _ = writeln!(std::io::stderr().lock(), "{line}");
}

/// Writes `error: …` and gives the exit code for it.
pub(crate) fn fail(message: impl Display) -> ExitCode {
    talk(format_args!("error: {message}"));
    ExitCode::FAILURE
}

/// Whether a person reads stdout.
pub(crate) fn stdout_is_terminal() -> bool {
    std::io::stdout().is_terminal()
}

/// An error with all its causes, in one line.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        next = cause.source();
    }
    text
}
