//! What the pods of a workload object run as, and how they reach into the node that they run on.

use serde::Serialize;
use serde_json::Value;

use agent_api::object::ObjectKey;

/// The pods of one Deployment or Job.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct PodAccess {
    /// The object.
    pub object: String,
    /// The ServiceAccount's namespace.
    pub namespace: String,
    /// The ServiceAccount's name.
    pub service_account: String,
    /// Ways into the node.
    pub node: Vec<NodeAccess>,
}

/// One way into a node.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct NodeAccess {
    /// In words, after "it": `mounts /var/log of its node (hostPath, read-only)`.
    pub what: String,
    /// The live object's pods do not have it.
    pub new: bool,
}

impl PodAccess {
    /// Of an object with a pod template, compared with the live one; `None` for any other.
    #[must_use]
    pub fn of(object: &Value, live: Option<&Value>) -> Option<Self> {
        let spec = pod_spec(object)?;
        let key = ObjectKey::of(object);
        let had = live.and_then(pod_spec).map(ways).unwrap_or_default();
        let node = ways(spec).into_iter().map(|what| NodeAccess { new: !had.contains(&what), what }).collect();
        // Both fields name it; the second is an old alias that the API server copies.
        let account =
            ["serviceAccountName", "serviceAccount"].iter().find_map(|field| spec.get(*field)?.as_str().filter(|name| !name.is_empty()));
        Some(Self { object: key.to_string(), namespace: key.namespace, service_account: account.unwrap_or("default").to_owned(), node })
    }
}

fn pod_spec(object: &Value) -> Option<&Value> {
    object.pointer("/spec/template/spec")
}

fn ways(spec: &Value) -> Vec<String> {
    let mut ways = Vec::new();
    let shared = [
        ("hostNetwork", "shares its node's network"),
        ("hostPID", "sees and signals its node's processes"),
        ("hostIPC", "shares its node's IPC"),
    ];
    ways.extend(shared.iter().filter(|(field, _)| is_true(spec.get(*field))).map(|(field, words)| format!("{words} ({field})")));
    if is_true(spec.pointer("/securityContext/windowsOptions/hostProcess")) {
        ways.push("runs as a process of its node (hostProcess)".into());
    }
    for volume in list(spec, "volumes") {
        if let Some(path) = volume.pointer("/hostPath/path").and_then(Value::as_str) {
            let access = if only_read(spec, text(volume, "name")) { "read-only" } else { "writable" };
            ways.push(format!("mounts {path} of its node (hostPath, {access})"));
        }
    }
    for container in containers(spec) {
        let name = text(container, "name");
        if is_true(container.pointer("/securityContext/privileged")) {
            ways.push(format!("runs privileged (container {name})"));
        }
        if is_true(container.pointer("/securityContext/windowsOptions/hostProcess")) {
            ways.push(format!("runs as a process of its node (hostProcess, container {name})"));
        }
        let added = container.pointer("/securityContext/capabilities/add").and_then(Value::as_array);
        let added: Vec<&str> = added.into_iter().flatten().filter_map(Value::as_str).collect();
        if !added.is_empty() {
            ways.push(format!("adds capabilities {} (container {name})", added.join(", ")));
        }
        let ports = list(container, "ports").filter_map(|port| port.get("hostPort").and_then(Value::as_u64)).filter(|port| *port > 0);
        ways.extend(ports.map(|port| format!("listens on port {port} of its node (hostPort, container {name})")));
    }
    ways
}

fn containers(spec: &Value) -> impl Iterator<Item = &Value> {
    ["initContainers", "containers"].into_iter().flat_map(|field| list(spec, field))
}

/// Whether every mount of a volume says `readOnly`.
fn only_read(spec: &Value, volume: &str) -> bool {
    let mut mounts = containers(spec).flat_map(|container| list(container, "volumeMounts")).filter(|mount| text(mount, "name") == volume);
    mounts.all(|mount| is_true(mount.get("readOnly")))
}

fn list<'a>(value: &'a Value, field: &str) -> impl Iterator<Item = &'a Value> {
    value.get(field).and_then(Value::as_array).into_iter().flatten()
}

fn is_true(value: Option<&Value>) -> bool {
    value.and_then(Value::as_bool).unwrap_or(false)
}

fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value.get(field).and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn deployment(spec: Value) -> Value {
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d", "namespace": "n"},
            "spec": {"template": {"spec": spec}}})
    }

    #[test]
    fn every_way_into_a_node_is_told_in_words() {
        for (spec, expected) in [
            (json!({"hostNetwork": true}), "shares its node's network (hostNetwork)"),
            (json!({"hostPID": true}), "sees and signals its node's processes (hostPID)"),
            (json!({"hostIPC": true}), "shares its node's IPC (hostIPC)"),
            (
                json!({"volumes": [{"name": "v", "hostPath": {"path": "/a"}}],
                    "containers": [{"name": "c", "volumeMounts": [{"name": "v", "readOnly": true}]}]}),
                "mounts /a of its node (hostPath, read-only)",
            ),
            (
                json!({"volumes": [{"name": "v", "hostPath": {"path": "/a"}}],
                    "containers": [{"name": "c", "volumeMounts": [{"name": "v", "readOnly": true}]}],
                    "initContainers": [{"name": "i", "volumeMounts": [{"name": "v"}]}]}),
                "mounts /a of its node (hostPath, writable)",
            ),
            (json!({"initContainers": [{"name": "i", "securityContext": {"privileged": true}}]}), "runs privileged (container i)"),
            (
                json!({"containers": [{"name": "c", "securityContext": {"capabilities": {"add": ["SYS_ADMIN", "NET_RAW"]}}}]}),
                "adds capabilities SYS_ADMIN, NET_RAW (container c)",
            ),
            (
                json!({"containers": [{"name": "c", "ports": [{"containerPort": 1, "hostPort": 80}, {"containerPort": 2}]}]}),
                "listens on port 80 of its node (hostPort, container c)",
            ),
        ] {
            let found = PodAccess::of(&deployment(spec.clone()), None).unwrap().node;
            assert_eq!(found, [NodeAccess { what: expected.into(), new: true }], "{spec}");
            let found = PodAccess::of(&deployment(spec.clone()), Some(&deployment(spec))).unwrap().node;
            assert!(!found[0].new);
        }
    }

    #[test]
    fn the_account_is_named_and_the_default_one_too() {
        for (spec, expected) in
            [(json!({}), "default"), (json!({"serviceAccountName": "a"}), "a"), (json!({"serviceAccount": "b", "hostNetwork": false}), "b")]
        {
            let found = PodAccess::of(&deployment(spec), None).unwrap();
            assert_eq!((found.namespace.as_str(), found.service_account.as_str()), ("n", expected));
            assert_eq!(found.node, []);
        }
        assert_eq!(PodAccess::of(&json!({"kind": "ConfigMap", "metadata": {"name": "c"}}), None), None);
    }
}
