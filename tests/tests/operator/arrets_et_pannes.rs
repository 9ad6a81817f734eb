//! Two replicas on a control plane of their own, and what goes wrong: killed and frozen leaders, an API server that goes away, APIs that are
//! dead, KEDA that comes and goes, namespaces and definitions that are deleted.

use std::net::TcpListener;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::{Value, json};
use system_tests::operated::{Components, MANAGED, Operator, PATIENCE, bind, charts, install, spec};
use system_tests::{ControlPlane, eventually};

use crate::{STARTED, credential_of};

/// A minimal definition of KEDA's kind.
const KEDA: &str = r#"{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
  "metadata": {"name": "scaledobjects.keda.sh"},
  "spec": {"group": "keda.sh", "scope": "Namespaced", "names": {"kind": "ScaledObject", "plural": "scaledobjects", "singular": "scaledobject"},
    "versions": [{"name": "v1alpha1", "served": true, "storage": true,
      "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}]}}"#;

#[tokio::test(flavor = "multi_thread")]
async fn deux_replicas_et_des_pannes() {
    let cp = ControlPlane::own().await;
    install(&cp).await.unwrap();
    let components = Components::of(cp.client().await.unwrap(), MANAGED);
    let a = Operator::start(&cp, "a", &[MANAGED, "other"], &charts(), &[]).await.unwrap();
    cp.kubectl(&["create", "namespace", "other"]).await.unwrap().ok().unwrap();
    bind(&cp, "other").await.unwrap();
    a.until_ready().await.unwrap();
    let b = Operator::start(&cp, "b", &[MANAGED, "other"], &charts(), &[]).await.unwrap();
    components.create("web-pannes", &spec("web", &json!({}))).await;
    components.until("web-pannes", STARTED).await;

    le_leader_est_gele_puis_tue(&cp, &components, a, b).await;
    let leader = Operator::start(&cp, "c", &[MANAGED, "other"], &charts(), &[]).await.unwrap();
    le_serveur_d_api_redemarre(&cp, &components).await;
    let _leader = une_api_agregee_est_morte_ou_se_tait(&cp, &components, leader).await;
    keda_arrive_et_repart(&cp, &components).await;
    un_espace_de_noms_est_supprime(&cp).await;
    la_definition_est_supprimee(&cp, &components).await;
}

/// Known faults, kind 24: whoever writes, the other does not. The audit log says who wrote when.
async fn le_leader_est_gele_puis_tue(cp: &ControlPlane, components: &Components, a: Operator, b: Operator) {
    let mut greeting = 0;
    let mut change = || {
        greeting += 1;
        json!({"values": {"greeting": format!("n{greeting}")}})
    };
    // Frozen in the middle of work: for all it knows it still leads when it wakes up.
    components.change("web-pannes", &change()).await;
    a.process.signal(Signal::STOP);
    components.change("web-pannes", &change()).await;
    components.until("web-pannes", STARTED).await;
    a.process.signal(Signal::CONT);
    components.change("web-pannes", &change()).await;
    components.until("web-pannes", STARTED).await;
    // An orderly end: the other leads at once.
    let asked = std::time::Instant::now();
    b.process.terminate();
    assert_eq!(b.process.wait(PATIENCE).await.unwrap(), system_tests::Exit::Code(0));
    a.until_ready().await.unwrap();
    assert!(asked.elapsed() < Duration::from_secs(12), "a released Lease need not run out: {:?}", asked.elapsed());
    components.change("web-pannes", &change()).await;
    components.until("web-pannes", STARTED).await;
    // Killed while it writes.
    components.change("web-pannes", &change()).await;
    a.process.kill_hard();
    let c = Operator::start(cp, "d", &[MANAGED, "other"], &charts(), &[]).await.unwrap();
    components.change("web-pannes", &change()).await;
    components.until("web-pannes", STARTED).await;
    let events = cp.audit().unwrap();
    let mut terms: Vec<&str> = Vec::new();
    for event in events.iter().filter(|event| writes(event)) {
        let who = credential_of(event);
        if terms.last() != Some(&who) {
            terms.push(who);
        }
    }
    let expected = [&a.credential, &b.credential, &a.credential, &c.credential].map(String::as_str);
    assert_eq!(terms, expected, "each wrote while it led, and at no other time");
    c.process.terminate();
    c.process.wait(PATIENCE).await.unwrap();
}

/// Whether an event is a write of anything but the Lease.
fn writes(event: &Value) -> bool {
    let verb = event["verb"].as_str().unwrap_or_default();
    ["create", "update", "patch", "delete"].contains(&verb) && event["objectRef"]["resource"] != "leases"
}

async fn le_serveur_d_api_redemarre(cp: &ControlPlane, components: &Components) {
    components.change("web-pannes", &json!({"values": {"greeting": "before"}})).await;
    cp.stop_apiserver().await.unwrap();
    cp.start_apiserver().await.unwrap();
    eventually("a change", PATIENCE, || async {
        let patch = ["patch", "mc", "-n", MANAGED, "web-pannes", "--type=merge", "-p", r#"{"spec": {"values": {"greeting": "after"}}}"#];
        cp.kubectl(&patch).await?.ok().map(drop)
    })
    .await;
    components.until("web-pannes", STARTED).await;
    let map = components.object("v1", "ConfigMap", "web-pannes").await.unwrap().unwrap();
    assert_eq!(map["data"]["greeting"], "after");
    // Watches are there again: what somebody deletes comes back.
    components.api("v1", "Service").delete("web-pannes", &Default::default()).await.unwrap();
    eventually("the Service to be there again", PATIENCE, || async {
        anyhow::ensure!(components.object("v1", "Service", "web-pannes").await?.is_some(), "not yet");
        Ok(())
    })
    .await;
}

/// One whose server is nowhere, and one that takes connections and says nothing; each to an operator that begins beside it.
async fn une_api_agregee_est_morte_ou_se_tait(cp: &ControlPlane, components: &Components, mut leader: Operator) -> Operator {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = silent.local_addr().unwrap().port();
    cp.apply(
        r#"{"apiVersion": "v1", "kind": "Service", "metadata": {"name": "silent", "namespace": "default"},
        "spec": {"type": "ExternalName", "externalName": "localhost"}}"#,
    )
    .await
    .unwrap();
    for (name, port) in [("nobody", 443), ("silent", port)] {
        let api = json!({"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": {"name": "v1beta1.metrics.k8s.io"},
            "spec": {"group": "metrics.k8s.io", "version": "v1beta1", "insecureSkipTLSVerify": true, "groupPriorityMinimum": 100,
                "versionPriority": 100, "service": {"name": name, "namespace": "default", "port": port}}});
        cp.apply(&api.to_string()).await.unwrap();
        leader.process.terminate();
        leader.process.wait(PATIENCE).await.unwrap();
        leader = Operator::start(cp, name, &[MANAGED, "other"], &charts(), &[]).await.unwrap();
        leader.until_ready().await.unwrap();
        let component = format!("web-{name}");
        components.create(&component, &spec("web", &json!({}))).await;
        components.until(&component, STARTED).await;
        components.delete(&component).await;
        components.until_gone(&component).await;
        // No namespace would go while it is there: so Kubernetes has it.
        cp.kubectl(&["delete", "apiservice", "v1beta1.metrics.k8s.io"]).await.unwrap().ok().unwrap();
    }
    leader
}

async fn keda_arrive_et_repart(cp: &ControlPlane, components: &Components) {
    components.create("web-keda", &spec("web", &json!({"autoscaling": {"minReplicas": 2, "maxReplicas": 4, "engine": "keda"}}))).await;
    components.until_reason("web-keda", "KedaNotServed").await;
    cp.apply(KEDA).await.unwrap();
    components.until("web-keda", STARTED).await;
    let scaler = components.object("keda.sh/v1alpha1", "ScaledObject", "web-keda-deployment").await.unwrap().unwrap();
    assert_eq!((&scaler["spec"]["minReplicaCount"], &scaler["spec"]["maxReplicaCount"]), (&json!(2), &json!(4)));
    components.change("web-keda", &json!({"desiredState": "Stopped"})).await;
    components.until("web-keda", crate::STOPPED).await;
    let scaler = components.object("keda.sh/v1alpha1", "ScaledObject", "web-keda-deployment").await.unwrap().unwrap();
    assert_eq!(scaler["metadata"]["annotations"]["autoscaling.keda.sh/paused-replicas"], "0");
    cp.kubectl(&["delete", "crd", "scaledobjects.keda.sh"]).await.unwrap().ok().unwrap();
    eventually("KEDA to be gone", PATIENCE, || async {
        let groups = cp.kubectl(&["get", "--raw", "/apis/keda.sh"]).await?;
        anyhow::ensure!(groups.code() == Some(1), "it is served");
        Ok(())
    })
    .await;
    components.change("web-keda", &json!({"desiredState": "Running"})).await;
    components.until_reason("web-keda", "KedaNotServed").await;
    components.delete("web-keda").await;
    components.until_gone("web-keda").await;
}

/// Known faults, kind 17. The namespace takes the operator's RoleBinding with it, so that a component may outlive the right to let it go: then an
/// administrator does what the page says.
async fn un_espace_de_noms_est_supprime(cp: &ControlPlane) {
    let components = Components::of(cp.client().await.unwrap(), "other");
    components.create("web-other", &spec("web", &json!({}))).await;
    components.until("web-other", STARTED).await;
    cp.kubectl(&["delete", "namespace", "other", "--wait=false"]).await.unwrap().ok().unwrap();
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/operator.md")).unwrap();
    let told = "kubectl patch mc -n NAMESPACE NAME --type=merge -p '{\"metadata\":{\"finalizers\":null}}'";
    assert!(page.contains(told), "the page says what to do");
    eventually("the RoleBinding to be gone", PATIENCE, || async {
        anyhow::ensure!(components.object("rbac.authorization.k8s.io/v1", "RoleBinding", "navin-operator").await?.is_none(), "it is there");
        Ok(())
    })
    .await;
    let patch = ["patch", "mc", "-n", "other", "web-other", "--type=merge", "-p", r#"{"metadata":{"finalizers":null}}"#];
    let patched = cp.kubectl(&patch).await.unwrap();
    assert!(patched.success() || patched.stderr.contains("NotFound"), "{}", patched.stderr);
    eventually("the namespace to be gone", PATIENCE, || async {
        let namespace = cp.kubectl(&["get", "namespace", "other"]).await?;
        anyhow::ensure!(namespace.stderr.contains("NotFound"), "{}", namespace.stdout);
        Ok(())
    })
    .await;
}

/// Its resources are deleted first, and with them what they had applied.
async fn la_definition_est_supprimee(cp: &ControlPlane, components: &Components) {
    cp.kubectl(&["delete", "crd", "managedcomponents.platform.navin.ai", "--timeout=60s"]).await.unwrap().ok().unwrap();
    assert_eq!(components.owned("apps/v1", "Deployment", "web-pannes").await.unwrap(), [""; 0]);
}
