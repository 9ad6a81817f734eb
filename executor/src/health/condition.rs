//! `/livez`, `/readyz`, `/healthz`: is it alive, is it ready, how is it.
//!
//! | route | 200 | 503 |
//! | --- | --- | --- |
//! | `/livez` | `ok`: the main loop answers | `stuck` |
//! | `/readyz` | `ready`: and the journal takes records | `not_ready`, with what is wrong |
//! | `/healthz` | `ok`, or `degraded`: ready, but the manager or the cluster is out of reach | `not_ready` |
//!
//! Neither the manager nor the cluster makes an executor not alive or not ready: a restart would not bring them back.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde::Serialize;
use utoipa::ToSchema;

use super::figures;
use crate::daemon::{Daemon, Figures};

/// How the executor is. `status` is the signal; the HTTP status says the same.
#[derive(Debug, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct Condition {
    /// In one word.
    status: ConditionStatus,
    /// What is wrong; left out where nothing is.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    problems: Vec<Fault>,
}

/// In one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum ConditionStatus {
    /// All is well.
    Ok,
    /// The main loop answers, and the journal takes records.
    Ready,
    /// It works, but something that it needs is out of reach.
    Degraded,
    /// It cannot take commands.
    NotReady,
    /// The main loop does not answer.
    Stuck,
}

/// One thing that is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum Fault {
    /// The main loop does not answer, or has ended.
    MainLoopStuck,
    /// The journal does not take records: the disk is full, read-only, or fails.
    JournalNotWritable,
    /// The channel to the manager is down.
    ChannelDown,
    /// The API server is out of reach, or takes no credential of ours.
    ClusterNotReachable,
}

/// Whether the main loop answers.
#[utoipa::path(get, path = "/livez", operation_id = "is_alive", tag = "health", responses(
    (status = 200, description = "Alive: `status` is `ok`", body = Condition),
    (status = 503, description = "The main loop does not answer: `status` is `stuck`", body = Condition),
))]
pub(super) async fn livez(State(daemon): State<Daemon>) -> (StatusCode, Json<Condition>) {
    answer(alive(figures(&daemon).await.as_ref()))
}

/// Whether commands can be taken: the journal is writable and the main loop answers.
#[utoipa::path(get, path = "/readyz", operation_id = "is_ready", tag = "health", responses(
    (status = 200, description = "Ready: `status` is `ready`", body = Condition),
    (status = 503, description = "Not ready; `problems` says why", body = Condition),
))]
pub(super) async fn readyz(State(daemon): State<Daemon>) -> (StatusCode, Json<Condition>) {
    answer(ready(figures(&daemon).await.as_ref()))
}

/// How the executor is, the manager and the cluster included.
#[utoipa::path(get, path = "/healthz", operation_id = "health", tag = "health", responses(
    (status = 200, description = "`ok`, or `degraded` with what is out of reach", body = Condition),
    (status = 503, description = "Not ready; `problems` says why", body = Condition),
))]
pub(super) async fn healthz(State(daemon): State<Daemon>) -> (StatusCode, Json<Condition>) {
    answer(whole(figures(&daemon).await.as_ref()))
}

fn alive(figures: Option<&Figures>) -> Condition {
    match figures {
        Some(_) => Condition { status: ConditionStatus::Ok, problems: Vec::new() },
        None => Condition { status: ConditionStatus::Stuck, problems: vec![Fault::MainLoopStuck] },
    }
}

fn ready(figures: Option<&Figures>) -> Condition {
    let problem = match figures {
        None => Fault::MainLoopStuck,
        Some(figures) if !figures.journal_writable => Fault::JournalNotWritable,
        Some(_) => return Condition { status: ConditionStatus::Ready, problems: Vec::new() },
    };
    Condition { status: ConditionStatus::NotReady, problems: vec![problem] }
}

fn whole(figures: Option<&Figures>) -> Condition {
    let mut condition = ready(figures);
    let Some(figures) = figures else { return condition };
    let outside = [(figures.channel.connected, Fault::ChannelDown), (figures.cluster_reachable, Fault::ClusterNotReachable)];
    condition.problems.extend(outside.into_iter().filter(|(well, _)| !well).map(|(_, problem)| problem));
    condition.status = match condition.status {
        ConditionStatus::Ready if condition.problems.is_empty() => ConditionStatus::Ok,
        ConditionStatus::Ready => ConditionStatus::Degraded,
        status @ (ConditionStatus::Ok | ConditionStatus::Degraded | ConditionStatus::NotReady | ConditionStatus::Stuck) => status,
    };
    condition
}

fn answer(condition: Condition) -> (StatusCode, Json<Condition>) {
    let code = match condition.status {
        ConditionStatus::Ok | ConditionStatus::Ready | ConditionStatus::Degraded => StatusCode::OK,
        ConditionStatus::NotReady | ConditionStatus::Stuck => StatusCode::SERVICE_UNAVAILABLE,
    };
    (code, Json(condition))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::daemon::ChannelFigures;

    fn figures(connected: bool, cluster_reachable: bool, journal_writable: bool) -> Figures {
        let channel = ChannelFigures { connected, ..Figures::sample().channel };
        Figures { channel, cluster_reachable, journal_writable, ..Figures::sample() }
    }

    #[test]
    fn what_each_route_says() {
        let check = |figures: Option<Figures>, expected: [(&str, u16); 3]| {
            let said = [alive, ready, whole].map(|of| {
                let (code, Json(condition)) = answer(of(figures.as_ref()));
                (serde_json::to_string(&condition).unwrap(), code.as_u16())
            });
            for ((text, code), (expected, expected_code)) in said.iter().zip(expected) {
                assert_eq!((text.as_str(), *code), (expected, expected_code));
            }
        };
        let (ok, ready) = (r#"{"status":"ok"}"#, r#"{"status":"ready"}"#);
        check(Some(figures(true, true, true)), [(ok, 200), (ready, 200), (ok, 200)]);
        let down = r#"{"status":"degraded","problems":["channel_down","cluster_not_reachable"]}"#;
        check(Some(figures(false, false, true)), [(ok, 200), (ready, 200), (down, 200)]);
        let full = r#"{"status":"not_ready","problems":["journal_not_writable"]}"#;
        check(Some(figures(true, true, false)), [(ok, 200), (full, 503), (full, 503)]);
        let (stuck, gone) =
            (r#"{"status":"stuck","problems":["main_loop_stuck"]}"#, r#"{"status":"not_ready","problems":["main_loop_stuck"]}"#);
        check(None, [(stuck, 503), (gone, 503), (gone, 503)]);
    }
}
