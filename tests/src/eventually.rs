//! Waiting by asking: nothing in the tests sleeps for a fixed time.

use std::future::Future;
use std::time::{Duration, Instant};

use anyhow::Result;

/// Asks until the answer is `Ok`, and returns it.
///
/// # Panics
/// `limit` is over; the message says what was waited for, how long, and the last answer.
pub async fn eventually<T, F, Fut>(what: &str, limit: Duration, ask: F) -> T
where
    F: FnMut() -> Fut,
    Fut: Future<Output = Result<T>>,
{
    match until(what, limit, ask).await {
        Ok(answer) => answer,
        Err(error) => panic!("{error:#}"),
    }
}

/// As [`eventually`], with the failure as an error.
///
/// # Errors
/// `limit` is over.
pub async fn until<T, F, Fut>(what: &str, limit: Duration, mut ask: F) -> Result<T>
where
    F: FnMut() -> Fut,
    Fut: Future<Output = Result<T>>,
{
    let started = Instant::now();
    let mut pause = Duration::from_millis(10);
    loop {
        match ask().await {
            Ok(answer) => return Ok(answer),
            Err(last) if started.elapsed() >= limit => {
                return Err(last.context(format!("waited {:.1} s for: {what}", started.elapsed().as_secs_f64())));
            }
            Err(_) => tokio::time::sleep(pause).await,
        }
        pause = (pause * 3 / 2).min(Duration::from_millis(200));
    }
}
