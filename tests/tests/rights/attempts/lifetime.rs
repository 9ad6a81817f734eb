//! Deployments, Jobs, PodDisruptionBudgets beside their pods: what stops the platform, what goes on after the token.

use serde_json::{Value, json};

use super::pin;
use super::pods::{DEPLOYMENT, JOB};
use crate::ask::{force, put};
use crate::live::Live;
use crate::row::{Denial, Request, Row, row};

/// The Deployment whose replicas the chart says.
const FIXED: &str = "monitoring-collectors";

fn changed(kind: &'static str, name: &'static str, change: fn(&mut Value)) -> impl Fn(&Live) -> Vec<Request> + 'static {
    move |live| {
        let changed = force(live.changed(kind, name, |object| change(&mut object["spec"])));
        vec![if kind == "Job" { changed.while_gone() } else { changed }]
    }
}

pub(super) fn rows() -> Vec<Row> {
    let mut rows = deployments();
    rows.extend(jobs());
    rows.extend(budgets());
    rows
}

fn deployments() -> Vec<Row> {
    let stop = "a platform that does not run";
    let stuck = "an update that never arrives";
    let deployment = |change| changed("Deployment", FIXED, change);
    vec![
        row("no replicas", stop, &[pin::SPEC], deployment(|spec| spec["replicas"] = json!(0))),
        row(
            "no replicas, where the chart leaves them to an autoscaler",
            stop,
            &[pin::SPEC],
            changed("Deployment", DEPLOYMENT, |spec| {
                spec["replicas"] = json!(0);
            }),
        ),
        row("many replicas", "all that the nodes have", &[pin::SPEC], deployment(|spec| spec["replicas"] = json!(1000))),
        row("`paused`", stuck, &[pin::SPEC], deployment(|spec| spec["paused"] = json!(true))),
        row(
            "`strategy: Recreate`",
            "a gap at every update",
            &[Denial::Server("may not be specified when strategy")],
            deployment(|spec| spec["strategy"] = json!({"type": "Recreate", "rollingUpdate": null})),
        ),
        row(
            "`maxUnavailable: 100%`",
            "a gap at every update",
            &[pin::SPEC],
            deployment(|spec| {
                put(spec, "/strategy/rollingUpdate/maxUnavailable", json!("100%"));
            }),
        ),
        row("`minReadySeconds`", stuck, &[pin::SPEC], deployment(|spec| spec["minReadySeconds"] = json!(599))),
        row(
            "`progressDeadlineSeconds`",
            "an update that fails",
            &[pin::SPEC],
            deployment(|spec| spec["progressDeadlineSeconds"] = json!(1)),
        ),
        row("`revisionHistoryLimit`", "no way back", &[pin::SPEC], deployment(|spec| spec["revisionHistoryLimit"] = json!(0))),
        row(
            "another selector",
            "pods of somebody else, adopted",
            &[Denial::Server("field is immutable")],
            deployment(|spec| {
                spec["selector"]["matchLabels"]["app"] = json!("theirs");
                spec["template"]["metadata"]["labels"]["app"] = json!("theirs");
            }),
        ),
    ]
}

fn jobs() -> Vec<Row> {
    let on = "a Job that goes on after the token";
    let never = "an update that waits for a Job that never runs";
    let job = |change| changed("Job", JOB, change);
    vec![
        row("a Job that runs again and again (`completions`)", on, &[pin::SPEC], job(|spec| spec["completions"] = json!(100_000))),
        row("`parallelism`", "all that the nodes have", &[pin::SPEC], job(|spec| spec["parallelism"] = json!(1000))),
        row("`activeDeadlineSeconds`", on, &[pin::SPEC], job(|spec| spec["activeDeadlineSeconds"] = json!(31_536_000))),
        row("`backoffLimit`", on, &[pin::SPEC], job(|spec| spec["backoffLimit"] = json!(100_000))),
        row("`ttlSecondsAfterFinished`", "no trace of what ran", &[pin::SPEC], job(|spec| spec["ttlSecondsAfterFinished"] = json!(0))),
        row("`suspend`", never, &[pin::SPEC], job(|spec| spec["suspend"] = json!(true))),
        row("`managedBy` another controller", never, &[pin::SPEC], job(|spec| spec["managedBy"] = json!("example.com/theirs"))),
        row(
            "`completionMode: Indexed`",
            on,
            &[pin::SPEC],
            job(|spec| {
                spec["completionMode"] = json!("Indexed");
                spec["completions"] = json!(1);
            }),
        ),
        row("`podReplacementPolicy`", on, &[pin::SPEC], job(|spec| spec["podReplacementPolicy"] = json!("Failed"))),
        row(
            "`podFailurePolicy`",
            on,
            &[pin::SPEC],
            job(|spec| {
                spec["podFailurePolicy"] =
                    json!({"rules": [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}]});
            }),
        ),
        row(
            "`manualSelector` over others' pods",
            "pods of somebody else, adopted and ended",
            &[pin::SPEC, pin::POD_LABELS],
            job(|spec| {
                spec["manualSelector"] = json!(true);
                spec["selector"] = json!({"matchLabels": {"app": "theirs"}});
                spec["template"]["metadata"]["labels"]["app"] = json!("theirs");
            }),
        ),
        row("the template of a finished Job", "code of their own", &[Denial::Server("field is immutable")], |live| {
            vec![force(live.changed("Job", JOB, |job| put(job, "/spec/template/spec/containers/0/command", json!(["/theirs"]))))]
        }),
        row("a finished Job that is unsuspended, retried", "the migration once more", &[pin::SPEC], |live| {
            vec![force(live.changed("Job", JOB, |job| job["spec"]["suspend"] = json!(true)))]
        }),
        row("a Job under another name", "code of their own", &[Denial::Rbac, pin::LISTED], |live| {
            vec![force(live.changed("Job", JOB, |job| job["metadata"]["name"] = json!("x")))]
        }),
    ]
}

fn budgets() -> Vec<Row> {
    let drained = "a node that cannot be drained";
    let budget = |change: fn(&mut Value)| {
        move |live: &Live| {
            let changed = live.changed("PodDisruptionBudget", "snapshot-controller", |object| change(&mut object["spec"]));
            vec![force(changed.clone()), force(changed).while_gone()]
        }
    };
    vec![
        row("a budget of no disruption", drained, &[pin::SPEC], budget(|spec| spec["maxUnavailable"] = json!(0))),
        row("a budget over all pods of the namespace", drained, &[pin::SPEC], budget(|spec| spec["selector"] = json!({}))),
        row(
            "`minAvailable` in its place",
            drained,
            &[pin::SPEC],
            budget(|spec| {
                spec.as_object_mut().unwrap().remove("maxUnavailable");
                spec["minAvailable"] = json!("100%");
            }),
        ),
        row(
            "`unhealthyPodEvictionPolicy`",
            "pods that are not ready, evicted",
            &[pin::SPEC],
            budget(|spec| {
                spec["unhealthyPodEvictionPolicy"] = json!("AlwaysAllow");
            }),
        ),
    ]
}
