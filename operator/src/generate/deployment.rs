//! The operator's Deployment: two replicas of which one leads, without root, with nothing to write to and no capability.

use serde_json::{Value, json};

use super::{HOME, MANAGED, OPERATOR};
use crate::run_arguments::CHARTS_DIR;

/// User and group of the process.
const NOBODY: u32 = 65_532;
/// Port of health and metrics.
const PORT: u16 = 8086;

/// Its namespace and the Deployment. The ServiceAccount is with the RBAC files.
pub(super) fn objects() -> Vec<Value> {
    let labels = json!({"app.kubernetes.io/name": OPERATOR});
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace",
        "metadata": {"name": HOME, "labels": {"pod-security.kubernetes.io/enforce": "restricted"}}});
    let deployment = json!({"apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": OPERATOR, "namespace": HOME, "labels": labels},
        "spec": {"replicas": 2, "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod(&labels)}}});
    vec![namespace, deployment]
}

fn pod(labels: &Value) -> Value {
    // Local charts: archives in a ConfigMap that need not be there; any other read-only volume does as well.
    let charts = json!({"name": "charts", "configMap": {"name": format!("{OPERATOR}-charts"), "optional": true}});
    json!({
        "serviceAccountName": OPERATOR,
        "securityContext": {"runAsNonRoot": true, "runAsUser": NOBODY, "runAsGroup": NOBODY, "seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [container()],
        "volumes": [charts],
        "topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "ScheduleAnyway",
            "labelSelector": {"matchLabels": labels}}],
    })
}

fn container() -> Value {
    let probe = |path: &str| json!({"httpGet": {"path": path, "port": "health"}});
    json!({
        "name": "operator",
        "image": format!("{OPERATOR}:{}", env!("CARGO_PKG_VERSION")),
        "args": ["run", format!("--namespaces={MANAGED}"), format!("--charts-dir={CHARTS_DIR}"), format!("--listen=0.0.0.0:{PORT}")],
        "ports": [{"name": "health", "containerPort": PORT}],
        "livenessProbe": probe("/healthz"),
        "readinessProbe": probe("/readyz"),
        "resources": {"requests": {"cpu": "10m", "memory": "64Mi"}, "limits": {"memory": "2Gi"}},
        "securityContext": {"allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true, "capabilities": {"drop": ["ALL"]}},
        "volumeMounts": [{"name": "charts", "mountPath": CHARTS_DIR, "readOnly": true}],
    })
}
