//! The section "Protections", and the row "maintenance" of "Composants et opérations".

use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use system_tests::operated::{Stage, condition, spec};

use crate::STARTED;

#[tokio::test(flavor = "multi_thread")]
async fn un_redemarrage_attend_son_budget_et_reprend_seul() {
    let stage = Stage::shared().await;
    let components = stage.components().await;
    components.create("web-budget", &spec("web", &json!({"replicas": 3, "pdb": {"minAvailable": 2}}))).await;
    components.until("web-budget", STARTED).await;
    let budget = components.object("policy/v1", "PodDisruptionBudget", "web-budget-deployment").await.unwrap().unwrap();
    assert_eq!(budget["spec"]["minAvailable"], 2);
    let strategy = components.deployment("web-budget").await["spec"]["strategy"].clone();
    assert_eq!(strategy, json!({"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1, "maxSurge": 1}}));
    let pods = components.pods("web-budget").await.unwrap();
    components.harm(&pods[..2]).await;
    components.until("web-budget", "starting warning succeeded compliant false").await;
    components.change("web-budget", &json!({"restartRequestedAt": "2026-11-30T10:00:00Z"})).await;
    let told = components.until_reason("web-budget", "DisruptionBudgetExhausted").await;
    let expected = "PodDisruptionBudget.policy navin-platform/web-budget-deployment needs 2 available pods of Deployment.apps \
                    navin-platform/web-budget before a restart; there are 1";
    assert_eq!(told, expected);
    components.until("web-budget", "starting warning blocked compliant false").await;
    let template = components.deployment("web-budget").await["spec"]["template"]["metadata"].clone();
    assert_eq!(template.get("annotations"), None);
    components.heal(&pods).await;
    components.until("web-budget", STARTED).await;
    let template = components.deployment("web-budget").await["spec"]["template"]["metadata"].clone();
    assert_eq!(template["annotations"]["platform.navin.ai/restarted-at"], "2026-11-30T10:00:00Z");
}

#[tokio::test(flavor = "multi_thread")]
async fn la_maintenance_bloque_tout_sauf_l_augmentation_des_replicas() {
    let stage = Stage::shared().await;
    let components = stage.components().await;
    components.create("web-maintenance", &spec("web", &json!({"replicas": 2}))).await;
    components.until("web-maintenance", STARTED).await;
    components.change("web-maintenance", &json!({"maintenance": true})).await;
    components.until("web-maintenance", "started ok idle compliant true").await;
    let written = || async {
        let deployment = components.deployment("web-maintenance").await;
        (deployment["spec"].clone(), deployment["metadata"]["generation"].clone())
    };
    let before = written().await;
    for (change, back, refused) in [
        (json!({"desiredState": "Stopped"}), json!({"desiredState": "Running"}), "stop"),
        (json!({"restartRequestedAt": "2026-11-30T10:00:00Z"}), json!({"restartRequestedAt": null}), "restart"),
        (json!({"replicas": 1}), json!({"replicas": 2}), "scale down to 1"),
        (json!({"values": {"greeting": "no"}}), json!({"values": null}), "configure"),
        (json!({"autoscaling": {"minReplicas": 1, "maxReplicas": 3}}), json!({"autoscaling": null}), "change the autoscaler"),
    ] {
        components.change("web-maintenance", &change).await;
        // An administrative stop is no security matter, and a blocked operation no problem of health.
        let component = components.until("web-maintenance", "started ok blocked compliant false").await;
        assert_eq!(condition(&component, "OperationSucceeded")["message"], format!("under maintenance, refused: {refused}"));
        assert_eq!(written().await, before, "{refused}");
        components.change("web-maintenance", &back).await;
    }
    // Nor is anything put right that somebody changes meanwhile.
    let edit = Patch::Merge(json!({"data": {"greeting": "edited"}}));
    components.api("v1", "ConfigMap").patch("web-maintenance", &PatchParams::apply("somebody"), &edit).await.unwrap();
    components.change("web-maintenance", &json!({"replicas": 4})).await;
    components.until("web-maintenance", STARTED).await;
    assert_eq!(components.deployment("web-maintenance").await["spec"]["replicas"], 4, "more pods stay allowed");
    let map = components.object("v1", "ConfigMap", "web-maintenance").await.unwrap().unwrap();
    assert_eq!(map["data"]["greeting"], "edited");
    components.delete("web-maintenance").await;
    let component = components.until("web-maintenance", "started ok blocked compliant false").await;
    assert_eq!(condition(&component, "OperationSucceeded")["message"], "under maintenance, refused: delete");
    components.change("web-maintenance", &json!({"maintenance": false})).await;
    components.until_gone("web-maintenance").await;
}

/// "Les charts ne peuvent produire que …": one condition that names what it is, and nothing of the chart applied.
#[tokio::test(flavor = "multi_thread")]
async fn les_charts_ne_peuvent_produire_que_des_objets_permis() {
    let stage = Stage::shared().await;
    let components = stage.components().await;
    for (fault, reason, security, parts) in [
        ("secret", "ForbiddenObject", "non_compliant", ["templates/all.yaml", "Secret is forbidden"]),
        ("role", "ForbiddenObject", "non_compliant", ["templates/all.yaml", "ClusterRole.rbac.authorization.k8s.io is forbidden"]),
        ("definition", "ForbiddenObject", "non_compliant", ["things.acme.io", "it belongs to the whole cluster"]),
        (
            "elsewhere",
            "ForbiddenObject",
            "non_compliant",
            ["ConfigMap kube-system/faulty-elsewhere-b", "it lies in namespace `kube-system`"],
        ),
        ("job", "ForbiddenObject", "non_compliant", ["Job.batch is forbidden", "nothing that runs once"]),
        ("random", "RendersDifferently", "unknown", ["faulty-random-b, data.word", "made up by randAlphaNum"]),
        ("broken", "RenderFailed", "unknown", ["templates/all.yaml", "this chart wants something else"]),
        ("huge", "TooManyObjects", "unknown", ["the chart renders 2101 objects", "at most 2000"]),
        ("large", "RenderFailed", "unknown", ["faulty/templates/all.yaml", "at most 1048576 are allowed"]),
        (
            "unknown-field",
            "ObjectRefused",
            "compliant",
            ["Service navin-platform/faulty-unknown-field", ".spec.slector: field not declared in schema"],
        ),
    ] {
        let name = format!("faulty-{fault}");
        components.create(&name, &spec("faulty", &json!({"values": {"fault": fault}}))).await;
        let told = components.until_reason(&name, reason).await;
        assert!(parts.iter().all(|part| told.contains(part)), "{fault}: {told}");
        let component = components.get(&name).await.unwrap().unwrap();
        let status = &component["status"];
        assert_eq!((&status["state"], &status["operationState"]), (&json!("failed"), &json!("failed")), "{fault}");
        let expected = if fault == "unknown-field" { "unknown" } else { security };
        assert_eq!(status["securityState"], expected, "{fault}");
        assert_eq!(components.owned("v1", "ConfigMap", &name).await.unwrap(), [""; 0], "{fault}");
        assert!(!component.to_string().contains("planted-5e0b7a"), "{fault}");
    }
    // The same component goes on as soon as its chart is right.
    components.change("faulty-broken", &json!({"values": {"fault": "none"}})).await;
    components.until("faulty-broken", STARTED).await;
    components.change("faulty-broken", &json!({"values": {"fault": "plain-secret"}})).await;
    let component = components.until("faulty-broken", "started ok succeeded non_compliant true").await;
    let told = condition(&component, "Compliant");
    assert_eq!((&told["reason"], &told["status"]), (&json!("SecretInPlainText"), &json!("False")));
    let message: &Value = &told["message"];
    assert_eq!(message, "ConfigMap navin-platform/faulty-broken-b, data.password");
}

#[tokio::test(flavor = "multi_thread")]
async fn les_valeurs_ne_portent_jamais_de_secret() {
    let stage = Stage::shared().await;
    let components = stage.components().await;
    let values = json!({"auth": {"password": "planted-5e0b7a"}});
    components.create("web-secret", &spec("web", &json!({"values": values}))).await;
    let told = components.until_reason("web-secret", "SecretInValues").await;
    assert_eq!(
        told,
        "nothing is applied yet; values.auth.password: looks like a secret; name a Secret in secretRefs"
            .trim_start_matches("nothing is applied yet; ")
    );
    let component = components.get("web-secret").await.unwrap().unwrap();
    assert!(!component["status"].to_string().contains("planted-5e0b7a"));
    assert_eq!(component["status"]["securityState"], "non_compliant");
}
