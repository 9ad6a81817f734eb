//! Requests of a person's command, side by side: one after another each would wait for the line to the cluster and back.

use futures::{StreamExt as _, TryStreamExt as _, stream};

/// At a time.
const AT_A_TIME: usize = 8;

/// Results in the order of the requests, of all of them, whatever one of them is answered.
pub(super) async fn each<T>(requests: impl IntoIterator<Item = impl Future<Output = T>>) -> Vec<T> {
    let requests: Vec<_> = requests.into_iter().collect();
    stream::iter(requests).buffered(AT_A_TIME).collect().await
}

/// For writes: all are carried out, and the first error is told.
pub(super) async fn all<T, E>(requests: impl IntoIterator<Item = impl Future<Output = Result<T, E>>>) -> Result<Vec<T>, E> {
    each(requests).await.into_iter().collect()
}

/// For questions: an error ends it, and what is under way is given up.
pub(super) async fn until_error<T, E>(requests: impl IntoIterator<Item = impl Future<Output = Result<T, E>>>) -> Result<Vec<T>, E> {
    let requests: Vec<_> = requests.into_iter().collect();
    stream::iter(requests).buffered(AT_A_TIME).try_collect().await
}
