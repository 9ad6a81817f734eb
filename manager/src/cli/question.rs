//! A question to the person before something is changed; only where a person is there to answer.

use std::fs::File;
use std::io::{BufRead as _, BufReader, IsTerminal as _, Write as _};

/// Where a person is asked.
const TERMINAL: &str = "/dev/tty";

/// Asks on the terminal, whatever stdout and stderr lead to. Without a terminal on stdin, as in a script, the command itself was the
/// answer; with one that cannot be opened nobody has agreed.
pub(super) fn agreed(question: &str) -> bool {
    if !std::io::stdin().is_terminal() {
        return true;
    }
    let answer = File::options().read(true).write(true).open(TERMINAL).and_then(|mut terminal| {
        write!(terminal, "{question} [y/N] ").and_then(|()| terminal.flush())?;
        let mut answer = String::new();
        BufReader::new(terminal).read_line(&mut answer)?;
        Ok(answer)
    });
    match answer {
        Ok(answer) => is_yes(&answer),
        Err(error) => {
            super::say(&format!("{TERMINAL}: {error}; nobody could be asked (--yes does not ask)"));
            false
        }
    }
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
