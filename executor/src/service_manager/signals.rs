//! Signals: SIGTERM and SIGINT end the daemon in bounded time, SIGHUP lets it read again what it can.

use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;
use tracing::error;

/// How long the main loop may take to end. What it is doing then is cut off as by a crash, which everything in it survives.
pub(crate) const GRACE: Duration = Duration::from_secs(3);

/// The last resort, where the main loop's thread itself hangs in a system call, e.g. on a dead disk: the process ends all the same.
const LAST_RESORT: Duration = Duration::from_millis(4_500);

/// Why signals cannot be had.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen for signals: {0}")]
pub(crate) struct SignalError(#[from] std::io::Error);

/// What the process was told.
pub(crate) struct Signals {
    /// Set by SIGTERM or SIGINT.
    pub(crate) stop: CancellationToken,
    /// SIGHUP.
    pub(crate) hangup: Signal,
}

impl Signals {
    /// Listens from now on: also for the first process of a container, which without a handler would not end.
    pub(crate) fn listen() -> Result<Self, SignalError> {
        let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
        let stop = CancellationToken::new();
        let told = stop.clone();
        tokio::spawn(async move {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
            super::stopping();
            told.cancel();
            tokio::time::sleep(LAST_RESORT).await;
            error!("the process does not end in an orderly way and is cut off");
            std::process::exit(1);
        });
        Ok(Self { stop, hangup: signal(SignalKind::hangup())? })
    }
}

/// Runs `task` to its end, or until `grace` after the signal to stop; `None` then.
pub(crate) async fn bounded<T>(stop: CancellationToken, grace: Duration, task: impl Future<Output = T>) -> Option<T> {
    tokio::select! {
        ended = task => Some(ended),
        () = async { stop.cancelled().await; tokio::time::sleep(grace).await } => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_loop_that_hangs_is_left_after_its_grace() {
        let (stop, grace) = (CancellationToken::new(), Duration::from_millis(50));
        assert_eq!(bounded(stop.clone(), grace, async { 1 }).await, Some(1));
        let started = std::time::Instant::now();
        stop.cancel();
        assert_eq!(bounded(stop, grace, std::future::pending::<()>()).await, None);
        assert!(started.elapsed() >= grace);
    }
}
