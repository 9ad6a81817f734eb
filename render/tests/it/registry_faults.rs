//! Faults on the way: registries that are busy, break off, or answer with another digest.

use std::sync::atomic::{AtomicUsize, Ordering};

use agent_api::digest::OciDigest;

use crate::registry::{content, pull};
use crate::support::registry::{Answer, Asked, Content, FakeRegistry};

/// Answers with `fault` for the first `times` requests, then as it should.
fn after(times: usize, fault: Answer, all: Content) -> impl Fn(&Asked) -> Answer {
    let turn = AtomicUsize::new(0);
    move |asked| if turn.fetch_add(1, Ordering::SeqCst) < times { fault.clone() } else { all.answer(asked) }
}

async fn pulled(registry: &FakeRegistry, digest: &OciDigest) -> Result<(), String> {
    pull(registry, FakeRegistry::access(&[registry], None), "anonymous", digest).await
}

#[tokio::test]
async fn what_passes_is_waited_for_and_what_stays_is_told() {
    let cases = [(429, "asks to come later (429)"), (503, "status 503"), (500, "status 500")].map(|(status, expected)| async move {
        let (all, digest) = content();
        let fault = Answer::status(status).header("Retry-After", "0");
        let registry = FakeRegistry::start(after(2, fault.clone(), all.clone())).await;
        assert_eq!(pulled(&registry, &digest).await, Ok(()), "{status}");
        assert_eq!(registry.asked().len(), 4, "{status}");

        let registry = FakeRegistry::start(after(usize::MAX, fault, all)).await;
        let error = pulled(&registry, &digest).await.unwrap_err();
        assert!(error.contains(expected), "{error}");
        assert_eq!(registry.asked().len(), 4, "{status}");
    });
    futures::future::join_all(cases).await;
    let (all, digest) = content();
    let registry = FakeRegistry::start(after(usize::MAX, Answer::status(501), all)).await;
    pulled(&registry, &digest).await.unwrap_err();
    assert_eq!(registry.asked().len(), 1, "what does not pass is asked once");
}

#[tokio::test]
async fn retry_after_is_obeyed() {
    let (all, digest) = content();
    let registry = FakeRegistry::start(after(1, Answer::status(429).header("Retry-After", "2"), all)).await;
    let started = std::time::Instant::now();
    pulled(&registry, &digest).await.unwrap();
    assert!(started.elapsed() >= std::time::Duration::from_secs(2), "{:?}", started.elapsed());
}

#[tokio::test]
async fn a_transfer_that_breaks_off_goes_on_where_it_was() {
    for knows_ranges in [true, false] {
        let (all, digest) = content();
        let registry = FakeRegistry::start(move |asked| {
            let whole = all.answer(asked);
            if !asked.path().contains("/blobs/") {
                return whole;
            }
            let start: usize = asked.range.as_deref().map_or(0, |range| range["bytes=".len()..].trim_end_matches('-').parse().unwrap());
            match (start, knows_ranges) {
                (0, _) => whole.cut_after(40),
                (start, true) => {
                    let length = whole.body.len();
                    let part = Answer { status: 206, ..Answer::body(whole.body[start..].to_vec()) };
                    let part = part.header("Content-Range", format!("bytes {start}-{}/{length}", length - 1));
                    if start == 40 { part.cut_after(10) } else { part }
                }
                (_, false) => whole,
            }
        })
        .await;
        assert_eq!(pulled(&registry, &digest).await, Ok(()), "{knows_ranges}");
        let ranges: Vec<_> =
            registry.asked().into_iter().filter(|asked| asked.path().contains("/blobs/")).map(|asked| asked.range).collect();
        let expected: &[Option<&str>] =
            if knows_ranges { &[None, Some("bytes=40-"), Some("bytes=50-")] } else { &[None, Some("bytes=40-")] };
        assert_eq!(ranges.iter().map(Option::as_deref).collect::<Vec<_>>(), expected);
    }
}

#[tokio::test]
async fn bytes_that_end_before_they_should_are_other_bytes() {
    for rest in [416, 206] {
        let (all, digest) = content();
        let registry = FakeRegistry::start(move |asked| match (asked.path().contains("/blobs/"), &asked.range) {
            (false, _) => all.answer(asked),
            (true, None) => Answer::body(all.answer(asked).body[..40].to_vec()),
            (true, Some(_)) if rest == 416 => Answer::status(416),
            (true, Some(_)) => Answer { status: 206, ..Answer::body(Vec::new()) }.header("Content-Range", "bytes 40-40/40"),
        })
        .await;
        let error = pulled(&registry, &digest).await.unwrap_err();
        let expected = if rest == 416 { "the registry sent other bytes" } else { "40 of" };
        assert!(error.contains(expected), "{rest}: {error}");
    }
}

#[tokio::test]
async fn a_transfer_that_never_ends_well_ends() {
    let (all, digest) = content();
    let registry = FakeRegistry::start(move |asked| {
        let whole = all.answer(asked);
        if asked.path().contains("/blobs/") { whole.cut_after(10) } else { whole }
    })
    .await;
    let error = pulled(&registry, &digest).await.unwrap_err();
    assert!(error.contains("cannot be reached"), "{error}");
    assert_eq!(registry.asked().len(), 6, "the manifest, the layer, and four times its rest");

    // An announced size that was a lie, in an answer that ends properly.
    let (all, digest) = content();
    let registry = FakeRegistry::start(move |asked| {
        let whole = all.answer(asked);
        if asked.path().contains("/blobs/") { Answer::body(whole.body[..10].to_vec()) } else { whole }
    })
    .await;
    let error = pulled(&registry, &digest).await.unwrap_err();
    assert!(error.contains("breaks off at byte 10 of"), "{error}");
}
