//! The table of four dimensions, as far as real controllers bring each value about.

use kube::api::{Patch, PatchParams};
use serde_json::json;
use system_tests::eventually;
use system_tests::operated::{PATIENCE, Stage, condition, spec};

use crate::STARTED;

#[tokio::test(flavor = "multi_thread")]
async fn state_et_health_sont_observes_sur_les_charges_reelles() {
    let stage = Stage::shared().await;
    let components = stage.components().await;
    components.create("web-seen", &spec("web", &json!({"replicas": 2}))).await;
    components.until("web-seen", STARTED).await;
    let pods = components.pods("web-seen").await.unwrap();
    components.harm(&pods[..1]).await;
    components.until("web-seen", "starting warning succeeded compliant false").await;
    components.harm(&pods[1..]).await;
    components.until("web-seen", "starting critical succeeded compliant false").await;
    components.heal(&pods).await;
    components.until("web-seen", STARTED).await;
    // What somebody deletes comes back.
    components.api("v1", "Service").delete("web-seen", &Default::default()).await.unwrap();
    components.api("apps/v1", "Deployment").delete("web-seen", &Default::default()).await.unwrap();
    system_tests::eventually("both to be there again", system_tests::operated::PATIENCE, || async {
        for (api_version, kind) in [("v1", "Service"), ("apps/v1", "Deployment")] {
            anyhow::ensure!(components.object(api_version, kind, "web-seen").await?.is_some(), "no {kind}");
        }
        Ok(())
    })
    .await;
    components.until("web-seen", STARTED).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn un_statefulset_dit_ce_qui_garde_une_ancienne_revision() {
    let stage = Stage::shared().await;
    let components = stage.components().await;
    components.create("store-held", &spec("store", &json!({"values": {"partition": 1}}))).await;
    components.until("store-held", STARTED).await;
    components.change("store-held", &json!({"values": {"partition": 1, "note": "b"}})).await;
    components.until("store-held", "starting ok blocked compliant false").await;
    let told = components.until_reason("store-held", "Partition").await;
    assert!(told.contains("1 replicas keep an older revision (partition 1)"), "{told}");
    components.change("store-held", &json!({"values": {"partition": 0, "note": "b"}})).await;
    components.until("store-held", STARTED).await;
    components.change("store-held", &json!({"values": {"strategy": "OnDelete", "note": "c"}})).await;
    let told = components.until_reason("store-held", "OnDelete").await;
    assert!(told.contains("2 replicas have an older revision"), "{told}");
}

/// Known faults, kind 2: a field that cannot change is found before the first write, and named.
#[tokio::test(flavor = "multi_thread")]
async fn operation_state_un_champ_immuable_est_nomme_avant_toute_ecriture() {
    let stage = Stage::shared().await;
    let components = stage.components().await;
    components.create("store-fixed", &spec("store", &json!({}))).await;
    components.until("store-fixed", STARTED).await;
    let service = components.object("v1", "Service", "store-fixed").await.unwrap().unwrap();
    components.change("store-fixed", &json!({"values": {"serviceName": "another", "note": "b"}})).await;
    let told = components.until_reason("store-fixed", "ImmutableField").await;
    assert!(told.contains("StatefulSet.apps navin-platform/store-fixed"), "{told}");
    components.until("store-fixed", "started ok failed unknown false").await;
    let now = components.object("v1", "Service", "store-fixed").await.unwrap().unwrap();
    assert_eq!(now["metadata"]["resourceVersion"], service["metadata"]["resourceVersion"]);
    components.change("store-fixed", &json!({"values": null})).await;
    components.until("store-fixed", STARTED).await;
}

/// Known faults, kind 12: a field of somebody else's is told, never forced.
#[tokio::test(flavor = "multi_thread")]
async fn operation_state_un_conflit_est_dit_et_jamais_force() {
    let stage = Stage::shared().await;
    let components = stage.components().await;
    components.create("web-conflict", &spec("web", &json!({}))).await;
    components.until("web-conflict", STARTED).await;
    let map = components.api("v1", "ConfigMap");
    let edit = |text: &str| Patch::Merge(json!({"data": {"greeting": text}}));
    let by = PatchParams { field_manager: Some("kubectl-edit".into()), ..PatchParams::default() };
    map.patch("web-conflict", &by, &edit("edited")).await.unwrap();
    let told = components.until_reason("web-conflict", "FieldConflict").await;
    assert_eq!(told, "ConfigMap navin-platform/web-conflict: field conflict: .data.greeting is owned by `kubectl-edit`");
    let component = components.get("web-conflict").await.unwrap().unwrap();
    assert_eq!(condition(&component, "Converged")["status"], "False");
    let live = components.object("v1", "ConfigMap", "web-conflict").await.unwrap().unwrap();
    assert_eq!(live["data"]["greeting"], "edited");
    // It keeps nothing else from coming back.
    components.api("v1", "Service").delete("web-conflict", &Default::default()).await.unwrap();
    eventually("the Service to be there again", PATIENCE, || async {
        anyhow::ensure!(components.object("v1", "Service", "web-conflict").await?.is_some(), "not yet");
        Ok(())
    })
    .await;
    map.patch("web-conflict", &by, &edit("hello")).await.unwrap();
    components.until("web-conflict", STARTED).await;
    // An object that was there before is nobody's to take.
    let foreign = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "web-foreign"}, "data": {"mine": "1"}});
    map.create(&Default::default(), &serde_json::from_value(foreign).unwrap()).await.unwrap();
    components.create("web-foreign", &spec("web", &json!({}))).await;
    let told = components.until_reason("web-foreign", "OwnedByAnother").await;
    assert!(told.contains("ConfigMap navin-platform/web-foreign is there and was not made by the operator"), "{told}");
    assert_eq!(components.owned("v1", "Service", "web-foreign").await.unwrap(), [""; 0], "nothing is applied");
    map.delete("web-foreign", &Default::default()).await.unwrap();
    components.until("web-foreign", STARTED).await;
}
