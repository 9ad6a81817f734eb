//! `ManagedComponent` at a real API server: its rules, its defaults, and what a person sees of it.

use k8s_openapi::api::authorization::v1::SubjectAccessReview;
use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind, PostParams};
use serde_json::{Value, json};
use system_tests::ControlPlane;
use system_tests::operated::{MANAGED, Stage};

/// A namespace that no operator manages.
const NAMESPACE: &str = "default";
const DIGEST: &str = "sha256:0920e45a4d371a6a9096c0019afea688e3aecbd1167182f5dacfe86b37605449";

fn component(name: &str, spec: &Value) -> Value {
    let mut whole = json!({"service": "redis", "source": {"local": "redis"}});
    for (field, value) in spec.as_object().unwrap() {
        whole[field] = value.clone();
    }
    json!({"apiVersion": "platform.navin.ai/v1alpha1", "kind": "ManagedComponent",
        "metadata": {"name": name, "namespace": NAMESPACE}, "spec": whole})
}

/// Whether the API server would take a component; its words where it would not.
async fn taken(client: &Client, object: &Value) -> Result<(), String> {
    let gvk = GroupVersionKind::gvk("platform.navin.ai", "v1alpha1", "ManagedComponent");
    let components: Api<DynamicObject> = Api::namespaced_with(client.clone(), NAMESPACE, &ApiResource::from_gvk(&gvk));
    let object: DynamicObject = serde_json::from_value(object.clone()).unwrap();
    match components.create(&PostParams { dry_run: true, ..PostParams::default() }, &object).await {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) if status.code == 422 => Err(status.message),
        Err(error) => panic!("{error}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_api_server_knows_the_rules_and_a_person_sees_the_dimensions() {
    let stage = Stage::shared().await;
    let cp = &stage.control_plane;
    let client = cp.client().await.unwrap();
    what_is_right_is_taken(&client).await;
    what_is_wrong_is_refused_by_its_place(&client).await;
    defaults_are_filled_in_and_null_is_absent(cp).await;
    a_person_sees_the_columns(cp).await;
    rights_are_what_the_table_says(&client).await;
}

async fn what_is_right_is_taken(client: &Client) {
    for spec in [
        json!({}),
        json!({"values": {"auth": {"enabled": true, "list": [1, {"a": null}]}}, "version": "1.2.3"}),
        json!({"source": {"local": "redis/redis-1.2.3.tgz"}}),
        json!({"source": {"oci": format!("oci://ghcr.io/stacklok/toolhive/toolhive-operator@{DIGEST}")}}),
        json!({"source": {"oci": format!("oci://127.0.0.1:5000/a/redis:1.2.3@{DIGEST}")}}),
        json!({"replicas": 2, "pdb": {"minAvailable": 2}}),
        json!({"replicas": 1, "pdb": {"minAvailable": "50%"}}),
        json!({"pdb": {"maxUnavailable": 0}}),
        json!({"pdb": {"maxUnavailable": "100%"}}),
        json!({"pdb": {"minAvailable": 2}, "autoscaling": {"minReplicas": 2, "maxReplicas": 2}}),
        json!({"autoscaling": {"minReplicas": 1, "maxReplicas": 9, "targetCPUUtilizationPercentage": 70, "engine": "keda"}}),
        json!({"secretRefs": [{"secretName": "redis-auth", "key": "password", "valuePath": "auth.existingSecret"}]}),
        json!({"desiredState": "Stopped", "maintenance": true, "restartRequestedAt": "2026-11-30T10:00:00Z"}),
    ] {
        assert_eq!(taken(client, &component("redis", &spec)).await, Ok(()), "{spec}");
    }
    let longest = "x".repeat(53);
    assert_eq!(taken(client, &component(&longest, &json!({}))).await, Ok(()));
}

async fn what_is_wrong_is_refused_by_its_place(client: &Client) {
    let reference = |text: &str| json!([{"secretName": "s", "key": "k", "valuePath": text}]);
    let rows = [
        (json!({"service": ""}), "spec.service"),
        (json!({"service": "Redis"}), "spec.service"),
        (json!({"service": "x".repeat(64)}), "spec.service"),
        (json!({"source": {}}), "source: exactly one of local and oci"),
        (json!({"source": {"local": "a", "oci": format!("oci://h/a@{DIGEST}")}}), "source: exactly one of local and oci"),
        (json!({"source": {"local": "../etc"}}), "spec.source.local"),
        (json!({"source": {"local": "/etc"}}), "spec.source.local"),
        (json!({"source": {"local": "a/../../b"}}), "spec.source.local"),
        (json!({"source": {"oci": "oci://ghcr.io/acme/redis:1.2.3"}}), "spec.source.oci"),
        (json!({"source": {"oci": format!("https://ghcr.io/acme/redis@{DIGEST}")}}), "spec.source.oci"),
        (json!({"source": {"oci": "oci://ghcr.io/acme/redis@sha256:00"}}), "spec.source.oci"),
        (json!({"replicas": 0}), "spec.replicas"),
        (json!({"replicas": 10_001}), "spec.replicas"),
        (json!({"replicas": 1, "pdb": {"minAvailable": 2}}), "replicas: fewer than pdb.minAvailable"),
        (json!({"pdb": {}}), "pdb: exactly one of minAvailable and maxUnavailable"),
        (json!({"pdb": {"minAvailable": 1, "maxUnavailable": 1}}), "pdb: exactly one of minAvailable and maxUnavailable"),
        (json!({"pdb": {"minAvailable": -1}}), "spec.pdb.minAvailable"),
        (json!({"pdb": {"minAvailable": "101%"}}), "spec.pdb.minAvailable"),
        (json!({"pdb": {"maxUnavailable": "one"}}), "spec.pdb.maxUnavailable"),
        (json!({"autoscaling": {"minReplicas": 3, "maxReplicas": 2}}), "autoscaling: minReplicas is more than maxReplicas"),
        (json!({"autoscaling": {"minReplicas": 0, "maxReplicas": 2}}), "spec.autoscaling.minReplicas"),
        (json!({"autoscaling": {"maxReplicas": 2}}), "spec.autoscaling.minReplicas"),
        (
            json!({"autoscaling": {"minReplicas": 1, "maxReplicas": 2}, "pdb": {"minAvailable": 2}}),
            "autoscaling.minReplicas: fewer than pdb.minAvailable",
        ),
        (json!({"autoscaling": {"minReplicas": 1, "maxReplicas": 2, "engine": "vpa"}}), "spec.autoscaling.engine"),
        (
            json!({"autoscaling": {"minReplicas": 1, "maxReplicas": 2, "targetCPUUtilizationPercentage": 0}}),
            "spec.autoscaling.targetCPUUtilizationPercentage",
        ),
        (json!({"secretRefs": reference("")}), "spec.secretRefs[0].valuePath"),
        (json!({"secretRefs": reference("a..b")}), "spec.secretRefs[0].valuePath"),
        (json!({"secretRefs": [reference("a")[0], reference("a")[0]]}), "spec.secretRefs[1]"),
        (json!({"secretRefs": [{"secretName": "S", "key": "k", "valuePath": "a"}]}), "spec.secretRefs[0].secretName"),
        (json!({"secretRefs": [{"secretName": "s", "key": "a/b", "valuePath": "a"}]}), "spec.secretRefs[0].key"),
        (json!({"desiredState": "Paused"}), "spec.desiredState"),
        (json!({"restartRequestedAt": "now"}), "spec.restartRequestedAt"),
        (json!({"maintenance": "yes"}), "spec.maintenance"),
        (json!({"values": []}), "spec.values"),
    ];
    for (spec, place) in rows {
        let refused = taken(client, &component("redis", &spec)).await.expect_err(&spec.to_string());
        assert!(refused.contains(place), "{spec}: {refused}");
    }
    for (name, place) in [("x".repeat(54), "metadata.name: at most 53"), ("redis.cache".to_owned(), "metadata.name: a DNS label")] {
        let refused = taken(client, &component(&name, &json!({}))).await.expect_err(&name);
        assert!(refused.contains(place), "{name}: {refused}");
    }
}

async fn defaults_are_filled_in_and_null_is_absent(cp: &ControlPlane) {
    let spec = json!({"replicas": null, "pdb": null, "autoscaling": {"minReplicas": 1, "maxReplicas": 2, "engine": null}});
    cp.apply(&component("redis", &spec).to_string()).await.unwrap();
    let stored = cp.kubectl(&["get", "mc", "-n", NAMESPACE, "redis", "-o", "json"]).await.unwrap().ok().unwrap();
    let stored: Value = serde_json::from_str(&stored.stdout).unwrap();
    let expected = json!({"service": "redis", "source": {"local": "redis"}, "desiredState": "Running", "maintenance": false,
        "autoscaling": {"minReplicas": 1, "maxReplicas": 2, "targetCPUUtilizationPercentage": 80}});
    assert_eq!(stored["spec"], expected);
    let explained = cp.kubectl(&["explain", "mc.spec.pdb"]).await.unwrap().ok().unwrap();
    assert!(explained.stdout.contains("exactly one of `minAvailable` and"), "{}", explained.stdout);
}

async fn a_person_sees_the_columns(cp: &ControlPlane) {
    let status = json!({"status": {"observedGeneration": 1, "state": "started", "health": "ok", "operationState": "blocked",
        "securityState": "compliant", "converged": false, "version": "1.2.3"}});
    let patch = ["patch", "mc", "-n", NAMESPACE, "redis", "--subresource=status", "--type=merge", "-p"];
    cp.kubectl(&[&patch[..], &[&status.to_string()]].concat()).await.unwrap().ok().unwrap();
    let shown = cp.kubectl(&["get", "mc", "-n", NAMESPACE]).await.unwrap().ok().unwrap().stdout;
    let lines: Vec<Vec<&str>> = shown.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(lines[0], ["NAME", "SERVICE", "STATE", "HEALTH", "OPERATION", "SECURITY", "CONVERGED", "VERSION", "AGE"]);
    assert_eq!(lines[1][..8], ["redis", "redis", "started", "ok", "blocked", "compliant", "false", "1.2.3"], "{shown}");
    let unknown = json!({"status": {"state": "paused"}});
    let refused = cp.kubectl(&[&patch[..], &[&unknown.to_string()]].concat()).await.unwrap();
    assert!(refused.code() == Some(1) && refused.stderr.contains("status.state"), "{}", refused.stderr);
}

/// What an identity may do, as the API server's own authorizer says: the tables "RBAC de l'opérateur" and "Accès du manager", and beside each
/// row what lies just outside it.
async fn rights_are_what_the_table_says(client: &Client) {
    let reviews = Api::<SubjectAccessReview>::all(client.clone());
    let operator = "system:serviceaccount:navin-system:navin-operator";
    for (who, verb, resource, namespace, expected) in [
        (operator, "patch", "managedcomponents.platform.navin.ai", MANAGED, "yes"),
        (operator, "create", "managedcomponents.platform.navin.ai", MANAGED, "no"),
        (operator, "delete", "managedcomponents.platform.navin.ai", MANAGED, "no"),
        (operator, "update", "managedcomponents.platform.navin.ai/status", MANAGED, "yes"),
        (operator, "patch", "managedcomponents.platform.navin.ai/status", MANAGED, "no"),
        (operator, "update", "managedcomponents.platform.navin.ai/finalizers", MANAGED, "yes"),
        (operator, "delete", "deployments.apps", MANAGED, "yes"),
        (operator, "delete", "statefulsets.apps", "default", "no"),
        (operator, "patch", "scaledobjects.keda.sh", MANAGED, "yes"),
        (operator, "create", "horizontalpodautoscalers.autoscaling", MANAGED, "yes"),
        (operator, "get", "secrets", MANAGED, "yes"),
        (operator, "list", "secrets", MANAGED, "no"),
        (operator, "watch", "secrets", MANAGED, "no"),
        (operator, "get", "secrets", "kube-system", "no"),
        (operator, "update", "leases.coordination.k8s.io", MANAGED, "yes"),
        (operator, "patch", "leases.coordination.k8s.io", MANAGED, "no"),
        (operator, "create", "roles.rbac.authorization.k8s.io", MANAGED, "no"),
        (operator, "get", "pods", MANAGED, "no"),
        ("navin-manager", "list", "nodes", "", "yes"),
        ("navin-manager", "patch", "nodes", "", "no"),
        ("navin-manager", "list", "storageclasses.storage.k8s.io", "", "yes"),
        ("navin-manager", "list", "ingressclasses.networking.k8s.io", "", "yes"),
        ("navin-manager", "get", "deployments.apps", "kube-system", "yes"),
        ("navin-manager", "get", "deployments.apps", MANAGED, "no"),
        ("navin-manager", "create", "managedcomponents.platform.navin.ai", MANAGED, "yes"),
        ("navin-manager", "create", "managedcomponents.platform.navin.ai", "default", "no"),
        ("navin-manager", "get", "secrets", MANAGED, "no"),
        ("navin-manager", "create", "namespaces", "", "no"),
        ("navin-manager", "create", "pods/eviction", MANAGED, "no"),
    ] {
        let (resource, sub) = resource.split_once('/').unwrap_or((resource, ""));
        let (resource, group) = resource.split_once('.').unwrap_or((resource, ""));
        let review = json!({"spec": {"user": who, "resourceAttributes": {"verb": verb, "group": group, "resource": resource,
            "subresource": sub, "namespace": namespace}}});
        let review: SubjectAccessReview = serde_json::from_value(review).unwrap();
        let answer = reviews.create(&PostParams::default(), &review).await.unwrap();
        let allowed = if answer.status.is_some_and(|status| status.allowed) { "yes" } else { "no" };
        assert_eq!(allowed, expected, "{who} {verb} {resource} {sub} in `{namespace}`");
    }
}
