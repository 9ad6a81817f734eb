//! The approval itself: its object, the pins, the policies and their bindings, the definition.

use agent_api::names::{APPROVED_POLICY, APPROVED_SECRETS_POLICY, PINS_SECRET, SCOPE_GUARD};
use agent_api::platform_approval::{API_VERSION, CURRENT, KIND};
use serde_json::json;
use system_tests::bundle::NAMESPACE;

use super::guard;
use crate::HOME;
use crate::ask::{collection_of, delete, force, merge, object, post};
use crate::row::{Denial, Row, row};

const ADMISSION: &str = "/apis/admissionregistration.k8s.io/v1";

fn current() -> String {
    format!("/apis/{API_VERSION}/namespaces/{HOME}/platformapprovals/{CURRENT}")
}

pub(super) fn rows() -> Vec<Row> {
    let wider = "an approval of what they want";
    let mut rows = vec![
        row("another credential in `current`", "a token that the approval knows", &[Denial::Rbac, guard::PLACE], |_| {
            vec![merge(current(), json!({"spec": {"credentials": ["JTI=theirs"]}}))]
        }),
        row("other workloads in `current`", wider, &[Denial::Rbac, guard::PLACE], |_| {
            let workloads = json!({"/ConfigMap/clickhouse-platform/x": {"data": {"a": "b"}}});
            vec![merge(current(), json!({"spec": {"workloads": workloads}}))]
        }),
        row("an apply over `current`", wider, &[Denial::Rbac, guard::PLACE], |_| {
            vec![force(object(API_VERSION, KIND, Some(HOME), CURRENT, json!({"spec": {"credentials": ["JTI=theirs"]}})))]
        }),
        row("`current` deleted", "no comparison with the approval", &[Denial::Rbac, guard::WHOLE], |_| vec![delete(current())]),
        row("a PlatformApproval in the platform's namespace", wider, &[Denial::Rbac, guard::KIND], |_| {
            let zeros = "0".repeat(64);
            let spec = json!({"sha256": zeros, "workloadSha256": zeros, "approvedBy": "x", "approvedAt": "2026-01-01T00:00:00Z",
                "expiresAt": "2099-01-01T00:00:00Z", "installId": "x", "objects": 0, "credentials": [], "workloads": {}});
            vec![force(object(API_VERSION, KIND, Some(NAMESPACE), CURRENT, json!({"spec": spec})))]
        }),
        row("the pinned values", "another password for the platform", &[Denial::Rbac, guard::PLACE], |_| {
            let value = json!({"clickhouse-platform_monitoring-collectors-endpoints_endpoints.json": "W10="});
            vec![force(object("v1", "Secret", Some(HOME), PINS_SECRET, json!({"data": value.clone()})))]
        }),
        row("the pinned values deleted", "no comparison of values", &[Denial::Rbac, guard::WHOLE], |_| {
            vec![delete(format!("/api/v1/namespaces/{HOME}/secrets/{PINS_SECRET}"))]
        }),
        row("the definition of approvals", "an approval that means something else", &[Denial::Rbac, guard::PLACE], |_| {
            let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/platformapprovals.clicklink.io";
            vec![merge(path, json!({"metadata": {"annotations": {"a": "b"}}}))]
        }),
        row("the definition of approvals deleted", "no approval, no comparison", &[Denial::Rbac, guard::WHOLE], |_| {
            vec![delete("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/platformapprovals.clicklink.io")]
        }),
    ];
    rows.extend(policies());
    rows
}

/// Admission does not see who changes policies: RBAC alone keeps them.
fn policies() -> Vec<Row> {
    let names = [SCOPE_GUARD, APPROVED_POLICY, APPROVED_SECRETS_POLICY];
    let unguarded = "no bounds";
    let each = move |plural: &'static str| names.map(|name| format!("{ADMISSION}/{plural}/{name}"));
    let bindings = "validatingadmissionpolicybindings";
    vec![
        row("its policies deleted", unguarded, &[Denial::Rbac], move |_| each("validatingadmissionpolicies").map(delete).into()),
        row("their bindings deleted", unguarded, &[Denial::Rbac], move |_| each(bindings).map(delete).into()),
        row("a condition that is never true", unguarded, &[Denial::Rbac], move |_| {
            let never = json!({"spec": {"matchConditions": [{"name": "never", "expression": "false"}]}});
            each("validatingadmissionpolicies").map(|path| merge(path, never.clone())).into()
        }),
        row("bindings that only audit", unguarded, &[Denial::Rbac], move |_| {
            each(bindings).map(|path| merge(path, json!({"spec": {"validationActions": ["Audit"]}}))).into()
        }),
        row("bindings to another parameter", "an approval of what they want", &[Denial::Rbac], move |_| {
            let theirs = json!({"spec": {"paramRef": {"name": "theirs", "namespace": NAMESPACE}}});
            each(bindings).map(|path| merge(path, theirs.clone())).into()
        }),
        row("a policy of their own that changes objects", "objects changed after they were compared", &[Denial::Rbac], |_| {
            let policy = object("admissionregistration.k8s.io/v1", "MutatingAdmissionPolicy", None, "x", json!({}));
            vec![post(collection_of(&policy), policy)]
        }),
    ]
}
