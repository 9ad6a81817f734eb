use super::*;
use crate::reconcile::guard::guard;
use crate::reconcile::{FIELD_MANAGER, live};
use serde_json::json;

fn rendered(object: Value) -> RenderedObject {
    RenderedObject { component: Some("redis".into()), template: "redis/templates/x.yaml".into(), hook: None, object }
}

fn workload(kind: &str, spec: Value) -> Value {
    let mut whole = json!({"selector": {"matchLabels": {"app": "redis"}},
        "template": {"metadata": {"labels": {"app": "redis"}, "annotations": {"checksum/config": "1"}}, "spec": {}}});
    for (field, value) in spec.as_object().unwrap() {
        whole[field] = value.clone();
    }
    json!({"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": "redis", "namespace": "here"}, "spec": whole})
}

/// A live workload; `owner` owns its count.
fn live_workload(kind: &str, replicas: u32, owner: &str) -> Value {
    let mut object = workload(kind, json!({"replicas": replicas}));
    let operation = if owner == FIELD_MANAGER { "Apply" } else { "Update" };
    object["metadata"]["managedFields"] = json!([{"manager": owner, "operation": operation, "fieldsV1": {"f:spec": {"f:replicas": {}}}}]);
    object
}

fn spec(over: Value) -> ManagedComponentSpec {
    let mut whole = json!({"service": "redis", "source": {"local": "redis"}});
    for (field, value) in over.as_object().unwrap() {
        whole[field] = value.clone();
    }
    serde_json::from_value(whole).unwrap()
}

struct Case {
    chart: Vec<Value>,
    spec: Value,
    live: Vec<Value>,
    keda_served: bool,
    kept: Vec<KeptReplicas>,
    restarted_at: Option<jiff::Timestamp>,
}

fn case(chart: Vec<Value>, spec: Value) -> Case {
    Case { chart, spec, live: Vec::new(), keda_served: false, kept: Vec::new(), restarted_at: None }
}

impl Case {
    fn live(self, live: Vec<Value>) -> Self {
        Self { live, ..self }
    }

    fn with_keda(self) -> Self {
        Self { keda_served: true, ..self }
    }

    fn run(self) -> Result<Desired, TransformError> {
        let allowed = guard(self.chart.into_iter().map(rendered).collect(), "here").unwrap();
        let (spec, live) = (spec(self.spec), live(self.live));
        let (keda_served, restarted_at) = (self.keda_served, self.restarted_at);
        transform(allowed, &Inputs { component: "redis", spec: &spec, keda_served, live: &live, kept: &self.kept, restarted_at })
    }

    fn objects(self) -> Vec<Value> {
        self.run().unwrap().objects.into_iter().map(|rendered| rendered.object).collect()
    }
}

fn of_kind<'a>(objects: &'a [Value], kind: &str) -> Vec<&'a Value> {
    objects.iter().filter(|object| object["kind"] == kind).collect()
}

fn only<'a>(objects: &'a [Value], kind: &str) -> &'a Value {
    let found = of_kind(objects, kind);
    assert_eq!(found.len(), 1, "{kind}: {found:?}");
    found[0]
}

#[test]
fn installation() {
    let objects = case(vec![workload("Deployment", json!({"replicas": 2}))], json!({})).objects();
    assert_eq!(objects, [workload("Deployment", json!({"replicas": 2}))], "a spec that says nothing changes nothing");
}

#[test]
fn arret() {
    for kind in ["Deployment", "StatefulSet"] {
        let chart = vec![
            workload(kind, json!({"replicas": 3})),
            json!({"apiVersion": "v1", "kind": "Service",
            "metadata": {"name": "redis", "namespace": "here"}}),
        ];
        let objects = case(chart, json!({"desiredState": "Stopped", "replicas": 5})).objects();
        assert_eq!(only(&objects, kind)["spec"]["replicas"], 0, "{kind}");
        assert_eq!(of_kind(&objects, "Service").len(), 1, "what is no workload stays");
    }
}

#[test]
fn arret_under_an_autoscaler_keeps_what_it_held() {
    let scaling = json!({"minReplicas": 2, "maxReplicas": 9, "engine": "hpa"});
    let stopped = case(vec![workload("Deployment", json!({}))], json!({"desiredState": "Stopped", "autoscaling": scaling}));
    let desired = stopped.live(vec![live_workload("Deployment", 8, "kube-controller-manager")]).run().unwrap();
    assert_eq!(desired.kept, [KeptReplicas { kind: "Deployment".into(), name: "redis".into(), replicas: 8 }]);
    let objects: Vec<Value> = desired.objects.into_iter().map(|rendered| rendered.object).collect();
    assert_eq!(only(&objects, "Deployment")["spec"]["replicas"], 0);
    let mut started = case(vec![workload("Deployment", json!({}))], json!({"autoscaling": scaling}));
    started.kept = desired.kept;
    let objects = started.live(vec![live_workload("Deployment", 0, FIELD_MANAGER)]).objects();
    assert_eq!(only(&objects, "Deployment")["spec"]["replicas"], 8, "démarrage brings back");
}

#[test]
fn arret_tells_keda() {
    let scaling = json!({"minReplicas": 2, "maxReplicas": 9, "engine": "keda"});
    for (state, expected) in [("Running", json!(null)), ("Stopped", json!({"autoscaling.keda.sh/paused-replicas": "0"}))] {
        let spec = json!({"desiredState": state, "autoscaling": scaling});
        let objects = case(vec![workload("Deployment", json!({}))], spec).with_keda().objects();
        let scaled = only(&objects, "ScaledObject");
        assert_eq!(scaled["metadata"].get("annotations").cloned().unwrap_or_default(), expected, "{state}");
    }
}

#[test]
fn redemarrage() {
    let mut restarted = case(vec![workload("StatefulSet", json!({}))], json!({}));
    restarted.restarted_at = Some("2026-11-30T10:00:00Z".parse().unwrap());
    let objects = restarted.objects();
    let annotations = &only(&objects, "StatefulSet")["spec"]["template"]["metadata"]["annotations"];
    let expected = json!({"checksum/config": "1", "platform.navin.ai/restarted-at": "2026-11-30T10:00:00Z"});
    assert_eq!(*annotations, expected, "the chart's own stay");
}

#[test]
fn mise_a_l_echelle() {
    for kind in ["Deployment", "StatefulSet"] {
        let objects = case(vec![workload(kind, json!({"replicas": 2}))], json!({"replicas": 4})).objects();
        assert_eq!(only(&objects, kind)["spec"]["replicas"], 4, "{kind}");
    }
}

#[test]
fn mise_a_l_echelle_by_an_autoscaler() {
    let spec = |engine: Value| json!({"autoscaling": {"minReplicas": 2, "maxReplicas": 9, "targetCPUUtilizationPercentage": 70, "engine": engine}});
    let chart = || vec![workload("StatefulSet", json!({"replicas": 1}))];
    let target = json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "redis"});
    let objects = case(chart(), spec(json!(null))).objects();
    let hpa = only(&objects, "HorizontalPodAutoscaler");
    assert_eq!((&hpa["spec"]["scaleTargetRef"], &hpa["spec"]["minReplicas"], &hpa["spec"]["maxReplicas"]), (&target, &json!(2), &json!(9)));
    assert_eq!(hpa["spec"]["metrics"][0]["resource"]["target"]["averageUtilization"], 70);
    assert_eq!(hpa["metadata"]["labels"], json!({"platform.navin.ai/component": "redis"}));
    let objects = case(chart(), spec(json!(null))).with_keda().objects();
    let scaled = only(&objects, "ScaledObject");
    assert_eq!((&scaled["spec"]["scaleTargetRef"], &scaled["spec"]["minReplicaCount"]), (&target, &json!(2)));
    assert_eq!(scaled["spec"]["triggers"][0]["metadata"], json!({"value": "70"}));
    assert_eq!(of_kind(&objects, "HorizontalPodAutoscaler").len(), 0);
    let refused = case(chart(), spec(json!("keda"))).run().unwrap_err();
    assert_eq!(refused.reason(), Reason::KedaNotServed);
}

#[test]
fn replicas_are_not_written_while_an_autoscaler_owns_them() {
    let by = "kube-controller-manager";
    let hpa = |labels: Value| {
        json!({"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler",
            "metadata": {"name": "x", "namespace": "here", "labels": labels},
            "spec": {"scaleTargetRef": {"kind": "Deployment", "name": "redis"}, "minReplicas": 2, "maxReplicas": 9}})
    };
    let (nobody, ours) = (json!({}), json!({"platform.navin.ai/component": "redis"}));
    let chart = || vec![workload("Deployment", json!({"replicas": 2}))];
    let scaling = json!({"autoscaling": {"minReplicas": 2, "maxReplicas": 9}});
    for (name, found, live, expected) in [
        ("the spec's", case(chart(), scaling.clone()), vec![live_workload("Deployment", 8, by)], json!(null)),
        (
            "the chart's",
            case([chart(), vec![hpa(nobody.clone())]].concat(), json!({})),
            vec![live_workload("Deployment", 8, by)],
            json!(null),
        ),
        ("a live one of somebody else's", case(chart(), json!({})), vec![live_workload("Deployment", 8, by), hpa(nobody)], json!(null)),
        ("ours, that is about to go", case(chart(), json!({})), vec![live_workload("Deployment", 8, by), hpa(ours)], json!(2)),
        ("none any more", case(chart(), json!({})), vec![live_workload("Deployment", 8, by)], json!(2)),
        ("one that has written nothing yet", case(chart(), scaling), vec![live_workload("Deployment", 5, FIELD_MANAGER)], json!(5)),
    ] {
        let objects = found.live(live).objects();
        assert_eq!(only(&objects, "Deployment")["spec"].get("replicas").cloned().unwrap_or_default(), expected, "{name}");
    }
}

#[test]
fn pod_disruption_budget() {
    let chart = vec![
        workload("Deployment", json!({"replicas": 3, "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "100%"}}})),
        workload("StatefulSet", json!({"replicas": 3})),
    ];
    let objects = case(chart, json!({"pdb": {"minAvailable": 2}})).objects();
    let budgets = of_kind(&objects, "PodDisruptionBudget");
    let names: Vec<&str> = budgets.iter().map(|budget| budget["metadata"]["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["redis-deployment", "redis-statefulset"], "one for each workload");
    let expected = json!({"minAvailable": 2, "selector": {"matchLabels": {"app": "redis"}}, "unhealthyPodEvictionPolicy": "AlwaysAllow"});
    assert_eq!(budgets[0]["spec"], expected);
    let strategy = json!({"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1, "maxSurge": 1}});
    assert_eq!(only(&objects, "Deployment")["spec"]["strategy"], strategy);
    assert_eq!(only(&objects, "StatefulSet")["spec"].get("strategy"), None);
}

#[test]
fn a_budget_holds_for_the_fewest_pods_of_an_autoscaler_and_over_a_stop() {
    let spec = json!({"pdb": {"minAvailable": 2}, "autoscaling": {"minReplicas": 3, "maxReplicas": 9}});
    let objects = case(vec![workload("Deployment", json!({"replicas": 8}))], spec).objects();
    assert_eq!(only(&objects, "Deployment")["spec"]["strategy"]["rollingUpdate"]["maxUnavailable"], 1);
    let spec = json!({"pdb": {"minAvailable": 2}, "replicas": 3, "desiredState": "Stopped"});
    let objects = case(vec![workload("Deployment", json!({}))], spec).objects();
    assert_eq!(only(&objects, "Deployment")["spec"]["strategy"]["rollingUpdate"]["maxUnavailable"], 1);
}

#[test]
fn the_charts_own_budget_and_autoscaler_give_way() {
    let budget = |app: &str| {
        json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": format!("chart-{app}"), "namespace": "here"},
            "spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"app": app}}}})
    };
    let hpa = json!({"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "chart", "namespace": "here"},
        "spec": {"scaleTargetRef": {"kind": "Deployment", "name": "redis"}, "maxReplicas": 4}});
    let chart = || vec![workload("Deployment", json!({"replicas": 2})), budget("redis"), budget("other"), hpa.clone()];
    let spec = json!({"pdb": {"minAvailable": 1}, "autoscaling": {"minReplicas": 2, "maxReplicas": 3}});
    let desired = case(chart(), spec).run().unwrap();
    let replaced: Vec<&str> = desired.replaced.iter().map(|key| key.name.as_str()).collect();
    assert_eq!(replaced, ["chart-redis", "chart"]);
    assert_eq!(case(chart(), json!({})).run().unwrap().replaced, [], "without the spec's they stay");
}

/// A rolling update would start a second pod beside the first, on a volume that only one may write.
#[test]
fn a_recreate_stays_one_under_a_budget_that_asks_for_no_pod() {
    let recreate = json!({"replicas": 1, "strategy": {"type": "Recreate"}});
    for pdb in [json!({"maxUnavailable": 1}), json!({"minAvailable": 0}), json!({"maxUnavailable": "100%"})] {
        let desired = case(vec![workload("Deployment", recreate.clone())], json!({"pdb": pdb})).run().unwrap();
        let strategies: Vec<&Value> = desired.objects.iter().filter_map(|rendered| rendered.object.pointer("/spec/strategy")).collect();
        assert_eq!(strategies, [&json!({"type": "Recreate"})], "{pdb}");
    }
}

#[test]
fn what_no_budget_can_hold_is_refused() {
    let recreate = json!({"replicas": 2, "strategy": {"type": "Recreate"}});
    for (name, chart, spec, expected) in [
        (
            "the chart's count is too small",
            json!({"replicas": 1}),
            json!({"pdb": {"minAvailable": 2}}),
            Some(Reason::ReplicasBelowMinAvailable),
        ),
        (
            "and so is the count of a chart that says none",
            json!({}),
            json!({"pdb": {"minAvailable": 2}}),
            Some(Reason::ReplicasBelowMinAvailable),
        ),
        ("the spec's makes it right", json!({"replicas": 1}), json!({"pdb": {"minAvailable": 2}, "replicas": 2}), None),
        ("all pods at once", recreate.clone(), json!({"pdb": {"minAvailable": 1}}), Some(Reason::RecreateUnderBudget)),
        ("all pods at once, and none is needed", recreate, json!({"pdb": {"maxUnavailable": "100%"}}), None),
    ] {
        let found = case(vec![workload("Deployment", chart)], spec).run();
        assert_eq!(found.err().map(|error| error.reason()), expected, "{name}");
    }
}

#[test]
fn the_charts_own_scaled_object_needs_keda_too() {
    let scaled = json!({"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject", "metadata": {"name": "x", "namespace": "here"},
        "spec": {"scaleTargetRef": {"name": "redis"}}});
    assert_eq!(case(vec![scaled.clone()], json!({})).run().unwrap_err().reason(), Reason::KedaNotServed);
    assert!(case(vec![scaled], json!({})).with_keda().run().is_ok());
}

#[test]
fn objects_stand_in_the_order_in_which_they_are_applied() {
    let named =
        |api_version: &str, kind: &str| json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "a", "namespace": "here"}});
    let chart = vec![named("networking.k8s.io/v1", "Ingress"), workload("Deployment", json!({"replicas": 1})), named("v1", "ConfigMap")];
    let objects = case(chart, json!({"pdb": {"maxUnavailable": 1}})).objects();
    let kinds: Vec<&str> = objects.iter().map(|object| object["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["ConfigMap", "PodDisruptionBudget", "Deployment", "Ingress"]);
}
