//! Other namespaces, other kinds, and what belongs to the whole cluster.

use serde_json::{Value, json};
use system_tests::bundle::NAMESPACE;

use super::guard;
use crate::HOME;
use crate::ask::{apply, collection_of, config_map, delete, force, merge, object, post};
use crate::row::{Denial, Row, row};

pub(super) fn rows() -> Vec<Row> {
    let mut rows = other_namespaces();
    rows.extend(pods());
    rows.extend(rights());
    rows.extend(cluster());
    rows
}

fn one(attempt: impl Into<String>, hope: &'static str, rule: Denial, object: Value) -> Row {
    row(attempt, hope, &[Denial::Rbac, rule], move |_| vec![force(object.clone())])
}

fn other_namespaces() -> Vec<Row> {
    let beyond = "a way out of the platform's namespaces";
    let mut rows: Vec<Row> = ["default", "kube-system", HOME, "ns-service"]
        .into_iter()
        .map(|namespace| one(format!("a ConfigMap in `{namespace}`"), beyond, guard::PLACE, config_map(namespace, "x")))
        .collect();
    rows.push(row("an approved Deployment in another namespace", beyond, &[Denial::Rbac, guard::PLACE], |live| {
        ["default", "kube-system"]
            .map(|namespace| {
                apply(live.changed("Deployment", "snapshot-controller", |object| object["metadata"]["namespace"] = json!(namespace)))
            })
            .into()
    }));
    rows
}

fn pods() -> Vec<Row> {
    let code = "pods that no approval names";
    let ns = Some(NAMESPACE);
    let pod = json!({"containers": [{"name": "main", "image": "registry.invalid/a@sha256:00"}]});
    let pods = json!({"spec": {"selector": {"matchLabels": {"a": "b"}}, "template": {"metadata": {"labels": {"a": "b"}}, "spec": pod}}});
    let mut repeated = json!({"spec": {"schedule": "* * * * *", "jobTemplate": {"spec": {"template": {"spec": pod}}}}});
    repeated["spec"]["jobTemplate"]["spec"]["template"]["spec"]["restartPolicy"] = json!("Never");
    let claim = json!({"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}});
    let backend = json!({"spec": {"defaultBackend": {"service": {"name": "a", "port": {"number": 80}}}}});
    let scaler = json!({"spec": {"maxReplicas": 9, "scaleTargetRef":
        {"apiVersion": "apps/v1", "kind": "Deployment", "name": "snapshot-controller"}}});
    vec![
        one("a Pod", code, guard::KIND, object("v1", "Pod", ns, "x", json!({"spec": pod}))),
        one("a DaemonSet", code, guard::KIND, object("apps/v1", "DaemonSet", ns, "x", pods.clone())),
        one("a StatefulSet", code, guard::KIND, object("apps/v1", "StatefulSet", ns, "x", pods.clone())),
        one("a ReplicaSet", code, guard::KIND, object("apps/v1", "ReplicaSet", ns, "x", pods)),
        one("a CronJob", "code that outlives the token", guard::KIND, object("batch/v1", "CronJob", ns, "x", repeated)),
        one(
            "an autoscaler",
            "a Deployment that is scaled by another",
            guard::KIND,
            object("autoscaling/v2", "HorizontalPodAutoscaler", ns, "x", scaler),
        ),
        one("a claim on storage", "somebody's volume", guard::KIND, object("v1", "PersistentVolumeClaim", ns, "x", claim)),
        one("an Ingress", "the platform, open to the outside", guard::KIND, object("networking.k8s.io/v1", "Ingress", ns, "x", backend)),
        one(
            "a NetworkPolicy",
            "traffic that was closed",
            guard::KIND,
            object("networking.k8s.io/v1", "NetworkPolicy", ns, "x", json!({"spec": {"podSelector": {}}})),
        ),
        one(
            "a Lease",
            "to lead in an operator's place",
            guard::KIND,
            object("coordination.k8s.io/v1", "Lease", ns, "clickhouse-operator", json!({})),
        ),
        row("an Event", "a false trail", &[Denial::Rbac, guard::KIND], |_| {
            let event = json!({"involvedObject": {"namespace": NAMESPACE}, "reason": "Approved"});
            let event = object("v1", "Event", Some(NAMESPACE), "x", event);
            vec![post(collection_of(&event), event)]
        }),
        one(
            "a quota",
            "no room for the platform",
            guard::KIND,
            object("v1", "ResourceQuota", ns, "x", json!({"spec": {"hard": {"pods": "0"}}})),
        ),
    ]
}

fn rights() -> Vec<Row> {
    let more = "more rights";
    let role_ref = |kind: &str, name: &str| {
        json!({"roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name},
            "subjects": [{"kind": "ServiceAccount", "name": "pcm-platform", "namespace": HOME}]})
    };
    let all = json!({"rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]});
    let (rbac, ns) = ("rbac.authorization.k8s.io/v1", Some(NAMESPACE));
    vec![
        one("a Role", more, guard::KIND, object(rbac, "Role", ns, "x", all.clone())),
        one("its own Role", more, guard::KIND, object(rbac, "Role", ns, "pcm-platform", all.clone())),
        one(
            "a RoleBinding to `cluster-admin`",
            more,
            guard::KIND,
            object(rbac, "RoleBinding", ns, "x", role_ref("ClusterRole", "cluster-admin")),
        ),
        one("its own ClusterRole", more, guard::PLACE, object(rbac, "ClusterRole", None, "pcm-platform", all.clone())),
        one("a ClusterRole that is aggregated into `admin`", more, guard::PLACE, {
            let mut role = object(rbac, "ClusterRole", None, "x", all);
            role["metadata"]["labels"]["rbac.authorization.k8s.io/aggregate-to-admin"] = json!("true");
            role
        }),
        one(
            "a ClusterRoleBinding to `cluster-admin`",
            more,
            guard::PLACE,
            object(rbac, "ClusterRoleBinding", None, "x", role_ref("ClusterRole", "cluster-admin")),
        ),
        row("its own bindings removed", "a sync that fails", &[Denial::Rbac, guard::WHOLE], |_| {
            vec![delete(format!("/apis/rbac.authorization.k8s.io/v1/namespaces/{NAMESPACE}/rolebindings/pcm-platform"))]
        }),
        one("a ServiceAccount", "an identity", guard::KIND, object("v1", "ServiceAccount", ns, "x", json!({}))),
    ]
}

fn cluster() -> Vec<Row> {
    let volume = json!({"spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/"}}});
    let service = json!({"spec": {"group": "theirs.example.com", "version": "v1", "groupPriorityMinimum": 1, "versionPriority": 1,
        "insecureSkipTLSVerify": true, "service": {"namespace": NAMESPACE, "name": "clickhouse-operator-webhook"}}});
    vec![
        one("a Namespace", "a place of their own", guard::PLACE, object("v1", "Namespace", None, "x", json!({}))),
        row("labels of the platform's Namespace", "a looser pod security level", &[Denial::Rbac, guard::KIND], |_| {
            let privileged = json!({"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "privileged"}}});
            vec![merge(format!("/api/v1/namespaces/{NAMESPACE}"), privileged)]
        }),
        row("the platform's Namespace deleted", "a platform that is gone", &[Denial::Rbac, guard::WHOLE], |_| {
            vec![delete(format!("/api/v1/namespaces/{NAMESPACE}"))]
        }),
        one("a PersistentVolume", "a folder of the node", guard::PLACE, object("v1", "PersistentVolume", None, "x", volume)),
        one(
            "a PriorityClass",
            "to displace others' pods",
            guard::PLACE,
            object("scheduling.k8s.io/v1", "PriorityClass", None, "x", json!({"value": 1})),
        ),
        one(
            "a StorageClass",
            "a driver of their own",
            guard::PLACE,
            object("storage.k8s.io/v1", "StorageClass", None, "x", json!({"provisioner": "a.b"})),
        ),
        one(
            "an APIService",
            "requests to the API server, answered by them",
            guard::PLACE,
            object("apiregistration.k8s.io/v1", "APIService", None, "v1.theirs.example.com", service),
        ),
        row("a CustomResourceDefinition changed", "objects that lose their fields", &[Denial::Rbac, guard::PLACE], |_| {
            let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/clickhouseclusters.clickhouse.com";
            vec![merge(path, json!({"metadata": {"annotations": {"a": "b"}}}))]
        }),
        row("a Node's labels, taints", "pods that go where they want", &[Denial::Rbac, guard::PLACE], |_| {
            vec![merge("/api/v1/nodes/node-a", json!({"metadata": {"labels": {"a": "b"}}}))]
        }),
        row("a webhook that sees every write", "Secrets, as they are written", &[Denial::Rbac], |_| {
            let hook = object("admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration", None, "x", json!({"webhooks": []}));
            vec![post(collection_of(&hook), hook)]
        }),
    ]
}
