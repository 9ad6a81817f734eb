//! When a connection's last bytes came, told by what carries it: a large frame on a slow line is no silence.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::{Instant, sleep_until};
use tokio_util::io::InspectReader;

use crate::config;

/// A clonable handle for one connection.
#[derive(Clone, Debug)]
pub struct Heard(Arc<Mutex<Instant>>);

impl Heard {
    /// Notes what is read from a stream.
    pub fn on<S: AsyncRead + AsyncWrite>(stream: S) -> (Self, InspectReader<S, impl FnMut(&[u8]) + use<S>>) {
        let last = Arc::new(Mutex::new(Instant::now()));
        let noted = Arc::clone(&last);
        let stream = InspectReader::new(stream, move |_: &[u8]| *noted.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now());
        (Self(last), stream)
    }

    /// Returns when nothing has come for [`config::DEAD_AFTER`].
    pub async fn silence(&self) {
        loop {
            let end = *self.0.lock().unwrap_or_else(PoisonError::into_inner) + config::DEAD_AFTER;
            if Instant::now() >= end {
                return;
            }
            sleep_until(end).await;
        }
    }
}
