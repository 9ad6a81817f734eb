//! Many at once: enrolled over the interface, and back after a restart as they are told.

use std::time::{Duration, Instant};

use agent_api::enrolment::{ENROLL_PATH, EnrollRequest, EnrollResponse};
use agent_api::frame::Down;
use agent_api::name::ExecutorId;
use agent_api::signature::KeyPair;
use reqwest::{Response, StatusCode};
use serde_json::Value;

use super::{Channel, Executor, problem};

/// Enrols one over the interface, which is faster than the command line; `token` is an administrator's.
pub async fn enrol(http: &reqwest::Client, endpoint: &str, cluster: &str, token: &str) -> Executor {
    let made = http.post(format!("{endpoint}/api/v1/clusters/{cluster}/enrolments")).bearer_auth(token).send().await.unwrap();
    let made: Value = made.json().await.unwrap();
    let token = serde_json::from_value(made["token"].clone()).unwrap();
    let id = ExecutorId(uuid::Uuid::new_v4());
    let request = EnrollRequest { token, executor_id: id };
    let answer = http.post(format!("{endpoint}{ENROLL_PATH}")).json(&request).send().await.unwrap();
    let answer: EnrollResponse = answer.json().await.unwrap();
    let key = KeyPair { access_key: answer.access_key, secret_key: answer.secret_key };
    let EnrollResponse { organisation, endpoint, ca, .. } = answer;
    let mut executor = Executor { id, organisation, endpoint, ca, key, identity: None };
    assert_eq!(executor.sign().await.status(), StatusCode::OK);
    executor
}

/// Comes, and comes again as told, until it is welcomed: the channel, and how often it was told to wait.
pub async fn come(executor: &Executor, deadline: Instant) -> (Channel, u32) {
    let mut waits = 0;
    loop {
        assert!(Instant::now() < deadline, "not let in; told to wait {waits} times");
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
    let seconds: u64 = seconds.unwrap().parse().unwrap();
    assert!((1..=60).contains(&seconds), "{seconds}");
    Duration::from_secs(seconds)
}
