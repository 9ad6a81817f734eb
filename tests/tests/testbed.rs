//! The testbed itself: what the other tests take for granted about its parts is seen to be true here.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{ConfigMap, ServiceAccount};
use kube::api::{Api, ListParams, ObjectMeta, PostParams};
use serde_json::json;
use system_tests::{ControlPlane, SignedToken, eventually};

const PATIENCE: Duration = Duration::from_secs(60);

fn config_map(name: &str) -> ConfigMap {
    ConfigMap { metadata: ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() }, ..ConfigMap::default() }
}

fn status(error: kube::Error) -> (u16, String) {
    match error {
        kube::Error::Api(status) => (status.code, status.message),
        other => panic!("not an answer of the API: {other:?}"),
    }
}

/// A Deployment and a Job whose pods have this fate.
fn workload(fate: Option<&str>) -> String {
    let annotations = fate.map_or(json!({}), |fate| json!({ "testbed.clicklink.io/pod": fate }));
    let container = json!([{ "name": "main", "image": "registry.invalid/none@sha256:00" }]);
    let deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": "web" },
        "spec": {
            "replicas": 2,
            "selector": { "matchLabels": { "app": "web" } },
            "template": { "metadata": { "labels": { "app": "web" }, "annotations": annotations }, "spec": { "containers": container } },
        },
    });
    let job = json!({
        "apiVersion": "batch/v1", "kind": "Job", "metadata": { "name": "once" },
        "spec": {
            "backoffLimit": 0,
            "template": { "metadata": { "annotations": annotations }, "spec": { "containers": container, "restartPolicy": "Never" } },
        },
    });
    format!("{deployment}\n---\n{job}\n")
}

async fn apply_workload(cp: &ControlPlane, fate: Option<&str>) -> (Api<Deployment>, Api<Job>, String) {
    let namespace = cp.namespace("workload").await.unwrap();
    let file = cp.folder().write(format!("{namespace}.yaml"), workload(fate)).unwrap();
    let applied = cp.kubectl(&["apply", "-n", &namespace, "-f", file.to_str().unwrap()]).await;
    applied.unwrap().ok().unwrap();
    let client = cp.client().await.unwrap();
    (Api::namespaced(client.clone(), &namespace), Api::namespaced(client, &namespace), namespace)
}

async fn until_available(deployments: &Api<Deployment>, wanted: i32) {
    eventually("the Deployment's available replicas", PATIENCE, || async {
        let status = deployments.get("web").await?.status.unwrap_or_default();
        anyhow::ensure!(status.available_replicas == Some(wanted), "{status:?}");
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn an_unknown_user_is_denied_by_rbac() {
    let cp = ControlPlane::shared().await;
    let kubeconfig = cp.kubeconfig_for("nobody-in-particular", Some("guests")).unwrap();
    let client = cp.client_from(&kubeconfig).await.unwrap();
    let answer = Api::<ConfigMap>::namespaced(client, "default").list(&ListParams::default()).await;
    let (code, message) = status(answer.unwrap_err());
    assert_eq!(code, 403, "{message}");
    assert!(message.contains("nobody-in-particular"), "{message}");
}

#[tokio::test]
async fn kubectl_and_the_server_say_their_version() {
    let cp = ControlPlane::shared().await;
    let version = cp.kubectl(&["version", "-o", "json"]).await.unwrap().ok().unwrap();
    let version: serde_json::Value = serde_json::from_str(&version.stdout).unwrap();
    assert_eq!(version["serverVersion"]["minor"], "37");
    assert_eq!(version["clientVersion"]["minor"], "37");
}

#[tokio::test]
async fn a_deployment_gets_ready_and_a_job_completes() {
    let cp = ControlPlane::shared().await;
    let (deployments, jobs, _) = apply_workload(&cp, None).await;
    until_available(&deployments, 2).await;
    eventually("the Job's completion", PATIENCE, || async {
        let status = jobs.get("once").await?.status.unwrap_or_default();
        anyhow::ensure!(status.succeeded == Some(1) && status.completion_time.is_some(), "{status:?}");
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn an_annotation_makes_pods_fail() {
    let cp = ControlPlane::shared().await;
    let (deployments, jobs, namespace) = apply_workload(&cp, Some("fail")).await;
    eventually("the Job's failure", PATIENCE, || async {
        let status = jobs.get("once").await?.status.unwrap_or_default();
        anyhow::ensure!(status.failed == Some(1), "{status:?}");
        Ok(())
    })
    .await;
    eventually("containers that crash", PATIENCE, || async {
        let reason = "jsonpath={.items[*].status.containerStatuses[*].state.waiting.reason}";
        let seen = cp.kubectl(&["get", "pods", "-n", &namespace, "-l", "app=web", "-o", reason]).await?.ok()?;
        anyhow::ensure!(seen.stdout == "CrashLoopBackOff CrashLoopBackOff", "{}", seen.stdout);
        Ok(())
    })
    .await;
    let status = deployments.get("web").await.unwrap().status.unwrap_or_default();
    assert_eq!(status.available_replicas.unwrap_or_default(), 0);
}

#[tokio::test]
async fn an_annotation_keeps_pods_unready_until_it_is_removed() {
    let cp = ControlPlane::shared().await;
    let (deployments, _, namespace) = apply_workload(&cp, Some("unready")).await;
    eventually("pods that run", PATIENCE, || async {
        let phase = "jsonpath={.items[*].status.phase}";
        let phases = cp.kubectl(&["get", "pods", "-n", &namespace, "-l", "app=web", "-o", phase]).await?.ok()?;
        anyhow::ensure!(phases.stdout == "Running Running", "{}", phases.stdout);
        Ok(())
    })
    .await;
    let status = deployments.get("web").await.unwrap().status.unwrap_or_default();
    assert_eq!(status.available_replicas.unwrap_or_default(), 0);
    let released = cp.kubectl(&["annotate", "pods", "-n", &namespace, "-l", "app=web", "testbed.clicklink.io/pod-"]).await;
    released.unwrap().ok().unwrap();
    until_available(&deployments, 2).await;
}

async fn account(cp: &ControlPlane, namespace: &str) -> (String, String) {
    let accounts = Api::<ServiceAccount>::namespaced(cp.client().await.unwrap(), namespace);
    let account =
        ServiceAccount { metadata: ObjectMeta { name: Some("robot".to_owned()), ..ObjectMeta::default() }, ..ServiceAccount::default() };
    let created = accounts.create(&PostParams::default(), &account).await.unwrap();
    ("robot".to_owned(), created.metadata.uid.unwrap())
}

/// `kubectl auth whoami` with a token: exit code, stdout and stderr.
async fn whoami(cp: &ControlPlane, token: &SignedToken) -> (Option<i32>, String, String) {
    let kubeconfig = cp.kubeconfig_with_token(&format!("token-{}", token.id), &token.token).unwrap();
    let answer = cp.kubectl_as(&kubeconfig, &["auth", "whoami", "-o", "json"]).await.unwrap();
    (answer.code(), answer.stdout, answer.stderr)
}

#[tokio::test]
async fn a_signed_token_is_accepted_and_an_expired_one_is_not() {
    let cp = ControlPlane::shared().await;
    let namespace = cp.namespace("tokens").await.unwrap();
    let (name, uid) = account(&cp, &namespace).await;

    let short = cp.sign_token(&namespace, &name, &uid, jiff::SignedDuration::from_secs(30)).unwrap();
    let (code, stdout, stderr) = whoami(&cp, &short).await;
    assert_eq!(code, Some(0), "{stderr}");
    let answer: serde_json::Value = serde_json::from_str(&stdout).unwrap();
    let user = &answer["status"]["userInfo"];
    assert_eq!(user["username"], format!("system:serviceaccount:{namespace}:robot"));
    assert_eq!(user["extra"]["authentication.kubernetes.io/credential-id"], json!([format!("JTI={}", short.id)]));

    // The server allows a minute for clocks that differ.
    let just_expired = cp.sign_token(&namespace, &name, &uid, jiff::SignedDuration::from_secs(-5)).unwrap();
    assert_eq!(whoami(&cp, &just_expired).await.0, Some(0));

    let expired = cp.sign_token(&namespace, &name, &uid, jiff::SignedDuration::from_secs(-120)).unwrap();
    let other_uid = cp.sign_token(&namespace, &name, "somebody-else", jiff::SignedDuration::from_secs(30)).unwrap();
    for refused in [expired, other_uid] {
        let (code, _, stderr) = whoami(&cp, &refused).await;
        assert_ne!(code, Some(0));
        assert!(stderr.contains("Unauthorized") || stderr.contains("logged in"), "{stderr}");
        let url = format!("{}/api/v1/namespaces/{namespace}/configmaps", cp.url());
        let ca = reqwest::Certificate::from_pem(cp.ca().as_bytes()).unwrap();
        let http = reqwest::Client::builder().no_proxy().tls_certs_only([ca]).build().unwrap();
        let answer = http.get(url).bearer_auth(&refused.token).send().await.unwrap();
        assert_eq!(answer.status(), 401);
    }
}

#[tokio::test]
async fn the_server_issues_tokens_itself() {
    let cp = ControlPlane::shared().await;
    let namespace = cp.namespace("tokens").await.unwrap();
    let (name, _) = account(&cp, &namespace).await;
    let token = cp.kubectl(&["create", "token", "-n", &namespace, &name, "--duration", "600s"]).await;
    let token = token.unwrap().ok().unwrap().stdout.trim().to_owned();
    let kubeconfig = cp.kubeconfig_with_token("robot", &token).unwrap();
    let answer = cp.kubectl_as(&kubeconfig, &["auth", "whoami"]).await.unwrap().ok().unwrap();
    assert!(answer.stdout.contains(&format!("system:serviceaccount:{namespace}:robot")), "{}", answer.stdout);
}

#[tokio::test]
async fn an_admission_policy_denies() {
    let cp = ControlPlane::shared().await;
    let namespace = cp.namespace("admission").await.unwrap();
    let policy = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy",
        "metadata": { "name": namespace },
        "spec": {
            "matchConstraints": { "resourceRules": [{
                "apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"],
            }] },
            "validations": [{ "expression": "object.metadata.name != 'forbidden'", "message": "this name is not liked" }],
        },
    });
    let binding = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": { "name": namespace },
        "spec": {
            "policyName": namespace,
            "validationActions": ["Deny"],
            "matchResources": { "namespaceSelector": { "matchLabels": { "kubernetes.io/metadata.name": namespace } } },
        },
    });
    cp.apply(&format!("{policy}\n---\n{binding}\n")).await.unwrap();
    let config_maps = Api::<ConfigMap>::namespaced(cp.client().await.unwrap(), &namespace);
    let dry_run = PostParams { dry_run: true, ..PostParams::default() };
    let (code, message) = eventually("the policy's effect", PATIENCE, || async {
        match config_maps.create(&dry_run, &config_map("forbidden")).await {
            Ok(_) => anyhow::bail!("still allowed"),
            Err(error) => Ok(status(error)),
        }
    })
    .await;
    assert_eq!(code, 422, "{message}");
    assert!(message.contains("this name is not liked"), "{message}");
    config_maps.create(&PostParams::default(), &config_map("allowed")).await.unwrap();
}

#[tokio::test]
async fn the_api_server_stops_and_comes_back_with_its_data() {
    let (cp, other) = tokio::join!(ControlPlane::own(), ControlPlane::own());
    assert_ne!(cp.url(), other.url());
    let config_maps = Api::<ConfigMap>::namespaced(cp.client().await.unwrap(), "default");
    config_maps.create(&PostParams::default(), &config_map("kept")).await.unwrap();
    cp.stop_apiserver().await.unwrap();
    let down = Api::<ConfigMap>::namespaced(cp.client().await.unwrap(), "default").get("kept").await;
    assert!(down.is_err());
    let there = Api::<ConfigMap>::namespaced(other.client().await.unwrap(), "default").list(&ListParams::default()).await;
    there.unwrap();
    cp.start_apiserver().await.unwrap();
    let again = Api::<ConfigMap>::namespaced(cp.client().await.unwrap(), "default").get("kept").await;
    assert_eq!(again.unwrap().metadata.name.as_deref(), Some("kept"));
}
