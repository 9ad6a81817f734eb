//! The executor's decisions from outside: events in, records and effects out, with a journal in memory.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use agent_api::approval::{Approval, Capabilities, Versions};
use agent_api::command::{Command, CommandStatus};
use agent_api::digest::Sha256;
use agent_api::frame::{ObjectOutcome, Outcome as ObjectResult};
use agent_api::heartbeat::PlatformStatus;
use agent_api::keys;
use agent_api::manifest::Bundle;
use agent_api::name::{CommandId, InstallId};
use agent_api::object::RenderedObject;
use executor_core::bundle::{Judged, Scope, Trusted, judge, stamped};
use executor_core::*;
use serde_json::{Value, json};

const MANIFEST: &str = include_str!("../../../agent-api/tests/wire/manifest.json");

#[derive(Default)]
struct Memory {
    records: Vec<Record>,
    full: bool,
}

impl Journal for Memory {
    type Error = &'static str;

    async fn append(&mut self, record: &Record, _after: &PlatformRecord) -> Result<(), &'static str> {
        if self.full {
            return Err("disk full");
        }
        self.records.push(record.clone());
        Ok(())
    }
}

fn now_or_never<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("the memory journal never waits"),
    }
}

fn at(second: i64) -> jiff::Timestamp {
    jiff::Timestamp::from_second(1_800_000_000 + second).unwrap()
}

/// An executor whose reads are answered from a script.
struct World {
    state: State,
    journal: Memory,
    now: i64,
    approval: Result<TokenBundle, TokenBundleError>,
    account: Value,
    live: BTreeMap<String, Value>,
    rendered: Result<Arc<Judged>, String>,
    images: UnpullableImages,
    dry_run: Result<Vec<String>, ReadError>,
    /// What the next applies end with; then they succeed.
    applies: Vec<Result<(), ApplyError>>,
    seen: Vec<String>,
}

fn sha() -> Sha256 {
    Sha256::of(MANIFEST.as_bytes())
}

fn judged() -> Arc<Judged> {
    let bundle = Bundle::parse(MANIFEST.into()).unwrap();
    let object =
        |component: &str, object: Value| RenderedObject { component: Some(component.into()), template: "t".into(), hook: None, object };
    let labels = |component: &str| json!({"clicklink.io/managed-by": "platform", "clicklink.io/component": component, "clicklink.io/pinned": "true"});
    let mut objects = vec![object(
        "snapshot-controller",
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "clickhouse-platform", "labels": {"clicklink.io/managed-by": "platform"}}}),
    )];
    for component in &bundle.manifest().components {
        let name = component.name.as_str();
        objects.push(object(
            name,
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "clickhouse-platform", "labels": labels(name)}, "data": {"k": "v"}}),
        ));
    }
    let scope = Scope { namespace_prefix: "ns-", home_namespace: "clicklink-system" };
    Arc::new(judge(&bundle, objects, Vec::new(), &scope, &Trusted).unwrap())
}

impl World {
    fn approved() -> Self {
        let judged = judged();
        let approval = Approval {
            bundle_sha256: sha(),
            workload_sha256: judged.workload_sha256(),
            cluster_uid: "uid".into(),
            install_id: InstallId(uuid(7)),
            approved_by: "admin".into(),
            approved_at: at(0),
            expires_at: at(7200),
            home_namespace: "clicklink-system".into(),
            capabilities: Capabilities::default(),
            versions: Versions::default(),
            leftovers: 0,
        };
        let account = json!({"metadata": {"annotations": {keys::BUNDLE_SHA256: sha(), keys::WORKLOAD_SHA256: judged.workload_sha256()}}});
        let live = judged.permissions().iter().map(|object| (object.key().to_string(), stamped(object, &sha()))).collect();
        Self {
            state: State::default(),
            journal: Memory::default(),
            now: 10,
            approval: Ok(TokenBundle { approval, token_expires_at: at(7200) }),
            account,
            live,
            rendered: Ok(judged),
            images: UnpullableImages::default(),
            dry_run: Ok(Vec::new()),
            applies: Vec::new(),
            seen: Vec::new(),
        }
    }

    /// Takes an event and everything that follows; effects are noted by name.
    fn take(&mut self, event: Event) {
        let mut events = vec![event];
        while let Some(event) = events.pop() {
            let Some(effects) = self.commit(event) else { continue };
            for effect in effects {
                let next = self.perform(effect);
                events.extend(next);
            }
        }
    }

    fn commit(&mut self, event: Event) -> Option<Vec<Effect>> {
        let transition = step(&self.state, event, at(self.now));
        now_or_never(transition.commit(&mut self.state, &mut self.journal)).ok()
    }

    fn perform(&mut self, effect: Effect) -> Option<Event> {
        let (note, next) = match effect {
            Effect::Acknowledge(_) => ("ack".into(), None),
            Effect::Deliver(_) => ("deliver".into(), None),
            Effect::Publish => ("publish".into(), None),
            Effect::Beat => ("beat".into(), None),
            Effect::Continue => ("continue".into(), Some(Event::Continue)),
            Effect::Progress(progress) if self.state.sync_progress().as_ref() != Some(&progress) => {
                panic!("{progress:?} is not where it is")
            }
            Effect::Progress(progress) => (format!("{} {}/{}", progress.stage, progress.step, progress.of), None),
            Effect::Read(id, read) => {
                let fact = match read {
                    Read::TokenBundle => Fact::TokenBundle(self.approval.clone()),
                    Read::Account(_) => Fact::Account(Ok(Some(self.account.clone()).filter(|account| !account.is_null()))),
                    Read::Render(..) => Fact::Rendered(self.rendered.clone()),
                    Read::Permissions(judged) => Fact::Permissions(Ok(judged
                        .permissions()
                        .iter()
                        .map(|object| self.live.get(&object.key().to_string()).cloned())
                        .collect())),
                    Read::Images(_) => Fact::Images(Ok(self.images.clone())),
                    Read::DryRun { .. } => Fact::DryRun(self.dry_run.clone()),
                };
                ("read".into(), Some(Event::Sync(id, fact)))
            }
            Effect::Apply { id, approved, component, .. } => {
                let name = approved.bundle().manifest().components[component].name.to_string();
                let objects = approved.judged().workload().iter().filter(|object| object.component.as_deref() == Some(&name));
                let outcomes = objects.map(|object| ObjectOutcome { key: object.key(), outcome: ObjectResult::Created }).collect();
                let result = if self.applies.is_empty() { Ok(()) } else { self.applies.remove(0) };
                (format!("apply {name}"), Some(Event::Sync(id, Fact::Applied(outcomes, result))))
            }
        };
        self.seen.push(note);
        next
    }

    fn result(&self, n: u8) -> (CommandStatus, String) {
        let entry = &self.state.commands[&id(n)];
        (entry.status, entry.result.as_ref().map(|result| result.result.clone()).unwrap_or_default())
    }

    fn code(&self, n: u8) -> Option<&str> {
        self.state.commands[&id(n)].result.as_ref()?.code.as_deref()
    }

    fn applied(&self) -> usize {
        self.seen.iter().filter(|note| note.starts_with("apply ")).count()
    }

    fn status(&self) -> PlatformStatus {
        let seen = self.approval.as_ref().ok().map(|found| ApprovalSeen {
            sha256: found.approval.bundle_sha256.clone(),
            expires_at: found.expires_at(),
            install_id: found.approval.install_id,
            leftovers: 0,
        });
        platform_status(&self.state, seen.as_ref(), at(self.now))
    }
}

fn uuid(n: u8) -> ::agent_api::Uuid {
    ::agent_api::Uuid::from_u128(u128::from(n))
}

fn id(n: u8) -> CommandId {
    CommandId(uuid(n))
}

fn sync(n: u8) -> Command {
    Command {
        id: id(n),
        sequence: u64::from(n),
        action: "sync_platform".into(),
        target: "platform".into(),
        deadline: None,
        payload: json!({"sha256": sha(), "manifest": MANIFEST}),
    }
}

fn hint() -> String {
    format!("run: clctl platform approve (pending bundle sha {})", sha())
}

#[test]
fn a_sync_without_approval_is_staged_and_refused_with_the_hint() {
    let mut world = World::approved();
    world.approval = Err(TokenBundleError::Absent);
    world.take(Event::Command(sync(1)));
    let (status, result) = world.result(1);
    assert_eq!(status, CommandStatus::Failed);
    assert_eq!(result, format!("platform sync refused: there is no approval yet; {}", hint()));
    assert_eq!(world.state.platform.pending.as_ref().unwrap().sha256, sha());
    assert_eq!(world.status(), PlatformStatus::ApprovalRequired);
    assert_eq!(world.state.platform.attempts, 0, "a refusal is no attempt");
    assert_eq!(world.applied(), 0);
    assert_eq!(world.seen[..4], ["ack", "publish", "beat", "continue"]);
}

#[test]
fn in_a_pod_the_hint_names_the_connectors_namespace() {
    let mut world = World::approved();
    world.state.site.connector_namespace = Some("clicklink".into());
    world.approval = Err(TokenBundleError::Absent);
    world.take(Event::Command(sync(1)));
    assert!(
        world.result(1).1.ends_with(&format!("run: clctl platform approve --secret-namespace clicklink (pending bundle sha {})", sha()))
    );
}

#[test]
fn an_approved_sync_applies_each_component_once_in_order() {
    let mut world = World::approved();
    world.take(Event::Command(sync(1)));
    assert_eq!(world.result(1).0, CommandStatus::Completed, "{:?}", world.result(1));
    assert!(world.result(1).1.ends_with("3 workload object(s) applied: 3 created, 0 changed, 0 unchanged"), "{:?}", world.result(1));
    let applied: Vec<_> = world.seen.iter().filter(|note| note.starts_with("apply ")).collect();
    assert_eq!(applied, ["apply snapshot-controller", "apply clickhouse-operator", "apply monitoring-collectors"]);
    assert_eq!(world.status(), PlatformStatus::Synced);
    assert_eq!(world.state.platform.attempts, 1);
    world.now = 10_000;
    assert_eq!(world.status(), PlatformStatus::Synced, "stays so after expiry");
}

/// After a reset the same bundle is installed anew: what was applied before it counts no more.
#[test]
fn an_approval_of_another_installation_is_not_synced_yet() {
    let mut world = World::approved();
    world.take(Event::Command(sync(1)));
    world.approval.as_mut().unwrap().approval.install_id = InstallId(uuid(99));
    assert_eq!(world.status(), PlatformStatus::Approved);
    world.take(Event::Command(sync(2)));
    assert_eq!(world.result(2).0, CommandStatus::Completed, "{:?}", world.result(2));
    assert_eq!((world.status(), world.applied()), (PlatformStatus::Synced, 6));
}

/// Each check of the contract, failing alone: nothing is applied, the reason is named, the hint ends the result.
#[test]
fn each_check_refuses_before_anything_is_touched() {
    let check = |break_it: &dyn Fn(&mut World), reason: &str, code: &str| {
        let mut world = World::approved();
        break_it(&mut world);
        world.take(Event::Command(sync(1)));
        let (status, result) = world.result(1);
        assert_eq!((status, world.code(1)), (CommandStatus::Failed, Some(code)), "{reason}");
        assert!(result.contains(reason), "{result}\nshould name: {reason}");
        assert!(result.ends_with(&hint()), "{result}");
        assert_eq!(world.applied(), 0, "{reason}");
    };
    let namespace = |world: &mut World, change: &dyn Fn(&mut Value)| change(world.live.get_mut("Namespace clickhouse-platform").unwrap());
    check(&|w| w.approval = Err(TokenBundleError::Absent), "there is no approval yet", "approval_missing");
    check(
        &|w| w.approval = Err(TokenBundleError::Damaged("token: empty".into())),
        "the token bundle is damaged: token: empty",
        "approval_damaged",
    );
    check(
        &|w| w.approval.as_mut().unwrap().approval.bundle_sha256 = Sha256::of(b"x"),
        "the approval at hand is for bundle",
        "approval_other_bundle",
    );
    check(&|w| w.now = 7200, "the approval expired at", "approval_expired");
    check(&|w| w.approval.as_mut().unwrap().token_expires_at = at(10), "the approval expired at", "approval_expired");
    check(&|w| w.account = Value::Null, "ServiceAccount pcm-platform is not there", "account_missing");
    check(
        &|w| w.account["metadata"]["annotations"][keys::BUNDLE_SHA256] = json!("0".repeat(64)),
        "annotated with bundle 000000000000",
        "account_other_bundle",
    );
    check(
        &|w| w.account["metadata"]["annotations"] = json!({}),
        "pcm-platform has no annotation clicklink.io/bundle-sha256",
        "account_unstamped",
    );
    check(&|w| w.live.clear(), "is missing", "permission_missing");
    check(&|w| namespace(w, &|ns| ns["metadata"]["annotations"] = json!({})), "is not stamped by an approval", "permission_unstamped");
    check(
        &|w| namespace(w, &|ns| ns["metadata"]["annotations"][keys::BUNDLE_SHA256] = json!("x")),
        "is stamped with another bundle",
        "permission_other_bundle",
    );
    check(
        &|w| namespace(w, &|ns| ns["metadata"]["annotations"][keys::CONTENT_SHA256] = json!("x")),
        "approved with another content",
        "permission_differs",
    );
    check(
        &|w| namespace(w, &|ns| ns["metadata"]["labels"] = json!({"clicklink.io/managed-by": "me"})),
        "was changed after the approval: metadata.labels.clicklink.io/managed-by",
        "permission_changed",
    );
    check(
        &|w| w.account["metadata"]["annotations"][keys::WORKLOAD_SHA256] = json!("x"),
        "is not the one that was approved",
        "workload_differs",
    );
    let other_version = |w: &mut World| {
        w.account["metadata"]["annotations"][keys::WORKLOAD_SHA256] = json!("x");
        w.state.site.versions = Versions { clicklink: "0.2.0".into(), engine: "helm v4.3.1".into() };
    };
    check(&other_version, "rendering here is 0.2.0, helm v4.3.1", "workload_differs");
}

#[test]
fn other_failures_have_their_own_text_and_no_hint() {
    let check = |break_it: &dyn Fn(&mut World), reason: &str, code: &str| {
        let mut world = World::approved();
        break_it(&mut world);
        world.take(Event::Command(sync(1)));
        let (status, result) = world.result(1);
        assert_eq!((status, world.code(1)), (CommandStatus::Failed, Some(code)));
        assert!(result.contains(reason) && !result.contains("run: clctl"), "{result}");
        assert_eq!(world.status(), PlatformStatus::Failed);
    };
    check(&|w| w.rendered = Err("chart x: broken".into()), "chart x: broken", "sync_failed");
    let would_not = "nothing was written, since the API server would not take: a: conflict; b: invalid";
    check(&|w| w.dry_run = Ok(vec!["a: conflict".into(), "b: invalid".into()]), would_not, "workload_refused");
    let (missing, denied) =
        ("images are missing in the registry: r/x, r/y; copy them there", "images are denied by the registry: r/z: no (403); allow");
    check(&|w| w.images.missing = vec!["r/x".into(), "r/y".into()], missing, "images_missing");
    check(&|w| w.images.denied = vec!["r/z: no (403)".into()], denied, "images_denied");
    let both = UnpullableImages { missing: vec!["r/x".into(), "r/y".into()], denied: vec!["r/z: no (403)".into()] };
    check(&|w| w.images = both.clone(), &format!("{missing}, digests unchanged; {denied}"), "images_missing");
    check(&|w| w.applies = vec![Err(ApplyError::Other("boom".into()))], "component snapshot-controller: boom", "sync_failed");
}

#[test]
fn a_damaged_command_stages_nothing() {
    let mut world = World::approved();
    let mut command = sync(1);
    command.payload["manifest"] = json!(format!("{MANIFEST} "));
    world.take(Event::Command(command));
    let (status, result) = world.result(1);
    assert_eq!(status, CommandStatus::Failed);
    assert!(result.starts_with("damaged command:") && !result.contains("run:"), "{result}");
    assert_eq!(world.code(1), Some("command_damaged"));
    assert_eq!(world.state.platform.pending, None);
    assert_eq!(world.status(), PlatformStatus::None);
}

#[test]
fn a_command_seen_twice_takes_effect_once() {
    let mut world = World::approved();
    world.take(Event::Command(sync(1)));
    let (records, applies) = (world.journal.records.len(), world.applied());
    world.seen.clear();
    world.take(Event::Command(sync(1)));
    assert_eq!(world.seen, ["ack", "deliver"]);
    assert_eq!((world.journal.records.len(), applies), (records, 3));
    world.take(Event::Acknowledged(id(1)));
    world.seen.clear();
    world.take(Event::Tick);
    assert_eq!(world.seen, ["continue"], "an acknowledged result is not sent again");
}

#[test]
fn without_a_record_there_is_no_effect() {
    let mut world = World::approved();
    world.journal.full = true;
    world.take(Event::Command(sync(1)));
    assert_eq!(world.seen, [] as [&str; 0], "not even the acknowledgement");
    assert!(world.state.commands.is_empty());
    world.journal.full = false;
    world.take(Event::Command(sync(1)));
    assert_eq!(world.result(1).0, CommandStatus::Completed);
    let accepted = world.commit(Event::Command(sync(2))).unwrap();
    assert!(matches!(accepted.last(), Some(Effect::Continue)));
    world.journal.full = true;
    world.take(Event::Continue);
    assert_eq!(world.result(2).0, CommandStatus::Pending, "not begun without its record");
    world.journal.full = false;
    world.take(Event::Tick);
    assert_eq!(world.result(2).0, CommandStatus::Completed, "begun when there is room again");
}

#[test]
fn after_a_restart_the_running_sync_begins_anew() {
    let mut world = World::approved();
    // The crash: the first apply is asked for and never answered.
    let mut events = vec![Event::Command(sync(1))];
    while let Some(event) = events.pop() {
        for effect in world.commit(event).unwrap() {
            if !matches!(effect, Effect::Apply { .. }) {
                events.extend(world.perform(effect));
            }
        }
    }
    assert_eq!(world.state.commands[&id(1)].status, CommandStatus::Running);
    let mut after = World::approved();
    after.state.commands = world.state.commands.clone();
    after.state.platform = world.state.platform.clone();
    after.take(Event::Started);
    assert_eq!(after.result(1).0, CommandStatus::Completed);
    let started =
        world.journal.records.iter().chain(&after.journal.records).filter(|record| matches!(record, Record::Started { .. })).count();
    assert_eq!(started, 1, "one command, begun once");
}

#[test]
fn a_newer_proposal_is_staged_while_a_sync_runs_and_runs_after_it() {
    let mut world = World::approved();
    let mut effects = world.commit(Event::Command(sync(1))).unwrap();
    let mut newer = sync(2);
    let text = MANIFEST.replace("env-7c1d", "env-7c1e");
    newer.payload = json!({"sha256": Sha256::of(text.as_bytes()), "manifest": text});
    effects.extend(world.commit(Event::Command(newer)).unwrap());
    assert_eq!(world.state.platform.pending.as_ref().unwrap().sha256, Sha256::of(text.as_bytes()));
    for effect in effects {
        if let Some(event) = world.perform(effect) {
            world.take(event);
        }
    }
    assert_eq!(world.result(1).0, CommandStatus::Completed);
    let (status, result) = world.result(2);
    assert_eq!(status, CommandStatus::Failed);
    assert!(result.contains("the approval at hand is for bundle"), "{result}");
    assert_eq!(world.status(), PlatformStatus::ApprovalRequired);
}

#[test]
fn expiry_in_the_middle_stops_with_the_hint() {
    let mut world = World::approved();
    world.applies = vec![Err(ApplyError::Expired)];
    world.take(Event::Command(sync(1)));
    assert!(world.result(1).1.contains("expired during the sync; what is applied stays") && world.result(1).1.ends_with(&hint()));
    assert_eq!(world.code(1), Some("approval_expired_during_sync"));
    let objects = &world.state.commands[&id(1)].result.as_ref().unwrap().objects;
    assert_eq!(objects.len(), 1, "what was written before is told");
}

/// Somebody approves the same bundle once more while it is being applied: the sync goes on under the new approval, after all its checks.
#[test]
fn a_sync_whose_approval_is_replaced_begins_anew() {
    let mut world = World::approved();
    world.applies = vec![Ok(()), Err(ApplyError::Replaced)];
    world.take(Event::Command(sync(1)));
    assert_eq!(world.result(1).0, CommandStatus::Completed, "{:?}", world.result(1));
    assert_eq!(world.applied(), 5, "two, and all three anew");
    let objects = &world.state.commands[&id(1)].result.as_ref().unwrap().objects;
    assert_eq!(objects.len(), 3, "each object is told once");
    assert_eq!(world.state.platform.attempts, 2);
}

/// Another bundle's approval, or none at all, ends it at once, and what was written is told.
#[test]
fn a_sync_whose_approval_is_gone_is_refused() {
    type Break<'a> = &'a dyn Fn(&mut World);
    let cases: [(Break<'_>, &str); 2] = [
        (&|world| world.approval = Err(TokenBundleError::Absent), "approval_missing"),
        (&|world| world.approval.as_mut().unwrap().approval.bundle_sha256 = Sha256::of(b"x"), "approval_other_bundle"),
    ];
    for (break_it, code) in cases {
        let mut world = World::approved();
        world.applies = vec![Err(ApplyError::Replaced)];
        let mut events = vec![Event::Command(sync(1))];
        while let Some(event) = events.pop() {
            for effect in world.commit(event).unwrap() {
                if matches!(effect, Effect::Apply { .. }) {
                    break_it(&mut world);
                }
                events.extend(world.perform(effect));
            }
        }
        assert_eq!((world.result(1).0, world.code(1)), (CommandStatus::Failed, Some(code)));
        assert!(world.result(1).1.ends_with(&hint()), "{:?}", world.result(1));
        assert_eq!(world.state.commands[&id(1)].result.as_ref().unwrap().objects.len(), 1);
    }
}

#[test]
fn a_deadline_and_an_unknown_action_are_failures_of_the_command() {
    let mut world = World::approved();
    world.take(Event::Command(Command { deadline: Some(at(9)), ..sync(1) }));
    assert!(world.result(1).1.contains("deadline passed"));
    world.take(Event::Command(Command { action: "dance".into(), ..sync(2) }));
    assert!(world.result(2).1.contains("does not know the action \"dance\""));
    assert_eq!((world.code(1), world.code(2)), (Some("deadline_passed"), Some("action_unknown")));
}

#[test]
fn a_sequence_beyond_any_order_is_not_taken() {
    let mut world = World::approved();
    world.take(Event::Command(Command { sequence: MAX_SEQUENCE + 1, ..sync(1) }));
    assert_eq!((world.seen.len(), world.journal.records.len(), world.state.platform.last_sequence), (0, 0, 0));
    world.take(Event::Command(Command { sequence: MAX_SEQUENCE, ..sync(1) }));
    assert_eq!(world.result(1).0, CommandStatus::Completed);
}
