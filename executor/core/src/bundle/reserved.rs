//! What a bundle may not touch because consent rests on it: the executor's own identities, their guards and their rights.

use agent_api::names::{PCM_EXECUTOR, PCM_PLATFORM};
use agent_api::object::RenderedObject;
use serde_json::Value;

use super::refusal::Findings;
use super::scope::Scope;

/// Groups that hold our identities together with all others; what is given to them is given to a platform token, and rights such as
/// `impersonate` lead round the scope guard, which goes by the account's name.
const EVERYBODY: [&str; 3] = ["system:serviceaccounts", "system:authenticated", "system:unauthenticated"];

/// Names of ours, and bindings that would give our identities more than `approve` gives them.
pub(super) fn check(object: &RenderedObject, scope: &Scope<'_>, findings: &mut Findings<'_>) {
    let key = object.key();
    if is_reserved(&key.name) {
        let problem = format!("the name `{}` is kept for clicklink's own objects ({PCM_PLATFORM}…, {PCM_EXECUTOR}…)", key.name);
        findings.object(object, problem, Some("change the chart's name override"));
    }
    if key.kind != "RoleBinding" && key.kind != "ClusterRoleBinding" {
        return;
    }
    let subjects = object.object.get("subjects").and_then(Value::as_array).into_iter().flatten();
    for subject in subjects.filter_map(|subject| of_ours(subject, scope.home_namespace)) {
        findings.object(object, format!("it gives rights to {subject}: an identity of clicklink's would have them"), None);
    }
}

fn is_reserved(name: &str) -> bool {
    [PCM_PLATFORM, PCM_EXECUTOR].iter().any(|ours| name.strip_prefix(ours).is_some_and(|rest| rest.is_empty() || rest.starts_with('-')))
}

/// A subject that is, or holds, one of our identities.
fn of_ours(subject: &Value, home: &str) -> Option<String> {
    let text = |field: &str| subject.get(field).and_then(Value::as_str).unwrap_or_default();
    let (kind, name) = (text("kind"), text("name"));
    let ours = match kind {
        "ServiceAccount" => text("namespace") == home && (name == PCM_PLATFORM || name == PCM_EXECUTOR),
        "User" => [PCM_PLATFORM, PCM_EXECUTOR].iter().any(|account| name == format!("system:serviceaccount:{home}:{account}")),
        "Group" => EVERYBODY.contains(&name) || name == format!("system:serviceaccounts:{home}"),
        _ => false,
    };
    ours.then(|| format!("{kind} {name}"))
}
