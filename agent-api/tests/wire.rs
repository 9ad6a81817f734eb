//! One golden file for each message that crosses a process boundary.
//!
//! A file is what an older or newer peer may send or expect: change one only with a reason. `UPDATE_WIRE=1 cargo test -p agent-api`
//! writes the files anew.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use agent_api::approval::{Approval, Capabilities, ServerWords, Versions};
use agent_api::command::{Command, CommandStatus, CommandView, Origin};
use agent_api::digest::Sha256;
use agent_api::enrolment::{EnrollRequest, EnrollResponse, SignRequest, SignResponse};
use agent_api::frame::*;
use agent_api::heartbeat::*;
use agent_api::name::{CommandId, ExecutorId, InstallId};
use agent_api::object::ObjectKey;
use agent_api::pending::PendingBundle;
use agent_api::problem::Problem;
use agent_api::secret::Secret;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

fn golden<T: Serialize + DeserializeOwned>(name: &str, message: &T) {
    let path = format!("{}/tests/wire/{name}.json", env!("CARGO_MANIFEST_DIR"));
    let value = serde_json::to_value(message).unwrap();
    if std::env::var_os("UPDATE_WIRE").is_some() {
        std::fs::write(&path, serde_json::to_string_pretty(&value).unwrap() + "\n").unwrap();
    }
    let file: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{path}: {e}"))).unwrap();
    assert_eq!(value, file, "{name}: what is written");
    let mut newer = file.clone();
    newer["a_field_of_a_later_version"] = json!({"x": 1});
    let read: T = serde_json::from_value(newer).unwrap_or_else(|e| panic!("{name}: an unknown field must be ignored: {e}"));
    assert_eq!(serde_json::to_value(&read).unwrap(), file, "{name}: what is read");
}

fn id() -> CommandId {
    "019b1111-0000-7000-8000-000000000001".parse().unwrap()
}

fn executor() -> ExecutorId {
    "019b2222-0000-7000-8000-000000000001".parse().unwrap()
}

fn install() -> InstallId {
    "019b3333-0000-7000-8000-000000000001".parse().unwrap()
}

fn time(text: &str) -> jiff::Timestamp {
    text.parse().unwrap()
}

fn sha() -> Sha256 {
    Sha256::of(b"manifest")
}

#[test]
fn frames_up() {
    golden(
        "up-hello",
        &Up::Hello(Hello {
            executor_id: executor(),
            cluster_uid: Some("0c7b5f0e".into()),
            version: "0.1.0".into(),
            protocols: vec![1],
            last_sequence: 7,
            unacknowledged_results: vec![id()],
        }),
    );
    golden("up-command-ack", &Up::CommandAck(CommandAck { id: id() }));
    let progress =
        CommandProgress { id: id(), stage: "applying".into(), step: 6, of: 8, object: Some("Deployment.apps p/operator: 0 of 1".into()) };
    golden("up-command-progress", &Up::CommandProgress(progress));
    let key = ObjectKey { group: "apps".into(), kind: "Deployment".into(), namespace: "p".into(), name: "operator".into() };
    let objects = vec![ObjectOutcome { key, outcome: Outcome::Created }];
    let result = CommandResult { id: id(), status: CommandStatus::Completed, result: "synced".into(), objects, code: None };
    golden("up-command-result", &Up::CommandResult(result));
    let (status, result, code) = (CommandStatus::Failed, "there is no approval yet".into(), Some("approval_missing".into()));
    golden("up-command-result-failed", &Up::CommandResult(CommandResult { id: id(), status, result, objects: Vec::new(), code }));
    golden("up-heartbeat", &Up::Heartbeat(Box::new(heartbeat())));
}

fn heartbeat() -> Heartbeat {
    let at = time("2026-11-30T10:00:00Z");
    Heartbeat {
        executor: ExecutorInfo { id: executor(), version: "0.1.0".into(), started_at: at, uptime_s: 42, kind: ExecutorKind::Vm },
        cluster: ClusterInfo {
            uid: Some("0c7b5f0e".into()),
            name: Some("bank-prod".into()),
            region: Some("eu-west-1".into()),
            account_id: None,
            kubernetes_version: Some("v1.37.2".into()),
            api_address: Some("https://10.0.0.1:6443".into()),
            reachable: true,
            observed_at: Some(at),
        },
        access: AccessInfo { cluster: AccessState::Ok, platform: AccessState::Expiring },
        platform: Platform {
            status: PlatformStatus::ApprovalRequired,
            pending_sha256: Some(sha()),
            approved_sha256: None,
            approval_expires_at: None,
            applied_sha256: None,
            attempts: 0,
            message: None,
            drift: Some(2),
            leftovers: 0,
        },
        components: vec![ComponentState {
            name: "clickhouse-operator".parse().unwrap(),
            chart_version: Some("0.2.0".into()),
            app_version: Some("1.4.2".into()),
            images: vec!["r/operator@sha256:00".into()],
            state: Some(State::Started),
            health: Health::Ok,
            operation_state: OperationState::Succeeded,
            security_state: SecurityState::Compliant,
            ready: 1,
            desired: 1,
            message: None,
            observed_at: Some(at),
        }],
        commands: CommandCounts { queued: 0, running: 1, journal_bytes: 4096, journal_error: Some("database or disk is full".into()) },
        approvals: vec![ApprovalRecord {
            sha256: sha(),
            approved_by: "kubernetes-admin".into(),
            approved_at: at,
            expires_at: time("2026-11-30T12:00:00Z"),
            objects: 14,
        }],
    }
}

#[test]
fn frames_down() {
    let server_time = time("2026-11-30T10:00:00Z");
    golden("down-welcome", &Down::Welcome(Welcome { protocol: 1, heartbeat_interval_s: 10, server_time }));
    golden(
        "down-command",
        &Down::Command(Command {
            id: id(),
            sequence: 8,
            action: "sync_platform".into(),
            target: "platform".into(),
            deadline: None,
            payload: json!({"sha256": sha(), "manifest": "manifest"}),
        }),
    );
    golden("down-result-ack", &Down::ResultAck(ResultAck { id: id() }));
}

#[test]
fn polls() {
    let ack = serde_json::to_value(Up::CommandAck(CommandAck { id: id() })).unwrap();
    golden("poll-request", &PollRequest { session: executor().0, sequence: 2, wait_s: 25, frames: vec![ack] });
    let ack = serde_json::to_value(Down::ResultAck(ResultAck { id: id() })).unwrap();
    golden("poll-response", &PollResponse { frames: vec![ack] });
}

#[test]
fn enrolment() {
    golden("enroll-request", &EnrollRequest { token: Secret::new("one-time".into()), executor_id: executor() });
    golden(
        "enroll-response",
        &EnrollResponse {
            organisation: "org-1".into(),
            endpoint: "https://manager.example".into(),
            access_key: "ak-1".into(),
            secret_key: Secret::new("sk".into()),
            ca: "-----BEGIN CERTIFICATE-----\n".into(),
        },
    );
    golden("sign-request", &SignRequest { csr: "-----BEGIN CERTIFICATE REQUEST-----\n".into() });
    golden("sign-response", &SignResponse { certificate: "-----BEGIN CERTIFICATE-----\n".into(), not_after: time("2026-12-30T10:00:00Z") });
}

#[test]
fn local_documents() {
    golden(
        "pending",
        &PendingBundle {
            sha256: sha(),
            received_at: time("2026-11-30T10:00:00Z"),
            cluster_uid: Some("0c7b5f0e".into()),
            manifest: "manifest".into(),
        },
    );
    golden(
        "approval",
        &Approval {
            bundle_sha256: sha(),
            workload_sha256: Sha256::of(b"workload"),
            cluster_uid: "0c7b5f0e".into(),
            install_id: install(),
            approved_by: "kubernetes-admin".into(),
            approved_at: time("2026-11-30T10:00:00Z"),
            expires_at: time("2026-11-30T12:00:00Z"),
            home_namespace: "clicklink-system".into(),
            capabilities: Capabilities {
                kube_version: "v1.37.2-eks-2d5f260".into(),
                api_versions: vec!["apps/v1".into(), "apps/v1/Deployment".into()],
                server: Box::new(ServerWords { major: "1".into(), minor: "37+".into(), unknown_groups: vec!["metrics.k8s.io".into()] }),
            },
            versions: Versions { clicklink: "0.1.0".into(), engine: "helm v4.3.1".into() },
            leftovers: 0,
        },
    );
    // An approval from before clusters were asked for their own words.
    let older = json!({"kube_version": "v1.37.2", "api_versions": ["v1"]});
    let read: Capabilities = serde_json::from_value(older.clone()).unwrap();
    assert_eq!(serde_json::to_value(read).unwrap(), older);
    golden(
        "command",
        &CommandView {
            id: id(),
            action: "sync_platform".into(),
            target: "platform".into(),
            sha256: Some(sha()),
            status: CommandStatus::Failed,
            stage: None,
            origin: Origin::Cloud,
            created_at: time("2026-11-30T10:00:00Z"),
            finished_at: Some(time("2026-11-30T10:00:01Z")),
            result: Some(format!(
                "platform sync refused: there is no approval yet; run: clctl platform approve (pending bundle sha {})",
                sha()
            )),
            code: Some("approval_missing".into()),
        },
    );
    golden(
        "problem",
        &Problem { status: 404, code: "not_found".into(), title: "Not found".into(), detail: "no platform bundle is staged".into() },
    );
}

#[test]
fn an_unknown_type_is_told_from_a_damaged_frame() {
    let later = json!({"type": "a_later_frame", "x": 1});
    assert!(serde_json::from_value::<Down>(later).unwrap_err().to_string().contains("unknown variant `a_later_frame`"));
}
