//! The door of the channel: new connections and poll sessions come in at a bounded rate; see `domain::admission`.

use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use super::problem::ApiError;
use crate::domain::admission::{Admission, Rate};

/// Asked once a new connection.
#[derive(Debug)]
pub struct Door {
    admission: Mutex<Admission>,
    since: Instant,
}

impl Door {
    /// Opens it.
    #[must_use]
    pub fn new(rate: Rate) -> Self {
        Self { admission: Mutex::new(Admission::new(rate)), since: Instant::now() }
    }

    /// Lets one in.
    ///
    /// # Errors
    /// [`ApiError::Busy`], with the pause.
    pub fn admit(&self) -> Result<(), ApiError> {
        let random = f64::from(uuid::Uuid::new_v4().as_bytes()[0]) / 255.0;
        let mut admission = self.admission.lock().unwrap_or_else(PoisonError::into_inner);
        admission.admit(self.since.elapsed(), random).map_err(|wait| ApiError::Busy(wait.as_secs()))
    }
}
