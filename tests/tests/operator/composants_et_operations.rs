//! The table "Composants et opérations", row by row, each on a component of its own.

use serde_json::{Value, json};
use system_tests::eventually;
use system_tests::operated::{Components, PATIENCE, Stage, condition, spec};

use crate::{STARTED, STOPPED};

/// `spec.replicas` of a Deployment.
async fn replicas(components: &Components, name: &str) -> Value {
    components.deployment(name).await["spec"]["replicas"].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn installation_cree_le_composant() {
    let stage = Stage::shared().await;
    let components = stage.components().await;
    components.create("web-install", &spec("web", &json!({"version": "1.0.0", "values": {"greeting": "bonjour"}}))).await;
    let component = components.until("web-install", STARTED).await;
    assert_eq!(component["status"]["version"], "1.0.0");
    assert_eq!((&component["status"]["available"], &component["status"]["wanted"]), (&json!(2), &json!(2)));
    assert_eq!(component["metadata"]["finalizers"], json!(["platform.navin.ai/cleanup"]));
    let inventory = component["status"]["inventory"].as_array().unwrap();
    let mut kinds: Vec<&str> = inventory.iter().map(|item| item["kind"].as_str().unwrap()).collect();
    kinds.sort_unstable();
    assert_eq!(kinds, ["ConfigMap", "Deployment", "NetworkPolicy", "Service", "ServiceAccount"]);
    let map = components.object("v1", "ConfigMap", "web-install").await.unwrap().unwrap();
    assert_eq!(map["data"]["greeting"], "bonjour");
    assert_eq!(map["metadata"]["labels"]["platform.navin.ai/component"], "web-install");
    assert_eq!(map["metadata"]["managedFields"][0]["manager"], "navin-operator");
    assert_eq!(map["metadata"].get("ownerReferences"), None, "labels and an inventory tell whose it is");
}

#[tokio::test(flavor = "multi_thread")]
async fn demarrage_et_arret_mettent_toutes_les_charges_a_zero_et_les_ramenent() {
    let stage = Stage::shared().await;
    let components = stage.components().await;
    components.create("web-stop", &spec("web", &json!({"replicas": 3}))).await;
    components.until("web-stop", STARTED).await;
    components.change("web-stop", &json!({"desiredState": "Stopped"})).await;
    components.until("web-stop", STOPPED).await;
    assert_eq!((replicas(&components, "web-stop").await, components.pods("web-stop").await.unwrap().len()), (json!(0), 0));
    // A restart makes no pods of what is stopped.
    components.change("web-stop", &json!({"restartRequestedAt": "2026-11-30T10:00:00Z"})).await;
    components.until("web-stop", STOPPED).await;
    assert_eq!(components.pods("web-stop").await.unwrap().len(), 0);
    components.change("web-stop", &json!({"desiredState": "Running"})).await;
    let component = components.until("web-stop", STARTED).await;
    assert_eq!((replicas(&components, "web-stop").await, component["status"].get("keptReplicas")), (json!(3), None));
}

#[tokio::test(flavor = "multi_thread")]
async fn redemarrage_remplace_chaque_pod_une_fois() {
    let stage = Stage::shared().await;
    let components = stage.components().await;
    components.create("web-restart", &spec("web", &json!({}))).await;
    components.until("web-restart", STARTED).await;
    let uids = || async {
        let pods = components.pods("web-restart").await.unwrap();
        let mut uids: Vec<String> = pods.into_iter().filter_map(|pod| pod.metadata.uid).collect();
        uids.sort();
        uids
    };
    let mut before = uids().await;
    for at in ["2026-11-30T10:00:00Z", "2026-11-30T11:00:00Z"] {
        components.change("web-restart", &json!({"restartRequestedAt": at})).await;
        components.until("web-restart", STARTED).await;
        let annotations = components.deployment("web-restart").await["spec"]["template"]["metadata"]["annotations"].clone();
        assert_eq!(annotations, json!({"platform.navin.ai/restarted-at": at}));
        let after = uids().await;
        assert!(after.len() == 2 && after.iter().all(|uid| !before.contains(uid)), "{before:?} {after:?}");
        before = after;
    }
    let deployment = components.deployment("web-restart").await;
    assert_eq!(deployment["metadata"]["annotations"]["deployment.kubernetes.io/revision"], "3", "one rollout for each request");
    // A rollout of somebody else's stays.
    let patch = json!({"spec": {"template": {"metadata": {"annotations": {"kubectl.kubernetes.io/restartedAt": "2026-11-30T12:00:00Z"}}}}});
    let patch = kube::api::Patch::Merge(patch);
    components.api("apps/v1", "Deployment").patch("web-restart", &kube::api::PatchParams::default(), &patch).await.unwrap();
    components.change("web-restart", &json!({"values": {"greeting": "again"}})).await;
    components.until("web-restart", STARTED).await;
    let annotations = components.deployment("web-restart").await["spec"]["template"]["metadata"]["annotations"].clone();
    assert_eq!(annotations.as_object().unwrap().len(), 2, "{annotations}");
}

#[tokio::test(flavor = "multi_thread")]
async fn mise_a_l_echelle_par_replicas() {
    let stage = Stage::shared().await;
    let components = stage.components().await;
    components.create("web-scale", &spec("web", &json!({}))).await;
    components.until("web-scale", STARTED).await;
    for count in [5, 1] {
        components.change("web-scale", &json!({"replicas": count})).await;
        let component = components.until("web-scale", STARTED).await;
        assert_eq!((replicas(&components, "web-scale").await, &component["status"]["wanted"]), (json!(count), &json!(count)));
    }
    components.change("web-scale", &json!({"replicas": null})).await;
    components.until("web-scale", STARTED).await;
    assert_eq!(replicas(&components, "web-scale").await, 2, "the chart's count returns");
}

#[tokio::test(flavor = "multi_thread")]
async fn mise_a_l_echelle_par_hpa() {
    let stage = Stage::shared().await;
    let components = stage.components().await;
    let scaler = json!({"minReplicas": 3, "maxReplicas": 6, "targetCPUUtilizationPercentage": 70});
    components.create("web-hpa", &spec("web", &json!({"autoscaling": scaler}))).await;
    components.until("web-hpa", STARTED).await;
    let hpa = components.object("autoscaling/v2", "HorizontalPodAutoscaler", "web-hpa-deployment").await.unwrap().unwrap();
    assert_eq!(hpa["spec"]["metrics"][0]["resource"]["target"]["averageUtilization"], 70);
    eventually("the autoscaler's trouble to be told", PATIENCE, || async {
        let component = components.get("web-hpa").await?.unwrap();
        let told = condition(&component, "OperationSucceeded")["message"].to_string();
        let expected =
            "HorizontalPodAutoscaler.autoscaling navin-platform/web-hpa-deployment does not scale: ScalingActive FailedGetResourceMetric";
        anyhow::ensure!(told.contains(expected), "{told}");
        Ok(())
    })
    .await;
    // There is no metrics-server: who scales by hand stands in for it. The count is the autoscaler's, and nobody writes it.
    let scale = kube::api::Patch::Merge(json!({"spec": {"replicas": 5}}));
    components
        .api("apps/v1", "Deployment")
        .patch("web-hpa", &kube::api::PatchParams::apply("kube-controller-manager"), &scale)
        .await
        .unwrap();
    eventually("five pods", PATIENCE, || async {
        let component = components.get("web-hpa").await?.unwrap();
        anyhow::ensure!(component["status"]["available"] == 5, "{}", component["status"]);
        Ok(())
    })
    .await;
    components.change("web-hpa", &json!({"values": {"greeting": "scaled"}})).await;
    components.until("web-hpa", STARTED).await;
    assert_eq!(replicas(&components, "web-hpa").await, 5);
    components.change("web-hpa", &json!({"desiredState": "Stopped"})).await;
    components.until("web-hpa", STOPPED).await;
    components.change("web-hpa", &json!({"desiredState": "Running"})).await;
    components.until("web-hpa", STARTED).await;
    assert_eq!(replicas(&components, "web-hpa").await, 5, "a start brings back what the autoscaler held");
    components.change("web-hpa", &json!({"autoscaling": null, "replicas": 2})).await;
    components.until("web-hpa", STARTED).await;
    assert_eq!(replicas(&components, "web-hpa").await, 2, "the declared count returns");
    assert_eq!(components.owned("autoscaling/v2", "HorizontalPodAutoscaler", "web-hpa").await.unwrap(), [""; 0]);
    components.change("web-hpa", &json!({"autoscaling": {"minReplicas": 1, "maxReplicas": 2, "engine": "keda"}})).await;
    components.until_reason("web-hpa", "KedaNotServed").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn configuration_donne_de_nouvelles_entrees_au_chart() {
    let stage = Stage::shared().await;
    let components = stage.components().await;
    components.create("web-configure", &spec("web", &json!({"values": {"extra": true}}))).await;
    components.until("web-configure", STARTED).await;
    let maps = || async { components.owned("v1", "ConfigMap", "web-configure").await.unwrap() };
    assert_eq!(maps().await, ["web-configure", "web-configure-extra", "web-configure-kept"]);
    components.change("web-configure", &json!({"values": {"extra": false, "greeting": "salut"}})).await;
    components.until("web-configure", STARTED).await;
    eventually("what is no longer rendered to go", PATIENCE, || async {
        let maps = maps().await;
        anyhow::ensure!(maps == ["web-configure", "web-configure-kept"], "{maps:?}");
        Ok(())
    })
    .await;
    // A reference to a Secret: its name is given to the chart, and the key has to be there.
    let reference = json!([{"secretName": "web-word", "key": "word", "valuePath": "auth.existingSecret"}]);
    components.change("web-configure", &json!({"secretRefs": reference})).await;
    let told = components.until_reason("web-configure", "SecretNotFound").await;
    assert!(told.contains("secretRefs[0]: Secret `web-word` is not there"), "{told}");
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "web-word", "namespace": "navin-platform"},
        "stringData": {"word": "planted-5e0b7a"}});
    stage.control_plane.apply(&secret.to_string()).await.unwrap();
    components.until("web-configure", STARTED).await;
    let deployment = components.deployment("web-configure").await;
    let variable = &deployment["spec"]["template"]["spec"]["containers"][0]["env"][1]["valueFrom"]["secretKeyRef"];
    assert_eq!(variable["name"], "web-word");
    assert!(!stage.operator.process.log_tail(100_000).contains("planted-5e0b7a"), "what a Secret holds is never logged");
    components.change("web-configure", &json!({"version": "9.9.9"})).await;
    let told = components.until_reason("web-configure", "VersionMismatch").await;
    assert_eq!(told, "version: the spec says 9.9.9, the chart is web 1.0.0");
    let component = components.until("web-configure", "started ok failed unknown false").await;
    assert_eq!(component["status"]["version"], "1.0.0", "what runs is what ran");
}

#[tokio::test(flavor = "multi_thread")]
async fn suppression_retire_tous_les_objets_puis_la_ressource() {
    let stage = Stage::shared().await;
    let components = stage.components().await;
    let charts = stage.charts;
    // A chart that is gone by then is not needed.
    for file in ["Chart.yaml", "values.yaml", "templates/all.yaml"] {
        charts.folder("passing/templates").unwrap();
        charts.write(format!("passing/{file}"), std::fs::read(charts.join(format!("web/{file}"))).unwrap()).unwrap();
    }
    components.create("web-delete", &spec("passing", &json!({"values": {"extra": true}, "pdb": {"minAvailable": 1}}))).await;
    components.until("web-delete", STARTED).await;
    std::fs::remove_dir_all(charts.join("passing")).unwrap();
    components.delete("web-delete").await;
    components.until_gone("web-delete").await;
    for (api_version, kind) in [
        ("v1", "ConfigMap"),
        ("v1", "Service"),
        ("v1", "ServiceAccount"),
        ("apps/v1", "Deployment"),
        ("networking.k8s.io/v1", "NetworkPolicy"),
        ("policy/v1", "PodDisruptionBudget"),
    ] {
        assert_eq!(components.owned(api_version, kind, "web-delete").await.unwrap(), [""; 0], "{kind}");
    }
    assert_eq!(components.pods("web-delete").await.unwrap().len(), 0, "its pods went first");
}
