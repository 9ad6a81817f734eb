//! A question to the person before something is changed; only where a person is there to answer.

use std::io::{BufRead as _, IsTerminal as _, Write as _};

/// Asks on a terminal; without one, as in a script, the command itself was the answer.
pub(crate) fn agreed(question: &str) -> bool {
    let stdin = std::io::stdin();
    if !stdin.is_terminal() || !std::io::stderr().is_terminal() {
        return true;
    }
    let mut talk = std::io::stderr().lock();
    let _ = write!(talk, "{question} [y/N] ").and_then(|()| talk.flush());
    let mut answer = String::new();
    let read = stdin.lock().read_line(&mut answer);
    read.is_ok() && matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes")
}
