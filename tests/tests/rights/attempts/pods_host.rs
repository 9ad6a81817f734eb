//! Pod templates: fields that open the node to a pod, or take from it what confines it.

use serde_json::{Value, json};

use super::pods::{changed, mount, set};
use crate::ask::{put, remove};
use crate::row::Row;

const HOST: &str = "the node, and all that runs on it";
const LOOSER: &str = "fewer bounds for code in the container";
const CONTEXT: &str = "/containers/0/securityContext";

pub(super) fn rows() -> Vec<Row> {
    let mut rows = namespaces();
    rows.extend(containers());
    rows.extend(volumes());
    rows
}

fn namespaces() -> Vec<Row> {
    let runtime = "a runtime that confines less";
    vec![
        set("`hostNetwork`", "the node's network", "/hostNetwork", json!(true)),
        set("`hostPID`", HOST, "/hostPID", json!(true)),
        set("`hostIPC`", HOST, "/hostIPC", json!(true)),
        set("`hostUsers`", HOST, "/hostUsers", json!(true)),
        set("`hostPort`", "a port of the node", "/containers/0/ports/-", json!({"containerPort": 80, "hostPort": 80})),
        set("`runtimeClassName`", runtime, "/runtimeClassName", json!("theirs")),
        set("`sysctls`", "the kernel's settings", "/securityContext/sysctls", json!([{"name": "kernel.shm_rmid_forced", "value": "0"}])),
        set("`fsGroup`, `supplementalGroups`", "files of other groups", "/securityContext/supplementalGroups", json!([0])),
        set("seccomp `Unconfined`", LOOSER, "/securityContext/seccompProfile", json!({"type": "Unconfined"})),
        set("AppArmor `Unconfined`", LOOSER, "/securityContext/appArmorProfile", json!({"type": "Unconfined"})),
        set("`seLinuxOptions`", LOOSER, "/securityContext/seLinuxOptions", json!({"type": "spc_t"})),
        changed("`runAsUser: 0`", "root in the container", |pod| {
            put(pod, "/securityContext/runAsUser", json!(0));
            put(pod, "/securityContext/runAsNonRoot", json!(false));
        }),
        changed("no `securityContext` of the pod", LOOSER, |pod| remove(pod, "/securityContext")),
    ]
}

fn containers() -> Vec<Row> {
    let inside = |field: &str, value: Value| json!({field: value});
    let context = |attempt: &str, hope, value: Value| {
        changed(attempt, hope, move |pod: &mut Value| {
            for (field, value) in value.as_object().unwrap() {
                pod.pointer_mut(CONTEXT).unwrap()[field.as_str()] = value.clone();
            }
        })
    };
    vec![
        context("`privileged`", HOST, json!({"privileged": true, "allowPrivilegeEscalation": true})),
        context("`allowPrivilegeEscalation`", LOOSER, inside("allowPrivilegeEscalation", json!(true))),
        context("capabilities that are added", HOST, inside("capabilities", json!({"add": ["SYS_ADMIN"], "drop": ["ALL"]}))),
        context("capabilities that are not dropped", LOOSER, inside("capabilities", json!({"drop": []}))),
        context("another seccomp profile of the container", LOOSER, inside("seccompProfile", json!({"type": "Unconfined"}))),
        context("`readOnlyRootFilesystem: false`", LOOSER, inside("readOnlyRootFilesystem", json!(false))),
        changed("`procMount: Unmasked`", HOST, |pod| {
            put(pod, "/hostUsers", json!(false));
            put(pod, &format!("{CONTEXT}/procMount"), json!("Unmasked"));
        }),
        changed("no `securityContext` of the container", LOOSER, |pod| remove(pod, CONTEXT)),
    ]
}

fn volumes() -> Vec<Row> {
    let of = |attempt: &str, hope, source: Value| changed(attempt, hope, move |pod: &mut Value| mount(pod, source.clone()));
    vec![
        of("`hostPath`", HOST, json!({"hostPath": {"path": "/"}})),
        of("`hostPath` of the runtime's socket", HOST, json!({"hostPath": {"path": "/run/containerd/containerd.sock", "type": "Socket"}})),
        of("an NFS volume", "another machine's files", json!({"nfs": {"server": "192.0.2.1", "path": "/"}})),
        of(
            "an iSCSI volume",
            "another machine's disk",
            json!({"iscsi": {"targetPortal": "192.0.2.1", "iqn": "iqn.2026-01.com.example:a", "lun": 0}}),
        ),
        of("a CSI volume", "whatever a driver mounts", json!({"csi": {"driver": "hostpath.csi.k8s.io"}})),
        of(
            "the pod's own fields as files",
            "what the pod is not told",
            json!({"downwardAPI": {"items": [{"path": "a", "fieldRef": {"fieldPath": "metadata.uid"}}]}}),
        ),
        changed("`volumeDevices`", "a disk without a file system", |pod| {
            put(pod, "/volumes/-", json!({"name": "disk", "persistentVolumeClaim": {"claimName": "data-0"}}));
            put(pod, "/containers/0/volumeDevices/-", json!({"name": "disk", "devicePath": "/dev/xvda"}));
        }),
        changed("`subPath` of a mount", "a path out of the volume", |pod| {
            mount(pod, json!({"emptyDir": {}}));
            let mounts = pod.pointer_mut("/containers/0/volumeMounts").and_then(Value::as_array_mut).unwrap();
            mounts.last_mut().unwrap()["subPath"] = json!("a");
        }),
        changed("`mountPropagation: Bidirectional`", HOST, |pod| {
            mount(pod, json!({"emptyDir": {}}));
            let mounts = pod.pointer_mut("/containers/0/volumeMounts").and_then(Value::as_array_mut).unwrap();
            mounts.last_mut().unwrap()["mountPropagation"] = json!("Bidirectional");
            put(pod, CONTEXT, json!({"privileged": true}));
        }),
        changed("a claim on a device (`resourceClaims`)", "a device of the node", |pod| {
            put(pod, "/resourceClaims/-", json!({"name": "gpu", "resourceClaimName": "theirs"}));
        }),
    ]
}
