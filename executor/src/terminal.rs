//! The one place that writes to stdout and stderr: stdout is data, stderr is talk.

use std::fmt::Display;
use std::io::{IsTerminal, Write};
use std::process::ExitCode;

pub(crate) use agent_api::chain::chain;

use crate::error_code::{Code, Coded};

/// Writes a line of data. A closed pipe (`| head`) is no error.
pub(crate) fn data(line: impl Display) {
    let written = writeln!(std::io::stdout().lock(), "{}", escaped(&line.to_string(), &['\n']));
    // Whoever reads on would take what there is for all of it.
    if let Err(error) = written
        && error.kind() != std::io::ErrorKind::BrokenPipe
    {
        fail(Code::FileNotWritten, format_args!("stdout: {error}"));
        std::process::exit(i32::from(Code::FileNotWritten.exit()));
    }
}

/// Writes a line of data as it is; only for text that is made of nothing but this program's own.
pub(crate) fn verbatim(line: impl Display) {
    let _ = writeln!(std::io::stdout().lock(), "{line}");
}

/// Writes a line of talk.
pub(crate) fn talk(line: impl Display) {
    let _ = writeln!(std::io::stderr().lock(), "{}", escaped(&line.to_string(), &['\n']));
}

/// Whether the person agrees, where one is there to be asked.
pub(crate) fn agreed(question: &str) -> bool {
    command_line::question::agreed(question).unwrap_or_else(|unasked| {
        talk(unasked);
        false
    })
}

/// Text without what could fool a terminal or a reader: control bytes (but those `allowed`), and characters that are invisible or turn
/// the direction of writing. Names and messages come from manifests, charts and clusters.
pub(crate) fn escaped(text: &str, allowed: &[char]) -> String {
    let hidden = |c: char| {
        c.is_control()
            || matches!(c, '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
            || matches!(c, '\u{e0000}'..='\u{e007f}')
    };
    text.chars().fold(String::with_capacity(text.len()), |mut out, c| {
        if hidden(c) && !allowed.contains(&c) {
            out.extend(c.escape_unicode());
        } else {
            out.push(c);
        }
        out
    })
}

/// Writes `error[code]: …` with all causes, then a line for each hint, and gives the exit code for it.
pub(crate) fn report(error: &(impl Coded + 'static)) -> ExitCode {
    let exit = fail(error.code(), chain(error));
    for hint in error.hints() {
        talk(format_args!("hint: {hint}"));
    }
    exit
}

/// Writes `error[code]: …` and gives the exit code for it.
pub(crate) fn fail(code: Code, message: impl Display) -> ExitCode {
    talk(format_args!("error[{}]: {message}", code.name()));
    ExitCode::from(code.exit())
}

/// Whether a person reads stdout.
pub(crate) fn stdout_is_terminal() -> bool {
    std::io::stdout().is_terminal()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_could_fool_a_terminal_is_shown_and_not_obeyed() {
        assert_eq!(escaped("a\u{1b}[2J\r\n\tb", &['\n']), "a\\u{1b}[2J\\u{d}\n\\u{9}b");
        assert_eq!(escaped("a\n\u{202e}b\u{61c}\u{e0041}é", &[]), "a\\u{a}\\u{202e}b\\u{61c}\\u{e0041}é");
    }
}
