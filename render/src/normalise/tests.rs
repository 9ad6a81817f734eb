//! One table row for each thing that normalising does.

use agent_api::manifest::Bundle;

use super::*;

fn manifest() -> Manifest {
    let text = json!({
        "apiVersion": "clicklink.io/v1", "kind": "PlatformBundle", "environment": "e", "createdAt": "2026-11-30T10:00:00Z",
        "registry": {"mode": "anonymous", "chartBase": "oci://r.example/p"}, "namespaces": ["platform", "second"],
        "components": [{"name": "op", "namespace": "platform", "release": "op",
            "chart": {"name": "op", "version": "1", "digest": format!("sha256:{}", "0".repeat(64))}}],
        "objects": [{"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "fast", "namespace": "x"}}]
    });
    Bundle::parse(text.to_string()).unwrap().manifest().clone()
}

fn from(object: Value) -> EngineObject {
    EngineObject { template: "op/templates/x.yaml".into(), hooks: Vec::new(), weight: 0, crd: false, object }
}

fn run(objects: Vec<EngineObject>) -> Normalised {
    normalise(&manifest(), vec![EngineOutput { objects, ..EngineOutput::default() }])
}

/// The only object of the component.
fn one(object: Value) -> Value {
    run(vec![from(object)]).objects.remove(0).object
}

fn named(api_version: &str, kind: &str, rest: Value) -> Value {
    let mut object = json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "x"}});
    object.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
    object
}

#[test]
fn namespaces_and_labels_by_kind() {
    let rbac = "rbac.authorization.k8s.io/v1";
    for (object, namespace, pinned) in [
        (named("apps/v1", "Deployment", json!({})), Some("platform"), true),
        (named("v1", "ConfigMap", json!({"metadata": {"name": "x", "namespace": "else"}})), Some("else"), true),
        (named("v1", "ConfigMap", json!({"metadata": {"name": "x", "namespace": ""}})), Some("platform"), true),
        (named("v1", "ServiceAccount", json!({})), Some("platform"), false),
        (named(rbac, "ClusterRole", json!({"metadata": {"name": "x", "namespace": "else"}})), None, false),
        (named("apps/v1", "StatefulSet", json!({})), None, false),
    ] {
        let result = one(object);
        assert_eq!(result.pointer("/metadata/namespace").and_then(Value::as_str), namespace, "{result}");
        let labels = &result["metadata"]["labels"];
        assert_eq!(labels[keys::MANAGED_BY], "platform");
        assert_eq!(labels[keys::COMPONENT], "op");
        assert_eq!(labels.get(keys::PINNED).is_some(), pinned, "{result}");
    }
    let template = json!({"template": {"metadata": {"labels": {"a": "b"}, "creationTimestamp": null}}});
    let result = one(named("apps/v1", "Deployment", json!({"spec": template, "status": {}, "metadata": {"name": "x", "labels": null}})));
    assert_eq!(result["spec"]["template"]["metadata"], json!({"labels": {"a": "b"}}));
    assert_eq!(result.get("status"), None);
}

#[test]
fn the_bundles_own_objects_and_namespaces_are_added() {
    let namespace = named("v1", "Namespace", json!({"metadata": {"name": "second", "labels": {"own": "1"}}}));
    let told: Vec<_> =
        run(vec![from(namespace)]).objects.into_iter().map(|o| (o.component, o.template, ObjectKey::of(&o.object).to_string())).collect();
    assert_eq!(
        told,
        [
            (Some("op".into()), "op/templates/x.yaml".into(), "Namespace second".into()),
            (None, "objects[0]".into(), "StorageClass.storage.k8s.io fast".into()),
            (None, "namespaces[0]".into(), "Namespace platform".into()),
        ]
    );
}

#[test]
fn labels_of_ours_are_ours() {
    let theirs = json!({keys::MANAGED_BY: "somebody", keys::COMPONENT: "other", keys::PINNED: "false", "own": "kept"});
    let result = one(named("v1", "ConfigMap", json!({"metadata": {"name": "x", "labels": theirs}})));
    let ours = json!({keys::MANAGED_BY: "platform", keys::COMPONENT: "op", keys::PINNED: "true", "own": "kept"});
    assert_eq!(result["metadata"]["labels"], ours);
}

/// What a list's hook says holds for what is in it.
#[test]
fn the_objects_of_a_hooks_list_are_hooks() {
    let items = json!([named("v1", "ConfigMap", json!({})), named("v1", "ServiceAccount", json!({}))]);
    let mut list = from(json!({"apiVersion": "v1", "kind": "List", "items": items}));
    (list.hooks, list.weight) = (vec!["pre-install".to_owned()], 2);
    let hooks: Vec<_> = run(vec![list.clone()]).objects.into_iter().filter(|o| o.component.is_some()).map(|o| o.hook).collect();
    assert_eq!(hooks, [Some(Hook { phase: HookPhase::Pre, weight: 2 }), None]);
    list.hooks = vec!["test".to_owned()];
    let result = run(vec![list]);
    assert_eq!((result.left_out.len(), result.objects.iter().filter(|o| o.component.is_some()).count()), (1, 0));
}

#[test]
fn lists_are_opened_and_kinds_that_only_end_so_are_not() {
    let item = |name: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}});
    let inner = json!({"apiVersion": "v1", "kind": "List", "items": [item("b")]});
    for (object, names) in [
        (json!({"apiVersion": "v1", "kind": "List", "items": [item("a"), inner]}), vec!["a", "b"]),
        (json!({"apiVersion": "v1", "kind": "List", "items": []}), vec![]),
        (json!({"apiVersion": "v1", "kind": "List", "items": null}), vec![]),
        (json!({"apiVersion": "v1", "kind": "SecretList", "items": null}), vec![]),
        (json!({"apiVersion": "v1", "kind": "List", "metadata": {"name": "l"}}), vec!["l"]),
        (json!({"apiVersion": "own.io/v1", "kind": "AllowList", "metadata": {"name": "l"}, "items": null}), vec!["l"]),
        (json!({"apiVersion": "v1", "kind": "ConfigMapList", "items": [{"metadata": {"name": "a"}}]}), vec!["a"]),
        (json!({"apiVersion": "own.io/v1", "kind": "AllowList", "metadata": {"name": "l"}, "items": [item("a")]}), vec!["l"]),
        (json!({"apiVersion": "own.io/v1", "kind": "List", "metadata": {"name": "l"}, "items": []}), vec!["l"]),
    ] {
        let text = object.to_string();
        let result = run(vec![from(object)]);
        let found: Vec<String> = result.objects.iter().filter(|o| o.component.is_some()).map(|o| o.key().name).collect();
        assert_eq!(found, names, "{text}");
    }
}

#[test]
fn subjects_of_a_role_binding_are_completed() {
    let subjects = json!([{"kind": "ServiceAccount", "name": "a"}, {"kind": "ServiceAccount", "name": "b", "namespace": "n"}, {"kind": "User", "name": "u"}]);
    let rbac = "rbac.authorization.k8s.io/v1";
    let result = one(named(rbac, "RoleBinding", json!({"subjects": subjects})));
    assert_eq!(result["subjects"][0]["namespace"], "platform");
    assert_eq!(result["subjects"][1]["namespace"], "n");
    assert_eq!(result["subjects"][2].get("namespace"), None);
    let result = one(named(rbac, "ClusterRoleBinding", json!({"subjects": [{"kind": "ServiceAccount", "name": "a"}]})));
    assert_eq!(result["subjects"][0].get("namespace"), None);
}

#[test]
fn an_empty_ca_bundle_is_left_to_whoever_fills_it() {
    let client = |bundle: Value| json!({"service": {"name": "s"}, "caBundle": bundle});
    let admission = "admissionregistration.k8s.io/v1";
    for (bundle, stays) in [(json!(""), false), (json!(null), false), (json!("QQ=="), true)] {
        for kind in ["ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"] {
            let webhooks = json!([{"name": "w", "clientConfig": client(bundle.clone())}, {"name": "v"}]);
            let result = one(named(admission, kind, json!({"webhooks": webhooks})));
            assert_eq!(result.pointer("/webhooks/0/clientConfig/caBundle").is_some(), stays, "{result}");
        }
        let conversion = json!({"conversion": {"strategy": "Webhook", "webhook": {"clientConfig": client(bundle.clone())}}});
        let result = one(named("apiextensions.k8s.io/v1", "CustomResourceDefinition", json!({"spec": conversion})));
        assert_eq!(result.pointer("/spec/conversion/webhook/clientConfig/caBundle").is_some(), stays, "{result}");
        // Of a workload object nothing is dropped: there it is somebody's text.
        let result = one(named("v1", "ConfigMap", json!({"webhooks": [{"clientConfig": client(bundle.clone())}]})));
        assert!(result.pointer("/webhooks/0/clientConfig/caBundle").is_some(), "{result}");
    }
}

#[test]
fn secrets_are_folded_and_empty_ones_are_places_for_others() {
    let result = one(named("v1", "Secret", json!({"data": {"a": "eA==", "b": "eA=="}, "stringData": {"b": "new"}})));
    assert_eq!((&result["data"], result.get("stringData")), (&json!({"a": "eA==", "b": "bmV3"}), None));
    let result = one(named("v1", "Secret", json!({"data": null, "stringData": {"a": "x", "n": 1}})));
    assert_eq!((&result["data"], &result["stringData"]), (&json!({"a": "eA=="}), &json!({"n": 1})));
    for rest in [json!({}), json!({"data": {}}), json!({"data": null, "stringData": {}})] {
        let result = run(vec![from(named("v1", "Secret", rest))]);
        assert_eq!(result.placeholders.len(), 1);
        let labels = &result.placeholders[0].object["metadata"]["labels"];
        assert_eq!(labels, &json!({keys::MANAGED_BY: "platform", keys::COMPONENT: "op"}));
    }
}

#[test]
fn hooks_have_a_place_or_are_left_out() {
    let hook = |events: &[&str], kind: (&str, &str)| {
        let mut object = from(named(kind.0, kind.1, json!({})));
        object.hooks = events.iter().map(|event| (*event).to_owned()).collect();
        object.weight = -5;
        run(vec![object])
    };
    let config = ("v1", "ConfigMap");
    for (events, phase) in [
        (vec!["pre-install"], Some(HookPhase::Pre)),
        (vec!["pre-upgrade", "pre-delete"], Some(HookPhase::Pre)),
        (vec!["post-install", "test"], Some(HookPhase::Post)),
        (vec!["post-upgrade", "pre-install"], Some(HookPhase::Pre)),
    ] {
        let result = hook(&events, config);
        assert_eq!(result.objects[0].hook, phase.map(|phase| Hook { phase, weight: -5 }), "{events:?}");
    }
    for events in [vec!["test"], vec!["pre-delete", "post-delete"], vec!["pre-rollback"], vec!["unknown", "crd-install"]] {
        let result = hook(&events, config);
        assert!(result.objects.iter().all(|object| object.component.is_none()), "{events:?}");
        assert_eq!(result.left_out[0].events, events);
    }
    assert_eq!(hook(&["pre-install"], ("v1", "ServiceAccount")).objects[0].hook, None);
}

#[test]
fn a_job_is_named_by_its_content() {
    let job = |name: &str, image: &str| {
        let object = named(
            "batch/v1",
            "Job",
            json!({"metadata": {"name": name}, "spec": {"template": {"spec": {"containers": [{"image": image}]}}}}),
        );
        one(object)["metadata"]["name"].as_str().unwrap().to_owned()
    };
    assert_eq!(job("migrate", "a"), job("migrate", "a"));
    assert_ne!(job("migrate", "a"), job("migrate", "b"));
    assert!(job("migrate", "a").starts_with("migrate-") && job("migrate", "a").len() == 16);
    let long = job(&format!("{}-{}", "x".repeat(53), "y".repeat(9)), "a");
    assert!(long.len() == 62 && long.starts_with(&"x".repeat(53)) && !long.contains("--"), "{long}");
}
