//! What is asked again, how often and after how long.

use std::time::Duration;

use jiff::Timestamp;
use reqwest::StatusCode;
use reqwest::header::{HeaderMap, RETRY_AFTER};

/// Pauses before the second try and each later one; there is no try after the last.
pub(super) const PAUSES: [Duration; 3] = [Duration::from_millis(300), Duration::from_secs(1), Duration::from_secs(3)];
/// Longest pause that a registry may ask for with `Retry-After`; a longer one counts as this.
const LONGEST: Duration = Duration::from_secs(20);

/// Whether an answer may be another in a moment.
pub(super) fn passing(status: StatusCode) -> bool {
    matches!(status.as_u16(), 408 | 429 | 500 | 502 | 503 | 504)
}

/// Whether a request that got no answer may get one in a moment. A certificate does not change by asking again, and where nothing answered
/// within the limit a person has waited long enough.
pub(super) fn passing_error(error: &reqwest::Error) -> bool {
    !error.is_builder() && !error.is_timeout() && super::error::tls_problem(error).is_none()
}

/// The pause: ours, or the longer one that the registry asks for.
pub(super) fn pause(own: Duration, headers: &HeaderMap, now: Timestamp) -> Duration {
    let asked = headers.get(RETRY_AFTER).and_then(|value| value.to_str().ok()).and_then(|text| retry_after(text.trim(), now));
    asked.map_or(own, |asked| asked.min(LONGEST).max(own))
}

/// Seconds, or a date.
fn retry_after(text: &str, now: Timestamp) -> Option<Duration> {
    if let Ok(seconds) = text.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let at = jiff::fmt::rfc2822::parse(text).ok()?.timestamp();
    Some(Duration::try_from(at.duration_since(now)).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_are_the_registry_s_within_bounds() {
        let now: Timestamp = "1994-11-06T08:49:30Z".parse().unwrap();
        let own = Duration::from_secs(1);
        for (header, expected) in [
            (None, 1),
            (Some("0"), 1),
            (Some("5"), 5),
            (Some("86400"), 20),
            (Some("Sun, 06 Nov 1994 08:49:37 GMT"), 7),
            (Some("Sun, 06 Nov 1994 08:49:20 GMT"), 1),
            (Some("-3"), 1),
            (Some("soon"), 1),
        ] {
            let mut headers = HeaderMap::new();
            if let Some(text) = header {
                headers.insert(RETRY_AFTER, text.parse().unwrap());
            }
            assert_eq!(pause(own, &headers, now), Duration::from_secs(expected), "{header:?}");
        }
    }
}
