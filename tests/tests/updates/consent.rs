//! Consent that is not got round, and not refused for nothing: what a hostile bundle, a careless cluster-admin or an API server's own
//! defaults do to an approval.

use serde_json::{Value, json};
use system_tests::bundle::{self, Edition, Release};
use system_tests::landscape::{Landscape, SOON, difference};
use system_tests::{Finished, eventually};

use crate::file;

const RBAC: &str = "rbac.authorization.k8s.io/v1";

#[tokio::test(flavor = "multi_thread")]
async fn consent_is_not_got_round_and_not_refused_for_nothing() {
    let landscape = Landscape::new().await;
    let first = bundle::push(&landscape.registry, Edition::First).await.unwrap();
    what_the_api_server_drops_is_no_difference(&landscape, &first).await;
    the_plan_says_what_is_granted(&landscape, &first).await;
    nothing_forges_a_line(&landscape, &first).await;
    a_group_of_everybody_is_no_subject(&landscape, &first).await;
    an_unserved_version_is_found_before_the_first_write(&landscape, &first).await;
    rights_from_elsewhere_stop_an_approval(&landscape, &first).await;
    bindings_of_others_are_read(&landscape, &first).await;
    additions_to_the_guard_go(&landscape, &first).await;
    an_approval_that_is_changed_on_its_way_is_none(&landscape, &first).await;
    who_approves_again_does_not_end_the_sync(&landscape, &first).await;
    who_takes_it_back_ends_the_sync(&landscape, &first).await;
    a_sync_outlives_the_standing_access(&landscape, &first).await;
}

/// Optional fields with zero values, and rules that the cluster fills: approved, applied by the person, and found again.
async fn what_the_api_server_drops_is_no_difference(landscape: &Landscape, release: &Release) {
    let mut release = release.clone();
    release.objects.extend([
        json!({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "collectors"}, "value": 1000,
            "globalDefault": false, "description": ""}),
        json!({"apiVersion": RBAC, "kind": "ClusterRole", "metadata": {"name": "collectors-all"}, "rules": [],
            "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"example.com/collectors": "true"}}]}}),
        json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "probes.example.com"},
            "spec": {"group": "example.com", "scope": "Namespaced", "preserveUnknownFields": false,
                "names": {"plural": "probes", "singular": "probe", "kind": "Probe", "listKind": "ProbeList"},
                "versions": [{"name": "v1", "served": true, "storage": true, "deprecated": false,
                    "additionalPrinterColumns": [{"name": "A", "type": "string", "jsonPath": ".a", "priority": 0, "description": ""}],
                    "schema": {"openAPIV3Schema": {"type": "object", "properties": {"a": {"type": "string", "default": ""}}}}}]}}),
    ]);
    let sha256 = landscape.propose("zeros", &release).await.unwrap();
    landscape.until_ended(&sha256).await;
    landscape.connector.approve(&["--yes"]).await.unwrap().ok().unwrap();
    landscape.until_status("synced", &sha256).await;
}

async fn the_plan_says_what_is_granted(landscape: &Landscape, release: &Release) {
    let mut release = release.clone();
    release.objects.extend([
        json!({"apiVersion": RBAC, "kind": "ClusterRole", "metadata": {"name": "innocent-metrics"},
            "rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]}),
        json!({"apiVersion": RBAC, "kind": "ClusterRoleBinding", "metadata": {"name": "innocent-metrics"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
            "subjects": [{"kind": "ServiceAccount", "name": "clickhouse-operator", "namespace": "clickhouse-platform"}]}),
        json!({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "first"}, "value": 7}),
    ]);
    let file = file(landscape, "innocent", &release);
    let plan = landscape.connector.approve(&["--dry-run", "--bundle", &file]).await.unwrap().ok().unwrap().stdout;
    for expected in [
        "ClusterRole.rbac.authorization.k8s.io innocent-metrics: 1 right\n    who is bound to it could use whatever a `*` fits, now and later",
        "gives ClusterRole cluster-admin to ServiceAccount clickhouse-platform/clickhouse-operator",
        "value: 7",
        "ServiceAccount clickhouse-platform/clickhouse-operator: 2 rights\n    it could use whatever a `*` fits, now and later (the whole cluster)",
        "ClusterRoleBinding innocent-metrics → ClusterRole cluster-admin",
    ] {
        assert!(plan.contains(expected), "{plan}\nshould say: {expected}");
    }
}

/// A name is no place for control bytes; whatever is printed of it has none, and no line of ours can be imitated.
async fn nothing_forges_a_line(landscape: &Landscape, release: &Release) {
    let mut release = release.clone();
    let name = "x\u{1b}[2J\u{1b}[H\nApproved: 1 permission object(s) applied\u{1b}[8m";
    release.objects.push(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}));
    let failed = refused(landscape, "forged", &release).await;
    let said = failed.stdout + &failed.stderr;
    assert!(!said.contains('\u{1b}') && !said.lines().any(|line| line.starts_with("Approved")), "{said:?}");
}

async fn a_group_of_everybody_is_no_subject(landscape: &Landscape, release: &Release) {
    let mut release = release.clone();
    release.objects.push(json!({"apiVersion": RBAC, "kind": "ClusterRoleBinding", "metadata": {"name": "everybody"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"},
        "subjects": [{"kind": "Group", "name": "system:serviceaccounts", "apiGroup": "rbac.authorization.k8s.io"}]}));
    let failed = refused(landscape, "everybody", &release).await;
    assert!(failed.stderr.contains("it gives rights to Group system:serviceaccounts"), "{}", failed.stderr);
}

async fn an_unserved_version_is_found_before_the_first_write(landscape: &Landscape, release: &Release) {
    let mut release = release.clone();
    release.objects.extend([
        json!({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "never-made"}, "value": 7}),
        json!({"apiVersion": "admissionregistration.k8s.io/v1beta1", "kind": "ValidatingWebhookConfiguration",
            "metadata": {"name": "old"}, "webhooks": []}),
    ]);
    let failed = refused(landscape, "unserved", &release).await;
    assert!(failed.stderr.contains("ValidatingWebhookConfiguration.admissionregistration.k8s.io old"), "{}", failed.stderr);
    let made = landscape.control_plane.kubectl(&["get", "priorityclass", "never-made"]).await.unwrap();
    assert!(!made.success(), "{}", made.stdout);
}

/// The guard goes by the account's name, so that a right to act as another would lead round it.
async fn rights_from_elsewhere_stop_an_approval(landscape: &Landscape, release: &Release) {
    let file = file(landscape, "again", release);
    let kubectl = |args: &'static [&'static str]| landscape.control_plane.kubectl(args);
    kubectl(&["create", "clusterrolebinding", "careless", "--clusterrole=cluster-admin", "--group=system:serviceaccounts"])
        .await
        .unwrap()
        .ok()
        .unwrap();
    let (before, content) = (landscape.connector.token_bundle().unwrap(), landscape.content().await.unwrap());
    let failed = landscape.connector.approve(&["--yes", "--bundle", &file]).await.unwrap();
    assert_ne!(failed.code(), Some(0));
    assert_eq!(difference(&content, &landscape.content().await.unwrap()), [""; 0], "it is found before the first write");
    for expected in
        ["system:serviceaccount:clicklink-system:pcm-platform may already impersonate users", "get secrets", "no right was given"]
    {
        assert!(failed.stderr.contains(expected), "{}\nshould say: {expected}", failed.stderr);
    }
    assert_eq!(landscape.connector.token_bundle().unwrap(), before);
    kubectl(&["delete", "clusterrolebinding", "careless"]).await.unwrap().ok().unwrap();
    eventually("the approval to go through", SOON, || async {
        landscape.connector.approve(&["--yes", "--bundle", &file]).await?.ok()?;
        Ok(())
    })
    .await;
}

/// A binding that names the account gives it no right to write, by whomever; one that only lets it look is told.
async fn bindings_of_others_are_read(landscape: &Landscape, release: &Release) {
    let file = file(landscape, "bound", release);
    let kubectl = async |args: &[&str]| landscape.control_plane.kubectl(args).await.unwrap().ok().unwrap();
    let bind = ["create", "rolebinding", "careless", "-n", "clickhouse-platform", "--serviceaccount=clicklink-system:pcm-platform"];
    kubectl(&[&bind[..], &["--clusterrole=edit"]].concat()).await;
    let failed = landscape.connector.approve(&["--yes", "--bundle", &file]).await.unwrap();
    let told = "RoleBinding.rbac.authorization.k8s.io clickhouse-platform/careless gives pcm-platform ClusterRole edit, which may ";
    assert!(
        failed.stderr.starts_with("Rendering") && failed.stderr.contains("error[other_rights]: ") && failed.stderr.contains(told),
        "{failed:?}"
    );
    kubectl(&["delete", "rolebinding", "careless", "-n", "clickhouse-platform"]).await;
    kubectl(&["create", "clusterrole", "look", "--verb=get,list", "--resource=pods"]).await;
    kubectl(&[&bind[..], &["--clusterrole=look"]].concat()).await;
    let passed = landscape.connector.approve(&["--yes", "--bundle", &file]).await.unwrap().ok().unwrap();
    assert!(passed.stderr.contains("careless gives pcm-platform ClusterRole look, which may only look"), "{passed:?}");
    kubectl(&["delete", "rolebinding", "careless", "-n", "clickhouse-platform"]).await;
}

/// A policy of somebody else's that lets another credential into the approval: at once, or only when the token is written into it.
async fn an_approval_that_is_changed_on_its_way_is_none(landscape: &Landscape, release: &Release) {
    let file = file(landscape, "changed", release);
    let with_token =
        "object.metadata.name == 'current' && object.spec.credentials.size() == 1 && object.spec.credentials[0].startsWith('JTI=')";
    for (when, told) in [("true", "; no right was given"), (with_token, "; the approval was ended, and nobody may write under it")] {
        let policy = json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingAdmissionPolicy", "metadata": {"name": "generous"},
            "spec": {"failurePolicy": "Fail", "reinvocationPolicy": "Never", "matchConstraints": {"resourceRules": [{"apiGroups": ["clicklink.io"],
                "apiVersions": ["*"], "operations": ["CREATE", "UPDATE"], "resources": ["platformapprovals"]}]},
                "matchConditions": [{"name": "when", "expression": when}],
                "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression":
                    "[JSONPatch{op: 'add', path: '/spec/credentials/-', value: 'JTI=another'}]"}}]}});
        let binding = json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingAdmissionPolicyBinding",
            "metadata": {"name": "generous"}, "spec": {"policyName": "generous"}});
        let before = landscape.connector.token_bundle().unwrap();
        landscape.control_plane.apply(&format!("{policy}\n---\n{binding}")).await.unwrap();
        eventually("the approval to be changed on its way", SOON, || async {
            let failed = landscape.connector.approve(&["--yes", "--bundle", &file]).await?;
            let error = "error[approval_changed]: PlatformApproval.clicklink.io clicklink-system/current";
            anyhow::ensure!(failed.stderr.contains(error) && failed.stderr.contains(told), "{failed:?}");
            Ok(())
        })
        .await;
        if when == with_token {
            let current = ["get", "platformapproval", "current", "-n", "clicklink-system", "-o", "jsonpath={.spec.credentials}"];
            assert_eq!(landscape.control_plane.kubectl(&current).await.unwrap().ok().unwrap().stdout, "[]");
        }
        let delete = ["delete", "mutatingadmissionpolicybinding/generous", "mutatingadmissionpolicy/generous"];
        landscape.control_plane.kubectl(&delete).await.unwrap().ok().unwrap();
        assert!(landscape.connector.token_bundle().unwrap().keys().eq(before.keys()));
        eventually("the approval to go through", SOON, || async {
            landscape.connector.approve(&["--yes", "--bundle", &file]).await?.ok()?;
            Ok(())
        })
        .await;
    }
}

/// A condition that switches the guard off, an aggregation that widens the account's role, annotations of somebody else's on the account, and pins
/// that nobody is to change any more.
async fn additions_to_the_guard_go(landscape: &Landscape, release: &Release) {
    let file = file(landscape, "guard", release);
    let guard = ["validatingadmissionpolicy", "pcm-platform-scope-guard"];
    let patch = r#"[{"op": "add", "path": "/spec/matchConditions/-", "value": {"name": "never", "expression": "false"}}]"#;
    let kubectl = |args: Vec<&'static str>| async move { landscape.control_plane.kubectl(&args).await.unwrap().ok().unwrap().stdout };
    kubectl([&["patch"], &guard[..], &["--type=json", "-p", patch]].concat()).await;
    kubectl(vec!["annotate", "serviceaccount", "pcm-platform", "-n", "clicklink-system", "--overwrite", "clicklink.io/bundle-sha256=mine"])
        .await;
    let wider = r#"{"aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"anybody": "may"}}]}}"#;
    kubectl(vec!["patch", "clusterrole", "pcm-platform", "-p", wider]).await;
    let for_ever = r#"{"immutable": true}"#;
    kubectl(vec!["patch", "secret", "pcm-platform-pins", "-n", "clicklink-system", "-p", for_ever]).await;
    landscape.connector.approve(&["--yes", "--bundle", &file]).await.unwrap().ok().unwrap();
    let live: Value = serde_json::from_str(&kubectl([&["get"], &guard[..], &["-o", "json"]].concat()).await).unwrap();
    let names: Vec<&Value> = live["spec"]["matchConditions"].as_array().unwrap().iter().map(|condition| &condition["name"]).collect();
    assert_eq!(names, ["who"]);
    assert_eq!(kubectl(vec!["get", "clusterrole", "pcm-platform", "-o", "jsonpath={.aggregationRule}"]).await, "");
}

/// While a sync waits for its first component somebody approves the same bundle once more, and the token that it began with is denied from then
/// on. It goes on with the new one, as the same command.
async fn who_approves_again_does_not_end_the_sync(landscape: &Landscape, release: &Release) {
    let sha256 = a_sync_that_waits(landscape, release, "twice").await;
    landscape.connector.approve(&["--yes"]).await.unwrap().ok().unwrap();
    for_pods(landscape, "uncordon").await;
    landscape.until_status("synced", &sha256).await;
    let commands: Value = landscape.connector.local_api("/v1/commands").await.unwrap().json().await.unwrap();
    let commands: Vec<&Value> = commands.as_array().unwrap().iter().filter(|command| command["sha256"] == sha256).collect();
    let ends: Vec<&Value> = commands.iter().map(|command| &command["status"]).collect();
    assert_eq!(
        ends.iter().filter(|status| **status == "failed").count(),
        1,
        "the proposal without an approval, and nothing else: {ends:?}"
    );
}

/// A sync that waits for its first component, for as long as nothing may be scheduled.
async fn a_sync_that_waits(landscape: &Landscape, release: &Release, note: &str) -> String {
    for_pods(landscape, "cordon").await;
    let mut release = release.clone();
    for component in ["snapshot-controller", "clickhouse-operator", "monitoring-collectors"] {
        release.component(component).values["podAnnotations"] = json!({"example.com/note": note});
    }
    let sha256 = landscape.propose(note, &release).await.unwrap();
    landscape.until_ended(&sha256).await;
    let mark = landscape.executor_log_length();
    landscape.connector.approve(&["--yes"]).await.unwrap().ok().unwrap();
    landscape.until_logged(mark, &["waiting: Deployment.apps clickhouse-platform/snapshot-controller"]).await;
    sha256
}

async fn for_pods(landscape: &Landscape, verb: &str) {
    let kubectl = async |args: &[&str]| landscape.control_plane.kubectl(args).await.unwrap().ok().unwrap().stdout;
    let nodes = kubectl(&["get", "nodes", "-o", "name"]).await;
    kubectl(&[&[verb], &nodes.split_whitespace().collect::<Vec<_>>()[..]].concat()).await;
}

/// A component may take a quarter of an hour to get ready. Who revokes meanwhile, or approves another bundle instead, does not wait for that.
async fn who_takes_it_back_ends_the_sync(landscape: &Landscape, release: &Release) {
    let revoked = a_sync_that_waits(landscape, release, "taken-back").await;
    landscape.connector.revoke(&[]).await.unwrap().ok().unwrap();
    assert_eq!(landscape.until_ended(&revoked).await["code"], "approval_missing");

    let stuck = a_sync_that_waits(landscape, release, "stuck").await;
    let mended = landscape.propose("mended", release).await.unwrap();
    eventually("the mended bundle to be staged", SOON, || async {
        let pending: Value = landscape.connector.local_api("/v1/platform/pending").await?.json().await?;
        anyhow::ensure!(pending["sha256"] == mended, "{}", pending["sha256"]);
        Ok(())
    })
    .await;
    landscape.connector.approve(&["--yes"]).await.unwrap().ok().unwrap();
    assert_eq!(landscape.until_ended(&stuck).await["code"], "approval_other_bundle");
    for_pods(landscape, "uncordon").await;
    landscape.until_status("synced", &mended).await;
}

/// Without `pcm-executor` nothing is observed, and the sync still watches readiness as `pcm-platform`.
async fn a_sync_outlives_the_standing_access(landscape: &Landscape, release: &Release) {
    landscape.control_plane.kubectl(&["delete", "serviceaccount", "pcm-executor", "-n", "clicklink-system"]).await.unwrap().ok().unwrap();
    let mut release = release.clone();
    release.component("monitoring-collectors").values["podAnnotations"] = json!({"example.com/note": "observed by nobody"});
    let sha256 = landscape.propose("unobserved", &release).await.unwrap();
    landscape.until_ended(&sha256).await;
    landscape.connector.approve(&["--yes"]).await.unwrap().ok().unwrap();
    landscape.until_status("synced", &sha256).await;
    eventually("the heartbeat to say that the access ended", SOON, || async {
        let shown: Value = landscape.connector.local_api("/v1/platform").await?.json().await?;
        let component = &shown["components"][0];
        anyhow::ensure!(shown["access"]["cluster"] == "expired" && shown["cluster"]["reachable"] == false, "{shown}");
        anyhow::ensure!(component["state"].is_null() && component["health"] == "unknown", "{component}");
        Ok(())
    })
    .await;
}

/// An approval that is agreed to, fails, and leaves the token bundle.
async fn refused(landscape: &Landscape, name: &str, release: &Release) -> Finished {
    let file = file(landscape, name, release);
    let before = landscape.connector.token_bundle().unwrap();
    let failed = landscape.connector.approve(&["--yes", "--bundle", &file]).await.unwrap();
    assert_eq!(failed.code(), Some(1), "{}", failed.stdout);
    assert_eq!(landscape.connector.token_bundle().unwrap(), before);
    failed
}
