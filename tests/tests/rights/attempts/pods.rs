//! Pod templates: of a Deployment that is there, and of a Job that is gone and would be made anew. Credentials, identities, code, place.

use serde_json::{Value, json};

use super::pin;
use crate::ask::{force, put, remove};
use crate::row::{Denial, Row, row};

/// A Deployment whose pods have no token of their own.
pub(crate) const DEPLOYMENT: &str = "monitoring-collectors-gateway";
pub(super) const JOB: &str = "monitoring-collectors-migration";

/// The row of a change of the pod spec, in both kinds that have one.
pub(super) fn changed(attempt: &str, hope: &'static str, change: impl Fn(&mut Value) + Clone + 'static) -> Row {
    changed_and_denied(attempt, hope, &[pin::POD], change)
}

pub(super) fn changed_and_denied(
    attempt: &str,
    hope: &'static str,
    denied: &[Denial],
    change: impl Fn(&mut Value) + Clone + 'static,
) -> Row {
    row(attempt, hope, denied, move |live| {
        let changed = |kind: &str, name: &str| live.changed(kind, name, |object| change(&mut object["spec"]["template"]["spec"]));
        vec![force(changed("Deployment", DEPLOYMENT)), force(changed("Job", JOB)).while_gone()]
    })
}

/// The same for one field that is set.
pub(super) fn set(attempt: &str, hope: &'static str, pointer: &'static str, value: Value) -> Row {
    changed(attempt, hope, move |pod| put(pod, pointer, value.clone()))
}

fn volume(attempt: &str, hope: &'static str, source: Value) -> Row {
    changed(attempt, hope, move |pod| mount(pod, source.clone()))
}

/// A volume that the first container mounts.
pub(super) fn mount(pod: &mut Value, source: Value) {
    let mut volume = source;
    volume["name"] = json!("more");
    put(pod, "/volumes/-", volume);
    put(pod, "/containers/0/volumeMounts/-", json!({"name": "more", "mountPath": "/more"}));
}

pub(super) fn credentials() -> Vec<Row> {
    let read = "the values of a Secret, through a pod";
    let token = "a token of the pod's account";
    let of_secret = json!({"secretKeyRef": {"name": "foreign", "key": "password"}});
    let csi = json!({"csi": {"driver": "secrets-store.csi.k8s.io", "nodePublishSecretRef": {"name": "foreign"}}});
    let audience = json!({"serviceAccountToken": {"path": "token", "audience": "vault", "expirationSeconds": 86400}});
    vec![
        volume("a volume of another Secret", read, json!({"secret": {"secretName": "foreign"}})),
        volume("a projected volume of another Secret", read, json!({"projected": {"sources": [{"secret": {"name": "foreign"}}]}})),
        volume("a projected token", token, json!({"projected": {"sources": [{"serviceAccountToken": {"path": "token"}}]}})),
        volume("a projected token for another audience", "to log in elsewhere", json!({"projected": {"sources": [audience]}})),
        volume("a CSI volume with a Secret", read, csi),
        set("a variable from a Secret", read, "/containers/0/env/-", json!({"name": "A", "valueFrom": of_secret})),
        set("`envFrom` a Secret", read, "/containers/0/envFrom/-", json!({"secretRef": {"name": "foreign"}})),
        set("`imagePullSecrets`", "somebody's registry password", "/imagePullSecrets/-", json!({"name": "foreign"})),
    ]
}

pub(super) fn identities() -> Vec<Row> {
    let account = "the rights of another account of the bundle";
    vec![
        set("another `serviceAccountName`", account, "/serviceAccountName", json!("clickhouse-operator")),
        changed("the deprecated `serviceAccount` in its place", account, |pod| {
            pod.as_object_mut().unwrap().remove("serviceAccountName");
            pod["serviceAccount"] = json!("clickhouse-operator");
        }),
        changed("`automountServiceAccountToken`", "a token where the chart gives none", |pod| {
            let none = pod.get("automountServiceAccountToken") == Some(&json!(false));
            pod["automountServiceAccountToken"] = json!(none);
        }),
    ]
}

pub(super) fn code() -> Vec<Row> {
    let code = "code of their own, as the platform's pods";
    let container = |name: &str| json!({"name": name, "image": "registry.invalid/theirs@sha256:00"});
    let hook = json!({"exec": {"command": ["/theirs"]}});
    let inside = "requests from the node's network";
    let metadata = json!({"httpGet": {"host": "169.254.169.254", "path": "/latest", "port": 80}});
    let mut sidecar = container("side");
    sidecar["restartPolicy"] = json!("Always");
    let mut rows = vec![
        set("another image", code, "/containers/0/image", json!("registry.invalid/theirs@sha256:00")),
        set("`command`", code, "/containers/0/command", json!(["/theirs"])),
        set("`args`", code, "/containers/0/args", json!(["--config=/dev/stdin"])),
        set("a variable such as `LD_PRELOAD`", code, "/containers/0/env/-", json!({"name": "LD_PRELOAD", "value": "/more/x"})),
        set("`workingDir`", code, "/containers/0/workingDir", json!("/more")),
        set("another container", code, "/containers/-", container("second")),
        set("an init container", code, "/initContainers/-", container("first")),
        set("a sidecar (an init container that stays)", code, "/initContainers/-", sidecar),
        changed_and_denied(
            "an ephemeral container in the template",
            code,
            &[Denial::Server("ephemeral containers not allowed")],
            move |pod| {
                put(pod, "/ephemeralContainers/-", json!({"name": "x", "image": "registry.invalid/theirs@sha256:00"}));
            },
        ),
        volume("an image as a volume", code, json!({"image": {"reference": "registry.invalid/theirs@sha256:00"}})),
        volume("a git repository as a volume", code, json!({"gitRepo": {"repository": "https://example.com/theirs"}})),
        set("`lifecycle.postStart`", code, "/containers/0/lifecycle", json!({"postStart": hook})),
        set("`lifecycle.preStop`", code, "/containers/0/lifecycle", json!({"preStop": hook})),
        set("a probe that runs a command", code, "/containers/0/startupProbe", hook.clone()),
        set("`imagePullPolicy`", "an image that lies on the node already", "/containers/0/imagePullPolicy", json!("Never")),
        set("`stdin` and `tty`", "to attach", "/containers/0/stdin", json!(true)),
    ];
    for (name, field) in [("liveness", "/containers/0/livenessProbe"), ("readiness", "/containers/0/readinessProbe")] {
        // A Job's containers take probes too.
        rows.push(set(&format!("a {name} probe with a `host`"), inside, field, metadata.clone()));
    }
    rows.push(set("`lifecycle` with a `host`", inside, "/containers/0/lifecycle", json!({"preStop": metadata})));
    rows
}

pub(super) fn scheduling() -> Vec<Row> {
    let node = "a node of their choice: beside somebody's pods, on a control plane";
    let displace = "to displace others' pods";
    let exists = json!([{"operator": "Exists"}]);
    let key = json!({"key": "node-role.kubernetes.io/control-plane", "operator": "Exists"});
    let affinity = json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution":
        {"nodeSelectorTerms": [{"matchExpressions": [key]}]}}});
    let spread = json!([{"maxSkew": 1, "topologyKey": "a", "whenUnsatisfiable": "DoNotSchedule"}]);
    let names = "to hand them another address for a name";
    let dns = json!({"nameservers": ["192.0.2.1"]});
    vec![
        set("`nodeName`", node, "/nodeName", json!("node-a")),
        set("`nodeSelector`", node, "/nodeSelector", json!({"kubernetes.io/hostname": "node-a"})),
        set("`tolerations` of everything", node, "/tolerations", exists),
        set("`affinity`", node, "/affinity", affinity),
        set("`topologySpreadConstraints`", node, "/topologySpreadConstraints", spread),
        set("`schedulerName`", "a scheduler of their own", "/schedulerName", json!("theirs")),
        set("`schedulingGates`", "pods that never start", "/schedulingGates", json!([{"name": "example.com/never"}])),
        set("`priorityClassName`", displace, "/priorityClassName", json!("system-cluster-critical")),
        set("`preemptionPolicy`", displace, "/preemptionPolicy", json!("Never")),
        set("larger requests", "all that a node has", "/containers/0/resources", json!({"requests": {"cpu": "64"}})),
        set("a device", "a device of the node", "/containers/0/resources", json!({"limits": {"example.com/device": "1"}})),
        volume("memory as a volume", "all memory of a node", json!({"emptyDir": {"medium": "Memory"}})),
        volume("another claim", "somebody's data", json!({"persistentVolumeClaim": {"claimName": "data-0"}})),
        volume("another ConfigMap", "somebody's configuration", json!({"configMap": {"name": "kube-root-ca.crt"}})),
        set("`hostAliases`", names, "/hostAliases", json!([{"ip": "192.0.2.1", "hostnames": ["keeper"]}])),
        changed("`dnsPolicy` and `dnsConfig`", names, move |pod| {
            put(pod, "/dnsPolicy", json!("None"));
            put(pod, "/dnsConfig", dns.clone());
        }),
        set("`hostname` and `subdomain`", "to be taken for another pod", "/subdomain", json!("keeper")),
        set("`shareProcessNamespace`", "a neighbour's memory", "/shareProcessNamespace", json!(true)),
        set("a long `terminationGracePeriodSeconds`", "to go on after the end", "/terminationGracePeriodSeconds", json!(86400)),
        set(
            "`terminationMessagePolicy`",
            "logs, through the pod's status",
            "/containers/0/terminationMessagePolicy",
            json!("FallbackToLogsOnError"),
        ),
        set("`readinessGates`", "never ready, or ready too early", "/readinessGates", json!([{"conditionType": "example.com/x"}])),
        set("`enableServiceLinks`", "others' addresses, as variables", "/enableServiceLinks", json!(false)),
        row("no volumes at all", "to run without configuration", &[pin::POD], |live| {
            let bare = live.changed("Deployment", DEPLOYMENT, |object| {
                remove(object, "/spec/template/spec/volumes");
                remove(object, "/spec/template/spec/containers/0/volumeMounts");
            });
            vec![force(bare)]
        }),
    ]
}
