//! A question to the daemon's loop, answered between two events.

use tokio::sync::{mpsc, oneshot};

use super::Running;

/// Questions that wait; whoever asks more waits.
const QUERIES: usize = 16;

/// What the loop runs to answer.
pub(crate) type Query = Box<dyn FnOnce(&Running) + Send>;

/// The loop, for those who ask it.
#[derive(Clone)]
pub(crate) struct Daemon(mpsc::Sender<Query>);

impl Daemon {
    pub(super) fn new() -> (Self, mpsc::Receiver<Query>) {
        let (sender, receiver) = mpsc::channel(QUERIES);
        (Self(sender), receiver)
    }

    /// Asks; `None` when the daemon is stopping.
    pub(crate) async fn ask<T: Send + 'static>(&self, question: impl FnOnce(&Running) -> T + Send + 'static) -> Option<T> {
        let (answer, answered) = oneshot::channel();
        let query: Query = Box::new(|running| drop(answer.send(question(running))));
        self.0.send(query).await.ok()?;
        answered.await.ok()
    }
}
