//! The renewal of an executor's certificate: nothing is lost when an answer is, and the former one ends with the new one's first use.

use reqwest::StatusCode;

use crate::executor::{Executor, problem};
use crate::server::Server;

#[tokio::test]
async fn the_former_certificate_is_good_until_the_new_one_is_used() {
    let server = Server::start();
    server.run(&["cluster", "create", "bank-eu"]);
    let executor = Executor::enrolled(&server, "bank-eu").await;
    let former = executor.identity.clone().unwrap();
    let upgrade = async |identity: &str| executor.upgrade(&executor.headers(), Some(identity)).await;

    let (lost, _) = executor.renew(Some(&former), "bank").await.unwrap();
    let (next, not_after) = executor.renew(Some(&former), "bank").await.expect("an answer that was lost costs nothing");
    let days = not_after.duration_since(jiff::Timestamp::now()).as_hours() / 24;
    assert!((29..=30).contains(&days), "{days}");
    let mismatch = (StatusCode::FORBIDDEN, "certificate_mismatch".to_owned());
    assert_eq!(problem(upgrade(&lost).await).await, mismatch);
    assert_eq!(upgrade(&former).await.status(), StatusCode::SWITCHING_PROTOCOLS);
    assert_eq!(upgrade(&next).await.status(), StatusCode::SWITCHING_PROTOCOLS);
    assert_eq!(problem(upgrade(&former).await).await, mismatch);
    assert_eq!(upgrade(&next).await.status(), StatusCode::SWITCHING_PROTOCOLS);
}

#[tokio::test]
async fn only_who_has_a_certificate_renews_it() {
    let server = Server::start();
    server.run(&["cluster", "create", "bank-eu"]);
    let (one, other) = (Executor::enrolled(&server, "bank-eu").await, Executor::enrolled(&server, "bank-eu").await);
    let refused = |status: StatusCode, code: &str| Some((status, code.to_owned()));
    assert_eq!(one.renew(None, "bank").await.err(), refused(StatusCode::UNAUTHORIZED, "certificate_required"));
    let foreign = one.renew(other.identity.as_deref(), "bank").await.err();
    assert_eq!(foreign, refused(StatusCode::FORBIDDEN, "certificate_mismatch"));
    let named = one.renew(one.identity.as_deref(), "somebody").await.err();
    assert_eq!(named, refused(StatusCode::UNPROCESSABLE_ENTITY, "certificate_request_refused"));
}

#[tokio::test]
async fn a_certificate_lasts_as_long_as_configured() {
    let server = Server::configured("executor_certificate_lasts_s: 90");
    server.run(&["cluster", "create", "bank-eu"]);
    let executor = Executor::enrolled(&server, "bank-eu").await;
    let (_, not_after) = executor.renew(executor.identity.as_deref(), "bank").await.unwrap();
    let left = not_after.duration_since(jiff::Timestamp::now()).as_secs();
    assert!((80..=90).contains(&left), "{left}");
}
