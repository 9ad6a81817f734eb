//! What a registry's answer means.

use reqwest::{Response, StatusCode};
use serde::Deserialize;

use super::PullError;
use super::transfer::Arriving;

/// Largest explanation that is read: 64 KiB.
const MAX_EXPLANATION: u64 = 64 << 10;
/// Longest part of it that is told, in characters.
const MAX_TOLD: usize = 300;

/// Why a registry says no.
pub(super) struct Refusal {
    /// One line; may be empty.
    said: String,
}

#[derive(Deserialize)]
struct Explanation {
    errors: Vec<Problem>,
}

#[derive(Deserialize)]
struct Problem {
    #[serde(default)]
    message: String,
}

impl Refusal {
    /// Reads the explanation of an answer; none where there is none, or one that is not understood.
    pub(super) async fn read(answer: Response) -> Self {
        let mut arriving = Arriving::new(MAX_EXPLANATION, None, "");
        let read = arriving.take(answer).await;
        let explanation = read.ok().and_then(|()| serde_json::from_slice::<Explanation>(&arriving.unverified()).ok());
        let first = explanation.and_then(|explanation| explanation.errors.into_iter().next());
        let said = first.map_or_else(String::new, |problem| problem.message.chars().flat_map(shown).take(MAX_TOLD).collect());
        Self { said }
    }

    /// Whether the login has only run out. ECR answers 403 then: "Your authorization token has expired. Reauthenticate and try again."
    pub(super) fn is_expiry(&self) -> bool {
        self.said.to_ascii_lowercase().contains("token has expired")
    }

    /// As an error.
    pub(super) fn into_error(self, status: StatusCode, reference: &str) -> PullError {
        let reference = reference.to_owned();
        let said = if self.said.is_empty() { String::new() } else { format!(": {}", self.said) };
        match status {
            StatusCode::UNAUTHORIZED => PullError::Unauthorized { reference, said },
            StatusCode::FORBIDDEN => PullError::Forbidden { reference, said },
            status => PullError::Status { reference, status: status.as_u16() },
        }
    }
}

/// A character as it is, or escaped where it could not be seen.
fn shown(character: char) -> Vec<char> {
    match character {
        '"' | '\'' | '\\' => vec![character],
        other => other.escape_debug().collect(),
    }
}

/// An answer of success, else the error that it means.
pub(super) async fn accepted(answer: Response, reference: &str) -> Result<Response, PullError> {
    let told = || reference.to_owned();
    match answer.status() {
        status if status.is_success() => Ok(answer),
        status @ (StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) => Err(Refusal::read(answer).await.into_error(status, reference)),
        StatusCode::NOT_FOUND => Err(PullError::NotFound { reference: told() }),
        StatusCode::TOO_MANY_REQUESTS => Err(PullError::Busy { reference: told() }),
        status => Err(PullError::Status { reference: told(), status: status.as_u16() }),
    }
}
