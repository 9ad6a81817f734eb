//! What the two identities may do, asked of a real API server with their real tokens: by RBAC, and with RBAC widened by hand, by the
//! guards alone. Every attempt is denied, and by the layer that is meant to; every honest write is taken.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use agent_api::keys::PINNED;
use agent_api::names::{CLUSTER_DIR, FIELD_MANAGER_EXECUTOR, PCM_EXECUTOR, PCM_PLATFORM, PLATFORM_DIR, PREFIX_GUARD, SCOPE_GUARD};
use anyhow::ensure;
use reqwest::Method;
use serde_json::{Value, json};
use system_tests::bundle::{self, Edition, NAMESPACE};
use system_tests::eventually;
use system_tests::landscape::{Landscape, SOON, difference};

const HOME: &str = "clicklink-system";

#[tokio::test(flavor = "multi_thread")]
async fn the_identities_can_do_what_they_are_for_and_nothing_else() {
    let landscape = Landscape::new().await;
    let release = bundle::push(&landscape.registry, Edition::First).await.unwrap();
    let sha256 = landscape.propose("first", &release).await.unwrap();
    landscape.until_status("approval_required", &sha256).await;
    landscape.connector.approve(&["--yes"]).await.unwrap().ok().unwrap();
    landscape.until_status("synced", &sha256).await;
    service_namespace(&landscape).await;

    let before = landscape.content().await.unwrap();
    let live = Live::read(&landscape).await;
    let platform = Identity::new(&landscape, PLATFORM_DIR);
    let executor = Identity::new(&landscape, CLUSTER_DIR);
    applies_the_bundle_again(&platform, &live).await;
    observes(&executor).await;
    all_denied(&platform, attempts_of_platform(&live)).await;
    all_denied(&executor, attempts_of_executor(&live)).await;

    widen(&landscape, &[&platform, &executor]).await;
    all_held_by_the_guard_alone(&platform, attempts_of_platform(&live)).await;
    all_held_by_the_guard_alone(&executor, attempts_of_executor(&live)).await;
    let widened = landscape.control_plane.kubectl(&["delete", "clusterrolebinding", "pcm-platform-widened", "pcm-executor-widened"]);
    widened.await.unwrap().ok().unwrap();
    assert_eq!(difference(&before, &landscape.content().await.unwrap()), [""; 0], "something was changed");
}

/// A namespace of a service, with all that the cluster itself puts there.
async fn service_namespace(landscape: &Landscape) {
    landscape.control_plane.kubectl(&["create", "namespace", "ns-service"]).await.unwrap().ok().unwrap();
    eventually("what every namespace has", SOON, || async {
        let there = ["get", "serviceaccount/default", "configmap/kube-root-ca.crt", "-n", "ns-service"];
        landscape.control_plane.kubectl(&there).await?.ok()
    })
    .await;
}

/// Somebody with a bearer token, and no library in between.
struct Identity {
    account: &'static str,
    http: reqwest::Client,
    server: String,
    token: String,
}

impl Identity {
    fn new(landscape: &Landscape, bundle: &str) -> Self {
        let ca = reqwest::Certificate::from_pem(landscape.control_plane.ca().as_bytes()).unwrap();
        let token = std::fs::read_to_string(landscape.connector.access_dir().join(bundle).join("token")).unwrap();
        Self {
            account: if bundle == PLATFORM_DIR { PCM_PLATFORM } else { PCM_EXECUTOR },
            http: reqwest::Client::builder().no_proxy().tls_certs_only([ca]).build().unwrap(),
            server: landscape.control_plane.url().to_owned(),
            token: token.trim().to_owned(),
        }
    }

    async fn ask(&self, attempt: &Attempt) -> (u16, String) {
        let mut request = self.http.request(attempt.method.clone(), format!("{}{}", self.server, attempt.path)).bearer_auth(&self.token);
        for (name, value) in &attempt.headers {
            request = request.header(*name, *value);
        }
        if let Some((media, body)) = &attempt.body {
            request = request.header("content-type", *media).body(body.to_string());
        }
        let answer = request.send().await.unwrap();
        let status = answer.status().as_u16();
        let text = answer.text().await.unwrap();
        let message = serde_json::from_str::<Value>(&text).ok().and_then(|body| Some(body.get("message")?.as_str()?.to_owned()));
        (status, message.unwrap_or(text))
    }
}

/// What denies.
#[derive(Clone, Copy, Debug)]
enum Layer {
    /// RBAC: the account has no such right.
    Rbac,
    /// A rule of the scope guard.
    Guard(&'static str),
    /// The API server's own validation: nobody can.
    Validation(&'static str),
}

struct Attempt {
    name: String,
    method: Method,
    path: String,
    headers: Vec<(&'static str, &'static str)>,
    body: Option<(&'static str, Value)>,
}

fn attempt(name: &str, method: Method, path: impl Into<String>) -> Attempt {
    Attempt { name: name.into(), method, path: path.into(), headers: Vec::new(), body: None }
}

impl Attempt {
    fn body(mut self, media: &'static str, body: Value) -> Self {
        self.body = Some((media, body));
        self
    }

    fn header(mut self, name: &'static str, value: &'static str) -> Self {
        self.headers.push((name, value));
        self
    }
}

const APPLY: &str = "application/apply-patch+yaml";
const MERGE: &str = "application/merge-patch+json";
const JSON: &str = "application/json";

/// Server-side apply as the executor does it, but over whatever other managers own.
fn apply(name: &str, object: Value) -> Attempt {
    apply_as(name, object, &format!("{FIELD_MANAGER_EXECUTOR}&force=true"))
}

fn apply_as(name: &str, object: Value, manager: &str) -> Attempt {
    let path = format!("{}?fieldManager={manager}", path_of(&object));
    attempt(name, Method::PATCH, path).body(APPLY, object)
}

/// `/apis/<group>/<version>/namespaces/<namespace>/<plural>/<name>`.
fn path_of(object: &Value) -> String {
    format!("{}/{}", collection_of(object), object["metadata"]["name"].as_str().unwrap())
}

fn collection_of(object: &Value) -> String {
    let kind = object["kind"].as_str().unwrap().to_lowercase();
    let plural = match kind.as_str() {
        "ingress" | "storageclass" | "priorityclass" => format!("{kind}es"),
        "networkpolicy" | "validatingadmissionpolicy" => format!("{}ies", kind.trim_end_matches('y')),
        _ => format!("{kind}s"),
    };
    let api_version = object["apiVersion"].as_str().unwrap();
    let base = if api_version == "v1" { "/api/v1".to_owned() } else { format!("/apis/{api_version}") };
    match object["metadata"]["namespace"].as_str() {
        Some(namespace) => format!("{base}/namespaces/{namespace}/{plural}"),
        None => format!("{base}/{plural}"),
    }
}

fn object(api_version: &str, kind: &str, namespace: Option<&str>, name: &str, more: Value) -> Value {
    let mut object = json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name, "labels": {PINNED: "true"}}});
    if let Some(namespace) = namespace {
        object["metadata"]["namespace"] = json!(namespace);
    }
    if let Value::Object(more) = more {
        object.as_object_mut().unwrap().extend(more);
    }
    object
}

fn config_map(namespace: &str, name: &str) -> Value {
    object("v1", "ConfigMap", Some(namespace), name, json!({"data": {"a": "b"}}))
}

/// The bundle's objects as they are live, without what belongs to the cluster.
struct Live {
    objects: Vec<Value>,
    pod: String,
}

impl Live {
    async fn read(landscape: &Landscape) -> Self {
        let kinds = "deployments,services,configmaps,secrets,jobs,poddisruptionbudgets";
        let get = ["get", kinds, "-n", NAMESPACE, "-l", "clicklink.io/pinned=true", "-o", "json"];
        let listed = landscape.control_plane.kubectl(&get).await.unwrap().ok().unwrap();
        let listed: Value = serde_json::from_str(&listed.stdout).unwrap();
        let mut objects = listed["items"].as_array().unwrap().clone();
        for object in &mut objects {
            object.as_object_mut().unwrap().remove("status");
            for field in ["uid", "resourceVersion", "creationTimestamp", "generation"] {
                object["metadata"].as_object_mut().unwrap().remove(field);
            }
        }
        let pods = ["get", "pods", "-n", NAMESPACE, "-o", "jsonpath={.items[0].metadata.name}"];
        let pod = landscape.control_plane.kubectl(&pods).await.unwrap().ok().unwrap().stdout;
        Self { objects, pod }
    }

    fn named(&self, kind: &str, name: &str) -> Value {
        let found = self.objects.iter().find(|object| object["kind"] == kind && object["metadata"]["name"] == name);
        found.unwrap_or_else(|| panic!("{kind} {name} is in the bundle")).clone()
    }

    /// The same with a change.
    fn changed(&self, kind: &str, name: &str, change: impl FnOnce(&mut Value)) -> Value {
        let before = self.named(kind, name);
        let mut after = before.clone();
        change(&mut after);
        assert_ne!(after, before, "the change of {kind} {name} does something");
        after
    }
}

async fn applies_the_bundle_again(platform: &Identity, live: &Live) {
    let kinds: std::collections::BTreeSet<&str> = live.objects.iter().map(|object| object["kind"].as_str().unwrap()).collect();
    let all = ["ConfigMap", "Deployment", "Job", "PodDisruptionBudget", "Secret", "Service"];
    assert_eq!(kinds.into_iter().collect::<Vec<_>>(), all, "the bundle has all six kinds");
    for object in &live.objects {
        let name = format!("{} {}", object["kind"], object["metadata"]["name"]);
        let (status, message) = platform.ask(&apply_as(&name, object.clone(), FIELD_MANAGER_EXECUTOR)).await;
        assert_eq!(status, 200, "{name}: {message}");
    }
}

/// An attempt, what denies it, and, where admission sees it, the rule that denies it when RBAC does not.
type Denied = (Attempt, Layer, Option<&'static str>);

const WHOLE: &str = "guard: only create and update of whole objects";
const PLACE: &str = "guard: namespace";
const KIND: &str = "guard: kind";
const MANNER: &str = "guard: only server-side apply as clicklink-executor";

fn attempts_of_platform(live: &Live) -> Vec<Denied> {
    let mut all = elsewhere();
    all.extend(other_kinds());
    all.extend(secrets());
    all.extend(other_manners(live));
    all.extend(odd_fields(live));
    all.extend(subresources(live));
    all.extend(other_identities());
    all
}

fn elsewhere() -> Vec<Denied> {
    let mut all: Vec<Denied> = ["default", "kube-system", HOME, "ns-service"]
        .into_iter()
        .map(|namespace| (apply(&format!("a ConfigMap in {namespace}"), config_map(namespace, "x")), Layer::Rbac, Some(PLACE)))
        .collect();
    let unknown = (apply("a name that is not in the bundle", config_map(NAMESPACE, "x")), Layer::Rbac, None);
    all.push(unknown);
    all.push((delete_collection("all ConfigMaps", NAMESPACE, "configmaps"), Layer::Rbac, Some(WHOLE)));
    all
}

fn delete_collection(name: &str, namespace: &str, plural: &str) -> Attempt {
    attempt(name, Method::DELETE, format!("/api/v1/namespaces/{namespace}/{plural}"))
}

fn other_kinds() -> Vec<Denied> {
    let pod = json!({"containers": [{"name": "main", "image": "registry.invalid/a@sha256:00"}]});
    let pods = json!({"spec": {"selector": {"matchLabels": {"a": "b"}}, "template": {"metadata": {"labels": {"a": "b"}}, "spec": pod}}});
    let role_ref = |kind: &str, name: &str| {
        json!({"roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name},
            "subjects": [{"kind": "ServiceAccount", "name": "pcm-platform", "namespace": HOME}]})
    };
    let all = json!({"rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]});
    let (rbac, ns) = ("rbac.authorization.k8s.io/v1", Some(NAMESPACE));
    let volume = json!({"spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/"}}});
    let claim = json!({"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}});
    let backend = json!({"spec": {"defaultBackend": {"service": {"name": "a", "port": {"number": 80}}}}});
    let signing = json!({"spec": {"request": "", "signerName": "kubernetes.io/kube-apiserver-client", "usages": ["client auth"]}});
    let objects = [
        (object("apps/v1", "DaemonSet", ns, "x", pods.clone()), KIND),
        (object("apps/v1", "StatefulSet", ns, "x", pods.clone()), KIND),
        (object("apps/v1", "ReplicaSet", ns, "x", pods), KIND),
        (object("v1", "Pod", ns, "x", json!({"spec": pod})), KIND),
        (object("v1", "ServiceAccount", ns, "x", json!({})), KIND),
        (object("v1", "PersistentVolumeClaim", ns, "x", claim), KIND),
        (object("networking.k8s.io/v1", "Ingress", ns, "x", backend), KIND),
        (object("networking.k8s.io/v1", "NetworkPolicy", ns, "x", json!({"spec": {"podSelector": {}}})), KIND),
        (object("coordination.k8s.io/v1", "Lease", ns, "x", json!({})), KIND),
        (object(rbac, "Role", ns, "x", all.clone()), KIND),
        (object(rbac, "Role", ns, "pcm-platform", all.clone()), KIND),
        (object(rbac, "RoleBinding", ns, "x", role_ref("ClusterRole", "cluster-admin")), KIND),
        (object(rbac, "ClusterRole", None, "pcm-platform", all.clone()), PLACE),
        (object(rbac, "ClusterRole", None, "x", all), PLACE),
        (object(rbac, "ClusterRoleBinding", None, "x", role_ref("ClusterRole", "cluster-admin")), PLACE),
        (object("v1", "Namespace", None, "x", json!({})), PLACE),
        (object("v1", "Namespace", None, NAMESPACE, json!({})), KIND),
        (object("v1", "PersistentVolume", None, "x", volume), PLACE),
        (object("v1", "ServiceAccount", Some(HOME), "pcm-platform", json!({})), PLACE),
        (object("scheduling.k8s.io/v1", "PriorityClass", None, "x", json!({"value": 1})), PLACE),
        (object("storage.k8s.io/v1", "StorageClass", None, "another-class", json!({"provisioner": "a.b"})), PLACE),
    ];
    let mut all: Vec<Denied> = objects
        .into_iter()
        .map(|(object, rule)| (apply(&format!("{} {}", object["kind"], object["metadata"]["name"]), object), Layer::Rbac, Some(rule)))
        .collect();
    // Admission does not see who changes policies and webhooks: RBAC alone keeps them.
    for plural in ["validatingadmissionpolicies", "validatingadmissionpolicybindings"] {
        let path = format!("/apis/admissionregistration.k8s.io/v1/{plural}/{SCOPE_GUARD}");
        all.push((attempt(&format!("removing its own guard from {plural}"), Method::DELETE, path), Layer::Rbac, None));
    }
    let request = object("certificates.k8s.io/v1", "CertificateSigningRequest", None, "x", signing);
    all.push((attempt("a client certificate", Method::POST, collection_of(&request)).body(JSON, request), Layer::Rbac, None));
    all
}

fn secrets() -> Vec<Denied> {
    let token = |name: &str| {
        let mut secret = object("v1", "Secret", Some(NAMESPACE), name, json!({"type": "kubernetes.io/service-account-token"}));
        secret["metadata"]["annotations"] = json!({"kubernetes.io/service-account.name": "clickhouse-operator"});
        secret
    };
    let own = "monitoring-collectors-endpoints";
    let path = format!("/api/v1/namespaces/{NAMESPACE}/secrets");
    let opaque = object("v1", "Secret", Some(NAMESPACE), "x", json!({"data": {"a": "Yg=="}}));
    vec![
        (apply("a token Secret", token("x")), Layer::Rbac, Some("guard: Secret type")),
        (apply("a token Secret in the bundle's place", token(own)), Layer::Validation("field is immutable"), None),
        (apply("a Secret that is not the bundle's", opaque), Layer::Rbac, None),
        (attempt("reading the bundle's Secret", Method::GET, format!("{path}/{own}")), Layer::Rbac, None),
        (attempt("listing Secrets", Method::GET, path.clone()), Layer::Rbac, None),
        (attempt("watching Secrets", Method::GET, format!("{path}?watch=true")), Layer::Rbac, None),
        (attempt("listing all Secrets", Method::GET, "/api/v1/secrets"), Layer::Rbac, None),
        (attempt("reading a Secret at home", Method::GET, format!("/api/v1/namespaces/{HOME}/secrets")), Layer::Rbac, None),
        (attempt("deleting the bundle's Secret", Method::DELETE, format!("{path}/{own}")), Layer::Rbac, Some(WHOLE)),
    ]
}

fn other_manners(live: &Live) -> Vec<Denied> {
    let map = live.named("ConfigMap", "monitoring-collectors");
    let deployment = live.named("Deployment", "snapshot-controller");
    let (map_path, deployment_path) = (path_of(&map), path_of(&deployment));
    let note = json!({"metadata": {"annotations": {"a": "b"}}});
    let as_executor = |path: &str| format!("{path}?fieldManager={FIELD_MANAGER_EXECUTOR}");
    let other = live.changed("ConfigMap", "monitoring-collectors", |map| map["data"]["a"] = json!("b"));
    let operations = json!([{"op": "add", "path": "/data/a", "value": "b"}]);
    vec![
        (attempt("update", Method::PUT, as_executor(&map_path)).body(JSON, other), Layer::Rbac, Some(MANNER)),
        (
            attempt("create", Method::POST, as_executor(&collection_of(&map))).body(JSON, config_map(NAMESPACE, "x")),
            Layer::Rbac,
            Some(MANNER),
        ),
        (attempt("merge patch", Method::PATCH, as_executor(&map_path)).body(MERGE, note.clone()), Layer::Guard(MANNER), Some(MANNER)),
        (
            attempt("JSON patch", Method::PATCH, as_executor(&map_path)).body("application/json-patch+json", operations),
            Layer::Guard(MANNER),
            Some(MANNER),
        ),
        (
            attempt("strategic merge patch", Method::PATCH, as_executor(&deployment_path))
                .body("application/strategic-merge-patch+json", note),
            Layer::Guard(MANNER),
            Some(MANNER),
        ),
        (apply_as("apply as another manager", map, "kubectl"), Layer::Guard(MANNER), Some(MANNER)),
        (apply_as("apply as the approving manager", deployment, "clicklink-approve"), Layer::Guard(MANNER), Some(MANNER)),
        (attempt("delete a Deployment", Method::DELETE, deployment_path.clone()), Layer::Rbac, Some(WHOLE)),
        (attempt("delete a ConfigMap", Method::DELETE, map_path), Layer::Rbac, Some(WHOLE)),
        (attempt("delete all Deployments", Method::DELETE, deployment_path.rsplit_once('/').unwrap().0), Layer::Rbac, Some(WHOLE)),
        (attempt("list Deployments", Method::GET, deployment_path.rsplit_once('/').unwrap().0), Layer::Rbac, None),
        (attempt("list ConfigMaps", Method::GET, format!("/api/v1/namespaces/{NAMESPACE}/configmaps")), Layer::Rbac, None),
    ]
}

fn odd_fields(live: &Live) -> Vec<Denied> {
    let service = |change: fn(&mut Value)| live.changed("Service", "clickhouse-operator-webhook", change);
    let map = |change: fn(&mut Value)| live.changed("ConfigMap", "monitoring-collectors", change);
    let deployment = |change: fn(&mut Value)| live.changed("Deployment", "snapshot-controller", change);
    let (owners, template, addresses) =
        ("guard: ownerReferences and finalizers may not be touched", "guard: pod template metadata", "guard: externalIPs, ExternalName");
    let label = "guard: the label that puts the object under the pinning policy is missing";
    let cases: Vec<(&str, Value, &'static str)> = vec![
        ("external addresses", service(|service| service["spec"]["externalIPs"] = json!(["192.0.2.1"])), addresses),
        (
            "an external name",
            service(|service| {
                service["spec"] = json!({"type": "ExternalName", "externalName": "evil.example.com", "ports": service["spec"]["ports"]});
            }),
            addresses,
        ),
        (
            "an owner",
            map(|map| {
                map["metadata"]["ownerReferences"] = json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "kube-root-ca.crt", "uid": "00000000-0000-4000-8000-000000000000"}]);
            }),
            owners,
        ),
        ("a finalizer", map(|map| map["metadata"]["finalizers"] = json!(["example.com/hold"])), owners),
        (
            "pods with a finalizer",
            deployment(|it| it["spec"]["template"]["metadata"]["finalizers"] = json!(["example.com/hold"])),
            template,
        ),
        ("pods with a namespace", deployment(|it| it["spec"]["template"]["metadata"]["namespace"] = json!("default")), template),
        (
            "pods with an owner",
            deployment(|it| {
                it["spec"]["template"]["metadata"]["ownerReferences"] =
                    json!([{"apiVersion": "v1", "kind": "Node", "name": "node-a", "uid": "00000000-0000-4000-8000-000000000000"}]);
            }),
            template,
        ),
        ("no label", map(|map| drop(map["metadata"]["labels"].as_object_mut().unwrap().remove(PINNED))), label),
        ("a false label", map(|map| map["metadata"]["labels"][PINNED] = json!("false")), label),
    ];
    cases.into_iter().map(|(name, object, rule)| (apply(name, object), Layer::Guard(rule), Some(rule))).collect()
}

fn subresources(live: &Live) -> Vec<Denied> {
    let deployment = path_of(&live.named("Deployment", "snapshot-controller"));
    let service = path_of(&live.named("Service", "clickhouse-operator-webhook"));
    let job = live.objects.iter().find(|object| object["kind"] == "Job").map(path_of).unwrap();
    let pod = format!("/api/v1/namespaces/{NAMESPACE}/pods/{}", live.pod);
    let scale = json!({"spec": {"replicas": 9}});
    let status = json!({"status": {"conditions": []}});
    let eviction = json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": live.pod, "namespace": NAMESPACE}});
    let debug = json!({"spec": {"ephemeralContainers": [{"name": "x", "image": "registry.invalid/a@sha256:00"}]}});
    let merge = |name: &str, path: String, body: &Value| attempt(name, Method::PATCH, path).body(MERGE, body.clone());
    vec![
        (merge("scaling", format!("{deployment}/scale"), &scale), Layer::Rbac, Some(WHOLE)),
        (attempt("reading a scale", Method::GET, format!("{deployment}/scale")), Layer::Rbac, None),
        (merge("a Deployment's status", format!("{deployment}/status"), &status), Layer::Rbac, Some(WHOLE)),
        (
            merge("a Service's status", format!("{service}/status"), &json!({"metadata": {"annotations": {"a": "b"}}})),
            Layer::Rbac,
            Some(WHOLE),
        ),
        (merge("a Job's status", format!("{job}/status"), &json!({"metadata": {"annotations": {"a": "b"}}})), Layer::Rbac, Some(WHOLE)),
        (attempt("a Service's proxy", Method::GET, format!("{service}/proxy")), Layer::Rbac, Some(WHOLE)),
        (attempt("exec", Method::POST, format!("{pod}/exec?command=id&stdout=true")), Layer::Rbac, Some(WHOLE)),
        (attempt("attach", Method::POST, format!("{pod}/attach?stdout=true")), Layer::Rbac, Some(WHOLE)),
        (attempt("port-forward", Method::POST, format!("{pod}/portforward?ports=80")), Layer::Rbac, Some(WHOLE)),
        (attempt("a pod's proxy", Method::GET, format!("{pod}/proxy")), Layer::Rbac, Some(WHOLE)),
        (attempt("logs", Method::GET, format!("{pod}/log")), Layer::Rbac, None),
        (attempt("eviction", Method::POST, format!("{pod}/eviction")).body(JSON, eviction), Layer::Rbac, Some(WHOLE)),
        (
            attempt("a container to debug", Method::PATCH, format!("{pod}/ephemeralcontainers"))
                .body("application/strategic-merge-patch+json", debug),
            Layer::Rbac,
            Some(WHOLE),
        ),
        (merge("a pod's annotations", pod.clone(), &json!({"metadata": {"annotations": {"a": "b"}}})), Layer::Rbac, Some(KIND)),
        (attempt("deleting a pod", Method::DELETE, pod), Layer::Rbac, Some(WHOLE)),
        (attempt("a node's proxy", Method::GET, "/api/v1/nodes/node-a/proxy/"), Layer::Rbac, Some(WHOLE)),
    ]
}

fn other_identities() -> Vec<Denied> {
    let request = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 3600}});
    let accounts = [
        (HOME, "pcm-platform"),
        (HOME, "pcm-executor"),
        (NAMESPACE, "clickhouse-operator"),
        (NAMESPACE, "default"),
        ("kube-system", "default"),
    ];
    let token = |(namespace, name): (&str, &str)| {
        let path = format!("/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token");
        (attempt(&format!("a token of {namespace}/{name}"), Method::POST, path).body(JSON, request.clone()), Layer::Rbac, Some(WHOLE))
    };
    let mut all: Vec<Denied> = accounts.into_iter().map(token).collect();
    let itself = format!("/api/v1/namespaces/{HOME}/serviceaccounts/pcm-platform");
    let later = json!({"metadata": {"annotations": {"clicklink.io/expires-at": "2099-01-01T00:00:00Z"}}});
    all.push((attempt("its own annotations", Method::PATCH, itself).body(MERGE, later), Layer::Rbac, Some(PLACE)));
    for (header, value) in [
        ("impersonate-user", "testbed-admin"),
        ("impersonate-user", "system:serviceaccount:kube-system:default"),
        ("impersonate-user", "system:serviceaccount:clicklink-system:pcm-executor"),
    ] {
        let name = format!("impersonating {value}");
        all.push((attempt(&name, Method::GET, "/api/v1/namespaces").header(header, value), Layer::Rbac, None));
    }
    let group = attempt("impersonating a group", Method::GET, "/api/v1/secrets").header("impersonate-user", "x");
    all.push((group.header("impersonate-group", "system:masters"), Layer::Rbac, None));
    let review = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": "x"}});
    let reviews = "/apis/authentication.k8s.io/v1/tokenreviews";
    all.push((attempt("a token review", Method::POST, reviews).body(JSON, review), Layer::Rbac, None));
    all
}

async fn all_denied(who: &Identity, attempts: Vec<Denied>) {
    let asked = attempts.into_iter().map(|(attempt, layer, _)| (attempt, layer)).collect();
    denied(who, asked).await;
}

/// The rest is not asked again: what admission does not see (reads, impersonation, policies), and what the guard leaves to the pins.
async fn all_held_by_the_guard_alone(who: &Identity, attempts: Vec<Denied>) {
    let asked = attempts.into_iter().filter_map(|(attempt, _, rule)| Some((attempt, Layer::Guard(rule?)))).collect();
    denied(who, asked).await;
}

async fn denied(who: &Identity, attempts: Vec<(Attempt, Layer)>) {
    assert!(attempts.len() > 5, "there is something to ask");
    let mut wrong = Vec::new();
    for (attempt, layer) in attempts {
        let (status, message) = who.ask(&attempt).await;
        if !is_denied(who, status, &message, layer) {
            wrong.push(format!("{}: {status} {message}, where {layer:?} was expected", attempt.name));
        }
    }
    assert!(wrong.is_empty(), "{}:\n{}", who.account, wrong.join("\n"));
}

fn is_denied(who: &Identity, status: u16, message: &str, layer: Layer) -> bool {
    match layer {
        Layer::Rbac => {
            let user = format!("User \"system:serviceaccount:{HOME}:{}\" cannot", who.account);
            status == 403 && message.contains(&user) && !message.contains("ValidatingAdmissionPolicy")
        }
        Layer::Guard(rule) => {
            let guard = if who.account == PCM_PLATFORM { SCOPE_GUARD } else { PREFIX_GUARD };
            (400..500).contains(&status) && message.contains(&format!("ValidatingAdmissionPolicy '{guard}'")) && message.contains(rule)
        }
        Layer::Validation(text) => status == 422 && message.contains(text),
    }
}

const READS: [&str; 10] = [
    "/api/v1/namespaces",
    "/api/v1/pods",
    "/api/v1/events",
    "/api/v1/services",
    "/apis/apps/v1/deployments",
    "/apis/apps/v1/statefulsets",
    "/apis/batch/v1/jobs",
    "/apis/policy/v1/poddisruptionbudgets",
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
    "/api/v1/namespaces/clickhouse-platform/pods",
];

const INSIDE: &str = "guard: pcm-executor writes in namespaces that begin with ns- only";

/// Writes and what is like one, outside the service prefix and inside.
fn attempts_of_executor(live: &Live) -> Vec<Denied> {
    let request = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 3600}});
    let pod = format!("/api/v1/namespaces/{NAMESPACE}/pods/{}", live.pod);
    let deployment = path_of(&live.named("Deployment", "snapshot-controller"));
    let token = |account: &str| {
        let path = format!("/api/v1/namespaces/{HOME}/serviceaccounts/{account}/token");
        attempt(&format!("a token of {account}"), Method::POST, path).body(JSON, request.clone())
    };
    let scale = json!({"spec": {"replicas": 0}});
    let mut all: Vec<Denied> = vec![
        (apply("the bundle's ConfigMap", live.named("ConfigMap", "monitoring-collectors")), Layer::Rbac, Some(INSIDE)),
        (apply("a ConfigMap by default", config_map("default", "x")), Layer::Rbac, Some(INSIDE)),
        (apply("a ConfigMap at home", config_map(HOME, "x")), Layer::Rbac, Some(INSIDE)),
        (apply("a ConfigMap of a service", config_map("ns-service", "x")), Layer::Rbac, None),
        (apply("a Namespace of the platform's kind", object("v1", "Namespace", None, "x", json!({}))), Layer::Rbac, Some(INSIDE)),
        (apply("a Namespace of a service", object("v1", "Namespace", None, "ns-x", json!({}))), Layer::Rbac, None),
        (
            attempt("deleting the platform's Namespace", Method::DELETE, format!("/api/v1/namespaces/{NAMESPACE}")),
            Layer::Rbac,
            Some(INSIDE),
        ),
        (attempt("deleting a Deployment", Method::DELETE, deployment.clone()), Layer::Rbac, Some(INSIDE)),
        (attempt("scaling", Method::PATCH, format!("{deployment}/scale")).body(MERGE, scale), Layer::Rbac, Some(INSIDE)),
        (attempt("deleting a pod", Method::DELETE, pod.clone()), Layer::Rbac, Some(INSIDE)),
        (attempt("exec", Method::POST, format!("{pod}/exec?command=id&stdout=true")), Layer::Rbac, Some(INSIDE)),
        (token("pcm-platform"), Layer::Rbac, Some(INSIDE)),
        (token("pcm-executor"), Layer::Rbac, None),
        (attempt("logs", Method::GET, format!("{pod}/log")), Layer::Rbac, None),
        (attempt("impersonation", Method::GET, "/api/v1/pods").header("impersonate-user", "testbed-admin"), Layer::Rbac, None),
    ];
    let unread = [
        "/api/v1/secrets".to_owned(),
        format!("/api/v1/namespaces/{NAMESPACE}/secrets/monitoring-collectors-endpoints"),
        format!("/api/v1/namespaces/{HOME}/secrets"),
        "/api/v1/namespaces/ns-service/secrets".to_owned(),
        format!("/api/v1/namespaces/{NAMESPACE}/configmaps"),
        "/api/v1/serviceaccounts".to_owned(),
        "/api/v1/nodes".to_owned(),
        "/apis/rbac.authorization.k8s.io/v1/clusterroles".to_owned(),
    ];
    all.extend(unread.into_iter().map(|path| (attempt(&format!("reading {path}"), Method::GET, path), Layer::Rbac, None)));
    all
}

async fn observes(executor: &Identity) {
    for path in READS {
        let (status, message) = executor.ask(&attempt(path, Method::GET, path)).await;
        assert_eq!(status, 200, "pcm-executor observes {path}: {message}");
    }
}

/// As a careless administrator would: both accounts become administrators. Seen to be so before anything is asked.
async fn widen(landscape: &Landscape, who: &[&Identity]) {
    for identity in who {
        let (name, account) = (format!("{}-widened", identity.account), format!("{HOME}:{}", identity.account));
        let create = ["create", "clusterrolebinding", &name, "--clusterrole=cluster-admin", "--serviceaccount", &account];
        landscape.control_plane.kubectl(&create).await.unwrap().ok().unwrap();
        eventually("the widened rights", SOON, || async {
            let (status, message) = identity.ask(&attempt("", Method::GET, "/api/v1/secrets")).await;
            ensure!(status == 200, "{message}");
            Ok(())
        })
        .await;
    }
}
