//! The table "RBAC de l'opérateur (moindre privilège)", as the API server's own audit log has it, and what else the operator must not be.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use system_tests::eventually;
use system_tests::operated::{PATIENCE, Stage, charts, spec};

use crate::{STARTED, STOPPED, credential_of};

/// Kinds of the table that a component of the tests' charts has, whole lives of them.
const KINDS: [&str; 8] = [
    "deployments.apps",
    "configmaps",
    "services",
    "serviceaccounts",
    "networkpolicies.networking.k8s.io",
    "poddisruptionbudgets.policy",
    "horizontalpodautoscalers.autoscaling",
    "statefulsets.apps",
];
/// Kinds that are watched, and that no chart of the tests renders.
const WATCHED: [&str; 2] = ["persistentvolumeclaims", "ingresses.networking.k8s.io"];

/// What a whole life asks of the API server. The table grants more: `get` is covered by `list` and `watch`, an apply that creates is logged as
/// `patch` and needs `create`, `update` is what an administrator who reads the table expects beside `patch`.
fn expected() -> BTreeMap<String, BTreeSet<&'static str>> {
    let mut expected: BTreeMap<String, BTreeSet<&'static str>> = BTreeMap::new();
    for kind in KINDS {
        expected.insert(kind.to_owned(), ["list", "watch", "patch", "delete"].into());
    }
    for kind in WATCHED {
        expected.insert(kind.to_owned(), ["list", "watch"].into());
    }
    expected.insert("managedcomponents.platform.navin.ai".to_owned(), ["list", "watch", "update"].into());
    expected.insert("managedcomponents.platform.navin.ai/status".to_owned(), ["update"].into());
    expected.insert("secrets".to_owned(), ["get"].into());
    expected.insert("leases.coordination.k8s.io".to_owned(), ["get", "create", "update"].into());
    expected
}

/// Resource and verb of every request on a resource, and the answers other than success.
fn asked(events: &[Value], credential: &str) -> (BTreeMap<String, BTreeSet<String>>, Vec<String>) {
    let (mut asked, mut refused): (BTreeMap<String, BTreeSet<String>>, Vec<String>) = Default::default();
    for event in events.iter().filter(|event| credential_of(event) == credential) {
        let Some(object) = event.get("objectRef") else { continue };
        let text = |field: &str| object.get(field).and_then(Value::as_str).unwrap_or_default();
        let dot = if text("apiGroup").is_empty() { "" } else { "." };
        let slash = if text("subresource").is_empty() { "" } else { "/" };
        let resource = format!("{}{dot}{}{slash}{}", text("resource"), text("apiGroup"), text("subresource"));
        let verb = event["verb"].as_str().unwrap_or_default().to_owned();
        if event["responseStatus"]["code"] == 403 {
            refused.push(format!("{verb} {resource} {}", text("namespace")));
        }
        asked.entry(resource).or_default().insert(verb);
    }
    (asked, refused)
}

#[tokio::test(flavor = "multi_thread")]
async fn une_vie_entiere_demande_ces_verbes_et_aucun_autre() {
    let stage = Stage::shared().await;
    let components = stage.components().await;
    let secret =
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "life", "namespace": "navin-platform"}, "data": {"word": ""}});
    stage.control_plane.apply(&secret.to_string()).await.unwrap();
    let reference = json!([{"secretName": "life", "key": "word", "valuePath": "auth.existingSecret"}]);
    let scaled = json!({"minReplicas": 2, "maxReplicas": 3});
    let whole = json!({"secretRefs": reference, "autoscaling": scaled, "pdb": {"maxUnavailable": 1}});
    components.create("web-life", &spec("web", &whole)).await;
    components.create("store-life", &spec("store", &json!({}))).await;
    for name in ["web-life", "store-life"] {
        components.until(name, STARTED).await;
        components.change(name, &json!({"desiredState": "Stopped"})).await;
        components.until(name, STOPPED).await;
        components.delete(name).await;
        components.until_gone(name).await;
    }
    eventually("everything to be in the audit log", PATIENCE, || async {
        let (asked, refused) = asked(&stage.control_plane.audit()?, &stage.operator.credential);
        let asked: BTreeMap<String, BTreeSet<&str>> =
            asked.iter().map(|(resource, verbs)| (resource.clone(), verbs.iter().map(String::as_str).collect())).collect();
        anyhow::ensure!(refused.is_empty(), "the role lacks {refused:?}");
        anyhow::ensure!(asked == expected(), "{asked:#?}");
        Ok(())
    })
    .await;
}

/// The role has exactly the table's verbs: the API server's own list of what the operator may do.
#[tokio::test(flavor = "multi_thread")]
async fn l_api_ne_lui_accorde_rien_d_autre() {
    let stage = Stage::shared().await;
    let cp = &stage.control_plane;
    let review =
        json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectRulesReview", "spec": {"namespace": "navin-platform"}});
    let file = cp.folder().write("review.json", review.to_string()).unwrap();
    let who = ["--as", "system:serviceaccount:navin-system:navin-operator", "--as-group", "system:authenticated"];
    let answer = cp
        .kubectl(&[&["create", "--validate=false", "-o", "json", "-f", file.to_str().unwrap()], &who[..]].concat())
        .await
        .unwrap()
        .ok()
        .unwrap();
    let answer: Value = serde_json::from_str(&answer.stdout).unwrap();
    let mut granted: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let words = |rule: &Value, field: &str| -> Vec<String> {
        rule[field].as_array().into_iter().flatten().filter_map(|word| word.as_str().map(str::to_owned)).collect()
    };
    for rule in answer["status"]["resourceRules"].as_array().unwrap() {
        for (group, resource) in
            words(rule, "apiGroups").iter().flat_map(|group| words(rule, "resources").into_iter().map(move |resource| (group, resource)))
        {
            // Everybody may ask who they are and what they may do.
            if !group.ends_with("authorization.k8s.io") && group != "authentication.k8s.io" {
                granted.entry(resource).or_default().extend(words(rule, "verbs"));
            }
        }
    }
    let verbs = |text: &str| text.split(", ").map(str::to_owned).collect::<BTreeSet<_>>();
    let all = "get, list, watch, create, update, patch, delete";
    let mut table: BTreeMap<String, BTreeSet<String>> = [
        ("managedcomponents", "get, list, watch, update, patch"),
        ("managedcomponents/status", "update"),
        ("managedcomponents/finalizers", "update"),
        ("secrets", "get"),
        ("leases", "get, create, update"),
    ]
    .map(|(resource, granted)| (resource.to_owned(), verbs(granted)))
    .into();
    for resource in [
        "deployments",
        "statefulsets",
        "configmaps",
        "services",
        "serviceaccounts",
        "persistentvolumeclaims",
        "networkpolicies",
        "ingresses",
        "poddisruptionbudgets",
        "horizontalpodautoscalers",
        "scaledobjects",
    ] {
        table.insert(resource.to_owned(), verbs(all));
    }
    assert_eq!(granted, table);
}

/// "Hors cluster, il n'accepte qu'un --kubeconfig explicite accompagné de --api-server, avec la même garde que le manager."
#[tokio::test(flavor = "multi_thread")]
async fn hors_cluster_un_kubeconfig_garde_et_son_adresse() {
    let stage = Stage::shared().await;
    let cp = &stage.control_plane;
    let good = cp.kubeconfig_for("somebody", None).unwrap();
    let text = std::fs::read_to_string(&good).unwrap();
    let with = |name: &str, from: &str, to: &str| {
        assert!(text.contains(from), "{from}");
        cp.folder().write(name, text.replace(from, to)).unwrap()
    };
    let key = serde_json::from_str::<Value>(&text).unwrap()["users"][0]["user"]["client-key-data"].as_str().unwrap().to_owned();
    let exec = with("exec", "\"client-key-data\"", "\"exec\": {\"command\": \"/bin/false\"}, \"client-key-data\"");
    let skip = with("skip", "\"certificate-authority-data\"", "\"insecure-skip-tls-verify\": true, \"certificate-authority-data\"");
    let file = with("file", "\"client-key-data\"", "\"client-key\": \"/etc/key\", \"client-key-data\"");
    let plain = with("plain", "https://", "http://");
    for (kubeconfig, api_server, part) in [
        (&exec, cp.url(), "users[0].user.exec: a plugin would be run"),
        (&skip, cp.url(), "clusters[0].cluster.insecure-skip-tls-verify: the server's certificate must be verified"),
        (&file, cp.url(), "users[0].user.client-key: references to files are not allowed"),
        (&plain, cp.url(), "clusters[0].cluster.server: plain http is not allowed"),
        (&good, "https://127.0.0.1:1", "leads to https://127.0.0.1:"),
        (&good, "http://127.0.0.1:1", "--api-server: `http://127.0.0.1:1` is not of the form"),
        (&cp.folder().join("none"), cp.url(), "none cannot be read"),
    ] {
        let program = system_tests::Program::new("refused", system_tests::binaries().navin_operator).only_given_env();
        let program = program.args(["run", "--namespaces", "default", "--listen", "127.0.0.1:0", "--charts-dir"]).arg(charts());
        let ended =
            program.arg("--kubeconfig").arg(kubeconfig).args(["--api-server", api_server]).run(cp.folder(), PATIENCE).await.unwrap();
        assert!(ended.code() == Some(1) && ended.stderr.contains(part), "{part}: {}", ended.stderr);
        assert!(!ended.stderr.contains(&key[..40]), "{}", ended.stderr);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn sante_et_mesures() {
    let stage = Stage::shared().await;
    let components = stage.components().await;
    components.create("web-measured", &spec("web", &json!({}))).await;
    components.until("web-measured", STARTED).await;
    for path in ["/healthz", "/readyz"] {
        assert_eq!(stage.operator.page(path).await.unwrap(), (200, "{\"status\":\"ok\"}".to_owned()), "{path}");
    }
    let (status, metrics) = stage.operator.page("/metrics").await.unwrap();
    assert!(status == 200 && metrics.ends_with("# EOF\n"));
    for name in [
        "navin_operator_reconciles_total{result=\"told\"} ",
        "navin_operator_step_duration_seconds_count{step=\"render\"} ",
        "navin_operator_step_duration_seconds_count{step=\"dry_run\"} ",
        "navin_operator_queue_length ",
        "navin_operator_convergence_lag_seconds_count ",
        "navin_operator_reaction_seconds_count ",
        "navin_operator_leader 1",
    ] {
        assert!(metrics.contains(name), "{name}: {metrics}");
    }
    assert_eq!(stage.operator.page("/").await.unwrap().0, 404);
}
