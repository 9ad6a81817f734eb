//! Tokens, certificates and impersonation: to be somebody else, or the same for longer.

use serde_json::json;
use system_tests::bundle::NAMESPACE;

use super::guard;
use crate::HOME;
use crate::ask::{collection_of, delete, get, merge, object, post};
use crate::row::{Denial, Request, Row, row};

/// Asking for a token, as the renewal does it.
pub(crate) fn token(namespace: &str, account: &str) -> Request {
    let request = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 3600}});
    post(format!("/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token"), request)
}

pub(super) fn rows() -> Vec<Row> {
    let mut rows = tokens();
    rows.extend(impersonation());
    rows.extend(certificates());
    rows
}

fn tokens() -> Vec<Row> {
    let accounts = [
        (HOME, "pcm-platform", "the next two hours, without an approval"),
        (HOME, "pcm-executor", "the executor's standing access"),
        (NAMESPACE, "clickhouse-operator", "an operator's rights"),
        (NAMESPACE, "default", "an account that anything may be bound to"),
        ("kube-system", "default", "an account of the cluster's own"),
    ];
    let request = |(namespace, account, hope): (&'static str, &'static str, &'static str)| {
        row(format!("a token of `{namespace}/{account}`"), hope, &[Denial::Rbac, guard::WHOLE], move |_| vec![token(namespace, account)])
    };
    let mut rows: Vec<Row> = accounts.into_iter().map(request).collect();
    let itself = format!("/api/v1/namespaces/{HOME}/serviceaccounts/pcm-platform");
    let path = itself.clone();
    rows.push(row("a later end on its own account", "an executor that believes it", &[Denial::Rbac, guard::PLACE], move |_| {
        vec![merge(path.clone(), json!({"metadata": {"annotations": {"clicklink.io/expires-at": "2099-01-01T00:00:00Z"}}}))]
    }));
    rows.push(row("its own account deleted", "an approval that nobody can end", &[Denial::Rbac, guard::WHOLE], move |_| {
        vec![delete(itself.clone())]
    }));
    rows
}

fn impersonation() -> Vec<Row> {
    let users = [
        ("a cluster administrator", "testbed-admin"),
        ("the controllers", "system:serviceaccount:kube-system:deployment-controller"),
        ("`pcm-executor`", "system:serviceaccount:clicklink-system:pcm-executor"),
    ];
    let mut rows: Vec<Row> = users
        .into_iter()
        .map(|(who, user)| {
            row(format!("impersonating {who}"), "their rights, and no guard that knows the name", &[Denial::Rbac], move |_| {
                vec![get("/api/v1/namespaces").header("impersonate-user", user)]
            })
        })
        .collect();
    rows.push(row("impersonating a group", "the rights of `system:masters`", &[Denial::Rbac], |_| {
        vec![get("/api/v1/secrets").header("impersonate-user", "x").header("impersonate-group", "system:masters")]
    }));
    rows.push(row("impersonating itself with another token's id", "a token that the approval knows", &[Denial::Rbac], |_| {
        let itself = get("/api/v1/namespaces").header("impersonate-user", "system:serviceaccount:clicklink-system:pcm-platform");
        vec![itself.header("impersonate-extra-authentication.kubernetes.io%2fcredential-id", "JTI=0")]
    }));
    rows
}

fn certificates() -> Vec<Row> {
    let signing = json!({"spec": {"request": "", "signerName": "kubernetes.io/kube-apiserver-client", "usages": ["client auth"]}});
    let review = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": "x"}});
    let access = json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", 
        "spec": {"user": "x", "nonResourceAttributes": {"path": "/", "verb": "get"}}});
    vec![
        row("a client certificate", "an identity that no token bounds", &[Denial::Rbac], move |_| {
            let request = object("certificates.k8s.io/v1", "CertificateSigningRequest", None, "x", signing.clone());
            vec![post(collection_of(&request), request)]
        }),
        row("a review of a token", "whose a stolen token is", &[Denial::Rbac], move |_| {
            vec![post("/apis/authentication.k8s.io/v1/tokenreviews", review.clone())]
        }),
        row("a review of others' rights", "whom to attack next", &[Denial::Rbac], move |_| {
            vec![post("/apis/authorization.k8s.io/v1/subjectaccessreviews", access.clone())]
        }),
    ]
}
