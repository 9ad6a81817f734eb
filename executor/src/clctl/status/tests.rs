use serde_json::json;

use super::*;

const SHA: &str = "3f786850e387550fdab836ed7e6dc881de23001b0f0b0d9f1e2c3a4b5c6d7e8f";

fn at(text: &str) -> jiff::Timestamp {
    text.parse().unwrap()
}

fn seen(change: impl FnOnce(&mut Value)) -> Seen {
    let mut answer = json!({
        "platform": {"status": "approval_required", "pending_sha256": SHA, "approved_sha256": null, "approval_expires_at": null,
            "applied_sha256": null, "attempts": 0, "message": null, "leftovers": 0},
        "components": [{"name": "collectors", "chart_version": "1.0.0", "app_version": null, "images": [], "state": "started",
            "health": "ok", "operation_state": "idle", "security_state": "compliant", "ready": 2, "desired": 2, "message": null,
            "observed_at": "2026-11-30T10:00:00Z"}],
        "cluster": {"uid": "u", "kubernetes_version": "v1.37.0", "api_address": "https://k:6443", "reachable": true,
            "observed_at": "2026-11-30T10:00:55Z"},
        "access": {"cluster": "ok", "platform": "absent"}
    });
    change(&mut answer);
    Seen::deserialize(&answer).unwrap()
}

#[test]
fn ages_are_told_and_what_is_old_is_called_old() {
    let (seen, now) = (seen(|_| {}), at("2026-11-30T10:03:00Z"));
    let text = text::text(&seen, now);
    assert!(text.starts_with(&format!("Platform:  approval_required\nPending:   {SHA}\nApproved:  -\n")), "{text}");
    assert!(text.contains("Cluster:   v1.37.0, https://k:6443, reachable, read 2m ago (old)\n"), "{text}");
    assert!(text.contains("3m ago (old)"), "{text}");
    assert_eq!(text::old(&seen, now), ["cluster: read 2m ago", "component collectors: read 3m ago"]);
    assert!(text::old(&seen, at("2026-11-30T10:01:00Z")).is_empty());
}

fn commands(seen: &Seen, now: jiff::Timestamp) -> Vec<String> {
    next::steps(seen, now).into_iter().map(|step| step.command).collect()
}

#[test]
fn the_next_step_is_the_one_that_the_executor_would_tell() {
    let now = at("2026-11-30T10:01:00Z");
    let vm = "clicklink clctl platform approve";
    assert_eq!(commands(&seen(|_| {}), now), [vm]);
    assert_eq!(next::steps(&seen(|_| {}), now)[0].why, format!("approve the pending bundle, sha {SHA}"));
    let told = seen(|answer| {
        answer["platform"]["status"] = "failed".into();
        let hint = format!("run: clctl platform approve --secret-namespace home (pending bundle sha {SHA})");
        answer["platform"]["message"] = format!("the approval has ended; {hint}").into();
    });
    assert_eq!(commands(&told, now)[0], "clicklink clctl platform approve --secret-namespace home");
    let former =
        seen(|answer| answer["platform"]["message"] = "run: clctl platform approve --secret-namespace x (pending bundle sha 00)".into());
    assert_eq!(commands(&former, now), [vm]);
    let blind = seen(|answer| {
        answer["platform"]["status"] = "synced".into();
        answer["access"]["cluster"] = "absent".into();
    });
    assert!(commands(&blind, now)[0].contains("executor access grant --cluster"));
    assert!(commands(&seen(|answer| answer["platform"]["status"] = "synced".into()), now).is_empty());
}

/// Every command that can be told, as a shell reads it: without anything that it would take for something else.
#[test]
fn a_shell_takes_every_next_step_as_it_is() {
    let now = at("2026-11-30T10:01:00Z");
    let mut told = Vec::new();
    for status in ["approval_required", "failed"] {
        for access in ["absent", "expired"] {
            for (state, code) in [("refused", Value::Null), ("disconnected", "manager_unreachable".into())] {
                for kind in ["vm", "pod"] {
                    let seen = seen(|answer| {
                        answer["platform"]["status"] = status.into();
                        answer["access"]["cluster"] = access.into();
                        answer["channel"] =
                            json!({"state": state, "since": "2026-11-30T09:58:00Z", "code": code, "message": "m", "transport": null});
                        answer["executor"] = json!({"id": "019b0000-0000-7000-8000-000000000001", "version": "1", "uptime_s": 1,
                            "started_at": "2026-11-30T09:00:00Z", "kind": kind});
                    });
                    told.extend(commands(&seen, now));
                }
            }
        }
    }
    told.sort();
    told.dedup();
    assert_eq!(told.len(), 7, "{told:#?}");
    for command in told {
        assert!(command.starts_with("clicklink clctl ") && !command.contains(['<', '>', '(', '#', '…', '\'']), "{command}");
        let shell = std::process::Command::new("sh").args(["-n", "-c", &command]).status().unwrap();
        assert!(shell.success(), "{command}");
    }
}

#[test]
fn a_sync_that_runs_says_how_far_it_is() {
    let told = |sync: Value| {
        let seen = seen(|answer| {
            answer["platform"]["status"] = "syncing".into();
            answer["sync"] = sync;
        });
        text::text(&seen, at("2026-11-30T10:01:00Z")).lines().next().unwrap().to_owned()
    };
    let sync = |stage: &str, step: u32, component: Value| json!({"command": "019b0000-0000-7000-8000-000000000001", "stage": stage, "step": step, "of": 9, "component": component});
    assert_eq!(told(sync("applying", 8, "collectors".into())), "Platform:  syncing: applying collectors, step 8 of 9");
    assert_eq!(told(sync("checking", 5, Value::Null)), "Platform:  syncing: checking, step 5 of 9");
    assert_eq!(told(Value::Null), "Platform:  syncing");
}

#[test]
fn an_approval_shows_its_end() {
    let seen = seen(|answer| {
        answer["platform"]["approved_sha256"] = SHA.into();
        answer["platform"]["approval_expires_at"] = "2026-11-30T12:00:00Z".into();
    });
    assert!(text::text(&seen, at("2026-11-30T10:30:00Z")).contains(", valid for 90m more (until 2026-11-30T12:00:00Z)\n"));
    assert!(text::text(&seen, at("2026-11-30T12:00:30Z")).contains(", expired 30s ago"));
}

#[test]
fn a_channel_that_is_not_up_says_since_when_why_and_what_to_do() {
    let check = |channel: Value, line: &str, step: Option<&str>| {
        let (seen, now) = (seen(|answer| answer["channel"] = channel), at("2026-11-30T10:01:00Z"));
        assert!(text::text(&seen, now).contains(&format!("\nChannel:   {line}\n")), "{}", text::text(&seen, now));
        let steps = next::steps(&seen, now);
        assert_eq!(steps.len() == 2, step.is_some(), "{steps:?}");
        assert!(step.is_none_or(|step| steps[0].command.ends_with(step)), "{steps:?}");
    };
    let since = "2026-11-30T09:58:00Z";
    let channel = |state: &str, code: Value, message: Value, transport: Value| json!({"state": state, "since": since, "code": code, "message": message, "transport": transport});
    check(channel("connected", Value::Null, Value::Null, "WebSocket".into()), "connected for 3m, WebSocket", None);
    check(channel("disconnected", Value::Null, Value::Null, Value::Null), "not connected for 3m", None);
    let away = channel("disconnected", "manager_unreachable".into(), "the manager cannot be reached".into(), Value::Null);
    let line = "not connected for 3m: error[manager_unreachable]: the manager cannot be reached";
    check(away, line, Some("clicklink clctl preflight"));
    let refused = channel("refused", "executor_revoked".into(), "it was revoked".into(), Value::Null);
    let line = "refused by the manager for 3m: error[executor_revoked]: it was revoked";
    check(refused, line, Some("clicklink clctl init --enroll URL --force"));
}

#[test]
fn drift_is_told_where_there_is_some() {
    let told = |count: Value| text::text(&seen(|answer| answer["platform"]["drift"] = count.clone()), at("2026-11-30T10:01:00Z"));
    assert!(told(1.into()).contains("\nDrift:     1 object is not as approved"), "{}", told(1.into()));
    assert!(told(2.into()).contains("\nDrift:     2 objects are not as approved"), "{}", told(2.into()));
    for nothing in [0.into(), Value::Null] {
        assert!(!told(nothing.clone()).contains("Drift:"), "{nothing}");
    }
}

#[test]
fn one_leftover_is_one_object() {
    let told = |count: u32| text::text(&seen(|answer| answer["platform"]["leftovers"] = count.into()), at("2026-11-30T10:01:00Z"));
    assert!(told(1).contains("\nLeftovers: 1 object of former bundles\n"), "{}", told(1));
    assert!(told(2).contains("\nLeftovers: 2 objects of former bundles\n"), "{}", told(2));
}
