//! A client that writes only while this operator leads. Reads pass always; a write is not begun after the deadline, and one that is under way then
//! is cut off, so that what the API server may still make of it lies within the Lease.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use cluster::Client;
use http::{Method, Request, Response};
use kube::client::Body;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use super::Deadline;

/// Why a write is not sent, or not waited for.
#[derive(Debug, thiserror::Error)]
#[error("this operator does not lead, and writes nothing")]
pub struct NotLeading;

type BoxError = Box<dyn std::error::Error + Send + Sync>;

struct Fence {
    client: Client,
    deadline: watch::Receiver<Deadline>,
}

/// A client behind the fence.
#[must_use]
pub fn fenced(client: Client, deadline: watch::Receiver<Deadline>) -> Client {
    Client::new(Fence { client, deadline }, "default")
}

impl tower::Service<Request<Body>> for Fence {
    type Response = Response<Body>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, BoxError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let (client, deadline) = (self.client.clone(), self.deadline.clone());
        let reads = [Method::GET, Method::HEAD].contains(request.method());
        Box::pin(async move {
            if reads {
                return client.send(request).await.map_err(Into::into);
            }
            if is_over(&deadline) {
                return Err(NotLeading.into());
            }
            tokio::select! {
                biased;
                answer = client.send(request) => answer.map_err(Into::into),
                () = over(deadline) => Err(NotLeading.into()),
            }
        })
    }
}

fn is_over(deadline: &watch::Receiver<Deadline>) -> bool {
    deadline.borrow().is_none_or(|at| Instant::now() >= at)
}

/// Ends when the deadline, which renewals move, has passed.
async fn over(mut deadline: watch::Receiver<Deadline>) {
    loop {
        let at = *deadline.borrow_and_update();
        match at.filter(|at| Instant::now() < *at) {
            None => return,
            Some(at) => {
                tokio::select! {
                    () = sleep_until(at) => {}
                    changed = deadline.changed() => if changed.is_err() { return sleep_until(at).await },
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use super::*;

    /// A client whose server answers after so long, and how often it was asked.
    fn client(answers_after: Duration) -> (Client, Arc<AtomicUsize>) {
        let asked = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&asked);
        let service = tower::service_fn(move |_: Request<Body>| {
            count.fetch_add(1, Ordering::Relaxed);
            async move {
                tokio::time::sleep(answers_after).await;
                Ok::<_, Infallible>(Response::new(Body::empty()))
            }
        });
        (Client::new(service, "default"), asked)
    }

    async fn sent(client: &Client, method: Method) -> Result<(), String> {
        let request = Request::builder().method(method).uri("/x").body(Body::empty()).unwrap();
        client.send(request).await.map(drop).map_err(|error| agent_api::chain::chain(&error))
    }

    #[tokio::test(start_paused = true)]
    async fn only_who_leads_writes() {
        let (inner, asked) = client(Duration::from_millis(1));
        let deadline = watch::Sender::new(None);
        let client = fenced(inner, deadline.subscribe());
        assert!(sent(&client, Method::GET).await.is_ok());
        for method in [Method::PATCH, Method::PUT, Method::POST, Method::DELETE] {
            assert!(sent(&client, method).await.unwrap_err().contains("does not lead"));
        }
        assert_eq!(asked.load(Ordering::Relaxed), 1);
        deadline.send_replace(Some(Instant::now() + Duration::from_secs(10)));
        assert!(sent(&client, Method::PATCH).await.is_ok());
        tokio::time::advance(Duration::from_secs(11)).await;
        assert!(sent(&client, Method::PATCH).await.is_err());
        assert_eq!(asked.load(Ordering::Relaxed), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_under_way_is_cut_off_at_the_deadline_that_counts_by_then() {
        let (inner, _) = client(Duration::from_secs(60));
        let deadline = watch::Sender::new(Some(Instant::now() + Duration::from_secs(10)));
        let client = fenced(inner, deadline.subscribe());
        let started = Instant::now();
        let renewed = async {
            tokio::time::sleep(Duration::from_secs(5)).await;
            deadline.send_replace(Some(started + Duration::from_secs(15)));
        };
        let (sent, ()) = tokio::join!(sent(&client, Method::PATCH), renewed);
        assert!(sent.is_err());
        assert_eq!(started.elapsed().as_secs(), 15);
    }
}
