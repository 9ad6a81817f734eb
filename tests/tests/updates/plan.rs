//! The plan that a person reads before they agree, from a real cluster: a first install, an upgrade with rights that are new, what no
//! apply can change, what a former bundle left, and what somebody is told who may only look.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use system_tests::bundle::{self, Edition, NAMESPACE, Release};
use system_tests::landscape::{Landscape, SOON};
use system_tests::{Finished, eventually};

use crate::{file, with_changed_chart};

const RBAC: &str = "rbac.authorization.k8s.io/v1";
const OPERATOR: &str = "ServiceAccount clickhouse-platform/clickhouse-operator";

#[tokio::test(flavor = "multi_thread")]
async fn a_person_reads_what_they_agree_to() {
    let landscape = Landscape::new().await;
    let first = bundle::push(&landscape.registry, Edition::First).await.unwrap();
    let second = bundle::push(&landscape.registry, Edition::Second).await.unwrap();
    let reader = reader(&landscape).await;
    let sha256 = landscape.propose("platform-1", &first).await.unwrap();
    landscape.until_ended(&sha256).await;

    a_first_install_is_all_new(&landscape, &first, &reader).await;
    landscape.connector.approve(&["--yes"]).await.unwrap().ok().unwrap();
    landscape.until_status("synced", &sha256).await;
    what_is_live_changes_nothing(&landscape, &first).await;
    an_upgrade_names_new_privileges(&landscape, &second).await;
    others_whose_rights_grow_are_named(&landscape, &first).await;
    who_may_only_look_gets_estimates(&landscape, &second, &reader).await;
    what_a_bundle_lacks_is_left_over(&landscape, &first).await;
    a_job_that_ran_and_is_gone_changes_nothing(&landscape).await;
    what_no_apply_can_change_is_refused(&landscape, &first).await;
}

/// Nothing is live yet, not even the namespace: everything is created, and every right is new. Who may only look is told the same.
async fn a_first_install_is_all_new(landscape: &Landscape, release: &Release, reader: &Path) {
    let bundle = file(landscape, "first", release);
    let plan = plan(landscape, &bundle, &[]).await;
    assert_eq!(plan["apiVersion"], "clicklink.io/plan/v1");
    let created =
        |count: u64| json!({"create": count, "change": 0, "replace": 0, "unchanged": 0, "unknown": 0, "refused": 0, "left_over": 0});
    assert_eq!((&plan["summary"]["permissions"], &plan["summary"]["workload"]), (&created(21), &created(12)));
    assert_eq!((&plan["estimates"], &plan["leftovers"]), (&json!([]), &json!([])));
    let names = ["clickhouse-operator", "monitoring-collectors", "snapshot-controller"];
    let accounts = names.map(|name| format!("ServiceAccount {NAMESPACE}/{name}"));
    assert_eq!(holders(&plan["privileges"]["new"]), accounts);
    let secrets = right(&plan["privileges"]["new"], OPERATOR, "secrets");
    assert_eq!((&secrets["escalation"], &secrets["namespace"]), (&json!(["reads_secrets"]), &Value::Null));
    let pods: Vec<&Value> = plan["pods"].as_array().unwrap().iter().map(|pods| &pods["service_account"]).collect();
    assert!(pods.contains(&&json!("snapshot-controller")) && plan["summary"]["pods_in_node"] == 0, "{pods:?}");

    let text = text(landscape, &bundle, &[]).await;
    for expected in [
        "  Permissions: 21 to create, 0 to change, 0 unchanged, 0 to replace, 0 left over",
        "  Workload: 12 to create, 0 to change, 0 unchanged, 0 to replace, 0 left over",
        &format!("  {OPERATOR}: "),
        "    it could read Secrets (the whole cluster); run pods, as any ServiceAccount there (the whole cluster)",
        "ClusterRoleBinding clickhouse-operator → ClusterRole clickhouse-operator",
        "parameters: {\"encrypted\":\"true\",\"type\":\"gp3\"}",
    ] {
        assert!(text.contains(expected), "{expected} is not in:\n{text}");
    }
    assert!(text.find("Summary").unwrap() < text.find("New privileges").unwrap(), "{text}");
    let short = self::text(landscape, &bundle, &["--show", "none"]).await;
    assert!(short.contains("Summary") && !short.contains("New privileges") && !short.contains("create   "), "{short}");

    let looked = self::plan(landscape, &bundle, &as_(reader)).await;
    assert_eq!(known_actions(&looked), without_secrets(known_actions(&plan)));
    assert_eq!(looked["privileges"], plan["privileges"]);
    cannot_approve(landscape, &bundle, reader).await;
}

/// A bundle whose every object is live as approved.
async fn what_is_live_changes_nothing(landscape: &Landscape, release: &Release) {
    let bundle = file(landscape, "same", release);
    let plan = plan(landscape, &bundle, &[]).await;
    assert!(known_actions(&plan).values().all(|action| action == "unchanged"), "{plan}");
    for none in ["new", "ending", "lingering", "unbound", "unresolved"] {
        assert_eq!(plan["privileges"][none], json!([]), "{none}");
    }
    assert_eq!(plan["leftovers"], json!([]));
    let looked = landscape.connector.approve(&["--dry-run", "--detailed-exitcode", "--bundle", &bundle]).await.unwrap();
    assert_eq!(looked.code(), Some(0), "{}", looked.stdout);
}

/// Its time to live has removed it, or somebody did: it is named, and `--detailed-exitcode` is of what is there.
async fn a_job_that_ran_and_is_gone_changes_nothing(landscape: &Landscape) {
    let delete = ["delete", "jobs", "--all", "-n", NAMESPACE];
    landscape.control_plane.kubectl(&delete).await.unwrap().ok().unwrap();
    let looked = landscape.connector.approve(&["--dry-run", "--detailed-exitcode"]).await.unwrap();
    assert_eq!(looked.code(), Some(0), "{}", looked.stdout);
    assert!(
        looked.stdout.contains("1 to create") && looked.stdout.contains(", approved before: not run again where it has run"),
        "{looked:?}"
    );
}

/// Rights by identity, fields with both sides, host access that is new, and nothing of a Secret.
async fn an_upgrade_names_new_privileges(landscape: &Landscape, release: &Release) {
    let release = with_changed_chart(landscape, release, "snapshot-controller", "deployment.yaml", |text| {
        text.replace("      serviceAccountName:", "      hostNetwork: true\n      serviceAccountName:")
    })
    .await;
    let bundle = file(landscape, "upgrade", &release);
    let plan = plan(landscape, &bundle, &[]).await;
    let new = &plan["privileges"]["new"];
    let jobs = right(new, OPERATOR, "jobs");
    assert_eq!((&jobs["escalation"], &jobs["verbs"]), (&json!(["runs_pods"]), &json!(["create", "delete", "get", "list", "watch"])));
    assert_eq!((&jobs["api_group"], &jobs["resources"]), (&json!("batch"), &json!(["jobs"])));
    let numbers = json!({"new": 3, "escalation": 1, "identities": 3, "ending": 0, "lingering": 0, "unbound": 0});
    assert_eq!(plan["summary"]["privileges"], numbers, "{new}");
    let pods = plan["pods"].as_array().unwrap().iter().find(|pods| pods["service_account"] == "snapshot-controller").unwrap();
    assert_eq!(pods["node"], json!([{"what": "shares its node's network (hostNetwork)", "new": true}]));

    let text = text(landscape, &bundle, &[]).await;
    for expected in [
        "    it could run pods, as any ServiceAccount there (the whole cluster)",
        "webhooks[name=",
        "(none) → \"DELETE\"",
        "scrape:",
        "\"[secret]\" → \"[secret]\"",
        "runs as ServiceAccount clickhouse-platform/snapshot-controller, and new: shares its node's network (hostNetwork)",
    ] {
        assert!(text.contains(expected), "{expected} is not in:\n{text}");
    }
    let looked = landscape.connector.approve(&["--dry-run", "--detailed-exitcode", "--bundle", &bundle]).await.unwrap();
    assert_eq!(looked.code(), Some(2), "{}", looked.stderr);
    let secret = landscape.control_plane.kubectl(&["get", "secret", "monitoring-collectors-endpoints", "-n", NAMESPACE, "-o", "json"]);
    let secret: Value = serde_json::from_str(&secret.await.unwrap().ok().unwrap().stdout).unwrap();
    let value = secret["data"]["endpoints.json"].as_str().unwrap();
    for said in [text, plan.to_string(), looked.stdout + &looked.stderr] {
        assert!(!said.contains(value) && !said.contains("metrics-2.example.com"), "{said}");
    }
}

/// A role of the bundle that is taken into one of the cluster's widens it for whoever holds that.
async fn others_whose_rights_grow_are_named(landscape: &Landscape, release: &Release) {
    let view = ["create", "rolebinding", "viewers", "-n", "default", "--clusterrole=view", "--user=jo"];
    landscape.control_plane.kubectl(&view).await.unwrap().ok().unwrap();
    let mut release = release.clone();
    release.objects.push(json!({"apiVersion": RBAC, "kind": "ClusterRole", "metadata": {"name": "clusters-view",
        "labels": {"rbac.authorization.k8s.io/aggregate-to-view": "true"}},
        "rules": [{"apiGroups": ["clickhouse.com"], "resources": ["clickhouseclusters"], "verbs": ["get"]}]}));
    let plan = plan(landscape, &file(landscape, "aggregated", &release), &[]).await;
    assert_eq!(holders(&plan["privileges"]["new"]), ["User jo"]);
    let clusters = right(&plan["privileges"]["new"], "User jo", "clickhouseclusters");
    assert_eq!((&clusters["namespace"], &clusters["escalation"]), (&json!("default"), &json!([])));
    assert_eq!(clusters["given_by"], json!(["RoleBinding default/viewers → ClusterRole view"]));
}

/// What is estimated from what is live is what a dry run says, and is said to be an estimate.
async fn who_may_only_look_gets_estimates(landscape: &Landscape, release: &Release, reader: &Path) {
    let bundle = file(landscape, "looked-at", release);
    let (asked, looked) = (plan(landscape, &bundle, &[]).await, plan(landscape, &bundle, &as_(reader)).await);
    assert_eq!(known_actions(&looked), without_secrets(known_actions(&asked)));
    assert_eq!(looked["privileges"], asked["privileges"]);
    let secret = object(&looked["workload"], "Secret clickhouse-platform/monitoring-collectors-endpoints");
    assert_eq!((&secret["action"], &secret["fields"]), (&json!("unknown"), &json!([])));
    let role = object(&looked["permissions"], "ClusterRole.rbac.authorization.k8s.io clickhouse-operator");
    assert_eq!((&role["action"], &role["estimate"]), (&json!("change"), &json!(true)));

    let text = text(landscape, &bundle, &as_(reader)).await;
    for expected in [
        "Estimates: where you may not ask or read, the plan is worked out from what you may:",
        "  you may not get secrets in namespace clickhouse-platform: 1 object is not known",
        "  you may not patch deployments.apps in namespace clickhouse-platform: 4 objects are estimated from what is live",
        "  you may not list secrets in namespace clickhouse-platform: what is left over of them is not known",
        "(clickhouse-operator), estimated",
        "not known  Secret clickhouse-platform/monitoring-collectors-endpoints",
    ] {
        assert!(text.contains(expected), "{expected} is not in:\n{text}");
    }
    cannot_approve(landscape, &bundle, reader).await;
}

/// A component that is gone: its objects by name, those that run as warnings, and the rights that go on.
async fn what_a_bundle_lacks_is_left_over(landscape: &Landscape, release: &Release) {
    let mut release = release.clone();
    release.components.retain(|component| component.name != "monitoring-collectors");
    let bundle = file(landscape, "without-collectors", &release);
    let plan = plan(landscape, &bundle, &[]).await;
    let leftovers = plan["leftovers"].as_array().unwrap();
    assert!(leftovers.iter().all(|leftover| leftover["component"] == "monitoring-collectors"), "{leftovers:?}");
    let find = |name: &str| leftovers.iter().find(|leftover| leftover["object"] == name).unwrap_or_else(|| panic!("{name}: {leftovers:?}"));
    let running = find("Deployment.apps clickhouse-platform/monitoring-collectors");
    assert_eq!((&running["running"], &running["half"]), (&json!(true), &json!("workload")));
    assert_eq!(find("Secret clickhouse-platform/monitoring-collectors-endpoints")["running"], false);
    assert_eq!(find("ClusterRoleBinding.rbac.authorization.k8s.io monitoring-collectors")["half"], "permissions");
    assert_eq!(holders(&plan["privileges"]["lingering"]), [format!("ServiceAccount {NAMESPACE}/monitoring-collectors")]);
    assert_eq!(plan["privileges"]["new"], json!([]));

    let text = text(landscape, &bundle, &[]).await;
    for expected in [
        "  Deployment.apps clickhouse-platform/monitoring-collectors is left over from a former bundle, and goes on running",
        "Left over from former bundles, and not touched:",
        "Privileges that are needed no more, and that objects left over go on giving:",
    ] {
        assert!(text.contains(expected), "{expected} is not in:\n{text}");
    }
}

/// Told in the plan with its reason, refused by a real approve before the first write, and by hand as the plan says.
async fn what_no_apply_can_change_is_refused(landscape: &Landscape, release: &Release) {
    let mut release = with_changed_chart(landscape, release, "snapshot-controller", "_names.tpl", |text| {
        text.replace("{{- define \"snapshot-controller.selector\" -}}", "{{- define \"snapshot-controller.selector\" -}}\ntrack: stable")
    })
    .await;
    release.objects[0]["parameters"]["type"] = json!("io2");
    let bundle = file(landscape, "replaced", &release);
    let plan = plan(landscape, &bundle, &[]).await;
    let (class, deployment) = ("StorageClass.storage.k8s.io gp3-encrypted", "Deployment.apps clickhouse-platform/snapshot-controller");
    let mut commands = Vec::new();
    for (half, name, reason) in
        [("permissions", class, "parameters cannot be changed"), ("workload", deployment, "spec.selector cannot be changed")]
    {
        let found = object(&plan[half], name);
        assert_eq!((&found["action"], &found["replacement"]["reason"]), (&json!("replace"), &json!(reason)), "{found}");
        commands.push(found["replacement"]["by_hand"].as_str().unwrap().to_owned());
    }
    let text = text(landscape, &bundle, &[]).await;
    assert!(text.contains("parameters.type: \"gp3\" → \"io2\""), "{text}");

    let before = landscape.content().await.unwrap();
    let refused = landscape.connector.approve(&["--yes", "--bundle", &bundle]).await.unwrap();
    assert_eq!(refused.code(), Some(1), "{}", refused.stderr);
    for expected in [
        "error[objects_refused]: objects must be replaced, and nothing was changed:",
        &format!("  - {class}: parameters cannot be changed; by hand: {}", commands[0]),
        &format!("  - {deployment}: spec.selector cannot be changed; by hand: {}", commands[1]),
    ] {
        assert!(refused.stderr.contains(expected), "{expected} is not in:\n{}", refused.stderr);
    }
    assert_eq!(landscape.content().await.unwrap(), before);

    for command in commands {
        let args: Vec<&str> = command.strip_prefix("kubectl ").unwrap().split(' ').collect();
        landscape.control_plane.kubectl(&args).await.unwrap().ok().unwrap();
    }
    let plan = self::plan(landscape, &bundle, &[]).await;
    assert_eq!(
        (&object(&plan["permissions"], class)["action"], &object(&plan["workload"], deployment)["action"]),
        (&json!("create"), &json!("create"))
    );
    eventually("the approval to go through", SOON, || async {
        landscape.connector.approve(&["--yes", "--bundle", &bundle]).await?.ok()?;
        Ok(())
    })
    .await;
}

/// Somebody who may read every kind of a bundle but Secrets, and write nothing.
async fn reader(landscape: &Landscape) -> PathBuf {
    let cluster = &landscape.control_plane;
    let of_bundles = agent_api::kind::KINDS.iter().map(|kind| kind.resource).filter(|resource| *resource != "secrets");
    // Whether the Service behind a webhook answers.
    let kinds: Vec<&str> = of_bundles.chain(["endpointslices"]).collect();
    let role = json!({"apiVersion": RBAC, "kind": "ClusterRole", "metadata": {"name": "auditors"},
        "rules": [{"apiGroups": ["*"], "resources": kinds, "verbs": ["get", "list", "watch"]}]});
    let binding = json!({"apiVersion": RBAC, "kind": "ClusterRoleBinding", "metadata": {"name": "auditors"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "auditors"},
        "subjects": [{"kind": "Group", "name": "auditors", "apiGroup": "rbac.authorization.k8s.io"}]});
    cluster.apply(&format!("{role}\n---\n{binding}")).await.unwrap();
    cluster.kubeconfig_for("auditor", Some("auditors")).unwrap()
}

/// A real approve asks for every right, and changes nothing without them.
async fn cannot_approve(landscape: &Landscape, bundle: &str, person: &Path) {
    let before = landscape.content().await.unwrap();
    let kubeconfig = person.display().to_string();
    let refused = landscape.connector.approve(&["--yes", "--bundle", bundle, "--kubeconfig", &kubeconfig]).await.unwrap();
    assert_eq!(refused.code(), Some(1), "{}", refused.stderr);
    assert!(refused.stderr.contains("error[objects_refused]: ") && refused.stderr.contains("forbidden"), "{}", refused.stderr);
    assert_eq!(landscape.content().await.unwrap(), before);
}

fn as_(person: &Path) -> [&str; 2] {
    ["--kubeconfig", person.to_str().unwrap()]
}

/// The plan as its document.
async fn plan(landscape: &Landscape, bundle: &str, more: &[&str]) -> Value {
    serde_json::from_str(&dry_run(landscape, bundle, &[&["-o", "json"], more].concat()).await.stdout).unwrap()
}

/// The plan as a person reads it.
async fn text(landscape: &Landscape, bundle: &str, more: &[&str]) -> String {
    dry_run(landscape, bundle, more).await.stdout
}

async fn dry_run(landscape: &Landscape, bundle: &str, more: &[&str]) -> Finished {
    landscape.connector.approve(&[&["--dry-run", "--bundle", bundle], more].concat()).await.unwrap().ok().unwrap()
}

/// Names of those who hold something, in order.
fn holders(holdings: &Value) -> Vec<String> {
    let name = |holding: &Value| {
        let text = |field: &str| holding["identity"][field].as_str().map(str::to_owned);
        let place = text("namespace").map(|namespace| format!("{namespace}/")).unwrap_or_default();
        format!("{} {place}{}", text("kind").unwrap(), text("name").unwrap())
    };
    holdings.as_array().unwrap().iter().map(name).collect()
}

/// The one right of an identity that is about a resource.
fn right<'a>(holdings: &'a Value, identity: &str, resource: &str) -> &'a Value {
    let at = holders(holdings).iter().position(|name| name == identity).unwrap_or_else(|| panic!("{identity} is not in {holdings}"));
    let rights = holdings[at]["rights"].as_array().unwrap();
    let about = |right: &&Value| right["resources"].as_array().unwrap().iter().any(|about| about == resource);
    rights.iter().find(about).unwrap_or_else(|| panic!("{resource} is not in {rights:?}"))
}

fn object<'a>(half: &'a Value, name: &str) -> &'a Value {
    half.as_array().unwrap().iter().find(|object| object["object"] == name).unwrap_or_else(|| panic!("{name} is not in {half}"))
}

/// What happens to each object, where that is known.
fn known_actions(plan: &Value) -> BTreeMap<String, String> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let objects = ["permissions", "workload"].iter().flat_map(|half| plan[half].as_array().unwrap());
    let all = objects.map(|object| (text(&object["object"]), text(&object["action"])));
    all.filter(|(_, action)| action != "unknown").collect()
}

fn without_secrets(mut actions: BTreeMap<String, String>) -> BTreeMap<String, String> {
    actions.retain(|object, _| !object.starts_with("Secret "));
    actions
}
