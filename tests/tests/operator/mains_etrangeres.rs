//! What other people's hands do to an operator, on a control plane of its own: statuses that are edited, specs that nobody can read, rights that go.
//! Whom it does not concern is unharmed.

use serde_json::{Value, json};
use system_tests::operated::{Components, MANAGED, Operator, PATIENCE, bind, charts, install, spec};
use system_tests::{ControlPlane, Exit, eventually};

use crate::STARTED;

const OTHER: &str = "other";

#[tokio::test(flavor = "multi_thread")]
async fn mains_etrangeres() {
    let cp = ControlPlane::own().await;
    install(&cp).await.unwrap();
    cp.kubectl(&["create", "namespace", OTHER]).await.unwrap().ok().unwrap();
    bind(&cp, OTHER).await.unwrap();
    let client = cp.client().await.unwrap();
    let (here, there) = (Components::of(client.clone(), MANAGED), Components::of(client, OTHER));
    let operator = start(&cp, "a").await;
    for components in [&here, &there] {
        components.create("web", &spec("web", &json!({}))).await;
        components.until("web", STARTED).await;
    }
    un_inventaire_ne_mene_pas_dans_un_autre_espace_de_noms(&cp, &here, &there).await;
    ce_que_personne_ne_peut_lire_est_dit_et_se_supprime(&here).await;
    let operator = un_espace_de_noms_sans_droits(&cp, &here, &there, operator).await;
    let _operator = un_type_sans_droits(&cp, &here, operator).await;
    un_secret_sans_droits(&cp, &here).await;
}

async fn start(cp: &ControlPlane, name: &str) -> Operator {
    let operator = Operator::start(cp, name, &[MANAGED, OTHER], &charts(), &[]).await.unwrap();
    operator.until_ready().await.unwrap();
    operator
}

async fn restart(cp: &ControlPlane, former: Operator, name: &str) -> Operator {
    former.process.terminate();
    assert_eq!(former.process.wait(PATIENCE).await.unwrap(), Exit::Code(0));
    start(cp, name).await
}

/// The other's component has the same name, and so its objects the same label.
async fn un_inventaire_ne_mene_pas_dans_un_autre_espace_de_noms(cp: &ControlPlane, here: &Components, there: &Components) {
    let uid = there.deployment("web").await["metadata"]["uid"].clone();
    let poison = json!({"group": "apps", "kind": "Deployment", "namespace": OTHER, "name": "web"});
    let patch = json!([{"op": "add", "path": "/status/inventory/-", "value": poison}]).to_string();
    let patch = ["patch", "mc", "-n", MANAGED, "web", "--subresource=status", "--type=json", "-p", &patch];
    cp.kubectl(&patch).await.unwrap().ok().unwrap();
    here.change("web", &json!({"values": {"greeting": "after"}})).await;
    here.until("web", STARTED).await;
    let deployment = there.deployment("web").await;
    assert_eq!((&deployment["metadata"]["uid"], &deployment["metadata"]["deletionTimestamp"]), (&uid, &Value::Null));
}

/// The schema's `date-time` takes it, and no program's calendar goes so far.
async fn ce_que_personne_ne_peut_lire_est_dit_et_se_supprime(here: &Components) {
    here.create("web-date", &spec("web", &json!({}))).await;
    here.until("web-date", STARTED).await;
    here.change("web-date", &json!({"restartRequestedAt": "9999-12-31T23:59:59Z"})).await;
    let told = here.until_reason("web-date", "InvalidSpec").await;
    assert!(told.starts_with("restartRequestedAt: "), "{told}");
    here.delete("web-date").await;
    here.until_gone("web-date").await;
    assert_eq!(here.owned("apps/v1", "Deployment", "web-date").await.unwrap(), [""; 0]);
}

/// A namespace that is deleted takes the operator's RoleBinding with it; whoever starts then works for the others.
async fn un_espace_de_noms_sans_droits(cp: &ControlPlane, here: &Components, there: &Components, operator: Operator) -> Operator {
    cp.kubectl(&["delete", "rolebinding", "-n", OTHER, "navin-operator"]).await.unwrap().ok().unwrap();
    let operator = restart(cp, operator, "b").await;
    here.change("web", &json!({"replicas": 3})).await;
    here.until("web", STARTED).await;
    there.change("web", &json!({"replicas": 3})).await;
    bind(cp, OTHER).await.unwrap();
    there.until("web", STARTED).await;
    operator
}

/// Known faults, kind 17: a deletion takes no right but to what there is.
async fn un_type_sans_droits(cp: &ControlPlane, here: &Components, operator: Operator) -> Operator {
    let role = without(cp, "networkpolicies").await;
    here.create("store-deleted", &spec("store", &json!({}))).await;
    here.until("store-deleted", STARTED).await;
    let operator = restart(cp, operator, "c").await;
    here.delete("store-deleted").await;
    here.until_gone("store-deleted").await;
    // One that has to do with it is told, and loses nothing.
    here.change("web", &json!({"values": {"greeting": "unseen"}})).await;
    let told = here.until_reason("web", "Forbidden").await;
    assert_eq!(told, format!("the operator has no right to list networkpolicies.networking.k8s.io in namespace `{MANAGED}`"));
    let component = here.get("web").await.unwrap().unwrap();
    let inventory = component["status"]["inventory"].as_array().unwrap();
    assert!(inventory.iter().any(|item| item["kind"] == "NetworkPolicy"), "{inventory:?}");
    put(cp, &role).await;
    here.until("web", STARTED).await;
    operator
}

async fn un_secret_sans_droits(cp: &ControlPlane, here: &Components) {
    let role = without(cp, "secrets").await;
    cp.kubectl(&["create", "secret", "generic", "-n", MANAGED, "word", "--from-literal=word=w"]).await.unwrap().ok().unwrap();
    let reference = json!({"secretName": "word", "key": "word", "valuePath": "auth.existingSecret"});
    here.create("web-secret", &spec("web", &json!({"secretRefs": [reference]}))).await;
    let told = here.until_reason("web-secret", "Forbidden").await;
    assert!(told.starts_with(&format!("Secret {MANAGED}/word: forbidden")), "{told}");
    put(cp, &role).await;
    here.until("web-secret", STARTED).await;
}

/// Takes a resource out of the operator's role; the role as it was.
async fn without(cp: &ControlPlane, resource: &str) -> Value {
    let role = cp.kubectl(&["get", "clusterrole", "navin-operator", "-o", "json"]).await.unwrap().ok().unwrap();
    let role: Value = serde_json::from_str(&role.stdout).unwrap();
    let with = |rules: &Value| {
        let metadata = json!({"name": "navin-operator"});
        json!({"apiVersion": role["apiVersion"], "kind": role["kind"], "metadata": metadata, "rules": rules})
    };
    let (whole, mut less) = (with(&role["rules"]), with(&role["rules"]));
    let rules = less["rules"].as_array_mut().unwrap();
    for rule in rules.iter_mut() {
        rule["resources"].as_array_mut().unwrap().retain(|found| found != resource);
    }
    rules.retain(|rule| !rule["resources"].as_array().unwrap().is_empty());
    put(cp, &less).await;
    // The authorizer hears of it by a watch of its own.
    eventually("the right to be gone", PATIENCE, || async {
        let account = "--as=system:serviceaccount:navin-system:navin-operator";
        let may = cp.kubectl(&["auth", "can-i", "get", resource, "-n", MANAGED, account]).await?;
        anyhow::ensure!(may.stdout.trim() == "no", "{}", may.stdout);
        Ok(())
    })
    .await;
    whole
}

async fn put(cp: &ControlPlane, role: &Value) {
    let file = cp.folder().write("role.json", role.to_string()).unwrap();
    cp.kubectl(&["replace", "-f", &file.display().to_string()]).await.unwrap().ok().unwrap();
}
