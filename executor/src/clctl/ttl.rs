//! How long a token is asked for, as a person writes it: `2h`, `90m`, `1h30m`, `2160h`.

use std::time::Duration;

use cluster::token::SHORTEST;

/// The API server takes no longer one (Kubernetes, `TokenRequest` validation).
const LONGEST: Duration = Duration::from_secs(1 << 32);

/// Reads a duration of at least ten minutes.
pub(crate) fn parse(text: &str) -> Result<Duration, String> {
    let parsed: jiff::SignedDuration = text.parse().map_err(|_not_a_duration| format!("`{text}` is no duration; 2h or 90m is"))?;
    match Duration::try_from(parsed) {
        Ok(duration) if duration > LONGEST => Err(format!("{text} is too long: the API server grants no token over 2^32 seconds")),
        Ok(duration) if duration >= SHORTEST => Ok(Duration::from_secs(duration.as_secs())),
        Ok(_) | Err(_) => Err(format!("{text} is too short: the API server grants no token under 10m")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations() {
        for (text, seconds) in [("2h", 7200), ("90m", 5400), ("1h30m", 5400), ("2160h", 7_776_000), ("600s", 600), ("10m", 600)] {
            assert_eq!(parse(text), Ok(Duration::from_secs(seconds)), "{text}");
        }
        for text in ["9m59s", "0", "", "2", "-2h", "h", "9999999h"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
