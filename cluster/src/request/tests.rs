//! Against an API server that answers from a list and is asked exactly so often.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use http::Response;
use serde_json::json;
use tokio::time::Instant;

use super::*;
use crate::object::{self, Apply};
use crate::token;

/// One answer of the list.
#[derive(Clone)]
enum Says {
    /// Status, headers, body.
    This(u16, &'static [(&'static str, &'static str)], String),
    /// Nothing, ever.
    Silence,
    /// The connection ends.
    Cut,
}

/// The requests that came, as method and path, and when after the first.
type Heard = Arc<Mutex<Vec<(String, Instant)>>>;

fn server(answers: impl IntoIterator<Item = Says>) -> (Client, Heard) {
    let answers = Arc::new(Mutex::new(answers.into_iter().collect::<VecDeque<_>>()));
    let heard = Heard::default();
    let hears = Arc::clone(&heard);
    let service = tower::service_fn(move |request: Request<Body>| {
        hears.lock().unwrap().push((format!("{} {}", request.method(), request.uri().path()), Instant::now()));
        let says = answers.lock().unwrap().pop_front().expect("the list has no further answer");
        async move {
            match says {
                Says::Silence => std::future::pending().await,
                Says::Cut => Err(std::io::Error::from(std::io::ErrorKind::ConnectionReset)),
                Says::This(status, headers, body) => {
                    let mut response = Response::builder().status(status);
                    for (name, value) in headers {
                        response = response.header(*name, *value);
                    }
                    Ok(response.body(Body::from(body.into_bytes())).unwrap())
                }
            }
        }
    });
    (Client::new(service, "default"), heard)
}

fn fails(status: u16) -> Says {
    let reason = if status == 409 { "Conflict" } else { "InternalError" };
    Says::This(status, &[], json!({"kind": "Status", "status": "Failure", "code": status, "reason": reason, "message": "m"}).to_string())
}

fn says(body: &Value) -> Says {
    Says::This(200, &[], body.to_string())
}

fn exists() -> Says {
    let status = json!({"kind": "Status", "status": "Failure", "code": 409, "reason": "AlreadyExists", "message": "m"});
    Says::This(409, &[], status.to_string())
}

fn config_map(version: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "n", "resourceVersion": version}})
}

const APPLY: Apply = Apply { manager: "test", dry_run: false };

/// Pauses before each try but the first.
fn pauses(heard: &Heard) -> Vec<Duration> {
    let heard = heard.lock().unwrap();
    heard.windows(2).map(|pair| pair[1].1 - pair[0].1).collect()
}

/// About so long: the clock of the tests goes in milliseconds.
fn about(pauses: &[Duration], expected: &[u64]) {
    let tenths = |pause: &Duration| (pause.as_millis() + 50) / 100;
    let expected: Vec<u128> = expected.iter().map(|millis| u128::from((millis + 50) / 100)).collect();
    assert_eq!(pauses.iter().map(tenths).collect::<Vec<_>>(), expected, "{pauses:?}");
}

#[tokio::test(start_paused = true)]
async fn a_failure_that_stays_is_told_after_five_tries() {
    let (client, heard) = server(vec![fails(500); 5]);
    let error = object::apply_over(&client, &config_map("1"), None, APPLY).await.unwrap_err();
    assert!(matches!(error, ClusterError::Other { code: 500, .. }), "{error}");
    about(&pauses(&heard), &[250, 500, 1000, 2000]);
}

#[tokio::test(start_paused = true)]
async fn the_api_servers_own_pause_is_kept_in_either_form() {
    let in_document = json!({"kind": "Status", "status": "Failure", "code": 429, "message": "m", "details": {"retryAfterSeconds": 3}});
    let (client, heard) = server([
        Says::This(429, &[("retry-after", "10")], "Too many requests, please try again later.".into()),
        Says::This(429, &[], in_document.to_string()),
        Says::This(503, &[("retry-after", "3600")], "<html>".into()),
        Says::This(503, &[("retry-after", "Wed, 21 Oct 2026 07:28:00 GMT")], "<html>".into()),
        says(&config_map("1")),
    ]);
    object::apply_over(&client, &config_map("1"), None, APPLY).await.unwrap();
    about(&pauses(&heard), &[10_000, 3_000, 30_000, 2_000]);
}

#[tokio::test(start_paused = true)]
async fn a_silent_api_server_is_asked_again_and_then_told_of() {
    let (client, _) = server([Says::Silence, Says::Cut, says(&config_map("1"))]);
    assert!(object::get(&client, &config_map("1")).await.unwrap().is_some());
    let (client, heard) = server(vec![Says::Silence; 5]);
    let error = object::get(&client, &config_map("1")).await.unwrap_err();
    assert_eq!(error.to_string(), "ConfigMap n/a: the API server cannot be reached: no answer within 45 s");
    assert_eq!(heard.lock().unwrap().len(), 5);
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_none_is_not_asked_for_again() {
    for status in [400, 401, 403, 404, 413, 422] {
        let (client, heard) = server([fails(status)]);
        object::apply_over(&client, &config_map("1"), None, APPLY).await.unwrap_err();
        assert_eq!(heard.lock().unwrap().len(), 1, "{status}");
    }
}

/// Each was carried out, and its answer was lost.
#[tokio::test(start_paused = true)]
async fn what_was_carried_out_unseen_is_found() {
    let absent = || Says::This(404, &[], json!({"kind": "Status", "status": "Failure", "code": 404, "message": "m"}).to_string());
    // A create is there already: it is read, and put over what it made itself.
    let (client, heard) = server([absent(), Says::Cut, exists(), says(&config_map("1")), says(&config_map("1"))]);
    object::replace(&client, &config_map("1"), "test").await.unwrap();
    let methods: Vec<String> = heard.lock().unwrap().iter().map(|(request, _)| request[..4].trim().to_owned()).collect();
    assert_eq!(methods, ["GET", "POST", "POST", "GET", "PUT"]);
    // A replacement names a version that is no more: once, without a pause.
    let (client, heard) = server([says(&config_map("1")), Says::Cut, fails(409), says(&config_map("2")), says(&config_map("2"))]);
    object::replace(&client, &config_map("1"), "test").await.unwrap();
    about(&pauses(&heard), &[0, 250, 0, 0]);
    // A delete finds nothing.
    let (client, _) = server([Says::Cut, absent()]);
    assert!(!object::delete(&client, &config_map("1"), object::Propagation::Background).await.unwrap());
}

/// What was seen is deleted, and put in the place of; not what somebody else has made of its name, nor what is on its way out.
#[tokio::test(start_paused = true)]
async fn what_takes_its_place_is_another_object() {
    let mut seen = config_map("1");
    seen["metadata"]["uid"] = "u".into();
    let (client, _) = server([fails(409), says(&config_map("2"))]);
    assert!(!object::delete(&client, &seen, object::Propagation::Background).await.unwrap());
    let (client, _) = server([fails(409), says(&seen)]);
    object::delete(&client, &seen, object::Propagation::Background).await.unwrap_err();
    seen["metadata"]["deletionTimestamp"] = "2026-11-30T10:00:00Z".into();
    let (client, _) = server([says(&seen)]);
    let error = object::replace(&client, &config_map("1"), "test").await.unwrap_err();
    assert!(matches!(error, ClusterError::Terminating { .. }), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_token_is_asked_for_again() {
    let granted = json!({"status": {"token": "t", "expirationTimestamp": "2026-11-30T10:00:00Z"}});
    let (client, heard) = server([Says::Cut, fails(500), says(&granted)]);
    let (token, _) = token::request(&client, "n", "a", Duration::from_secs(600)).await.unwrap();
    assert_eq!((token.expose(), heard.lock().unwrap().len()), ("t", 3));
}

#[tokio::test(start_paused = true)]
async fn somebody_who_always_writes_in_between_ends_it() {
    let round = || [says(&config_map("1")), fails(409)];
    let (client, heard) = server((0..6).flat_map(|_| round()));
    let error = object::replace(&client, &config_map("1"), "test").await.unwrap_err();
    assert!(matches!(error, ClusterError::Other { code: 409, .. }), "{error}");
    assert_eq!(heard.lock().unwrap().len(), 12);
}
