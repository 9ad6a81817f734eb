//! The executor's checks, each failing alone on a real cluster: nothing is changed, and the result says which and what to do.
//!
//! One landscape: the first edition is applied, so that a write of anything else would be seen; then bundles that no person could approve;
//! then the second edition, approved, held up by one fault after the other, and applied when the last is gone.

use std::path::PathBuf;

use agent_api::keys;
use agent_api::names::{FIELD_MANAGER_APPROVE, HOME_NAMESPACE_VM, PCM_PLATFORM};
use serde_json::{Value, json};
use system_tests::bundle::{self, Edition, NAMESPACE, Release};
use system_tests::landscape::{ENVIRONMENT, Landscape, SOON, difference};
use system_tests::{PushedChart, eventually};

const OTHER_SHA: &str = "0000000000000000000000000000000000000000000000000000000000000000";

#[tokio::test(flavor = "multi_thread")]
async fn each_check_that_fails_alone_changes_nothing_and_says_why() {
    let mut landscape = Landscape::new().await;
    let first = bundle::push(&landscape.registry, Edition::First).await.unwrap();
    let second = bundle::push(&landscape.registry, Edition::Second).await.unwrap();

    let sha256 = refused_when_proposed(&landscape, "no approval", &first, "there is no approval yet").await;
    landscape.connector.approve(&["--yes"]).await.unwrap().ok().unwrap();
    landscape.until_status("synced", &sha256).await;

    refused_when_proposed(&landscape, "an approval of another bundle", &with_note(&second, "other"), "the approval at hand is for bundle")
        .await;
    damaged_token_bundles(&landscape, &second).await;
    bundles_that_break_a_rule(&landscape, &first).await;
    an_approved_bundle_held_up(&mut landscape, &second).await;
}

/// Proposes a release; the command that stages it is refused with this reason and the hint, and changes nothing.
async fn refused_when_proposed(landscape: &Landscape, name: &str, release: &Release, reason: &str) -> String {
    let (before, known) = (landscape.content().await.unwrap(), landscape.known_commands().await.unwrap());
    let sha256 = landscape.propose(&slug(name), release).await.unwrap();
    let command = landscape.until_new_ended(&known).await;
    assert_eq!(command["sha256"], sha256, "{name}");
    check_result(name, &command, &sha256, &Expected::Refused(reason));
    assert_eq!(difference(&before, &landscape.content().await.unwrap()), [""; 0], "{name}: something was changed");
    sha256
}

/// How a sync must end.
enum Expected<'a> {
    /// With this reason and the command to run.
    Refused(&'a str),
    /// With this text and nothing to run: approving again would not help.
    Failed(&'a str),
}

fn check_result(name: &str, command: &Value, sha256: &str, expected: &Expected<'_>) {
    let result = command["result"].as_str().unwrap();
    assert_eq!(command["status"], "failed", "{name}: {command}");
    match expected {
        Expected::Refused(reason) => {
            assert!(result.starts_with("platform sync refused: ") && result.contains(reason), "{name}: {result}");
            let hint = format!("; run: clctl platform approve (pending bundle sha {sha256})");
            assert!(result.ends_with(&hint), "{name}: {result}");
        }
        Expected::Failed(text) => {
            assert!(result.starts_with("platform sync failed: ") && result.contains(text), "{name}: {result}");
            assert!(!result.contains("run: clctl"), "{name}: {result}");
        }
    }
}

async fn damaged_token_bundles(landscape: &Landscape, release: &Release) {
    let folder = landscape.connector.access_dir().join("_platform");
    let cases: [(&str, &str, Option<&str>, &str); 4] = [
        ("a token bundle without its token", "token", None, "there is no approval yet"),
        ("a token that is none", "token", Some("not-a-token"), "the token bundle is damaged: token"),
        ("an approval cut short", "approval.json", Some("{\"bundle_sha256\":\"00"), "the token bundle is damaged: approval.json"),
        ("a token bundle without an address", "server", None, "the token bundle is damaged: server"),
    ];
    for (name, file, content, reason) in cases {
        let path = folder.join(file);
        let kept = std::fs::read(&path).unwrap();
        match content {
            Some(content) => put(&path, content.as_bytes()),
            None => std::fs::remove_file(&path).unwrap(),
        }
        refused_when_proposed(landscape, name, &with_note(release, name), reason).await;
        put(&path, &kept);
    }
}

/// `approve` would refuse these; the executor gets a token bundle as only somebody with a person's rights could have written it.
async fn bundles_that_break_a_rule(landscape: &Landscape, first: &Release) {
    let template = |kind: &str, namespace: &str, spec: &str| {
        format!("apiVersion: {kind}\nmetadata:\n  name: extra\n  namespace: {namespace}\n{spec}\n")
    };
    let image = &first.components[0].images[0];
    let pods = format!(
        "spec:\n  selector: {{matchLabels: {{app: extra}}}}\n  template:\n    metadata: {{labels: {{app: extra}}}}\n    spec:\n      \
         containers: [{{name: main, image: '{image}'}}]"
    );
    let cases = [
        ("an unknown kind", template("apps/v1\nkind: DaemonSet", NAMESPACE, &pods), "DaemonSet.apps clickhouse-platform/extra"),
        ("a workload outside", template("v1\nkind: ConfigMap", "default", "data: {a: b}"), "ConfigMap default/extra"),
        ("an unlisted image", template("apps/v1\nkind: Deployment", NAMESPACE, &pods.replace(image, OTHER_IMAGE)), OTHER_IMAGE),
        ("a finalizer", template("v1\nkind: ConfigMap", NAMESPACE, "  finalizers: [a.b/c]"), "ConfigMap clickhouse-platform/extra"),
    ];
    for (i, (name, extra, text)) in cases.into_iter().enumerate() {
        let mut release = first.clone();
        release.component("snapshot-controller").chart = with_template(landscape, &extra, &format!("4.1.{}", i + 1)).await;
        let sha256 = refused_when_proposed(landscape, name, &release, "the approval at hand is for bundle").await;
        let forged = Forged::write(landscape, &sha256).await;
        let (before, known) = (landscape.content().await.unwrap(), landscape.known_commands().await.unwrap());
        forged.put();
        let command = landscape.until_new_ended(&known).await;
        check_result(name, &command, &sha256, &Expected::Failed("the bundle is refused for 1 reason:"));
        let result = command["result"].as_str().unwrap();
        assert!(result.contains(text) && result.contains("snapshot-controller/templates/extra.yaml"), "{name}: {result}");
        assert_eq!(difference(&before, &landscape.content().await.unwrap()), [""; 0], "{name}: something was changed");
        forged.take_back(landscape).await;
    }
}

const OTHER_IMAGE: &str = "registry.invalid/other@sha256:1111111111111111111111111111111111111111111111111111111111111111";

/// A copy of the first snapshot-controller with one more template.
async fn with_template(landscape: &Landscape, template: &str, version: &str) -> PushedChart {
    let copy = bundle::copy_chart("snapshot-controller", "4.1.0", landscape.connector.folder()).unwrap();
    std::fs::write(copy.join("templates/extra.yaml"), template).unwrap();
    landscape.registry.push_chart(&copy, Some(version)).await.unwrap()
}

/// The live approval, bent to another bundle: annotation and `approval.json`.
struct Forged {
    path: PathBuf,
    kept: Vec<u8>,
    bent: Vec<u8>,
    former: String,
}

impl Forged {
    async fn write(landscape: &Landscape, sha256: &str) -> Self {
        let path = landscape.connector.access_dir().join("_platform/approval.json");
        let kept = std::fs::read(&path).unwrap();
        let mut approval: Value = serde_json::from_slice(&kept).unwrap();
        let former = approval["bundle_sha256"].as_str().unwrap().to_owned();
        approval["bundle_sha256"] = json!(sha256);
        annotate(landscape, &ACCOUNT, keys::BUNDLE_SHA256, Some(sha256)).await;
        Self { path, kept, bent: approval.to_string().into_bytes(), former }
    }

    /// The executor notices, and the manager sends the sync.
    fn put(&self) {
        put(&self.path, &self.bent);
    }

    async fn take_back(self, landscape: &Landscape) {
        put(&self.path, &self.kept);
        annotate(landscape, &ACCOUNT, keys::BUNDLE_SHA256, Some(&self.former)).await;
    }
}

/// What holds the approved bundle up.
enum Fault {
    Nothing,
    /// An object is gone.
    Missing(Object),
    /// An annotation is another, or gone.
    Annotation(Object, &'static str, Option<&'static str>),
    /// An object was edited; its stamps are as they were.
    Edited(Object, fn(&mut Value)),
    /// Somebody else owns the values of an object, and changed them.
    Taken(Object),
    /// An object was deleted and is held by a finalizer.
    Going(Object),
    /// A blob of the registry has other bytes of the same length, or the bytes of another blob, or is gone.
    Flipped(String),
    Exchanged(String, String),
    Lost(String),
    RegistryDown,
}

#[derive(Clone, Copy)]
struct Object(&'static str, &'static str);

const ACCOUNT: Object = Object("serviceaccount", PCM_PLATFORM);

impl Object {
    fn namespace(self) -> &'static str {
        if self.1 == PCM_PLATFORM { HOME_NAMESPACE_VM } else { NAMESPACE }
    }
}

/// What makes the manager send the sync again.
enum Trigger {
    /// The token in the token bundle becomes another one.
    Token(String),
    /// A person re-arms.
    Rearm,
}

type Case = (&'static str, Fault, Trigger, Expected<'static>);

async fn an_approved_bundle_held_up(landscape: &mut Landscape, release: &Release) {
    let sha256 = approved_while_the_executor_is_down(landscape, release).await;
    let tokens = Tokens::take(landscape).await;
    put(&tokens.path, tokens.expired.as_bytes());
    let before = landscape.content().await.unwrap();
    landscape.connector.start_executor().unwrap();
    let command = eventually("the staged bundle's refusal", SOON, || async {
        let commands = landscape.connector.commands().await?;
        let staged: Vec<_> = commands.into_iter().filter(|command| command["sha256"] == sha256).collect();
        anyhow::ensure!(staged.len() == 1 && staged[0]["status"] == "failed", "{staged:?}");
        Ok(staged[0].clone())
    })
    .await;
    check_result("an expired token", &command, &sha256, &Expected::Refused("the approval expired at"));
    assert_eq!(difference(&before, &landscape.content().await.unwrap()), [""; 0], "an expired token: something was changed");
    landscape.until_status("approval_required", &sha256).await;

    for (name, fault, trigger, expected) in cases(landscape, release, &tokens) {
        let undo = break_it(landscape, &fault).await;
        let (before, known) = (landscape.content().await.unwrap(), landscape.known_commands().await.unwrap());
        fire(landscape, &tokens.path, trigger).await;
        let command = landscape.until_new_ended(&known).await;
        check_result(name, &command, &sha256, &expected);
        assert_eq!(difference(&before, &landscape.content().await.unwrap()), [""; 0], "{name}: something was changed");
        mend(landscape, &fault, undo).await;
    }

    let known = landscape.known_commands().await.unwrap();
    landscape.rearm().await.unwrap();
    let command = landscape.until_new_ended(&known).await;
    assert_eq!(command["status"], "completed", "with every fault gone: {command}");
    landscape.until_status("synced", &sha256).await;
}

/// In the order of the checks; those of the registry come before the executor has pulled the charts.
fn cases(landscape: &Landscape, release: &Release, tokens: &Tokens) -> Vec<Case> {
    use Expected::{Failed, Refused};
    use Fault::{Annotation, Edited, Exchanged, Flipped, Going, Lost, Missing, Nothing, RegistryDown, Taken};
    use Trigger::{Rearm, Token};
    let chart = &release.components[0].chart;
    let archive = landscape.registry.archive_digest(chart).unwrap();
    let other_archive = landscape.registry.archive_digest(&release.components[1].chart).unwrap();
    let image = release.components[2].images[0].split_once('@').unwrap().1.to_owned();
    let role = Object("clusterrole", "snapshot-controller");
    let webhook = Object("validatingwebhookconfiguration", "clickhouse-operator");
    let storage_class = Object("storageclass", "gp3-encrypted");
    let (unstamped, another) = (" is not stamped by an approval", " is stamped with another bundle");
    vec![
        ("a token that the API server refuses", Nothing, Token(tokens.foreign.clone()), Refused("does not accept the platform token")),
        (
            "the account's annotation changed",
            Annotation(ACCOUNT, keys::BUNDLE_SHA256, Some(OTHER_SHA)),
            Token(tokens.real.clone()),
            Refused("ServiceAccount pcm-platform is annotated with bundle 000000000000, not with"),
        ),
        (
            "the account's annotation gone",
            Annotation(ACCOUNT, keys::BUNDLE_SHA256, None),
            Rearm,
            Refused("ServiceAccount pcm-platform has no annotation"),
        ),
        ("one byte of a chart changed", Flipped(archive.clone()), Rearm, Failed("the registry sent other bytes: sha256:")),
        ("another chart in a chart's place", Exchanged(archive.clone(), other_archive), Rearm, Failed("snapshot-controller")),
        ("a chart's manifest changed", Flipped(chart.digest.clone()), Rearm, Failed("snapshot-controller")),
        ("a chart gone", Lost(archive), Rearm, Failed("the registry does not have it (404)")),
        ("the registry down", RegistryDown, Rearm, Failed("the registry cannot be reached")),
        ("a ClusterRole missing", Missing(role), Rearm, Refused("ClusterRole.rbac.authorization.k8s.io snapshot-controller is missing")),
        (
            "a CRD missing",
            Missing(Object("customresourcedefinition", "keeperclusters.clickhouse.com")),
            Rearm,
            Refused("keeperclusters.clickhouse.com is missing"),
        ),
        (
            "a ServiceAccount missing",
            Missing(Object("serviceaccount", "clickhouse-operator")),
            Rearm,
            Refused("ServiceAccount clickhouse-platform/clickhouse-operator is missing"),
        ),
        (
            "a binding unstamped",
            Annotation(Object("clusterrolebinding", "monitoring-collectors"), keys::BUNDLE_SHA256, None),
            Rearm,
            Refused(unstamped),
        ),
        ("a class stamped with another bundle", Annotation(storage_class, keys::BUNDLE_SHA256, Some(OTHER_SHA)), Rearm, Refused(another)),
        (
            "a Role stamped with another content",
            Annotation(Object("role", "snapshot-controller-leader-election"), keys::CONTENT_SHA256, Some(OTHER_SHA)),
            Rearm,
            Refused("was approved with another content than is rendered here"),
        ),
        ("a rule added", Edited(role, add_rule), Rearm, Refused("was changed after the approval: rules")),
        ("a verb added", Edited(role, add_verb), Rearm, Refused("was changed after the approval: rules[0].verbs")),
        (
            "a subject added",
            Edited(Object("rolebinding", "clickhouse-operator-leader-election"), add_subject),
            Rearm,
            Refused("was changed after the approval: subjects"),
        ),
        ("a webhook softened", Edited(webhook, soften), Rearm, Refused("was changed after the approval: webhooks[0].failurePolicy")),
        (
            "a class's parameter changed",
            Edited(storage_class, |class| class["parameters"]["encrypted"] = json!("false")),
            Rearm,
            Refused("was changed after the approval: parameters.encrypted"),
        ),
        (
            "another workload digest",
            Annotation(ACCOUNT, keys::WORKLOAD_SHA256, Some(OTHER_SHA)),
            Rearm,
            Refused("is not the one that was approved"),
        ),
        ("an image missing", Lost(image), Rearm, Failed("images are missing in the registry: 127.0.0.1:")),
        (
            "an object of the last component taken over",
            Taken(Object("configmap", "monitoring-collectors-gateway")),
            Rearm,
            Failed(
                "nothing was written, since the API server would not take: ConfigMap clickhouse-platform/monitoring-collectors-gateway: \
                 field conflict",
            ),
        ),
        (
            "an object that is being deleted",
            Going(Object("configmap", "clickhouse-operator-config")),
            Rearm,
            Failed(
                "nothing was written, since the API server would not take: ConfigMap clickhouse-platform/clickhouse-operator-config: it is being deleted since ",
            ),
        ),
    ]
}

fn add_rule(role: &mut Value) {
    role["rules"].as_array_mut().unwrap().push(json!({"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}));
}

fn add_verb(role: &mut Value) {
    role["rules"][0]["verbs"].as_array_mut().unwrap().push(json!("delete"));
}

fn add_subject(binding: &mut Value) {
    binding["subjects"].as_array_mut().unwrap().push(json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "mallory"}));
}

fn soften(configuration: &mut Value) {
    configuration["webhooks"][0]["failurePolicy"] = json!("Ignore");
}

async fn approved_while_the_executor_is_down(landscape: &mut Landscape, release: &Release) -> String {
    landscape.connector.stop_executor().await;
    let sha256 = landscape.propose("second", release).await.unwrap();
    let manifest =
        landscape.manager.quiet_cli(&["release", "manifest", "second", "--environment", ENVIRONMENT]).await.unwrap().ok().unwrap();
    let file = landscape.connector.folder().write("second.json", manifest.stdout.trim_end_matches('\n')).unwrap();
    let approved = landscape.connector.approve(&["--bundle", file.to_str().unwrap(), "--yes"]).await.unwrap().ok().unwrap();
    assert!(approved.stdout.contains(&sha256), "{}", approved.stdout);
    sha256
}

struct Tokens {
    path: PathBuf,
    /// What `approve` got.
    real: String,
    /// Ended a moment ago: the API server takes it for one more minute, so that the executor's own clock must refuse.
    expired: String,
    /// Signed with the right key for an account of another uid.
    foreign: String,
}

impl Tokens {
    async fn take(landscape: &Landscape) -> Self {
        let path = landscape.connector.access_dir().join("_platform/token");
        let account = object(landscape, ACCOUNT).await;
        let uid = account["metadata"]["uid"].as_str().unwrap();
        let sign = |uid: &str, seconds: i64| {
            let lifetime = jiff::SignedDuration::from_secs(seconds);
            landscape.control_plane.sign_token(HOME_NAMESPACE_VM, PCM_PLATFORM, uid, lifetime).unwrap().token
        };
        let (expired, foreign) = (sign(uid, -5), sign("somebody-else", 1800));
        Self { real: std::fs::read_to_string(&path).unwrap(), path, expired, foreign }
    }
}

/// Whole, in one rename: the executor watches the folder.
fn put(path: &std::path::Path, content: &[u8]) {
    let beside = path.with_extension("new");
    std::fs::write(&beside, content).unwrap();
    std::fs::rename(&beside, path).unwrap();
}

enum Undo {
    Nothing,
    Object(Value),
    Annotation(String),
    Blob(Vec<u8>),
}

async fn break_it(landscape: &Landscape, fault: &Fault) -> Undo {
    let registry = &landscape.registry;
    match fault {
        Fault::Nothing => Undo::Nothing,
        Fault::Missing(name) => {
            let kept = object(landscape, *name).await;
            delete(landscape, *name).await;
            Undo::Object(kept)
        }
        Fault::Annotation(name, key, value) => {
            let live = object(landscape, *name).await;
            annotate(landscape, name, key, *value).await;
            Undo::Annotation(live["metadata"]["annotations"][*key].as_str().unwrap().to_owned())
        }
        Fault::Edited(name, edit) => {
            let kept = object(landscape, *name).await;
            let mut edited = kept.clone();
            edit(&mut edited);
            assert_ne!(edited, kept, "the edit does something");
            make_anew(landscape, *name, &edited).await;
            Undo::Object(kept)
        }
        Fault::Taken(name) => {
            let mut data = object(landscape, *name).await["data"].clone();
            data.as_object_mut().unwrap().values_mut().for_each(|value| *value = json!("theirs"));
            apply_as_somebody(landscape, *name, json!({"data": data})).await;
            Undo::Nothing
        }
        Fault::Going(name) => {
            hold(landscape, *name, json!(["example.com/held"])).await;
            let Object(kind, object) = *name;
            kubectl(landscape, &["delete", kind, object, "-n", name.namespace(), "--wait=false"]).await;
            Undo::Nothing
        }
        Fault::Flipped(digest) => {
            let kept = registry.read(digest).unwrap();
            let mut bytes = kept.clone();
            let middle = bytes.len() / 2;
            bytes[middle] ^= 1;
            registry.falsify(digest, &bytes).unwrap();
            Undo::Blob(kept)
        }
        Fault::Exchanged(digest, other) => {
            let kept = registry.read(digest).unwrap();
            registry.falsify(digest, &registry.read(other).unwrap()).unwrap();
            Undo::Blob(kept)
        }
        Fault::Lost(digest) => {
            let kept = registry.read(digest).unwrap();
            registry.lose(digest).unwrap();
            Undo::Blob(kept)
        }
        Fault::RegistryDown => {
            registry.stop().await.unwrap();
            Undo::Nothing
        }
    }
}

async fn mend(landscape: &Landscape, fault: &Fault, undo: Undo) {
    match (fault, undo) {
        (Fault::Taken(name), _) => apply_as_somebody(landscape, *name, json!({})).await,
        (Fault::Going(name), _) => hold(landscape, *name, json!(null)).await,
        (Fault::RegistryDown, _) => landscape.registry.restart().await.unwrap(),
        (Fault::Missing(name) | Fault::Edited(name, _), Undo::Object(kept)) => make_anew(landscape, *name, &kept).await,
        (Fault::Annotation(name, key, _), Undo::Annotation(kept)) => annotate(landscape, name, key, Some(&kept)).await,
        (Fault::Flipped(digest) | Fault::Exchanged(digest, _) | Fault::Lost(digest), Undo::Blob(kept)) => {
            landscape.registry.restore(digest, &kept).unwrap();
        }
        (_, _) => {}
    }
}

async fn hold(landscape: &Landscape, name: Object, finalizers: Value) {
    let patch = json!({"metadata": {"finalizers": finalizers}}).to_string();
    kubectl(landscape, &["patch", name.0, name.1, "-n", name.namespace(), "--type=merge", "-p", &patch]).await;
}

/// What another tool applies with force, and gives up where it applies less.
async fn apply_as_somebody(landscape: &Landscape, name: Object, content: Value) {
    let mut object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name.1, "namespace": name.namespace()}});
    object.as_object_mut().unwrap().extend(content.as_object().unwrap().clone());
    let file = landscape.connector.folder().write("somebody.json", object.to_string()).unwrap();
    let file = file.to_str().unwrap();
    kubectl(landscape, &["apply", "--server-side", "--field-manager=somebody", "--force-conflicts", "-f", file]).await;
}

async fn fire(landscape: &Landscape, path: &std::path::Path, trigger: Trigger) {
    match trigger {
        Trigger::Token(token) => put(path, token.as_bytes()),
        Trigger::Rearm => landscape.rearm().await.unwrap(),
    }
}

async fn kubectl(landscape: &Landscape, args: &[&str]) -> String {
    landscape.control_plane.kubectl(args).await.unwrap().ok().unwrap().stdout
}

async fn object(landscape: &Landscape, Object(kind, name): Object) -> Value {
    let namespace = Object(kind, name).namespace();
    serde_json::from_str(&kubectl(landscape, &["get", kind, name, "-n", namespace, "-o", "json"]).await).unwrap()
}

async fn delete(landscape: &Landscape, Object(kind, name): Object) {
    let namespace = Object(kind, name).namespace();
    kubectl(landscape, &["delete", kind, name, "-n", namespace, "--ignore-not-found", "--wait"]).await;
}

fn without_history(mut object: Value) -> Value {
    let metadata = object["metadata"].as_object_mut().unwrap();
    for field in ["uid", "resourceVersion", "creationTimestamp"] {
        metadata.remove(field);
    }
    object
}

/// Deleted and created: some fields cannot be changed otherwise.
async fn make_anew(landscape: &Landscape, name: Object, object: &Value) {
    let object = without_history(object.clone());
    let file = landscape.control_plane.folder().write("anew.json", object.to_string()).unwrap();
    delete(landscape, name).await;
    kubectl(landscape, &["create", "-f", file.to_str().unwrap()]).await;
}

/// The account's annotations stay those of `approve`, which would refuse the next approval where somebody else had taken them over.
async fn annotate(landscape: &Landscape, Object(kind, name): &Object, key: &str, value: Option<&str>) {
    if *name == PCM_PLATFORM {
        let mut account = without_history(object(landscape, ACCOUNT).await);
        let annotations = account["metadata"]["annotations"].as_object_mut().unwrap();
        match value {
            Some(value) => annotations.insert(key.to_owned(), json!(value)),
            None => annotations.remove(key),
        };
        let file = landscape.control_plane.folder().write("account.json", account.to_string()).unwrap();
        let file = file.to_str().unwrap();
        kubectl(landscape, &["apply", "--server-side", "--field-manager", FIELD_MANAGER_APPROVE, "--force-conflicts", "-f", file]).await;
        return;
    }
    let namespace = Object(kind, name).namespace();
    let change = value.map_or(format!("{key}-"), |value| format!("{key}={value}"));
    kubectl(landscape, &["annotate", kind, name, "-n", namespace, "--overwrite", &change]).await;
}

/// The same release with other words in a value: another bundle.
fn with_note(release: &Release, note: &str) -> Release {
    let mut release = release.clone();
    release.component("monitoring-collectors").values["podAnnotations"] = json!({"example.com/note": note});
    release
}

fn slug(name: &str) -> String {
    name.replace(' ', "-").to_lowercase()
}
