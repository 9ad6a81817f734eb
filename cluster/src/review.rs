//! Questions about rights: who am I, may I.

use kube::Client;
use serde_json::{Value, json};

use crate::error::ClusterError;
use crate::request::{self, Ask};

/// One action on a resource, as `kubectl auth can-i` asks for it; empty texts stand for "any" or "none".
#[derive(Clone, Copy, Debug, Default)]
pub struct Action<'a> {
    /// Verb.
    pub verb: &'a str,
    /// API group, empty for the core group.
    pub group: &'a str,
    /// Resource, plural.
    pub resource: &'a str,
    /// Subresource.
    pub subresource: &'a str,
    /// Namespace, empty for cluster-scoped or all.
    pub namespace: &'a str,
    /// Name.
    pub name: &'a str,
}

/// The user name that the API server knows the caller by (`SelfSubjectReview`).
///
/// # Errors
/// See [`ClusterError`].
pub async fn who_am_i(client: &Client) -> Result<String, ClusterError> {
    let review = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"});
    let about = "SelfSubjectReview";
    let answer =
        request::send(client, &Ask::post("/apis/authentication.k8s.io/v1/selfsubjectreviews".into(), &review, about.into())).await?;
    answer.body.pointer("/status/userInfo/username").and_then(Value::as_str).map(str::to_owned).ok_or_else(|| ClusterError::Other {
        about: about.into(),
        code: 0,
        message: "the answer names no user".into(),
    })
}

/// Whether somebody else may do this, by any authorizer (`SubjectAccessReview`).
///
/// # Errors
/// See [`ClusterError`].
pub async fn may(client: &Client, user: &str, groups: &[String], action: Action<'_>) -> Result<bool, ClusterError> {
    let review = json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
        "spec": {"user": user, "groups": groups, "resourceAttributes": attributes(action)}});
    allowed(client, "subjectaccessreviews", &review).await
}

/// Whether the caller may do this (`SelfSubjectAccessReview`).
///
/// # Errors
/// See [`ClusterError`].
pub async fn may_i(client: &Client, action: Action<'_>) -> Result<bool, ClusterError> {
    let review = json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": attributes(action)}});
    allowed(client, "selfsubjectaccessreviews", &review).await
}

fn attributes(action: Action<'_>) -> Value {
    json!({"verb": action.verb, "group": action.group, "resource": action.resource, "subresource": action.subresource,
        "namespace": action.namespace, "name": action.name})
}

async fn allowed(client: &Client, resource: &str, review: &Value) -> Result<bool, ClusterError> {
    let about = review.get("kind").and_then(Value::as_str).unwrap_or_default().to_owned();
    let answer = request::send(client, &Ask::post(format!("/apis/authorization.k8s.io/v1/{resource}"), review, about)).await?;
    Ok(answer.body.pointer("/status/allowed").and_then(Value::as_bool).unwrap_or(false))
}
