//! Webhooks that could stop others, and those that cannot.

use serde_json::{Value, json};

use super::*;

const CORE_PODS: &str = r#"{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}"#;

/// A configuration with one webhook, whose Service is live, and with further fields over the webhook.
fn configuration(rest: Value) -> RenderedObject {
    let mut webhook = json!({"name": "w.own.io", "failurePolicy": "Fail", "rules": [serde_json::from_str::<Value>(CORE_PODS).unwrap()],
        "clientConfig": {"service": {"namespace": "platform", "name": "live"}}});
    merge(&mut webhook, rest);
    cluster_wide("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", "w", json!({"webhooks": [webhook]}))
}

fn definition(group: &str, rest: Value) -> RenderedObject {
    let mut spec = json!({"spec": {"group": group, "names": {"kind": "W", "plural": "ws"}}});
    merge(&mut spec, rest);
    cluster_wide("apiextensions.k8s.io/v1", "CustomResourceDefinition", &format!("ws.{group}"), spec)
}

fn rule(group: &str, resource: &str, rest: Value) -> Value {
    let mut rule = json!({"apiGroups": [group], "apiVersions": ["*"], "operations": ["*"], "resources": [resource]});
    merge(&mut rule, rest);
    json!({"rules": [rule]})
}

fn expressions(operator: &str, values: &[&str]) -> Value {
    json!({"namespaceSelector": {"matchExpressions": [{"key": "kubernetes.io/metadata.name", "operator": operator, "values": values}]}})
}

#[test]
fn a_webhook_that_fails_closed_stops_nobody_else() {
    let stops = "could stop writes in platform, clicklink-system, kube-system";
    for (rest, expected) in [
        (json!({}), &[stops][..]),
        (json!({"failurePolicy": null}), &[stops]),
        (json!({"failurePolicy": "Ignore"}), &[]),
        (rule("own.io", "ws", json!({})), &[]),
        (rule("other.io", "ws", json!({})), &[stops]),
        (rule("*", "*", json!({})), &[stops]),
        (json!({"rules": [{"apiGroups": [], "resources": ["pods"], "operations": ["*"]}]}), &[stops]),
        (json!({"rules": [{"apiGroups": ["own.io", "apps"], "resources": ["*"], "operations": ["*"]}]}), &[stops]),
        (json!({"rules": []}), &[]),
        (json!({"objectSelector": {"matchLabels": {"own": "yes"}}}), &[stops]),
        (json!({"matchConditions": [{"name": "never", "expression": "false"}]}), &[stops]),
        (json!({"failurePolicy": "Never heard of"}), &[stops]),
        (json!({"namespaceSelector": {"matchLabels": {"own": "yes"}}}), &[stops]),
        (json!({"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "shop"}}}), &[]),
        (
            json!({"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "platform"}}}),
            &["could stop writes in platform while"],
        ),
        (expressions("NotIn", &["platform", "clicklink-system", "kube-system"]), &[]),
        (expressions("NotIn", &["platform", "kube-system"]), &["could stop writes in clicklink-system while"]),
        (expressions("In", &["shop", "kube-system"]), &["could stop writes in kube-system while"]),
        (expressions("DoesNotExist", &[]), &[]),
        (expressions("Exists", &[]), &[stops]),
    ] {
        check(vec![definition("own.io", json!({})), configuration(rest)], expected);
    }
}

#[test]
fn every_webhook_of_a_configuration_is_judged_of_either_kind() {
    let mut both = configuration(json!({}));
    let second = both.object["webhooks"][0].clone();
    both.object["webhooks"].as_array_mut().unwrap().push(second);
    both.object["webhooks"][1]["name"] = json!("other.own.io");
    check(vec![both.clone()], &["webhook w.own.io: ", "webhook other.own.io: "]);
    both.object["kind"] = json!("MutatingWebhookConfiguration");
    check(vec![both], &["webhook w.own.io: ", "webhook other.own.io: "]);
}

#[test]
fn a_namespace_selector_proves_nothing_about_what_lies_outside_namespaces() {
    let outside = "reaches objects outside namespaces";
    for (rest, expected) in [
        (rule("apps", "deployments/scale", json!({})), &[][..]),
        (rule("rbac.authorization.k8s.io", "clusterroles", json!({})), &[outside]),
        (rule("*", "*", json!({})), &[outside]),
        (rule("*", "*", json!({"scope": "Namespaced"})), &[]),
        (rule("", "namespaces", json!({})), &[outside]),
    ] {
        let mut all = expressions("In", &["shop"]);
        merge(&mut all, rest);
        check(vec![configuration(all)], expected);
    }
}

#[test]
fn own_kinds_of_which_the_bundle_holds_an_object_are_not_left_alone() {
    let class = cluster_wide("snapshot.storage.k8s.io/v1", "VolumeSnapshotClass", "c", json!({}));
    let hook = configuration(rule("snapshot.storage.k8s.io", "volumesnapshotclasses", json!({})));
    check(vec![definition("snapshot.storage.k8s.io", json!({})), hook.clone()], &[]);
    check(vec![definition("snapshot.storage.k8s.io", json!({})), class, hook], &["could stop writes"]);
}

#[test]
fn a_webhook_has_a_service_in_the_cluster() {
    let ignoring = |client: Value| {
        let mut hook = configuration(json!({"failurePolicy": "Ignore"}));
        hook.object["webhooks"][0]["clientConfig"] = client;
        hook
    };
    let service = |component: &str| {
        let mut service = object("v1", "Service", "own", json!({}));
        service.component = Some(component.to_owned());
        service
    };
    let own = json!({"service": {"namespace": "platform", "name": "own"}, "caBundle": ""});
    check(vec![ignoring(json!({"url": "https://elsewhere.example"}))], &["clientConfig.url is refused"]);
    check(vec![ignoring(json!({}))], &["clientConfig names no Service"]);
    check(vec![ignoring(own.clone())], &["its Service platform/own is neither rendered by this component nor live"]);
    check(vec![service("second"), ignoring(own.clone())], &["neither rendered by this component nor live"]);
    let elsewhere = json!({"service": {"namespace": "kube-system", "name": "own"}});
    check(vec![service("first"), ignoring(elsewhere)], &["its Service kube-system/own is neither rendered"]);
    check(vec![service("first"), ignoring(own)], &[]);
}

#[test]
fn a_conversion_webhook_does_not_lock_up_objects() {
    let conversion =
        |client: Value| definition("own.io", json!({"spec": {"conversion": {"strategy": "Webhook", "webhook": {"clientConfig": client}}}}));
    let service = |name: &str| json!({"service": {"namespace": "platform", "name": name}});
    check(vec![definition("own.io", json!({"spec": {"conversion": {"strategy": "None"}}}))], &[]);
    check(vec![conversion(service("live"))], &[]);
    check(vec![conversion(service("away"))], &["Service platform/away has no ready endpoint while objects of it exist"]);
    check(vec![conversion(json!({"url": "https://elsewhere.example"}))], &["conversion webhook's clientConfig.url is refused"]);
    check(vec![conversion(json!({}))], &["names no Service"]);

    struct Fresh;
    impl LiveServices for Fresh {
        fn is_live(&self, _namespace: &str, _name: &str) -> bool {
            false
        }
        fn has_objects_of(&self, _definition: &str) -> bool {
            false
        }
    }
    judge(&bundle_in(&["platform"]), vec![conversion(service("away"))], Vec::new(), &SCOPE, &Fresh).unwrap();
}

#[test]
fn the_plan_is_told_what_ignoring_webhooks_intercept() {
    let result = judged(vec![configuration(json!({"failurePolicy": "Ignore", "timeoutSeconds": 3}))]).unwrap();
    assert_eq!(
        result.interceptions(),
        [Interception {
            configuration: "ValidatingWebhookConfiguration.admissionregistration.k8s.io w".into(),
            webhook: "w.own.io".into(),
            intercepts: "create of pods in core".into(),
            timeout_seconds: 3,
        }]
    );
    let rules = json!([{"apiGroups": ["apps", "batch"], "operations": ["CREATE", "UPDATE"], "resources": ["deployments", "jobs"]},
        {"apiGroups": ["*"], "operations": ["DELETE"], "resources": ["*/*"]}]);
    let result = judged(vec![configuration(json!({"failurePolicy": "Ignore", "rules": rules}))]).unwrap();
    let told = &result.interceptions()[0];
    assert_eq!(told.intercepts, "create,update of deployments,jobs in apps,batch; delete of */* in *");
    assert_eq!(told.timeout_seconds, 10, "the API's default");
}
