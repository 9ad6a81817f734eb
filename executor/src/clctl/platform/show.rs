//! `clctl platform show`: the staged bundle, the approval that holds, what departs from it, and the former ones.

use std::process::ExitCode;

use agent_api::platform_approval::{PlatformApprovalSpec, former_name, is_for_record};
use clap::Args;
use cluster::connect::ConnectError;
use cluster::{ClusterError, inventory};
use serde::Serialize;

use super::arguments::{Connector, Person};
use super::{drift, pending, record};
use crate::clctl::age;
use crate::clctl::output::{Output, table};
use crate::error_code::{Code, Coded};
use crate::local_api::DriftedObject;
use crate::terminal::{chain, data, escaped, report};

/// Arguments.
#[derive(Args)]
pub(crate) struct Show {
    #[command(flatten)]
    person: Person,
    #[command(flatten)]
    connector: Connector,
    /// Form of the output (default: a table on a terminal, JSON otherwise); `name` lists approved bundles.
    #[arg(short, long)]
    output: Option<Output>,
}

/// Why there is nothing to show.
#[derive(Debug, thiserror::Error)]
enum ShowError {
    #[error(transparent)]
    Connect(#[from] ConnectError),
    #[error(transparent)]
    Cluster(#[from] ClusterError),
}

impl Coded for ShowError {
    fn code(&self) -> Code {
        match self {
            Self::Connect(error) => error.code(),
            Self::Cluster(error) => error.code(),
        }
    }

    fn hints(&self) -> Vec<String> {
        match self {
            Self::Connect(error) => error.hints(),
            Self::Cluster(error) => error.hints(),
        }
    }
}

#[derive(Serialize)]
struct Shown {
    /// Absent where it could not be read; then `pending_problem` says why.
    pending: Option<Staged>,
    pending_problem: Option<String>,
    current: Option<Approval>,
    /// Live workload objects that are not as they were approved; absent where that is not known, then `drift_problem` says why.
    drift: Option<Vec<DriftedObject>>,
    drift_problem: Option<String>,
    /// Newest first.
    former: Vec<Approval>,
}

#[derive(Serialize)]
struct Staged {
    sha256: String,
    environment: String,
    received_at: Option<jiff::Timestamp>,
}

/// An approval without what it pins.
#[derive(Serialize)]
struct Approval {
    sha256: String,
    workload_sha256: String,
    approved_by: String,
    approved_at: jiff::Timestamp,
    expires_at: jiff::Timestamp,
    install_id: String,
    objects: u32,
    /// Whether a token may write under it now.
    holds: bool,
    /// Whether a token was given under it; one that was refused or cut off before gives no right.
    given: bool,
}

impl Show {
    pub(super) async fn run(self) -> ExitCode {
        match self.read().await {
            Ok(shown) => print(&shown, Output::or_default(self.output)),
            Err(error) => report(&error),
        }
    }

    async fn read(&self) -> Result<Shown, ShowError> {
        let client = self.person.connect().await?.client;
        let now = jiff::Timestamp::now();
        let current = record::current(&client, self.connector.place.home()).await?.filter(|spec| !spec.approved_by.is_empty());
        let mut former = record::former(&client, self.connector.place.home()).await?;
        // One that made room for its successor, which was then cut off.
        former.retain(|former| current.as_ref().is_none_or(|current| former_name(current) != former_name(former)));
        let former = former.into_iter().map(|spec| approval(spec, now)).collect();
        let current = current.map(|spec| approval(spec, now));
        let (pending, pending_problem) = match pending::take(&self.connector.source(None)).await {
            Ok(pending) => {
                let environment = pending.bundle.manifest().environment.to_string();
                (Some(Staged { sha256: pending.bundle.sha256().to_string(), environment, received_at: pending.received_at }), None)
            }
            Err(error) => (None, Some(chain(&error))),
        };
        let uid = inventory::cluster_uid(&client).await?;
        let (drift, drift_problem) = match drift::read(&self.connector.endpoint(), &uid).await {
            Ok(drift) => (Some(drift), None),
            Err(problem) => (None, Some(problem)),
        };
        Ok(Shown { pending, pending_problem, current, drift, drift_problem, former })
    }
}

fn approval(spec: PlatformApprovalSpec, now: jiff::Timestamp) -> Approval {
    let (holds, given) = (spec.is_given() && now < spec.expires_at, is_for_record(&spec.approved_by, &spec.credentials));
    Approval {
        sha256: spec.sha256.to_string(),
        workload_sha256: spec.workload_sha256.to_string(),
        approved_by: spec.approved_by,
        approved_at: spec.approved_at,
        expires_at: spec.expires_at,
        install_id: spec.install_id.to_string(),
        objects: spec.objects,
        holds,
        given,
    }
}

fn print(shown: &Shown, output: Output) -> ExitCode {
    if output == Output::Table {
        data(text(shown, jiff::Timestamp::now()));
        return ExitCode::SUCCESS;
    }
    let all = || shown.current.iter().chain(&shown.former);
    output.print(shown, &[], Vec::new, || all().map(|approval| approval.sha256.clone()).collect())
}

fn text(shown: &Shown, now: jiff::Timestamp) -> String {
    let pending = match (&shown.pending, &shown.pending_problem) {
        (Some(pending), _) => {
            let staged = pending.received_at.map(|at| format!(", staged {} ago", age::since(at, now))).unwrap_or_default();
            format!("{} (environment {}{staged})", pending.sha256, pending.environment)
        }
        (None, problem) => format!("not known: {}", problem.as_deref().unwrap_or_default().lines().next().unwrap_or_default()),
    };
    let current = shown.current.as_ref().map_or_else(|| "none".to_owned(), |approval| held(approval, now));
    let drift = match (&shown.drift, &shown.drift_problem) {
        (Some(drift), _) if drift.is_empty() => "none".to_owned(),
        (Some(drift), _) if drift.len() == 1 => "1 object is not as approved (its values: -o json)".to_owned(),
        (Some(drift), _) => format!("{} objects are not as approved (their values: -o json)", drift.len()),
        (None, problem) => format!("not known: {}", problem.as_deref().unwrap_or_default().lines().next().unwrap_or_default()),
    };
    let lines = [("Pending: ", pending), ("Approval:", current), ("Drift:   ", drift)];
    let mut text = lines.map(|(name, value)| format!("{name} {}", escaped(&value, &[]))).join("\n");
    let drifted = shown.drift.as_deref().map(drift::rows).unwrap_or_default();
    if !drifted.is_empty() {
        text.push_str("\n\n");
        text.push_str(&table(&["NOT AS APPROVED", "FIELD"], drifted));
    }
    if !shown.former.is_empty() {
        let rows = shown.former.iter().map(|former| {
            vec![
                former.sha256.clone(),
                former.approved_by.clone(),
                former.approved_at.to_string(),
                former.expires_at.to_string(),
                former.objects.to_string(),
            ]
        });
        text.push_str("\n\n");
        text.push_str(&table(&["FORMER", "APPROVED BY", "APPROVED AT", "EXPIRES", "OBJECTS"], rows.collect()));
    }
    text
}

fn held(approval: &Approval, now: jiff::Timestamp) -> String {
    let left = approval.expires_at.duration_since(now).as_secs();
    let until = match (approval.holds, left) {
        (true, _) => format!("for {} more", age::short(left)),
        (false, _) if !approval.given => "not given: refused, or cut off before its token".to_owned(),
        (false, ..=0) => format!("ended {} ago", age::short(-left)),
        (false, _) => "no token may write under it".to_owned(),
    };
    format!(
        "{} by {} at {}, until {} ({until}), {} workload objects",
        approval.sha256, approval.approved_by, approval.approved_at, approval.expires_at, approval.objects
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_table_tells_what_holds() {
        let now: jiff::Timestamp = "2026-11-30T10:00:00Z".parse().unwrap();
        let approval = |until: &str, holds, given| Approval {
            sha256: "aa".into(),
            workload_sha256: "bb".into(),
            approved_by: "jo\u{202e}".into(),
            approved_at: "2026-11-30T09:00:00Z".parse().unwrap(),
            expires_at: until.parse().unwrap(),
            install_id: String::new(),
            objects: 12,
            holds,
            given,
        };
        let given = |until: &str, holds| approval(until, holds, true);
        let shown = Shown {
            pending: None,
            pending_problem: Some("no answer\nopen a port-forward".into()),
            current: Some(given("2026-11-30T11:00:00Z", true)),
            drift: None,
            drift_problem: Some("nobody answers\nthere".into()),
            former: vec![given("2026-11-30T09:30:00Z", false)],
        };
        let expected = "Pending:  not known: no answer\n\
            Approval: aa by jo\\u{202e} at 2026-11-30T09:00:00Z, until 2026-11-30T11:00:00Z (for 60m more), 12 workload objects\n\
            Drift:    not known: nobody answers\n\n \
            FORMER  APPROVED BY  APPROVED AT           EXPIRES               OBJECTS\n \
            aa      jo\\u{202e}   2026-11-30T09:00:00Z  2026-11-30T09:30:00Z  12";
        assert_eq!(text(&shown, now), expected);
        let drifted = |objects: Vec<DriftedObject>| {
            let shown = Shown {
                drift: Some(objects),
                drift_problem: None,
                former: Vec::new(),
                pending: None,
                pending_problem: None,
                current: None,
            };
            text(&shown, now)
        };
        assert!(drifted(Vec::new()).ends_with("\nDrift:    none"));
        let objects = json!([
            {"object": "Deployment.apps n/d", "missing": false, "fields": [{"path": "spec.replicas", "approved": 1, "live": 9}]},
            {"object": "Service n/s", "missing": true, "fields": []},
        ]);
        let expected = "\nDrift:    2 objects are not as approved (their values: -o json)\n\n \
            NOT AS APPROVED      FIELD\n Deployment.apps n/d  spec.replicas\n Service n/s          missing";
        assert!(drifted(serde_json::from_value(objects).unwrap()).ends_with(expected));
        assert!(held(&given("2026-11-30T09:59:00Z", false), now).contains("(ended 60s ago)"));
        assert!(held(&given("2026-11-30T10:59:00Z", false), now).contains("(no token may write under it)"));
        assert!(held(&approval("2026-11-30T10:59:00Z", false, false), now).contains("(not given: refused, or cut off before its token)"));
    }
}
