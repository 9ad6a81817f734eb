//! The table "Composants et opérations" through a whole pass: a cluster is played that takes what a plan writes and makes every pod available.

use super::*;
use crate::reconcile::FIELD_MANAGER;
use agent_api::heartbeat::{Health, OperationState, SecurityState, State};
use serde_json::json;

struct World {
    spec: Value,
    generation: i64,
    status: ManagedComponentStatus,
    live: Live,
    written: BTreeMap<ObjectKey, Written>,
    chart: Vec<Value>,
    deleting: bool,
    unanswered: Vec<String>,
    /// Objects written in the last pass.
    writes: usize,
}

fn deployment(spec: Value) -> Value {
    let mut whole = json!({"selector": {"matchLabels": {"app": "redis"}}, "template": {"metadata": {"labels": {"app": "redis"}}}});
    for (field, value) in spec.as_object().unwrap() {
        whole[field] = value.clone();
    }
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "redis"}, "spec": whole})
}

fn map(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}})
}

impl World {
    fn new(chart: Vec<Value>) -> Self {
        let spec = json!({"service": "redis", "source": {"local": "redis"}});
        let (status, live, written) = (ManagedComponentStatus::default(), Live::new(), BTreeMap::new());
        Self { spec, generation: 1, status, live, written, chart, deleting: false, unanswered: Vec::new(), writes: 0 }
    }

    /// Installed and converged.
    fn installed(chart: Vec<Value>) -> Self {
        let mut world = Self::new(chart);
        world.pass();
        assert!(world.status.converged, "{:?}", world.status);
        world
    }

    fn change(&mut self, over: Value) {
        for (field, value) in over.as_object().unwrap() {
            self.spec[field] = value.clone();
        }
        self.generation += 1;
    }

    /// A pass: planned, carried out, seen, told.
    fn pass(&mut self) {
        let spec: ManagedComponentSpec = serde_json::from_value(self.spec.clone()).unwrap();
        let before = self.status.clone();
        let (generation, deleting) = (self.generation, self.deleting);
        let component = Component { name: "redis", namespace: "here", generation, deleting, spec: &spec, status: &before };
        let chart = self.chart.clone();
        let plan = plan(
            &component,
            &Cluster { live: &self.live, keda_served: false, written: &self.written, unanswered: &self.unanswered },
            |_| {
                let object = |object| EngineObject { template: "redis/x.yaml".into(), hooks: vec![], weight: 0, crd: false, object };
                Ok(chart.into_iter().map(object).collect())
            },
        );
        self.writes = 0;
        self.carry_out(&plan);
        self.status = plan.status(&component, &self.live, None, Timestamp::UNIX_EPOCH);
    }

    fn carry_out(&mut self, plan: &Plan) {
        match &plan.steps {
            Steps::Nothing => {}
            Steps::Raise(raises) => {
                for raise in raises {
                    let live = self.live.get_mut(&raise.workload).unwrap();
                    live["spec"]["replicas"] = raise.to.into();
                    available(live, raise.to);
                    self.writes += 1;
                }
            }
            Steps::Apply { writes, prune } => {
                for (object, write) in writes {
                    if *write != Write::Nothing {
                        self.apply(object);
                    }
                }
                self.remove(prune);
            }
            Steps::Remove(fates) => self.remove(fates),
        }
    }

    fn remove(&mut self, fates: &[(ObjectKey, Fate)]) {
        for (key, _) in fates.iter().filter(|(_, fate)| *fate == Fate::Delete) {
            self.live.remove(key);
            self.writes += 1;
        }
    }

    fn apply(&mut self, object: &Value) {
        let key = ObjectKey::of(object);
        let former = self.live.get(&key).and_then(|live| live["spec"]["replicas"].as_u64());
        let mut live = object.clone();
        let own = json!({"f:spec": if object["spec"].get("replicas").is_some() { json!({"f:replicas": {}}) } else { json!({}) }});
        live["metadata"]["managedFields"] = json!([{"manager": FIELD_MANAGER, "operation": "Apply", "fieldsV1": own}]);
        if key.kind == "Deployment" {
            let pods = object["spec"]["replicas"].as_u64().or(former).unwrap_or(1);
            live["spec"]["replicas"] = pods.into();
            available(&mut live, u32::try_from(pods).unwrap());
        }
        self.written.insert(key.clone(), Written::of(object, &live));
        self.live.insert(key, live);
        self.writes += 1;
    }

    fn live(&mut self, kind: &str) -> &mut Value {
        self.live.iter_mut().find(|(key, _)| key.kind == kind).map(|(_, object)| object).unwrap()
    }

    fn dimensions(&self) -> (State, Health, OperationState, SecurityState, bool) {
        let status = &self.status;
        let told = (status.state, status.health, status.operation_state, status.security_state);
        let (Some(state), Some(health), Some(operation), Some(security)) = told else { panic!("{status:?}") };
        (state, health, operation, security, status.converged)
    }

    fn reason(&self) -> &str {
        let condition = self.status.conditions.iter().find(|condition| condition.kind == super::super::status::OPERATION);
        condition.unwrap().reason.as_str()
    }
}

fn available(live: &mut Value, pods: u32) {
    live["status"] = json!({"observedGeneration": 1, "replicas": pods, "updatedReplicas": pods, "availableReplicas": pods});
}

const DONE: (State, Health, OperationState, SecurityState, bool) =
    (State::Started, Health::Ok, OperationState::Succeeded, SecurityState::Compliant, true);
const HELD: (State, Health, OperationState, SecurityState, bool) =
    (State::Started, Health::Ok, OperationState::Blocked, SecurityState::Compliant, false);

#[test]
fn installation() {
    let mut world = World::new(vec![deployment(json!({"replicas": 2})), map("a")]);
    world.pass();
    assert_eq!((world.dimensions(), world.writes, world.status.inventory.len()), (DONE, 2, 2));
    world.pass();
    assert_eq!((world.dimensions(), world.writes), (DONE, 0), "nothing changed, nothing is written");
}

#[test]
fn demarrage_et_arret() {
    let mut world = World::installed(vec![deployment(json!({"replicas": 3}))]);
    world.change(json!({"desiredState": "Stopped"}));
    world.pass();
    let stopped = (State::Stopped, Health::Ok, OperationState::Succeeded, SecurityState::Compliant, true);
    assert_eq!((world.dimensions(), &world.live("Deployment")["spec"]["replicas"]), (stopped, &json!(0)));
    world.change(json!({"desiredState": "Running"}));
    world.pass();
    assert_eq!((world.dimensions(), &world.live("Deployment")["spec"]["replicas"]), (DONE, &json!(3)));
}

#[test]
fn redemarrage_waits_for_its_budget_and_goes_on_by_itself() {
    let mut world = World::new(vec![deployment(json!({}))]);
    world.change(json!({"replicas": 3, "pdb": {"minAvailable": 2}}));
    world.pass();
    world.live("Deployment")["status"]["availableReplicas"] = json!(1);
    world.change(json!({"restartRequestedAt": "2026-11-30T10:00:00Z"}));
    let annotation = |world: &mut World| {
        world.live("Deployment")["spec"]["template"]["metadata"].pointer("/annotations/platform.navin.ai~1restarted-at").cloned()
    };
    world.pass();
    let waiting = (State::Starting, Health::Warning, OperationState::Blocked, SecurityState::Compliant, false);
    // However often it is looked at.
    for _ in 0..2 {
        assert_eq!((world.dimensions(), world.reason(), world.writes), (waiting, "DisruptionBudgetExhausted", 0));
        assert_eq!(annotation(&mut world), None);
        world.pass();
    }
    world.live("Deployment")["status"]["availableReplicas"] = json!(3);
    world.pass();
    assert_eq!((world.dimensions(), world.writes, annotation(&mut world)), (DONE, 1, Some(json!("2026-11-30T10:00:00Z"))));
    world.pass();
    assert_eq!(world.writes, 0, "each request counts once");
}

#[test]
fn redemarrage_while_stopped_makes_no_pods() {
    let mut world = World::installed(vec![deployment(json!({"replicas": 3}))]);
    world.change(json!({"desiredState": "Stopped", "restartRequestedAt": "2026-11-30T10:00:00Z"}));
    world.pass();
    assert_eq!((world.status.state, &world.live("Deployment")["spec"]["replicas"]), (Some(State::Stopped), &json!(0)));
}

#[test]
fn mise_a_l_echelle() {
    let mut world = World::installed(vec![deployment(json!({"replicas": 1}))]);
    for replicas in [4, 2] {
        world.change(json!({"replicas": replicas}));
        world.pass();
        assert_eq!((world.dimensions(), &world.live("Deployment")["spec"]["replicas"]), (DONE, &json!(replicas)));
    }
    world.change(json!({"autoscaling": {"minReplicas": 2, "maxReplicas": 5, "engine": "keda"}}));
    world.pass();
    assert_eq!((world.status.operation_state, world.reason()), (Some(OperationState::Failed), "KedaNotServed"));
    world.change(json!({"autoscaling": {"minReplicas": 2, "maxReplicas": 5}}));
    world.pass();
    assert_eq!(world.dimensions(), DONE);
    assert_eq!(world.live("HorizontalPodAutoscaler")["spec"]["maxReplicas"], 5);
    world.change(json!({"autoscaling": null}));
    world.pass();
    world.pass();
    assert!(world.live.keys().all(|key| key.kind != "HorizontalPodAutoscaler") && world.status.inventory.len() == 1);
}

/// "bloque l'arrêt, le redémarrage, la réduction, la configuration et la suppression", whoever wrote the resource.
#[test]
fn maintenance() {
    for (name, change) in [
        ("arrêt", json!({"desiredState": "Stopped"})),
        ("redémarrage", json!({"restartRequestedAt": "2026-11-30T10:00:00Z"})),
        ("réduction", json!({"replicas": 1})),
        ("configuration", json!({"values": {"a": 1}})),
    ] {
        let mut world = World::installed(vec![deployment(json!({"replicas": 2}))]);
        world.change(json!({"replicas": 3}));
        world.pass();
        world.change(json!({"maintenance": true}));
        world.pass();
        assert_eq!(world.status.operation_state, Some(OperationState::Idle), "{name}");
        world.change(change);
        world.pass();
        assert_eq!((world.dimensions(), world.reason(), world.writes), (HELD, "Maintenance", 0), "{name}");
        assert_eq!(world.status.observed_generation, Some(world.generation), "{name}");
        world.change(json!({"maintenance": false}));
        world.pass();
        assert!(world.status.converged && world.writes <= 1, "{name} is carried out afterwards: {:?}", world.status);
    }
}

#[test]
fn maintenance_lets_counts_rise() {
    let mut world = World::installed(vec![deployment(json!({"replicas": 2}))]);
    world.change(json!({"maintenance": true, "replicas": 4}));
    world.pass();
    assert_eq!((world.dimensions(), &world.live("Deployment")["spec"]["replicas"]), (DONE, &json!(4)));
    world.change(json!({"replicas": 6, "values": {"a": 1}}));
    world.pass();
    assert_eq!((world.dimensions(), &world.live("Deployment")["spec"]["replicas"]), (HELD, &json!(6)), "the rest of it waits");
    world.live("Deployment")["metadata"]["managedFields"] = json!([]);
    world.pass();
    assert_eq!(world.writes, 0, "not even what somebody edited is written");
}

#[test]
fn maintenance_lets_a_stopped_component_start() {
    let mut world = World::installed(vec![deployment(json!({"replicas": 3}))]);
    world.change(json!({"desiredState": "Stopped"}));
    world.pass();
    world.change(json!({"desiredState": "Running", "maintenance": true}));
    world.pass();
    assert_eq!((world.dimensions(), &world.live("Deployment")["spec"]["replicas"]), (DONE, &json!(3)));
}

#[test]
fn maintenance_blocks_suppression_and_installation() {
    let mut world = World::installed(vec![deployment(json!({"replicas": 2}))]);
    world.change(json!({"maintenance": true}));
    world.deleting = true;
    world.pass();
    assert_eq!((world.dimensions(), world.reason(), world.live.len()), (HELD, "Maintenance", 1));
    let mut world = World::new(vec![map("a")]);
    world.change(json!({"maintenance": true}));
    world.pass();
    assert_eq!((world.status.state, world.reason(), world.live.len()), (Some(State::Installing), "Maintenance", 0));
}

#[test]
fn configuration_prunes_what_is_gone_but_what_is_kept() {
    let mut kept = map("kept");
    kept["metadata"]["annotations"] = json!({"helm.sh/resource-policy": "keep"});
    let mut world = World::installed(vec![map("a"), map("b"), kept]);
    world.chart = vec![map("a")];
    world.change(json!({"values": {"less": true}}));
    world.pass();
    let names: Vec<&str> = world.live.keys().map(|key| key.name.as_str()).collect();
    assert_eq!(names, ["a", "kept"]);
    assert_eq!(world.status.inventory.iter().map(|item| item.name.as_str()).collect::<Vec<_>>(), ["a", "kept"]);
}

#[test]
fn suppression_takes_everything_that_was_applied_and_nothing_else() {
    let mut kept = map("kept");
    kept["metadata"]["annotations"] = json!({"helm.sh/resource-policy": "keep"});
    let mut world = World::installed(vec![deployment(json!({"replicas": 2})), kept]);
    let mut other = map("other");
    other["metadata"]["namespace"] = "here".into();
    world.live.insert(ObjectKey::of(&other), other);
    world.deleting = true;
    // Whatever the chart says now is not looked at.
    world.chart = vec![json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}})];
    world.pass();
    assert_eq!(world.live.keys().map(|key| key.name.as_str()).collect::<Vec<_>>(), ["other"]);
    assert_eq!((world.status.state, world.status.inventory.len()), (Some(State::Uninstalling), 0));
}

/// "security_state": a secret in plain text, or an object that is forbidden; what ran before goes on.
#[test]
fn what_is_refused_changes_nothing() {
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}});
    for (name, chart, change, reason, security) in [
        (
            "a forbidden object",
            vec![deployment(json!({"replicas": 1})), secret],
            json!({"version": "2"}),
            "ForbiddenObject",
            SecurityState::NonCompliant,
        ),
        ("a secret in values", vec![], json!({"values": {"password": "planted-5e0b7a"}}), "SecretInValues", SecurityState::NonCompliant),
        ("a rule", vec![], json!({"replicas": 0}), "InvalidSpec", SecurityState::Unknown),
        (
            "a value path",
            vec![],
            json!({"values": {"a": 1}, "secretRefs": [{"secretName": "s", "key": "k", "valuePath": "a.b"}]}),
            "ValuePath",
            SecurityState::Unknown,
        ),
        (
            "a budget",
            vec![deployment(json!({"replicas": 1}))],
            json!({"pdb": {"minAvailable": 2}}),
            "ReplicasBelowMinAvailable",
            SecurityState::Compliant,
        ),
    ] {
        let mut world = World::installed(vec![deployment(json!({"replicas": 2}))]);
        let before = world.live.clone();
        world.chart = chart;
        world.change(change);
        world.pass();
        let refused = (State::Started, Health::Ok, OperationState::Failed, security, false);
        assert_eq!((world.dimensions(), world.reason()), (refused, reason), "{name}");
        assert_eq!(world.live, before, "{name}");
        assert!(!format!("{:?}", world.status).contains("planted-5e0b7a"), "{name}");
    }
}

#[test]
fn what_is_left_out_and_what_goes_is_told() {
    let told = |world: &World| {
        let condition = world.status.conditions.iter().find(|condition| condition.kind == super::super::status::OPERATION);
        condition.unwrap().message.clone()
    };
    let budget = json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "chart"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "redis"}}}});
    let mut kept = map("kept");
    kept["metadata"]["annotations"] = json!({"helm.sh/resource-policy": "keep"});
    let mut world = World::new(vec![deployment(json!({"replicas": 2})), budget, kept]);
    world.change(json!({"pdb": {"minAvailable": 1}}));
    world.pass();
    assert!(told(&world).ends_with("; the spec's stand in for: PodDisruptionBudget.policy here/chart"), "{}", told(&world));
    world.deleting = true;
    world.pass();
    assert!(told(&world).ends_with("; removed though kept in updates: ConfigMap here/kept"), "{}", told(&world));
}

#[test]
fn an_object_of_another_component_stops_the_pass_before_the_first_write() {
    let mut world = World::new(vec![map("a"), map("b")]);
    let mut other = map("b");
    other["metadata"] = json!({"name": "b", "namespace": "here", "labels": {"platform.navin.ai/component": "other"}});
    world.live.insert(ObjectKey::of(&other), other);
    world.pass();
    assert_eq!((world.status.state, world.reason(), world.writes), (Some(State::Failed), "OwnedByAnother", 0));
}

/// An aggregated API that is slow when the operator starts: the chart is told of less than before, and nobody asked for anything.
#[test]
fn nothing_goes_because_an_api_does_not_answer() {
    let mut world = World::installed(vec![map("a"), map("for-metrics")]);
    world.chart = vec![map("a")];
    world.unanswered = vec!["metrics.k8s.io".into()];
    world.pass();
    let told = |world: &World| world.status.conditions.iter().map(|condition| condition.message.clone()).collect::<String>();
    assert_eq!((world.live.len(), world.status.inventory.len(), world.status.converged), (2, 2, true));
    assert!(told(&world).contains("kept while metrics.k8s.io does not answer: ConfigMap here/for-metrics"), "{}", told(&world));
    world.change(json!({"values": {"metrics": false}}));
    world.pass();
    assert_eq!((world.live.len(), world.status.inventory.len()), (1, 1), "that somebody asks for it is another matter");
}
