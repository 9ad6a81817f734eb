//! What ends an approval, or a whole installation, before its time: `approve --revoke` and `platform reset`; and what `platform show` and
//! `kubectl get platformapprovals` tell of approvals, former ones too.

use serde_json::{Value, json};
use system_tests::bundle::{self, Edition, NAMESPACE};
use system_tests::eventually;
use system_tests::landscape::{Landscape, SOON, difference};

const HOME: &str = "clicklink-system";

#[tokio::test(flavor = "multi_thread")]
async fn an_approval_is_taken_back_and_a_test_cluster_is_reset() {
    let landscape = Landscape::new().await;
    let release = bundle::push(&landscape.registry, Edition::First).await.unwrap();
    let sha256 = landscape.propose("platform-1", &release).await.unwrap();
    landscape.until_ended(&sha256).await;
    let manifest = landscape.connector.folder().write("manifest.json", landscape.manager.manifest("platform-1").await.unwrap()).unwrap();
    let manifest = manifest.display().to_string();

    landscape.connector.approve(&["--yes"]).await.unwrap().ok().unwrap();
    landscape.until_status("synced", &sha256).await;
    approvals_are_shown(&landscape, &sha256).await;
    former_ones_are_kept_without_what_gives_rights(&landscape, &sha256).await;
    who_approves_again_gets_it_applied_again(&landscape, &sha256).await;
    the_staged_document_comes_back(&landscape, &sha256).await;
    a_mistyped_place_takes_nothing_back(&landscape).await;
    taken_back_nothing_can_be_written(&landscape, &sha256).await;
    a_service_holds_up_a_reset(&landscape, &manifest).await;
    a_dry_run_changes_nothing(&landscape, &manifest, &sha256).await;
    reset_and_installed_anew(&landscape, &manifest, &sha256).await;
}

async fn show(landscape: &Landscape) -> Value {
    let output_dir = landscape.connector.access_dir().display().to_string();
    let shown = landscape.connector.run(&["platform", "show", "--output-dir", &output_dir, "-o", "json"]).await.unwrap().ok().unwrap();
    serde_json::from_str(&shown.stdout).unwrap()
}

async fn approvals_are_shown(landscape: &Landscape, sha256: &str) {
    let shown = show(landscape).await;
    assert_eq!((&shown["pending"]["sha256"], &shown["current"]["sha256"]), (&json!(sha256), &json!(sha256)));
    assert_eq!((&shown["current"]["holds"], &shown["current"]["objects"], &shown["former"]), (&json!(true), &json!(12), &json!([])));
    let listed = landscape.control_plane.kubectl(&["get", "platformapprovals", "-n", HOME]).await.unwrap().ok().unwrap().stdout;
    let lines: Vec<&str> = listed.lines().collect();
    let columns: Vec<&str> = lines[0].split("  ").map(str::trim).filter(|column| !column.is_empty()).collect();
    assert_eq!(columns, ["NAME", "BUNDLE", "APPROVED BY", "APPROVED AT", "EXPIRES", "OBJECTS"]);
    assert!(lines[1].starts_with("current") && lines[1].contains(sha256) && lines[1].ends_with("12"), "{listed}");
}

async fn former_ones_are_kept_without_what_gives_rights(landscape: &Landscape, sha256: &str) {
    let known = landscape.known_commands().await.unwrap();
    landscape.connector.approve(&["--yes"]).await.unwrap().ok().unwrap();
    landscape.until_new_ended(&known).await;
    let shown = show(landscape).await;
    assert_eq!((shown["former"].as_array().unwrap().len(), &shown["former"][0]["sha256"]), (1, &json!(sha256)));
    let listed = landscape.control_plane.kubectl(&["get", "platformapprovals", "-n", HOME, "-o", "json"]).await.unwrap().ok().unwrap();
    let listed: Value = serde_json::from_str(&listed.stdout).unwrap();
    for approval in listed["items"].as_array().unwrap() {
        let (name, spec) = (approval["metadata"]["name"].as_str().unwrap(), &approval["spec"]);
        let (credentials, workloads) = (spec["credentials"].as_array().unwrap(), spec["workloads"].as_object().unwrap());
        match name {
            "current" => {
                assert!(matches!(credentials.as_slice(), [one] if one.as_str().unwrap().starts_with("JTI=")) && workloads.len() == 12)
            }
            _ => assert!(name.starts_with(&sha256[..12]) && credentials.is_empty() && workloads.is_empty(), "{approval}"),
        }
    }
}

/// What somebody removed by hand is there again.
async fn who_approves_again_gets_it_applied_again(landscape: &Landscape, sha256: &str) {
    let names = async || landscape.workload().await.unwrap().into_keys().collect::<Vec<_>>();
    let before = names().await;
    let removed = ["delete", "deployment/clickhouse-operator", "configmap/clickhouse-operator-config", "-n", NAMESPACE];
    landscape.control_plane.kubectl(&removed).await.unwrap().ok().unwrap();
    let known = landscape.known_commands().await.unwrap();
    landscape.connector.approve(&["--yes"]).await.unwrap().ok().unwrap();
    let ended = landscape.until_new_ended(&known).await;
    assert!(ended["status"] == "completed" && ended["sha256"] == sha256, "{ended}");
    assert_eq!(names().await, before);
}

/// The executor puts it back without a restart.
async fn the_staged_document_comes_back(landscape: &Landscape, sha256: &str) {
    let file = landscape.connector.access_dir().join("platform-pending.json");
    let before = std::fs::read(&file).unwrap();
    std::fs::remove_file(&file).unwrap();
    eventually("the staged document to be written again", SOON, async || Ok(std::fs::read(&file)?)).await;
    assert_eq!(std::fs::read(&file).unwrap(), before);
    assert_eq!(show(landscape).await["pending"]["sha256"], sha256);
}

async fn a_mistyped_place_takes_nothing_back(landscape: &Landscape) {
    let before = landscape.content().await.unwrap();
    let missing = landscape.connector.revoke(&["--secret-namespace", "clicklinc"]).await.unwrap();
    assert!(!missing.success() && missing.stderr.starts_with("error[object_not_found]: Namespace clicklinc: "), "{missing:?}");
    let other = landscape.connector.revoke(&["--secret-namespace", "default"]).await.unwrap();
    assert!(
        !other.success() && other.stderr.contains("nothing was taken back; an account of a connector is in clicklink-system"),
        "{other:?}"
    );
    assert!(other.stderr.ends_with("hint: run: clicklink clctl platform approve --revoke\n"), "{other:?}");
    assert_eq!(difference(&before, &landscape.content().await.unwrap()), [""; 0]);
    assert_eq!(landscape.connector.token_bundle().unwrap().len(), 4);
}

async fn taken_back_nothing_can_be_written(landscape: &Landscape, sha256: &str) {
    let before = landscape.workload().await.unwrap();
    let token = String::from_utf8(landscape.connector.token_bundle().unwrap()["token"].clone()).unwrap();
    let revoked = landscape.connector.revoke(&[]).await.unwrap().ok().unwrap();
    assert!(revoked.stdout.contains("Revoked: the executor may apply nothing to the platform until you approve again"), "{revoked:?}");
    assert!(landscape.connector.token_bundle().unwrap().is_empty(), "the token bundle is still there");
    let shown = show(landscape).await;
    assert_eq!((&shown["current"]["sha256"], &shown["current"]["holds"]), (&json!(sha256), &json!(false)));

    // The former token, held by somebody who copied it.
    let stolen = landscape.control_plane.kubeconfig_with_token("stolen", &token).unwrap();
    let write = ["apply", "--server-side", "--validate=false", "--field-manager=clicklink-executor", "-f"];
    let config_map = landscape.control_plane.kubectl(&["get", "configmap", "clickhouse-operator-config", "-n", NAMESPACE, "-o", "json"]);
    let config_map: Value = serde_json::from_str(&config_map.await.unwrap().ok().unwrap().stdout).unwrap();
    let config_map = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": config_map["data"], "metadata":
        {"name": "clickhouse-operator-config", "namespace": NAMESPACE, "labels": config_map["metadata"]["labels"]}});
    let file = landscape.connector.folder().write("stolen.json", config_map.to_string()).unwrap().display().to_string();
    let denied = landscape.control_plane.kubectl_as(&stolen, &[&write[..], &[&file]].concat()).await.unwrap();
    let told = ["forbidden", "Unauthorized", "provide credentials"];
    assert!(!denied.success() && told.iter().any(|text| denied.stderr.contains(text)), "{denied:?}");

    landscape.rearm().await.unwrap();
    eventually("the executor to want an approval again", SOON, || async {
        let shown = landscape.connector.local_api("/v1/platform").await?.text().await?;
        let shown: Value = serde_json::from_str(&shown)?;
        anyhow::ensure!(shown["platform"]["approved_sha256"].is_null(), "{shown}");
        Ok(())
    })
    .await;
    assert_eq!(difference(&before, &landscape.workload().await.unwrap()), [""; 0]);
    // A second run finds nothing to do, and says so by success.
    landscape.connector.revoke(&[]).await.unwrap().ok().unwrap();
    let installation = shown["current"]["install_id"].clone();
    landscape.connector.approve(&["--yes"]).await.unwrap().ok().unwrap();
    assert_eq!(show(landscape).await["current"]["install_id"], installation, "an approval that is taken back begins no other installation");
}

fn reset_args<'a>(manifest: &'a str, more: &[&'a str], paths: &'a [String; 2]) -> Vec<&'a str> {
    let mut args = vec!["platform", "reset", "--bundle", manifest, "--config", &paths[0], "--output-dir", &paths[1]];
    args.extend(more);
    args
}

fn paths(landscape: &Landscape) -> [String; 2] {
    [landscape.connector.config().display().to_string(), landscape.connector.access_dir().display().to_string()]
}

async fn a_service_holds_up_a_reset(landscape: &Landscape, manifest: &str) {
    let service = json!({"apiVersion": "clickhouse.com/v1alpha1", "kind": "ClickHouseCluster",
        "metadata": {"name": "orders", "namespace": "ns-orders"}, "spec": {"keeperClusterRef": {"name": "orders"}}});
    let kubectl = async |args: &[&str]| landscape.control_plane.kubectl(args).await.unwrap().ok().unwrap();
    kubectl(&["create", "namespace", "ns-orders"]).await;
    // Nothing serves the operator's webhook here, and it would refuse the service.
    let webhook = ["validatingwebhookconfiguration", "clickhouse-operator"];
    let mut kept: Value = serde_json::from_str(&kubectl(&[&["get"][..], &webhook, &["-o", "json"]].concat()).await.stdout).unwrap();
    kubectl(&[&["delete"][..], &webhook].concat()).await;
    landscape.control_plane.apply(&service.to_string()).await.unwrap();
    let (before, paths) = (landscape.content().await.unwrap(), paths(landscape));
    for more in [&["--dry-run"][..], &["--yes"]] {
        let refused = landscape.connector.run(&reset_args(manifest, more, &paths)).await.unwrap();
        assert!(!refused.success(), "{refused:?}");
        assert!(refused.stderr.contains("ClickHouseCluster.clickhouse.com ns-orders/orders"), "{refused:?}");
        assert!(refused.stderr.starts_with("error[services_exist]: "), "{refused:?}");
    }
    assert_eq!(difference(&before, &landscape.content().await.unwrap()), [""; 0]);
    kubectl(&["delete", "clickhousecluster", "orders", "-n", "ns-orders"]).await;
    ["uid", "resourceVersion", "managedFields"].iter().for_each(|field| drop(kept["metadata"].as_object_mut().unwrap().remove(*field)));
    landscape.control_plane.apply(&kept.to_string()).await.unwrap();
}

async fn a_dry_run_changes_nothing(landscape: &Landscape, manifest: &str, sha256: &str) {
    let (before, paths) = (landscape.content().await.unwrap(), paths(landscape));
    let planned = landscape.connector.run(&reset_args(manifest, &["--dry-run"], &paths)).await.unwrap().ok().unwrap().stdout;
    let at = |text: &str| planned.find(text).unwrap_or_else(|| panic!("`{text}` is not in the plan:\n{planned}"));
    assert!(
        at("  monitoring-collectors\n") < at("  clickhouse-operator\n") && at("  clickhouse-operator\n") < at("  snapshot-controller\n")
    );
    at("Deployment.apps clickhouse-platform/clickhouse-operator");
    at("ValidatingWebhookConfiguration.admissionregistration.k8s.io clickhouse-operator");
    // The staged document is taken as well; another bundle's is, with a warning; another cluster's is not.
    let staged = std::fs::read_to_string(landscape.connector.access_dir().join("platform-pending.json")).unwrap();
    let file = |name: &str, text: &str| landscape.connector.folder().write(name, text).unwrap().display().to_string();
    let dry_run = async |file: &str| landscape.connector.run(&reset_args(file, &["--dry-run"], &paths)).await.unwrap();
    let same = dry_run(&file("staged.json", &staged)).await.ok().unwrap();
    assert!(same.stdout == planned && !same.stderr.contains("warning: "), "{same:?}");
    let other = std::fs::read_to_string(manifest).unwrap().replacen("\"createdAt\"", " \"createdAt\"", 1);
    let other = dry_run(&file("other.json", &other)).await.ok().unwrap();
    let warning = format!("warning: what was approved last in this cluster is bundle {sha256}, and this is bundle ");
    assert!(other.stderr.contains(&warning), "{other:?}");
    let mut elsewhere: Value = serde_json::from_str(&staged).unwrap();
    elsewhere["cluster_uid"] = "another".into();
    let refused = dry_run(&file("elsewhere.json", &elsewhere.to_string())).await;
    assert!(refused.stderr.starts_with("error[other_cluster]: "), "{refused:?}");
    assert_eq!(difference(&before, &landscape.content().await.unwrap()), [""; 0]);
    assert_eq!(landscape.connector.token_bundle().unwrap().len(), 4);
}

/// A webhook of somebody else's stops the removal in its middle. The installation has ended by then: an approval that follows begins another one.
async fn a_reset_that_stops_has_ended_the_installation(landscape: &Landscape, manifest: &str) {
    let paths = paths(landscape);
    let rule = json!({"apiGroups": [""], "apiVersions": ["v1"], "operations": ["DELETE"], "resources": ["configmaps"]});
    let webhook = json!({"name": "dead.example.com", "failurePolicy": "Fail", "sideEffects": "None", "admissionReviewVersions": ["v1"],
        "rules": [rule], "timeoutSeconds": 1, "clientConfig": {"service": {"namespace": "default", "name": "nobody"}}});
    let configuration = json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "dead"}, "webhooks": [webhook]});
    landscape.control_plane.apply(&configuration.to_string()).await.unwrap();
    let stopped = landscape.connector.run(&reset_args(manifest, &["--yes"], &paths)).await.unwrap();
    landscape.control_plane.kubectl(&["delete", "validatingwebhookconfiguration", "dead"]).await.unwrap().ok().unwrap();
    assert!(!stopped.success() && stopped.stderr.contains("run it again: what is removed is removed"), "{stopped:?}");
    let account = ["get", "serviceaccount", "pcm-platform", "-n", HOME, "-o", "jsonpath={.metadata.annotations}"];
    let annotations = landscape.control_plane.kubectl(&account).await.unwrap().ok().unwrap().stdout;
    assert!(!annotations.contains("install-id"), "{annotations}");
}

async fn reset_and_installed_anew(landscape: &Landscape, manifest: &str, sha256: &str) {
    let paths = paths(landscape);
    let (installation, jobs) = (show(landscape).await["current"]["install_id"].clone(), jobs(landscape).await);
    a_reset_that_stops_has_ended_the_installation(landscape, manifest).await;
    // Charts are not needed for it.
    landscape.registry.stop().await.unwrap();
    let reset = landscape.connector.run(&reset_args(manifest, &["--yes"], &paths)).await.unwrap().ok().unwrap();
    assert!(reset.stdout.contains("Run approve again before the next platform sync"), "{reset:?}");
    landscape.registry.restart().await.unwrap();
    let left = landscape.workload().await.unwrap();
    assert!(left.keys().all(|key| key.starts_with("Secret/")), "{left:?}");
    assert!(landscape.connector.token_bundle().unwrap().is_empty());
    let stay =
        ["get", "crd/clickhouseclusters.clickhouse.com", "clusterrole/clickhouse-operator", "storageclass/gp3-encrypted", "-o", "name"];
    landscape.control_plane.kubectl(&stay).await.unwrap().ok().unwrap();
    // `current` removed by hand refuses everybody who writes the platform's objects; the way out is told.
    landscape.control_plane.kubectl(&["delete", "platformapproval", "current", "-n", HOME]).await.unwrap().ok().unwrap();
    landscape.control_plane.kubectl(&["delete", "secret", "pcm-platform-pins", "-n", HOME]).await.unwrap().ok().unwrap();
    eventually("the approval to be missed", SOON, || async {
        let refused = landscape.connector.approve(&["--dry-run"]).await?;
        anyhow::ensure!(
            !refused.success() && refused.stderr.contains("hint: PlatformApproval `current` or the Secret `pcm-platform-pins` was removed"),
            "{refused:?}"
        );
        Ok(())
    })
    .await;
    landscape.connector.revoke(&[]).await.unwrap().ok().unwrap();
    // Again: there is nothing left to remove.
    landscape.connector.run(&reset_args(manifest, &["--yes"], &paths)).await.unwrap().ok().unwrap();

    landscape.connector.approve(&["--yes"]).await.unwrap().ok().unwrap();
    landscape.until_status("synced", sha256).await;
    eventually("the workload to be back", SOON, || async {
        anyhow::ensure!(landscape.workload().await?.len() >= 12);
        Ok(())
    })
    .await;
    assert_ne!(show(landscape).await["current"]["install_id"], installation, "a reset begins another installation");
    let again = self::jobs(landscape).await;
    assert!(again.iter().all(|uid| !jobs.contains(uid)) && again.len() == jobs.len(), "the hook Job runs again: {jobs:?}, {again:?}");
}

/// Uids of all Jobs of the platform.
async fn jobs(landscape: &Landscape) -> Vec<Value> {
    let listed = landscape.control_plane.kubectl(&["get", "jobs", "-n", NAMESPACE, "-o", "json"]).await.unwrap().ok().unwrap();
    let listed: Value = serde_json::from_str(&listed.stdout).unwrap();
    listed["items"].as_array().unwrap().iter().map(|job| job["metadata"]["uid"].clone()).collect()
}
