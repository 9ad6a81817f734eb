//! How long ago something was, as kubectl shows ages.

/// `12s`, `5m`, `3h`, `2d`; what lies ahead by a clock that is off is `0s`.
pub(crate) fn since(then: jiff::Timestamp, now: jiff::Timestamp) -> String {
    short(now.duration_since(then).as_secs())
}

/// The same for a number of seconds.
pub(crate) fn short(seconds: i64) -> String {
    match seconds {
        ..120 => format!("{}s", seconds.max(0)),
        120..7200 => format!("{}m", seconds / 60),
        7200..172_800 => format!("{}h", seconds / 3600),
        _ => format!("{}d", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages() {
        for (seconds, expected) in [(-5, "0s"), (0, "0s"), (119, "119s"), (120, "2m"), (7199, "119m"), (7200, "2h"), (172_800, "2d")] {
            assert_eq!(short(seconds), expected);
        }
    }
}
