//! The boundary between executor and manager, with the built binaries and what may stand between them: a proxy, something that lets no
//! upgrade pass, a link that is cut; and credentials that end.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails, and shows the logs")]

mod between;
mod pair;

use std::time::Duration;

use anyhow::{Context as _, ensure};
use system_tests::eventually;

use between::{Intermediary, Proxy};
use pair::{Pair, SOON};

#[tokio::test]
async fn through_a_proxy_and_nothing_else_goes_there() {
    let mut pair = Pair::new("{}").await;
    let proxy = Proxy::start().await;
    let api_server = pair.pretend_cluster().await;
    pair.start_executor(&[("HTTPS_PROXY", &proxy.url())]);
    pair.until_connected().await;
    eventually("the API server to be asked", SOON, async || {
        ensure!(api_server.connections() > 0, "nobody came");
        Ok(())
    })
    .await;
    assert!(!proxy.asked_for().is_empty() && proxy.asked_for().iter().all(|target| *target == pair.address()), "{:?}", proxy.asked_for());

    for around in ["127.0.0.0/8", "127.0.0.1", "localhost,127.0.0.1"] {
        pair.stop_executor().await;
        let before = proxy.asked_for().len();
        pair.start_executor(&[("HTTPS_PROXY", &proxy.url()), ("NO_PROXY", around)]);
        pair.until_connected().await;
        assert_eq!(proxy.asked_for().len(), before, "NO_PROXY={around}");
    }
}

/// Names are matched by whole labels. What is not meant for the proxy is not sent there even where it cannot be reached otherwise.
#[tokio::test]
async fn names_go_round_the_proxy_by_their_suffix_and_a_proxys_login_is_not_told() {
    let mut pair = Pair::new("{}").await;
    let proxy = Proxy::start().await;
    pair.connect_by("manager.bank.test:443");
    for (around, through) in [(".bank.test", false), ("bank.test", false), ("other.test, bank.test", false), ("ank.test", true)] {
        let before = proxy.asked_for().len();
        pair.start_executor(&[("HTTPS_PROXY", &proxy.url_with_login("jo", "swordfish")), ("NO_PROXY", around)]);
        pair.until_logged("retry_in=").await;
        pair.end_executor().await;
        assert_eq!(proxy.asked_for().len() > before, through, "NO_PROXY={around}");
        assert!(!pair.log().contains("swordfish"), "{}", pair.log());
    }
    let head = proxy.heads().pop().unwrap().to_ascii_lowercase();
    assert!(head.starts_with("connect manager.bank.test:443 "), "{head}");
    assert!(head.contains(&"proxy-authorization: Basic am86c3dvcmRmaXNo".to_ascii_lowercase()), "{head}");
}

#[tokio::test]
async fn where_no_upgrade_passes_it_polls() {
    let mut pair = Pair::new("{}").await;
    let intermediary = Intermediary::start(&pair).await;
    pair.connect_by(intermediary.address());
    pair.start_executor(&[]);
    pair.until_connected().await;
    assert!(intermediary.refused() > 0);
    pair.until_logged("transport=\"long poll\"").await;
    let result = pair.propose_and_refuse().await;
    assert!(result.contains("run: clctl platform approve"), "{result}");

    // The answer that acknowledges, or brings, something may be cut off: it comes again.
    intermediary.cut();
    pair.until_logged("retry_in=").await;
    pair.until_connected().await;
    assert_eq!(pair.results().await, 1, "it was done once");
}

#[tokio::test]
async fn a_certificate_that_ends_soon_is_renewed_and_used() {
    let mut pair = Pair::new("executor_certificate_lasts_s: 24").await;
    let first = pair.certificate();
    pair.start_executor(&[]);
    pair.until_connected().await;
    for _ in 0..2 {
        pair.until_logged("certificate: renewed").await;
        pair.forget_log();
    }
    assert_ne!(pair.certificate(), first);
    assert_eq!((pair.mode("client.key"), pair.mode("client.crt")), (0o600, 0o600));
    tokio::time::sleep(Duration::from_secs(3)).await;
    pair.until_connected().await;
    assert!(!pair.log().contains("does not take"), "{}", pair.log());
}

/// The manager's TLS says so by an alert, before any request is made.
#[tokio::test]
async fn a_certificate_that_has_ended_is_one_state() {
    let mut pair = Pair::new("executor_certificate_lasts_s: 15").await;
    tokio::time::sleep(Duration::from_secs(16)).await;
    pair.start_executor(&[]);
    pair.until_logged("enrol again: clicklink clctl init").await;
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert_eq!(pair.log().matches("enrol again: clicklink clctl init").count(), 1, "said once: {}", pair.log());
}

#[tokio::test]
async fn credentials_that_are_not_taken_are_one_state_until_somebody_enrols_again() {
    let mut pair = Pair::new("{}").await;
    let secret = pair.replace("secret-key", "made-up");
    pair.start_executor(&[]);
    pair.until_logged("enrol again: clicklink clctl init").await;
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert_eq!(pair.log().matches("enrol again: clicklink clctl init").count(), 1, "said once: {}", pair.log());
    pair.replace("secret-key", &secret);
    // It is tried once a minute.
    let limit = Duration::from_secs(75);
    eventually("the executor to come in by itself", limit, async || pair.connected().await.context("not yet")).await;
}
