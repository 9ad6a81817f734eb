//! Other programs of the cluster beside a bundle: what they fill stays, what they break is told as theirs, what they delete is waited for.

use serde_json::{Value, json};
use system_tests::bundle::{self, Edition, NAMESPACE, Release};
use system_tests::eventually;
use system_tests::landscape::{Landscape, SOON};

use crate::with_changed_chart;

const CONFIGURATION: [&str; 2] = ["validatingwebhookconfiguration", "clickhouse-operator"];

/// A chart that leaves the `caBundle` of its webhooks empty, and a Secret too.
const PLACE: &str = "\n---\napiVersion: v1\nkind: Secret\nmetadata: {name: for-others}\n";

#[tokio::test(flavor = "multi_thread")]
async fn other_programs_of_the_cluster_are_left_alone_and_told() {
    let landscape = Landscape::new().await;
    let first = bundle::push(&landscape.registry, Edition::First).await.unwrap();
    let open = |text: &str| text.replace("    clientConfig:\n", "    clientConfig:\n      caBundle: \"\"\n") + PLACE;
    let release = with_changed_chart(&landscape, &first, "clickhouse-operator", "webhook.yaml", open).await;
    what_is_left_open_stays_as_others_fill_it(&landscape, &release).await;
    a_dead_webhook_of_others_is_told_as_theirs(&landscape).await;
    a_full_quota_has_room_for_what_is_there(&landscape).await;
    what_is_going_is_nothing_to_apply_to(&landscape).await;
}

/// A `caBundle`, and a Secret without data: made by the approval, filled by somebody else, and in nobody's way from then on.
async fn what_is_left_open_stays_as_others_fill_it(landscape: &Landscape, release: &Release) {
    let sha256 = landscape.propose("open", release).await.unwrap();
    landscape.until_ended(&sha256).await;
    let told = landscape.connector.approve(&["--dry-run"]).await.unwrap().ok().unwrap().stdout;
    let place = format!("Secrets that somebody else fills (created empty where they are missing):\n  Secret {NAMESPACE}/for-others");
    assert!(told.contains(&place), "{told}");
    landscape.connector.approve(&["--yes"]).await.unwrap().ok().unwrap();
    landscape.until_status("synced", &sha256).await;
    let labels = get(landscape, &["secret", "for-others", "-n", NAMESPACE]).await["metadata"]["labels"].clone();
    assert_eq!(labels, json!({"clicklink.io/component": "clickhouse-operator", "clicklink.io/managed-by": "platform"}));
    let roles = get(landscape, &["roles", "-n", NAMESPACE]).await.to_string();
    assert!(
        roles.contains("monitoring-collectors-endpoints") && !roles.contains("for-others"),
        "rights on somebody else's secret: {roles}"
    );

    let patch = json!([0, 1].map(|n| json!({"op": "add", "path": format!("/webhooks/{n}/clientConfig/caBundle"), "value": "QQ=="})));
    kubectl(landscape, &["patch", CONFIGURATION[0], CONFIGURATION[1], "--type=json", "--field-manager=injector", "-p", &patch.to_string()])
        .await;
    let filled = json!({"stringData": {"key": "theirs"}}).to_string();
    kubectl(landscape, &["patch", "secret", "for-others", "-n", NAMESPACE, "-p", &filled]).await;
    let again = landscape.connector.approve(&["--dry-run", "--detailed-exitcode"]).await.unwrap();
    assert_eq!(again.code(), Some(0), "{again:?}");
    landscape.connector.approve(&["--yes"]).await.unwrap().ok().unwrap();
    landscape.until_status("synced", &sha256).await;
    let live = get(landscape, &CONFIGURATION).await;
    for webhook in live["webhooks"].as_array().unwrap() {
        assert_eq!(webhook["clientConfig"]["caBundle"], "QQ==", "{webhook}");
    }
    let data = get(landscape, &["secret", "for-others", "-n", NAMESPACE]).await["data"].clone();
    assert_eq!(data, json!({"key": "dGhlaXJz"}));

    // One that is on its way out will not be there.
    let hold = |finalizers: Value| json!({"metadata": {"finalizers": finalizers}}).to_string();
    kubectl(landscape, &["patch", "secret", "for-others", "-n", NAMESPACE, "-p", &hold(json!(["example.com/held"]))]).await;
    kubectl(landscape, &["delete", "secret", "for-others", "-n", NAMESPACE, "--wait=false"]).await;
    let refused = landscape.connector.approve(&["--yes"]).await.unwrap();
    let going = format!("Secret {NAMESPACE}/for-others: it is being deleted since ");
    assert!(!refused.success() && refused.stderr.contains(&going), "{refused:?}");
    kubectl(landscape, &["patch", "secret", "for-others", "-n", NAMESPACE, "--type=merge", "-p", &hold(Value::Null)]).await;
    // One that is not there is something to do.
    let missing = landscape.connector.approve(&["--dry-run", "--detailed-exitcode"]).await.unwrap();
    assert!(missing.code() == Some(2) && missing.stdout.contains("/for-others: missing, to be created"), "{missing:?}");
    landscape.connector.approve(&["--yes"]).await.unwrap().ok().unwrap();
}

/// A webhook whose server is away: the one that is named is the customer's own, with its Service, and no chart is blamed.
async fn a_dead_webhook_of_others_is_told_as_theirs(landscape: &Landscape) {
    let rule = json!({"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"], "resources": ["configmaps"]});
    let webhook = json!({"name": "dead.example.com", "failurePolicy": "Fail", "sideEffects": "None", "admissionReviewVersions": ["v1"],
        "rules": [rule], "timeoutSeconds": 1, "clientConfig": {"service": {"namespace": "default", "name": "nobody"}},
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": NAMESPACE}}});
    let configuration = json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "dead"}, "webhooks": [webhook]});
    landscape.control_plane.apply(&configuration.to_string()).await.unwrap();
    let blocked = landscape.connector.approve(&["--dry-run"]).await.unwrap();
    kubectl(landscape, &["delete", "validatingwebhookconfiguration", "dead"]).await;
    assert_eq!(blocked.code(), Some(1), "{blocked:?}");
    for expected in ["error[webhook_failed]: ", "blocked by webhook dead.example.com (Service default/nobody)", "grep dead.example.com"] {
        assert!(blocked.stderr.contains(expected), "`{expected}` is not in:\n{}", blocked.stderr);
    }
}

/// A namespace that may hold nothing more: an approval of what is there adds nothing to it.
async fn a_full_quota_has_room_for_what_is_there(landscape: &Landscape) {
    let kinds = ["services", "configmaps", "secrets", "count/deployments.apps", "count/poddisruptionbudgets.policy", "count/jobs.batch"];
    let hard: serde_json::Map<String, Value> = kinds.into_iter().map(|kind| (kind.to_owned(), "0".into())).collect();
    let quota =
        json!({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "tight", "namespace": NAMESPACE}, "spec": {"hard": hard}});
    landscape.control_plane.apply(&quota.to_string()).await.unwrap();
    eventually("the quota to be full", SOON, || async {
        let one_more = landscape.control_plane.kubectl(&["create", "configmap", "one-more", "-n", NAMESPACE, "--dry-run=server"]).await?;
        anyhow::ensure!(one_more.stderr.contains("exceeded quota: tight"), "{one_more:?}");
        Ok(())
    })
    .await;
    let unchanged = landscape.connector.approve(&["--dry-run", "--detailed-exitcode"]).await.unwrap();
    assert_eq!(unchanged.code(), Some(0), "{unchanged:?}");
    landscape.connector.approve(&["--yes"]).await.unwrap().ok().unwrap();
    kubectl(landscape, &["delete", "resourcequota", "tight", "-n", NAMESPACE]).await;
}

/// An object that is held on its way out is named by the plan, with what holds it, before the first write.
async fn what_is_going_is_nothing_to_apply_to(landscape: &Landscape) {
    let (kind, name) = ("configmap", "clickhouse-operator-config");
    let hold = json!({"metadata": {"finalizers": ["example.com/held"]}}).to_string();
    kubectl(landscape, &["patch", kind, name, "-n", NAMESPACE, "--type=merge", "-p", &hold]).await;
    kubectl(landscape, &["delete", kind, name, "-n", NAMESPACE, "--wait=false"]).await;
    let refused = landscape.connector.approve(&["--yes"]).await.unwrap();
    assert_eq!(refused.code(), Some(1), "{refused:?}");
    let going = format!("ConfigMap {NAMESPACE}/{name}: it is being deleted since ");
    for expected in [going.as_str(), "and is held by its finalizers example.com/held; wait until it is gone"] {
        assert!(refused.stderr.contains(expected), "`{expected}` is not in:\n{}", refused.stderr);
    }
}

async fn get(landscape: &Landscape, what: &[&str]) -> Value {
    serde_json::from_str(&kubectl(landscape, &[&["get"], what, &["-o", "json"]].concat()).await).unwrap()
}

async fn kubectl(landscape: &Landscape, args: &[&str]) -> String {
    landscape.control_plane.kubectl(args).await.unwrap().ok().unwrap().stdout
}
