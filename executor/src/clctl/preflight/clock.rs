//! Our clock against the manager's: a signature holds within five minutes, and an approval's end is judged by our clock.

use agent_api::signature::WINDOW_S;
use reqwest::header::DATE;

use super::finding::Findings;
use super::network::{self, NoAnswer};
use crate::config::Config;

/// Further apart than this somebody should look.
const APART_S: i64 = 30;
/// What mends it.
const FIX: &str = "set the clock: timedatectl set-ntp true, and see `timedatectl status`";

pub(super) async fn check(config: &Config, findings: &mut Findings) {
    let answer = match network::ask(config).await {
        Ok(answer) => answer,
        Err(NoAnswer::Unsigned(_) | NoAnswer::Unreachable(_)) => return findings.skip("needs an answer of the manager"),
    };
    let now = jiff::Timestamp::now();
    let date = answer.headers().get(DATE).and_then(|value| value.to_str().ok());
    let Some(theirs) = date.and_then(|date| jiff::fmt::rfc2822::parse(date).ok()) else {
        return findings.skip("the manager's answer says no time");
    };
    judge(now.duration_since(theirs.timestamp()).as_secs(), findings);
}

fn judge(ahead: i64, findings: &mut Findings) {
    let told = match ahead {
        0.. => format!("this clock is {ahead} s ahead of the manager's"),
        ..0 => format!("this clock is {} s behind the manager's", -ahead),
    };
    match ahead.abs() {
        apart if apart >= WINDOW_S => findings.fail(told, FIX),
        apart if apart > APART_S => findings.warn(told, FIX),
        _ => findings.pass(told),
    }
}

#[cfg(test)]
mod tests {
    use super::super::finding::{Category, Outcome};
    use super::*;

    #[test]
    fn how_far_apart_clocks_may_be() {
        let cases = [(0, Outcome::Pass), (-30, Outcome::Pass), (31, Outcome::Warn), (-299, Outcome::Warn), (300, Outcome::Fail)];
        for (ahead, expected) in cases {
            let mut findings = Findings::of(Category::Clock);
            judge(ahead, &mut findings);
            assert_eq!(findings.found[0].outcome, expected, "{ahead}");
        }
    }
}
