//! After a restart all executors come at once: they are let in at the stated rate, the others are told when to come, and nobody is
//! answered wrongly. `EXECUTORS` says how many; a thousand need a minute to enrol.

use std::sync::Arc;
use std::time::{Duration, Instant};

use agent_api::enrolment::{ENROLL_PATH, EnrollRequest, EnrollResponse};
use agent_api::frame::Down;
use agent_api::name::ExecutorId;
use agent_api::signature::KeyPair;
use futures::StreamExt as _;
use reqwest::{Response, StatusCode};
use serde_json::Value;

use crate::executor::{Channel, Executor, client, problem};
use crate::server::Server;

/// All are back by then.
const BACK: Duration = Duration::from_secs(60);

/// Enrols one over the interface, which is faster than the command line.
async fn enrol(server: &Server, http: &reqwest::Client, token: &str) -> Executor {
    let made = http.post(format!("{}/api/v1/clusters/bank-eu/enrolments", server.endpoint)).bearer_auth(token).send().await.unwrap();
    let made: Value = made.json().await.unwrap();
    let token = serde_json::from_value(made["token"].clone()).unwrap();
    let id = ExecutorId(uuid::Uuid::new_v4());
    let request = EnrollRequest { token, executor_id: id };
    let answer = http.post(format!("{}{ENROLL_PATH}", server.endpoint)).json(&request).send().await.unwrap();
    let answer: EnrollResponse = answer.json().await.unwrap();
    let key = KeyPair { access_key: answer.access_key, secret_key: answer.secret_key };
    let mut executor = Executor { id, endpoint: answer.endpoint, ca: answer.ca, key, identity: None };
    assert_eq!(executor.sign().await.status(), StatusCode::OK);
    executor
}

/// Comes, and comes again as told, until it is welcomed: the channel, and how often it was told to wait.
async fn come(executor: &Executor, deadline: Instant) -> (Channel, u32) {
    let mut waits = 0;
    loop {
        assert!(Instant::now() < deadline, "not back in {BACK:?}; told to wait {waits} times");
        let response = executor.upgrade(&executor.headers(), executor.identity.as_deref()).await;
        if response.status() == StatusCode::SWITCHING_PROTOCOLS {
            let mut channel = executor.opened(response).await;
            channel.hello(0).await;
            assert!(matches!(channel.next().await, Some(Down::Welcome(_))));
            return (channel, waits);
        }
        waits += 1;
        let jitter = Duration::from_millis(u64::from(uuid::Uuid::new_v4().as_bytes()[0]) * 4);
        tokio::time::sleep(told(response).await + jitter).await;
    }
}

/// The only other answer that is right.
async fn told(response: Response) -> Duration {
    let seconds = response.headers().get("retry-after").and_then(|value| value.to_str().ok()).map(str::to_owned);
    assert_eq!(problem(response).await, (StatusCode::SERVICE_UNAVAILABLE, "busy".to_owned()));
    let seconds: u64 = seconds.expect("Retry-After").parse().unwrap();
    assert!((1..=60).contains(&seconds), "{seconds}");
    Duration::from_secs(seconds)
}

#[tokio::test(flavor = "multi_thread")]
async fn all_are_back_and_none_is_answered_wrongly() {
    let count: usize = std::env::var("EXECUTORS").map_or(200, |text| text.parse().unwrap());
    // As the defaults are for two thousand.
    let rate = (count / 20).max(5);
    let mut server = Server::configured(&format!("channel_connections_per_s: {rate}\nchannel_connections_burst: {rate}"));
    server.run(&["cluster", "create", "bank-eu"]);
    let (http, token) = (client(&server.ca(), None), server.token());
    let enrolled = futures::stream::iter(0..count).map(|_| enrol(&server, &http, &token)).buffer_unordered(16);
    let executors: Arc<Vec<Executor>> = Arc::new(enrolled.collect().await);
    server.restart();

    let began = Instant::now();
    let come = (0..count).map(|n| {
        let executors = Arc::clone(&executors);
        tokio::spawn(async move {
            let (mut channel, waits) = come(&executors[n], began + BACK).await;
            let at = began.elapsed();
            // As an executor does: read, so that pings are answered.
            tokio::spawn(async move { while channel.stream.next().await.is_some() {} });
            (waits, at)
        })
    });
    let back: Vec<(u32, Duration)> = futures::future::try_join_all(come).await.unwrap();
    let last = back.iter().map(|(_, at)| *at).max().unwrap();
    let waits = back.iter().map(|(waits, _)| *waits);
    let told: u32 = waits.clone().sum();
    println!("{count} executors at {rate}/s: the last was back after {last:?}; told to wait {told} times, one at most {:?}", waits.max());
    assert!(last >= Duration::from_secs(10), "a rate of {rate}/s lets nobody in so fast: {last:?}");
    let shown = server.json(&["executor", "list", "-o", "json"]);
    let connected = shown.as_array().unwrap().iter().filter(|executor| executor["connected"] == true).count();
    assert_eq!(connected, count);
}
