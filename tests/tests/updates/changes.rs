//! What an update can only do when a person says so: take fields over from others, replace what no apply can change, delete what former bundles
//! left. Refused without the flag, told in the plan, done with it, and the executor goes on from there.

use anyhow::Context as _;
use serde_json::{Value, json};
use system_tests::bundle::{self, Edition, NAMESPACE, Release};
use system_tests::eventually;
use system_tests::landscape::{Closing, Landscape, SOON, difference};

use crate::with_changed_chart;

const DEPLOYMENT: &str = "snapshot-controller";

#[tokio::test(flavor = "multi_thread")]
async fn what_a_person_has_to_say_is_asked_for_and_done() {
    let landscape = Landscape::new().await;
    let first = bundle::push(&landscape.registry, Edition::First).await.unwrap();
    let sha256 = landscape.propose("first", &first).await.unwrap();
    landscape.until_ended(&sha256).await;
    landscape.connector.approve(&["--yes"]).await.unwrap().ok().unwrap();
    landscape.until_status("synced", &sha256).await;

    others_take_fields(&landscape).await;
    let next = changed(&landscape, &first).await;
    let sha256 = landscape.propose("next", &next).await.unwrap();
    landscape.until_ended(&sha256).await;
    let (uid, before) = (uid(&landscape).await, landscape.content().await.unwrap());
    refused(&landscape, &[], &["field conflict", ".data.config.yaml is owned by `somebody`", "hint: ", "--take-over"]).await;
    refused(
        &landscape,
        &["--take-over"],
        &["error[objects_refused]", "spec.selector cannot be changed", "parameters cannot be changed", "--replace"],
    )
    .await;
    assert_eq!(difference(&before, &landscape.content().await.unwrap()), [""; 0]);
    is_told(&landscape).await;

    let all = ["--yes", "--take-over", "--replace", "--prune"];
    let approved = landscape.connector.approve(&all).await.unwrap().ok().unwrap();
    Closing::of(&approved).unwrap();
    assert!(approved.stderr.contains("StorageClass.storage.k8s.io gp3-encrypted is deleted, to be made anew"), "{approved:?}");
    landscape.until_status("synced", &sha256).await;
    assert_ne!(self::uid(&landscape).await, uid, "the Deployment is another one");
    is_done(&landscape).await;
    // All is as it should be: nothing is to be taken over, replaced or pruned.
    let again = landscape.connector.approve(&["--dry-run", "--detailed-exitcode"]).await.unwrap();
    assert_eq!(again.code(), Some(0), "{again:?}");
}

/// (object in the plan, field that is named, what kubectl is told).
fn additions() -> Vec<(&'static str, &'static str, Vec<String>)> {
    let patch = |object: &str, patch: Value| vec!["patch".to_owned(), object.to_owned(), "-p".to_owned(), patch.to_string()];
    let sidecar = json!({"spec": {"template": {"spec": {"containers": [{"name": "sidecar", "image": "registry.example/s@sha256:0"}]}}}});
    vec![
        (
            "Deployment.apps clickhouse-platform/snapshot-controller",
            "spec.template.spec.containers[name=controller].env",
            ["set", "env", "deployment/snapshot-controller", "DEBUG=planted-in-the-environment"].map(str::to_owned).to_vec(),
        ),
        (
            "Deployment.apps clickhouse-platform/clickhouse-operator",
            "spec.template.spec.containers[name=sidecar]",
            patch("deployment/clickhouse-operator", sidecar),
        ),
        (
            "Deployment.apps clickhouse-platform/monitoring-collectors-gateway",
            "spec.paused",
            ["rollout", "pause", "deployment/monitoring-collectors-gateway"].map(str::to_owned).to_vec(),
        ),
        (
            "ConfigMap clickhouse-platform/clickhouse-operator-config",
            "data.extra",
            patch("configmap/clickhouse-operator-config", json!({"data": {"extra": "theirs"}})),
        ),
        (
            "ConfigMap clickhouse-platform/monitoring-collectors-gateway",
            "immutable",
            patch("configmap/monitoring-collectors-gateway", json!({"immutable": true})),
        ),
        (
            "Service clickhouse-platform/clickhouse-operator-webhook",
            "spec.ports[name=more]",
            patch("service/clickhouse-operator-webhook", json!({"spec": {"ports": [{"name": "more", "port": 81}]}})),
        ),
        (
            "PodDisruptionBudget.policy clickhouse-platform/snapshot-controller",
            "spec.unhealthyPodEvictionPolicy",
            [
                &patch("poddisruptionbudget/snapshot-controller", json!({"spec": {"unhealthyPodEvictionPolicy": "AlwaysAllow"}}))[..],
                &["--type=merge".to_owned()],
            ]
            .concat(),
        ),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn what_others_put_into_live_objects_is_named_before_the_first_write() {
    let landscape = Landscape::new().await;
    let first = bundle::push(&landscape.registry, Edition::First).await.unwrap();
    let sha256 = landscape.propose("first", &first).await.unwrap();
    landscape.until_ended(&sha256).await;
    landscape.connector.approve(&["--yes"]).await.unwrap().ok().unwrap();
    landscape.until_status("synced", &sha256).await;

    for (_, _, command) in additions() {
        let command: Vec<&str> = command.iter().map(String::as_str).chain(["-n", NAMESPACE]).collect();
        landscape.control_plane.kubectl(&command).await.unwrap().ok().unwrap();
    }
    is_seen_as_drift(&landscape).await;
    let secret = secret(&landscape).await;
    let key = json!({"stringData": {"more": "planted-by-them"}}).to_string();
    landscape.control_plane.kubectl(&["patch", "secret", &secret, "-n", NAMESPACE, "-p", &key]).await.unwrap().ok().unwrap();
    // What others may do to live objects is no matter.
    for kind in ["deployment", "service", "configmap"] {
        for what in ["annotate", "label"] {
            landscape.control_plane.kubectl(&[what, kind, "-n", NAMESPACE, "--all", "example.com/theirs=1"]).await.unwrap().ok().unwrap();
        }
    }

    let sha256 = landscape.propose("second", &bundle_of(&first, "second")).await.unwrap();
    landscape.until_ended(&sha256).await;
    let planned = landscape.connector.approve(&["--dry-run", "-o", "json"]).await.unwrap().ok().unwrap();
    assert!(
        !planned.stdout.contains("planted-by-them") && !planned.stdout.contains("cGxhbnRlZC1ieS10aGVt"),
        "a value of a Secret is shown"
    );
    let planned: Value = serde_json::from_str(&planned.stdout).unwrap();
    let refused = landscape.connector.approve(&["--yes"]).await.unwrap();
    let of_secret = (format!("Secret {NAMESPACE}/{secret}"), "data.more".to_owned());
    let expected = additions().into_iter().map(|(object, field, _)| (object.to_owned(), field.to_owned())).chain([of_secret]);
    let mut named = 0;
    for (object, field) in expected {
        let found = planned["workload"].as_array().unwrap().iter().find(|planned| planned["object"] == object.as_str()).unwrap();
        assert_eq!(found["action"], "replace", "{found}");
        assert!(found["fields"].as_array().unwrap().iter().any(|change| change["path"] == field.as_str()), "{field}: {found}");
        let verb = if field == "immutable" { "delete" } else { "edit" };
        let line = format!("{object}: it holds what the bundle does not bring and no apply takes out: {field}; by hand: kubectl {verb} ");
        assert!(refused.stderr.contains(&line), "`{line}` is not in:\n{}", refused.stderr);
        named += 1;
    }
    assert_eq!(planned["summary"]["workload"]["replace"], named, "and nothing else");

    landscape.connector.approve(&["--yes", "--replace"]).await.unwrap().ok().unwrap();
    landscape.until_status("synced", &sha256).await;
    let again = landscape.connector.approve(&["--dry-run", "--detailed-exitcode"]).await.unwrap();
    assert_eq!(again.code(), Some(0), "{again:?}");
    eventually("nothing to depart from the new approval", SOON, || async {
        let shown: Value = landscape.connector.local_api("/v1/platform").await?.json().await?;
        anyhow::ensure!(shown["drift"] == json!([]), "{}", shown["drift"]);
        Ok(())
    })
    .await;
    a_turn_to_recreate_is_made(&landscape, &first).await;
}

/// What `pcm-executor` may read is seen to depart from the approval, by object and field; an object that is deleted too, and it degrades its
/// component, of which another Deployment is alive.
async fn is_seen_as_drift(landscape: &Landscape) {
    let missing = ["Service clickhouse-platform/monitoring-collectors", "Deployment.apps clickhouse-platform/monitoring-collectors"];
    for kind in ["service", "deployment"] {
        landscape.control_plane.kubectl(&["delete", kind, "monitoring-collectors", "-n", NAMESPACE]).await.unwrap().ok().unwrap();
    }
    let read = |object: &str| !object.starts_with("ConfigMap ");
    let mut expected: Vec<(String, String)> =
        additions().into_iter().filter(|(object, ..)| read(object)).map(|(object, field, _)| (object.into(), field.into())).collect();
    expected.extend(missing.map(|object| (object.to_owned(), "missing".to_owned())));
    expected.sort();
    eventually("the drift to be seen", SOON, || async {
        let shown: Value = landscape.connector.local_api("/v1/platform").await?.json().await?;
        let drift = shown["drift"].as_array().context("not known")?;
        anyhow::ensure!(shown["platform"]["drift"] == drift.len(), "{shown}");
        let field = |drifted: &Value| match drifted["missing"] == true {
            true => "missing".to_owned(),
            false => drifted["fields"][0]["path"].as_str().unwrap_or_default().to_owned(),
        };
        let mut found: Vec<_> = drift.iter().map(|drifted| (drifted["object"].as_str().unwrap().to_owned(), field(drifted))).collect();
        found.sort();
        anyhow::ensure!(found == expected, "{found:?}\ninstead of {expected:?}");
        let component = shown["components"].as_array().into_iter().flatten().find(|component| component["name"] == "monitoring-collectors");
        let component = component.context("the component")?;
        anyhow::ensure!((&component["state"], &component["health"]) == (&json!("failed"), &json!("warning")), "{component}");
        let message = component["message"].as_str().unwrap_or_default();
        anyhow::ensure!(missing.iter().all(|object| message.contains(&format!("{object} is missing"))), "{component}");
        Ok(())
    })
    .await;

    // The same for a person and for a monitoring, without what somebody could have hidden in it.
    let output_dir = landscape.connector.access_dir().display().to_string();
    let shown =
        landscape.connector.run(&["platform", "show", "--output-dir", &output_dir, "-o", "json"]).await.unwrap().ok().unwrap().stdout;
    let told: Value = serde_json::from_str(&shown).unwrap();
    assert_eq!((told["drift"].as_array().map(Vec::len), &told["drift_problem"]), (Some(expected.len()), &Value::Null), "{told}");
    let environment = told["drift"].as_array().unwrap().iter().flat_map(|object| object["fields"].as_array().unwrap());
    let environment = environment.filter(|field| field["path"].as_str().unwrap().contains(".env"));
    assert_eq!(environment.count(), 1, "{told}");
    let answered = landscape.connector.local_api("/v1/platform").await.unwrap().text().await.unwrap();
    for text in [&shown, &answered] {
        assert!(text.contains(r#""DEBUG""#) && text.contains("[secret]") && !text.contains("planted-in-the-environment"), "{text}");
    }
    let metrics = landscape.connector.health("/metrics").await.unwrap().text().await.unwrap();
    let line = format!("clicklink_platform_drifted_objects {}", expected.len());
    assert!(metrics.lines().any(|found| found == line), "{line} is not in\n{metrics}");
}

/// The name of the bundle's one Secret with values.
async fn secret(landscape: &Landscape) -> String {
    let shown = landscape.control_plane.kubectl(&["get", "secret", "-n", NAMESPACE, "-l", "clicklink.io/pinned=true", "-o", "name"]);
    shown.await.unwrap().ok().unwrap().stdout.trim().strip_prefix("secret/").unwrap().to_owned()
}

/// The rolling update that the API server filled in is unset as the person, without a rollout; and the next bundle may turn back.
async fn a_turn_to_recreate_is_made(landscape: &Landscape, first: &Release) {
    let revision = |deployment: &Value| deployment["metadata"]["annotations"]["deployment.kubernetes.io/revision"].clone();
    let before = get(landscape, "deployment", DEPLOYMENT).await;
    assert_eq!(before["spec"]["strategy"]["type"], "RollingUpdate");
    let recreate = |text: &str| text.replacen("  template:", "  strategy:\n    type: Recreate\n  template:", 1);
    let mut next = with_changed_chart(landscape, first, DEPLOYMENT, "deployment.yaml", recreate).await;
    // Together with it a webhook is switched off: its configuration goes with the approval, without being asked for.
    next.component("clickhouse-operator").values["webhook"] = json!({"enabled": false});
    let configuration = ["get", "validatingwebhookconfiguration", "clickhouse-operator"];
    landscape.control_plane.kubectl(&configuration).await.unwrap().ok().unwrap();
    let sha256 = landscape.propose("recreate", &next).await.unwrap();
    landscape.until_ended(&sha256).await;
    let told = landscape.connector.approve(&["--dry-run"]).await.unwrap().ok().unwrap().stdout;
    for expected in [
        "spec.strategy.rollingUpdate is unset now, with your credentials; no rollout begins",
        r#"spec.strategy.type: "RollingUpdate" → "Recreate""#,
        "ValidatingWebhookConfiguration.admissionregistration.k8s.io clickhouse-operator  (clickhouse-operator): withdrawn now, before anything",
    ] {
        assert!(told.contains(expected), "`{expected}` is not in:\n{told}");
    }
    landscape.connector.approve(&["--yes"]).await.unwrap().ok().unwrap();
    let gone = landscape.control_plane.kubectl(&configuration).await.unwrap();
    assert!(gone.stderr.contains("NotFound"), "{gone:?}");
    landscape.until_status("synced", &sha256).await;
    let after = get(landscape, "deployment", DEPLOYMENT).await;
    assert_eq!(after["spec"]["strategy"], json!({"type": "Recreate"}));
    assert_eq!(revision(&after), revision(&before), "nothing was rolled out");

    let sha256 = landscape.propose("back", &bundle_of(first, "back")).await.unwrap();
    landscape.until_ended(&sha256).await;
    landscape.connector.approve(&["--yes"]).await.unwrap().ok().unwrap();
    landscape.until_status("synced", &sha256).await;
    assert_eq!(get(landscape, "deployment", DEPLOYMENT).await["spec"]["strategy"]["type"], "RollingUpdate");
    landscape.control_plane.kubectl(&configuration).await.unwrap().ok().unwrap();
}

/// The same charts in a bundle of another identity.
fn bundle_of(release: &Release, note: &str) -> Release {
    let mut release = release.clone();
    release.objects[0]["metadata"]["annotations"] = json!({"example.com/note": note});
    release
}

/// A tool that applies whole objects, and an edit by hand.
async fn others_take_fields(landscape: &Landscape) {
    let live = get(landscape, "configmap", "clickhouse-operator-config").await;
    let mut data = live["data"].clone();
    let key = data.as_object().unwrap().keys().next().unwrap().clone();
    assert_eq!(key, "config.yaml", "{data}");
    data[&key] = json!("theirs");
    data["extra"] = json!("only theirs");
    let theirs = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "clickhouse-operator-config", "namespace": NAMESPACE}, "data": data});
    let file = landscape.connector.folder().write("theirs.json", theirs.to_string()).unwrap().display().to_string();
    let apply = ["apply", "--server-side", "--force-conflicts", "--field-manager=somebody", "-f", &file];
    landscape.control_plane.kubectl(&apply).await.unwrap().ok().unwrap();
    let scale = ["scale", "deployment", "monitoring-collectors-gateway", "-n", NAMESPACE, "--replicas=2"];
    landscape.control_plane.kubectl(&scale).await.unwrap().ok().unwrap();
}

/// Another selector, another StorageClass, and the collectors' gateway is no more.
async fn changed(landscape: &Landscape, release: &Release) -> Release {
    let selector = "{{- define \"snapshot-controller.selector\" -}}";
    let tracked = |text: &str| text.replace(selector, &format!("{selector}\ntrack: stable"));
    let mut release = with_changed_chart(landscape, release, DEPLOYMENT, "_names.tpl", tracked).await;
    release.objects[0]["parameters"]["type"] = json!("io2");
    release.component("monitoring-collectors").values["gateway"]["enabled"] = json!(false);
    release
}

async fn refused(landscape: &Landscape, more: &[&str], told: &[&str]) {
    let refused = landscape.connector.approve(&[&["--yes"], more].concat()).await.unwrap();
    assert_eq!(refused.code(), Some(1), "{refused:?}");
    told.iter().for_each(|text| assert!(refused.stderr.contains(text), "`{text}` is not in:\n{}", refused.stderr));
}

async fn is_told(landscape: &Landscape) {
    let plan =
        landscape.connector.approve(&["--dry-run", "--take-over", "--replace", "--prune", "-o", "json"]).await.unwrap().ok().unwrap();
    let plan: Value = serde_json::from_str(&plan.stdout).unwrap();
    let objects = plan["workload"].as_array().unwrap();
    let config = objects.iter().find(|object| object["object"] == "ConfigMap clickhouse-platform/clickhouse-operator-config").unwrap();
    assert_eq!(config["taken"], json!([{"manager": "somebody", "field": ".data.config.yaml"}]));
    let fields: Vec<&str> = config["fields"].as_array().unwrap().iter().map(|field| field["path"].as_str().unwrap()).collect();
    assert_eq!(fields, ["data[config.yaml]", "data.extra"], "what changes, and what goes with the ownership");
    let leftovers = plan["leftovers"].as_array().unwrap();
    assert!(!leftovers.is_empty() && leftovers.iter().all(|leftover| leftover["pruned"] == true), "{leftovers:?}");
    let text = landscape.connector.approve(&["--dry-run", "--take-over", "--prune"]).await.unwrap().ok().unwrap().stdout;
    for expected in [
        ".data.config.yaml is taken over from somebody",
        "monitoring-collectors-gateway  (monitoring-collectors), running: deleted at the end",
    ] {
        assert!(text.contains(expected), "`{expected}` is not in:\n{text}");
    }
}

async fn is_done(landscape: &Landscape) {
    let config = get(landscape, "configmap", "clickhouse-operator-config").await;
    assert_ne!(config["data"]["config.yaml"], "theirs");
    assert_eq!(config["data"]["extra"], Value::Null, "what the former owner applied and the bundle lacks is gone");
    let managers = config["metadata"]["managedFields"].as_array().unwrap().iter().map(|entry| entry["manager"].as_str().unwrap());
    assert_eq!(managers.collect::<Vec<_>>(), ["clicklink-executor"]);
    let deployment = get(landscape, "deployment", DEPLOYMENT).await;
    assert_eq!(deployment["spec"]["selector"]["matchLabels"]["track"], "stable");
    let class = landscape.control_plane.kubectl(&["get", "storageclass", "gp3-encrypted", "-o", "json"]).await.unwrap().ok().unwrap();
    assert_eq!(serde_json::from_str::<Value>(&class.stdout).unwrap()["parameters"]["type"], "io2");
    for gone in ["deployment/monitoring-collectors-gateway", "configmap/monitoring-collectors-gateway"] {
        let tried = landscape.control_plane.kubectl(&["get", gone, "-n", NAMESPACE]).await.unwrap();
        assert!(tried.stderr.contains("NotFound"), "{tried:?}");
    }
    let approval = landscape.connector.approval().unwrap();
    assert_eq!(approval["leftovers"], 0, "{approval}");
}

async fn get(landscape: &Landscape, kind: &str, name: &str) -> Value {
    let shown =
        landscape.control_plane.kubectl(&["get", kind, name, "-n", NAMESPACE, "-o", "json", "--show-managed-fields"]).await.unwrap();
    serde_json::from_str(&shown.ok().unwrap().stdout).unwrap()
}

async fn uid(landscape: &Landscape) -> Value {
    get(landscape, "deployment", DEPLOYMENT).await["metadata"]["uid"].clone()
}
