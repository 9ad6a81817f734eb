//! A question to the person before something is changed; only where a person is there to answer.

use std::fs::File;
use std::io::{BufRead as _, BufReader, IsTerminal as _, Write as _};

/// Where a person is asked.
const TERMINAL: &str = "/dev/tty";

/// Why nobody could be asked.
#[derive(Debug, thiserror::Error)]
#[error("{TERMINAL}: {0}; nobody could be asked (--yes does not ask)")]
pub struct Unasked(std::io::Error);

/// Asks on the terminal, whatever stdout and stderr lead to. Without a terminal on stdin, as in a script, the command itself was the
/// answer.
///
/// # Errors
/// A terminal that cannot be opened: nobody has agreed.
pub fn agreed(question: &str) -> Result<bool, Unasked> {
    if !std::io::stdin().is_terminal() {
        return Ok(true);
    }
    let answer = File::options().read(true).write(true).open(TERMINAL).and_then(|mut terminal| {
        write!(terminal, "{question} [y/N] ").and_then(|()| terminal.flush())?;
        let mut answer = String::new();
        BufReader::new(terminal).read_line(&mut answer)?;
        Ok(answer)
    });
    answer.map(|answer| is_yes(&answer)).map_err(Unasked)
}

fn is_yes(answer: &str) -> bool {
    matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_yes_is_a_yes() {
        for (answer, expected) in [("y\n", true), ("YES", true), ("", false), ("\n", false), ("n", false), ("yep", false)] {
            assert_eq!(is_yes(answer), expected, "{answer:?}");
        }
    }
}
