//! The proof of life: the main loop is asked, and only its answer is passed on: the first as READY, each as WATCHDOG.
//!
//! There is no timer that answers in its place. A loop that is stuck does not answer, no WATCHDOG is sent, and the service manager
//! restarts the daemon once `WatchdogSec` is over. Long work (rendering, applying, waiting) runs in tasks beside the loop.

use std::time::Duration;

use sd_notify::NotifyState;

use crate::daemon::Daemon;

/// Pause between two questions; less where `WatchdogSec` asks for more.
const PERIOD: Duration = Duration::from_secs(5);
/// Questions within one `WatchdogSec`: one answer may be late.
const QUESTIONS: u32 = 3;

/// Asks for ever, in a task of its own; ends with the loop.
pub(crate) fn prove_alive(daemon: Daemon) {
    let period = period(sd_notify::watchdog_enabled());
    let ask = async move || daemon.ask(|running| running.figures().status_line()).await;
    tokio::spawn(pass_on(ask, super::tell, period));
}

/// Passes on what the loop answers; it says nothing by itself.
async fn pass_on(mut ask: impl AsyncFnMut() -> Option<String>, mut tell: impl FnMut(&[NotifyState<'_>]), period: Duration) {
    let mut told = String::new();
    while let Some(status) = ask().await {
        if told.is_empty() {
            tell(&[NotifyState::Ready]);
        }
        tell(&[NotifyState::Watchdog]);
        if status != told {
            tell(&[NotifyState::Status(&status)]);
            told = status;
        }
        tokio::time::sleep(period).await;
    }
}

fn period(watchdog: Option<Duration>) -> Duration {
    watchdog.map_or(PERIOD, |watchdog| (watchdog / QUESTIONS).min(PERIOD))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loop_is_asked_three_times_in_a_watchdog_s_time() {
        for (watchdog, expected) in [(None, 5_000), (Some(60_000), 5_000), (Some(3_000), 1_000)] {
            assert_eq!(period(watchdog.map(Duration::from_millis)), Duration::from_millis(expected), "{watchdog:?}");
        }
    }

    #[tokio::test]
    async fn what_the_loop_answers_is_passed_on_and_nothing_else() {
        let told = std::cell::RefCell::new(Vec::new());
        let tell =
            |states: &[NotifyState<'_>]| told.borrow_mut().extend(states.iter().map(|state| state.to_string().trim_end().to_owned()));
        let mut answers = ["platform: none", "platform: none", "platform: synced"].into_iter();
        pass_on(async || answers.next().map(str::to_owned), tell, Duration::ZERO).await;
        let expected =
            ["READY=1", "WATCHDOG=1", "STATUS=platform: none", "WATCHDOG=1", "WATCHDOG=1", "STATUS=platform: synced"].map(str::to_owned);
        assert_eq!(told.take(), expected);

        let stuck = pass_on(async || std::future::pending().await, tell, Duration::ZERO);
        assert!(tokio::time::timeout(Duration::from_millis(20), stuck).await.is_err());
        assert!(told.take().is_empty(), "a loop that does not answer is no sign of life");
    }
}
