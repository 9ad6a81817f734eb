//! The one-time token: from a hidden prompt or the first line of stdin, never from an argument, which every process could read.

use std::io::{BufRead as _, IsTerminal as _};

use agent_api::secret::Secret;

use super::error::InitError;

pub(super) fn read() -> Result<Secret, InitError> {
    let line = if std::io::stdin().is_terminal() {
        rpassword::prompt_password("One-time enrolment token: ").map_err(InitError::Token)?
    } else {
        let mut line = String::new();
        std::io::stdin().lock().read_line(&mut line).map_err(InitError::Token)?;
        line
    };
    let token = line.trim().to_owned();
    if token.is_empty() { Err(InitError::NoToken) } else { Ok(Secret::new(token)) }
}
