//! Table tests: each rule by a bundle that obeys it and one that breaks it.

use agent_api::keys;
use agent_api::manifest::Bundle;
use agent_api::object::{Hook, HookPhase, RenderedObject};
use serde_json::{Value, json};

use super::*;

mod webhooks;

const DIGEST: &str = "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
const SCOPE: Scope<'static> = Scope { namespace_prefix: "ns-", home_namespace: "clicklink-system" };

/// A cluster in which Service `platform/live` is there and ready, and no other; objects of every CRD exist.
struct Live;

impl LiveServices for Live {
    fn is_live(&self, namespace: &str, name: &str) -> bool {
        (namespace, name) == ("platform", "live")
    }

    fn has_ready_endpoints(&self, namespace: &str, name: &str) -> bool {
        self.is_live(namespace, name)
    }
}

fn bundle_in(namespaces: &[&str]) -> Bundle {
    let component = |name: &str| {
        json!({"name": name, "namespace": namespaces[0], "release": name, "images": [format!("r.example/app@{DIGEST}")],
            "chart": {"name": name, "version": "1.2.3", "digest": DIGEST}})
    };
    let text = json!({
        "apiVersion": "clicklink.io/v1", "kind": "PlatformBundle", "environment": "e", "createdAt": "2026-11-30T10:00:00Z",
        "registry": {"mode": "anonymous", "chartBase": "oci://r.example/p"}, "namespaces": namespaces,
        "components": [component("first"), component("second")]
    });
    Bundle::parse(text.to_string()).unwrap()
}

fn of(component: &str, object: Value) -> RenderedObject {
    RenderedObject { component: Some(component.to_owned()), template: format!("{component}/templates/x.yaml"), hook: None, object }
}

/// An object in namespace `platform`, with further fields over it.
fn object(api_version: &str, kind: &str, name: &str, rest: Value) -> RenderedObject {
    let mut object = json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name, "namespace": "platform"}});
    merge(&mut object, rest);
    of("first", object)
}

fn cluster_wide(api_version: &str, kind: &str, name: &str, rest: Value) -> RenderedObject {
    let mut rendered = object(api_version, kind, name, rest);
    rendered.object["metadata"].as_object_mut().unwrap().remove("namespace");
    rendered
}

fn merge(into: &mut Value, from: Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            for (key, value) in from {
                merge(into.entry(key).or_insert(Value::Null), value);
            }
        }
        (into, from) => *into = from,
    }
}

fn deployment(name: &str, image: &str) -> RenderedObject {
    object("apps/v1", "Deployment", name, json!({"spec": {"template": {"spec": {"containers": [{"name": "main", "image": image}]}}}}))
}

fn judged(objects: Vec<RenderedObject>) -> Result<Judged, Refusals> {
    judge(&bundle_in(&["platform"]), objects, Vec::new(), &SCOPE, &Live)
}

/// Judges, and checks that exactly the expected words are refused; none means allowed.
#[track_caller]
fn check(objects: Vec<RenderedObject>, expected: &[&str]) {
    let found: Vec<String> = match judged(objects) {
        Ok(_) => Vec::new(),
        Err(refusals) => refusals.iter().iter().map(ToString::to_string).collect(),
    };
    assert_eq!(found.len(), expected.len(), "{found:#?}");
    for (found, expected) in found.iter().zip(expected) {
        assert!(found.contains(expected), "{found} should say {expected}");
    }
}

#[test]
fn kinds_outside_both_halves_are_refused_with_the_value_that_avoids_them() {
    for (api_version, kind, expected) in [
        ("apps/v1", "DaemonSet", "DaemonSet.apps is in neither half of a bundle; set the chart's deployment mode"),
        ("cert-manager.io/v1", "Certificate", "certManager.enabled: false"),
        ("monitoring.coreos.com/v1", "ServiceMonitor", "serviceMonitor.enabled: false"),
        ("apps/v1", "StatefulSet", "StatefulSet.apps is in neither half"),
        ("v1", "Pod", "Pod is in neither half"),
        ("own.io/v1", "ClusterRole", "ClusterRole.own.io is in neither half"),
        ("cert-manager.io/v1", "Issuer", "certManager.enabled: false"),
        ("cert-manager.io/v1", "ClusterIssuer", "webhook.enabled: false"),
        ("monitoring.coreos.com/v1", "PodMonitor", "podMonitor.enabled: false"),
        ("monitoring.coreos.com/v1", "PrometheusRule", "prometheusRule.enabled: false"),
        ("autoscaling/v2", "HorizontalPodAutoscaler", "autoscaling.enabled: false"),
        ("networking.k8s.io/v1", "Ingress", "ingress.enabled: false"),
        ("networking.k8s.io/v1", "NetworkPolicy", "switch the chart's network policy off"),
        ("batch/v1", "CronJob", "CronJob.batch is in neither half"),
        ("v1", "PersistentVolumeClaim", "PersistentVolumeClaim is in neither half"),
        ("apiregistration.k8s.io/v1", "APIService", "APIService.apiregistration.k8s.io is in neither half"),
        ("extensions/v1beta1", "Deployment", "Deployment.extensions is in neither half"),
    ] {
        check(vec![object(api_version, kind, "x", json!({}))], &[expected]);
    }
}

#[test]
fn a_document_that_is_no_object_is_refused() {
    let named = |version: Value| json!({"apiVersion": version, "kind": "ConfigMap", "metadata": {"name": "x", "namespace": "platform"}});
    for (document, place) in [
        (json!({"a": "b"}), "first/templates/x.yaml: "),
        (json!({"apiVersion": "v1", "metadata": {"name": "x"}}), "first/templates/x.yaml, x: "),
        (json!({"apiVersion": "v1", "kind": 1}), "first/templates/x.yaml: "),
        (json!({"kind": "ConfigMap", "metadata": {"name": "x"}}), "first/templates/x.yaml, ConfigMap x: "),
        (named(json!("")), "ConfigMap platform/x: "),
        (named(json!(null)), "ConfigMap platform/x: "),
    ] {
        check(vec![of("first", document)], &[&format!("{place}the document has no apiVersion or no kind")]);
    }
}

/// Whatever is wrong with a bundle, in whichever rule, a person reads it in one go.
#[test]
fn all_that_is_wrong_stands_in_one_message() {
    let webhook = json!({"webhooks": [{"name": "w", "clientConfig": {"service": {"namespace": "platform", "name": "live"}},
        "rules": [{"apiGroups": [""], "operations": ["*"], "resources": ["pods"]}]}]});
    let objects = vec![
        object("apps/v1", "DaemonSet", "a", json!({})),
        object("v1", "ConfigMap", "b", json!({"metadata": {"namespace": "default"}})),
        object("v1", "ConfigMap", "c", json!({"metadata": {"finalizers": ["x"], "ownerReferences": [{}]}})),
        object("v1", "Service", "d", json!({"spec": {"type": "ExternalName"}})),
        object("v1", "ServiceAccount", "pcm-platform", json!({})),
        deployment("e", "r.example/app:v1"),
        object("v1", "ConfigMap", "f", json!({})),
        object("v1", "ConfigMap", "f", json!({})),
        cluster_wide("admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration", "g", webhook),
    ];
    let text = judge(&bundle_in(&["ns-platform"]), objects, Vec::new(), &SCOPE, &Live).unwrap_err().to_string();
    let count = text.lines().filter(|line| line.starts_with("  - ")).count();
    assert!(text.starts_with(&format!("the bundle is refused for {count} reasons:")) && text.lines().count() == count + 1, "{text}");
    for words in [
        "namespaces[0]: namespace `ns-platform` lies inside the service prefix",
        "DaemonSet.apps platform/a: DaemonSet.apps is in neither half",
        "ConfigMap default/b: a workload object may lie in the bundle's `namespaces` only",
        "ConfigMap platform/c: metadata.finalizers is refused",
        "ConfigMap platform/c: metadata.ownerReferences is refused",
        "Service platform/d: a Service of type ExternalName is refused",
        "the name `pcm-platform` is kept",
        "image `r.example/app:v1` has no digest",
        "ConfigMap platform/f: the object is rendered twice",
        "MutatingWebhookConfiguration.admissionregistration.k8s.io g: webhook w: failurePolicy Fail",
    ] {
        assert!(text.contains(words), "{words} is not in {text}");
    }
}

#[test]
fn the_place_of_a_refusal_is_complete() {
    let refusals = judged(vec![object("apps/v1", "DaemonSet", "agent", json!({})), object("v1", "Pod", "p", json!({}))]).unwrap_err();
    let text = refusals.to_string();
    assert!(
        text.starts_with("the bundle is refused for 2 reasons:\n  - component first (chart first 1.2.3), first/templates/x.yaml, "),
        "{text}"
    );
    assert!(text.contains("DaemonSet.apps platform/agent: "), "{text}");
}

#[test]
fn workload_objects_lie_in_the_bundles_namespaces() {
    let elsewhere = |kind: &str| object("v1", kind, "x", json!({"metadata": {"namespace": "kube-system"}}));
    check(vec![elsewhere("ConfigMap")], &["in the bundle's `namespaces` only, not in `kube-system`"]);
    check(vec![elsewhere("ServiceAccount")], &[]);
    let result = judged(vec![elsewhere("ServiceAccount"), object("v1", "ServiceAccount", "own", json!({}))]).unwrap();
    assert_eq!(
        result.foreign_permissions().iter().map(|object| object.key().to_string()).collect::<Vec<_>>(),
        ["ServiceAccount kube-system/x"]
    );
    let mut ownerless = object("v1", "ConfigMap", "x", json!({}));
    ownerless.component = None;
    check(vec![ownerless], &["needs a component"]);
    check(vec![object("v1", "ServiceAccount", "x", json!({"metadata": {"namespace": ""}}))], &["needs a namespace"]);
}

#[test]
fn namespaces_of_others_are_refused() {
    for (namespace, expected) in
        [("ns-shop", Some("inside the service prefix `ns-`")), ("clicklink-system", Some("is the connector's own")), ("platform", None)]
    {
        let result = judge(&bundle_in(&[namespace]), Vec::new(), Vec::new(), &SCOPE, &Live);
        match (result, expected) {
            (Ok(_), None) => {}
            (Err(refusals), Some(expected)) => {
                let text = refusals.to_string();
                assert!(text.contains("namespaces[0]") && text.contains(expected), "{text}");
            }
            (result, _) => panic!("{namespace}: {result:?}"),
        }
    }
    for (name, expected) in [
        ("kube-system", &["belongs to the cluster"][..]),
        ("default", &["belongs to the cluster"]),
        ("ns-a", &["service prefix"]),
        ("extra", &[]),
        ("platform", &[]),
    ] {
        check(vec![cluster_wide("v1", "Namespace", name, json!({}))], expected);
    }
}

#[test]
fn our_own_names_and_rights_are_not_a_bundles() {
    const RBAC: &str = "rbac.authorization.k8s.io/v1";
    let name = "ServiceAccount platform/pcm-platform: the name `pcm-platform` is kept";
    check(vec![object("v1", "ServiceAccount", "pcm-platform", json!({}))], &[name]);
    let guard = cluster_wide("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy", "pcm-platform-scope-guard", json!({}));
    check(vec![guard], &["`pcm-platform-scope-guard` is kept"]);
    check(vec![object("v1", "ConfigMap", "pcm-executor", json!({}))], &["`pcm-executor` is kept"]);
    check(vec![object("v1", "ConfigMap", "pcm-platforms", json!({}))], &[]);
    let binding = |subject: Value| vec![cluster_wide(RBAC, "ClusterRoleBinding", "b", json!({"subjects": [subject]}))];
    let account = |namespace: &str, name: &str| json!({"kind": "ServiceAccount", "namespace": namespace, "name": name});
    check(binding(account("clicklink-system", "pcm-platform")), &["it gives rights to ServiceAccount pcm-platform"]);
    check(binding(account("clicklink-system", "pcm-executor")), &["it gives rights to ServiceAccount pcm-executor"]);
    check(binding(json!({"kind": "User", "name": "system:serviceaccount:clicklink-system:pcm-platform"})), &["it gives rights to User"]);
    check(binding(json!({"kind": "Group", "name": "system:serviceaccounts:clicklink-system"})), &["it gives rights to Group"]);
    for everybody in ["system:serviceaccounts", "system:authenticated", "system:unauthenticated"] {
        check(binding(json!({"kind": "Group", "name": everybody})), &["it gives rights to Group"]);
    }
    check(binding(json!({"kind": "Group", "name": "system:serviceaccounts:platform"})), &[]);
    check(binding(account("platform", "operator")), &[]);
    check(binding(account("platform", "pcm-platform")), &[]);
}

#[test]
fn images_are_pinned_and_listed() {
    let good = format!("r.example/app:v1@{DIGEST}");
    let other_digest = good.replace("aaaa", "bbbb");
    let foreign = format!("r.example/other@{DIGEST}");
    let other_tag = format!("r.example/app:v2@{DIGEST}");
    for (image, expected) in [
        (good.as_str(), &[][..]),
        ("r.example/app:v1", &["containers `main`: image `r.example/app:v1` has no digest"]),
        (&other_digest, &["is not one of the component's `images`"]),
        (&foreign, &["is not one of the component's `images`"]),
        (&other_tag, &[]),
        ("r.example/app@sha256:12", &["image `r.example/app@sha256:12` has no digest"]),
        ("", &["containers `main` has no image"]),
    ] {
        check(vec![deployment("x", image)], expected);
    }
    let pod = json!({"initContainers": [{"name": "i", "image": "a"}], "ephemeralContainers": [{"name": "e", "image": "b"}],
        "volumes": [{"name": "v", "emptyDir": {}}, {"name": "w", "image": {"reference": "c"}}]});
    let job = object("batch/v1", "Job", "x", json!({"spec": {"template": {"spec": pod}}}));
    check(vec![job], &["initContainers `i`", "ephemeralContainers `e`", "volumes[1].image"]);
}

#[test]
fn identities_are_unique_in_the_bundle() {
    let config = || object("v1", "ConfigMap", "x", json!({}));
    let mut other = config();
    other.component = Some("second".to_owned());
    check(vec![config(), other], &["rendered twice, first by first/templates/x.yaml of component first"]);
    let old_version = object("policy/v1beta1", "PodDisruptionBudget", "x", json!({}));
    check(vec![object("policy/v1", "PodDisruptionBudget", "x", json!({})), old_version], &["rendered twice"]);
    let place = object("v1", "Secret", "x", json!({}));
    let filled = object("v1", "Secret", "x", json!({"data": {"a": ""}}));
    assert!(judge(&bundle_in(&["platform"]), vec![filled], vec![place], &SCOPE, &Live).is_err());
}

#[test]
fn fields_that_nobody_may_set() {
    for (rest, expected) in [
        (json!({"metadata": {"finalizers": ["x"]}}), &["metadata.finalizers is refused"][..]),
        (json!({"metadata": {"finalizers": []}}), &[]),
        (json!({"metadata": {"ownerReferences": [{}]}}), &["metadata.ownerReferences is refused"]),
        (json!({"metadata": {"generateName": "x-", "name": null}}), &["metadata.generateName is refused"]),
        (json!({"metadata": {"name": null}}), &["metadata.name is missing"]),
        (json!({"metadata": {"labels": {"a": 1}, "annotations": []}}), &["metadata.labels.a is not a string"]),
        (json!({"metadata": {"annotations": [1]}}), &["metadata.annotations is not a map"]),
    ] {
        check(vec![object("v1", "ConfigMap", "x", rest)], expected);
    }
    for (kind, rest, expected) in [
        ("Service", json!({"spec": {"type": "ExternalName"}}), &["ExternalName"][..]),
        ("Service", json!({"spec": {"externalIPs": ["1.2.3.4"]}}), &["spec.externalIPs"]),
        ("Service", json!({"spec": {"type": "LoadBalancer"}}), &[]),
        ("Secret", json!({"type": "kubernetes.io/service-account-token"}), &["type `kubernetes.io/service-account-token` is refused"]),
        ("Secret", json!({"type": "kubernetes.io/tls"}), &[]),
        ("Secret", json!({"stringData": {"port": 1}}), &["stringData.port is not a string"]),
    ] {
        check(vec![object("v1", kind, "x", rest)], expected);
    }
}

#[test]
fn permissions_are_in_the_order_of_application() {
    let rbac = "rbac.authorization.k8s.io/v1";
    let admission = "admissionregistration.k8s.io/v1";
    let kinds = [
        (admission, "MutatingWebhookConfiguration"),
        (admission, "ValidatingWebhookConfiguration"),
        (admission, "MutatingAdmissionPolicyBinding"),
        (admission, "MutatingAdmissionPolicy"),
        (admission, "ValidatingAdmissionPolicyBinding"),
        (admission, "ValidatingAdmissionPolicy"),
        (rbac, "RoleBinding"),
        (rbac, "ClusterRoleBinding"),
        (rbac, "Role"),
        (rbac, "ClusterRole"),
        ("v1", "ServiceAccount"),
        ("groupsnapshot.storage.k8s.io/v1", "VolumeGroupSnapshotClass"),
        ("snapshot.storage.k8s.io/v1", "VolumeSnapshotClass"),
        ("apiextensions.k8s.io/v1", "CustomResourceDefinition"),
        ("storage.k8s.io/v1", "StorageClass"),
        ("scheduling.k8s.io/v1", "PriorityClass"),
        ("v1", "Namespace"),
    ];
    let objects = kinds.iter().map(|(version, kind)| object(version, kind, "x", json!({}))).collect();
    let result = judged(objects).unwrap();
    let order: Vec<String> = result.permissions().iter().map(|object| object.key().kind).collect();
    assert_eq!(order, kinds.iter().rev().map(|(_, kind)| (*kind).to_owned()).collect::<Vec<_>>());
    assert!(result.workload().is_empty());
}

/// Inside a kind as the bundle says it; the workload by the manifest's order of components, whatever was rendered first.
#[test]
fn what_has_no_order_of_its_own_keeps_the_bundles() {
    let from = |component: &str, kind: &str, name: &str| {
        let mut rendered = object("v1", kind, name, json!({}));
        rendered.component = Some(component.to_owned());
        rendered.template = format!("{component}/templates/x.yaml");
        rendered
    };
    let objects = vec![
        from("second", "ConfigMap", "d"),
        from("first", "ServiceAccount", "z"),
        from("second", "ServiceAccount", "a"),
        from("first", "Service", "c"),
        from("first", "ConfigMap", "b"),
        from("first", "ServiceAccount", "m"),
        from("first", "ConfigMap", "a"),
    ];
    let result = judged(objects).unwrap();
    let names = |objects: &[RenderedObject]| objects.iter().map(|object| object.key().name).collect::<Vec<_>>();
    assert_eq!(names(result.permissions()), ["z", "a", "m"]);
    assert_eq!(names(result.workload()), ["b", "a", "c", "d"]);
}

#[test]
fn waves_of_a_component() {
    let image = format!("r.example/app@{DIGEST}");
    let hook = |mut object: RenderedObject, phase, weight| {
        object.hook = Some(Hook { phase, weight });
        object
    };
    let config = |name: &str| object("v1", "ConfigMap", name, json!({}));
    let job = |name: &str| object("batch/v1", "Job", name, json!({}));
    let objects = vec![
        hook(job("last"), HookPhase::Post, 1),
        hook(job("after"), HookPhase::Post, -1),
        hook(config("with-the-last"), HookPhase::Post, 1),
        object("policy/v1", "PodDisruptionBudget", "budget", json!({})),
        deployment("server", &image),
        hook(job("migrate"), HookPhase::Pre, 0),
        object("v1", "Service", "service", json!({})),
        object("v1", "Secret", "secret", json!({"data": {"a": ""}})),
        config("config"),
        hook(config("before"), HookPhase::Pre, 0),
        hook(job("first"), HookPhase::Pre, -5),
        job("once"),
    ];
    let result = judged(objects).unwrap();
    let told: Vec<(Phase, Vec<String>)> =
        result.waves("first").into_iter().map(|wave| (wave.phase, wave.objects.iter().map(|object| object.key().name).collect())).collect();
    let expected: [(Phase, &[&str]); 10] = [
        (Phase::PreHook(-5), &["first"]),
        (Phase::PreHook(0), &["before"]),
        (Phase::PreHook(0), &["migrate"]),
        (Phase::Configuration, &["secret", "config"]),
        (Phase::Services, &["service"]),
        (Phase::Workloads, &["server", "once"]),
        (Phase::Disruption, &["budget"]),
        (Phase::PostHook(-1), &["after"]),
        (Phase::PostHook(1), &["with-the-last"]),
        (Phase::PostHook(1), &["last"]),
    ];
    assert_eq!(told, expected.map(|(phase, names)| (phase, names.iter().map(|name| (*name).to_owned()).collect())));
    let all: Vec<String> = result.workload().iter().map(|object| object.key().name).collect();
    assert_eq!(all, told.into_iter().flat_map(|(_, names)| names).collect::<Vec<_>>());
    assert!(result.waves("second").is_empty());
}

#[test]
fn the_workload_digest_covers_the_workload_and_no_place_for_others() {
    let config = |value: &str| object("v1", "ConfigMap", "x", json!({"data": {"a": value}}));
    let account = object("v1", "ServiceAccount", "x", json!({}));
    let place = object("v1", "Secret", "place", json!({}));
    let bundle = bundle_in(&["platform"]);
    let digest = |objects: Vec<RenderedObject>, places: Vec<RenderedObject>| {
        let result = judge(&bundle, objects, places, &SCOPE, &Live).unwrap();
        result.workload_sha256()
    };
    let first = digest(vec![config("1")], Vec::new());
    assert_eq!(digest(vec![account, config("1")], vec![place]), first);
    assert_ne!(digest(vec![config("2")], Vec::new()), first);
}

#[test]
fn a_stamp_names_the_bundle_and_the_content_before_it() {
    let bundle = bundle_in(&["platform"]);
    let account = object("v1", "ServiceAccount", "x", json!({"metadata": {"annotations": {"own": "1"}}}));
    let value = stamped(&account, bundle.sha256());
    let annotations = &value["metadata"]["annotations"];
    assert_eq!(annotations["own"], "1");
    assert_eq!(annotations[keys::BUNDLE_SHA256], bundle.sha256().as_str());
    assert_eq!(annotations[keys::CONTENT_SHA256], account.digest().as_str());
}
