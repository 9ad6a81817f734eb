//! Whether the account has, from anybody, rights that lead round its guard, before it is given any.
//!
//! The policies go by the account's name, so that a right to act as another, to mint tokens or to write roles is not bounded by them.
//! Bindings that name the account, or all accounts of its home, are read one by one; groups that hold every account, and authorizers
//! other than RBAC, are caught by asking.

use agent_api::names::{APPROVAL_ROLE, PCM_PLATFORM};
use agent_api::object::ObjectKey;
use cluster::review::{self, Action};
use cluster::{Client, ClusterError, object};
use serde_json::{Value, json};

use super::{MANAGED_BY_APPROVE, OWN_LABEL};
use crate::clctl::requests;
use crate::error_code::{Code, Coded};

/// Rights that nothing of ours gives.
const FORBIDDEN: [(&str, &str, &str, &str); 13] = [
    ("impersonate", "", "users", ""),
    ("impersonate", "", "groups", ""),
    ("impersonate", "", "serviceaccounts", ""),
    ("create", "", "serviceaccounts", "token"),
    ("get", "", "secrets", ""),
    ("list", "", "secrets", ""),
    ("create", "", "pods", ""),
    ("create", "", "pods", "exec"),
    ("escalate", "rbac.authorization.k8s.io", "clusterroles", ""),
    ("bind", "rbac.authorization.k8s.io", "clusterroles", ""),
    ("create", "rbac.authorization.k8s.io", "clusterrolebindings", ""),
    ("patch", "admissionregistration.k8s.io", "validatingadmissionpolicies", ""),
    ("delete", "admissionregistration.k8s.io", "validatingadmissionpolicybindings", ""),
];

const RBAC: &str = "rbac.authorization.k8s.io/v1";
/// Verbs that only look; of Secrets they are refused too.
const LOOKING: [&str; 3] = ["get", "list", "watch"];

/// What was found.
#[derive(Debug, thiserror::Error)]
pub(super) enum OtherRightsError {
    /// Rights that somebody gave.
    #[error(
        "{account} may already {}, by a binding or authorizer that is not ours; no right was given: see who gives it with \
         `kubectl auth can-i --list --as={account}`, and take it back",
        rights.join(", ")
    )]
    Found {
        /// User name.
        account: String,
        /// Verb and resource of each.
        rights: Vec<String>,
    },
    /// Bindings that somebody made.
    #[error("{}; no right was given: take them back", bindings.join("; "))]
    Bound {
        /// Each, with the right that it may not give.
        bindings: Vec<String>,
    },
    /// The question failed.
    #[error(transparent)]
    Cluster(#[from] ClusterError),
}

impl Coded for OtherRightsError {
    fn code(&self) -> Code {
        match self {
            Self::Found { .. } | Self::Bound { .. } => Code::OtherRights,
            Self::Cluster(error) => error.code(),
        }
    }

    fn hints(&self) -> Vec<String> {
        match self {
            // The command to run stands in the message.
            Self::Found { .. } | Self::Bound { .. } => Vec::new(),
            Self::Cluster(error) => error.hints(),
        }
    }
}

/// Looks and asks; answers with the bindings that give only rights to look, for the person to know.
pub(super) async fn check(client: &Client, home: &str) -> Result<Vec<String>, OtherRightsError> {
    let harmless = bindings(client, home).await?;
    let account = format!("system:serviceaccount:{home}:{PCM_PLATFORM}");
    let groups = [format!("system:serviceaccounts:{home}"), "system:serviceaccounts".to_owned(), "system:authenticated".to_owned()];
    let questions = FORBIDDEN.map(|(verb, group, resource, subresource)| {
        review::may(client, &account, &groups, Action { verb, group, resource, subresource, ..Action::default() })
    });
    let answers = requests::until_error(questions).await?;
    let given = FORBIDDEN.iter().zip(answers).filter(|(_, may)| *may);
    let rights: Vec<String> = given
        .map(|((verb, _, resource, subresource), _)| {
            let slash = if subresource.is_empty() { "" } else { "/" };
            format!("{verb} {resource}{slash}{subresource}")
        })
        .collect();
    if rights.is_empty() { Ok(harmless) } else { Err(OtherRightsError::Found { account, rights }) }
}

async fn bindings(client: &Client, home: &str) -> Result<Vec<String>, OtherRightsError> {
    let (mut harmless, mut refused) = (Vec::new(), Vec::new());
    for kind in ["RoleBinding", "ClusterRoleBinding"] {
        for binding in object::list(client, RBAC, kind, None, None).await? {
            if is_ours(&binding, home) || !names_account(&binding, home) {
                continue;
            }
            let key = ObjectKey::of(&binding);
            let (role, rules) = role(client, &binding).await?;
            match rules.iter().find_map(dangerous) {
                Some(right) => refused.push(format!("{key} gives {PCM_PLATFORM} {role}, which may {right}")),
                None => harmless.push(format!("{key} gives {PCM_PLATFORM} {role}, which may only look")),
            }
        }
    }
    if refused.is_empty() { Ok(harmless) } else { Err(OtherRightsError::Bound { bindings: refused }) }
}

/// One that `approve` makes, where it makes it: it is put right before it counts, or removed with the former bundle's namespace. Label and name
/// anybody can give to theirs.
fn is_ours(binding: &Value, home: &str) -> bool {
    let text = |pointer: &str| binding.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let label = binding.get("metadata").and_then(|metadata| metadata.get("labels")?.get(OWN_LABEL)?.as_str());
    let (kind, name) = (text("/kind"), text("/metadata/name"));
    let place = match (kind, text("/roleRef/kind")) {
        ("RoleBinding", "Role") => name == PCM_PLATFORM || name == APPROVAL_ROLE && text("/metadata/namespace") == home,
        ("ClusterRoleBinding", "ClusterRole") => name == PCM_PLATFORM,
        _ => false,
    };
    label == Some(MANAGED_BY_APPROVE) && place && text("/roleRef/name") == name
}

/// Whether a subject is the account, under any of its names, or all accounts of its home.
fn names_account(binding: &Value, home: &str) -> bool {
    let subjects = binding.get("subjects").and_then(Value::as_array).into_iter().flatten();
    subjects.into_iter().any(|subject| {
        let text = |field: &str| subject.get(field).and_then(Value::as_str).unwrap_or_default();
        match text("kind") {
            "ServiceAccount" => text("name") == PCM_PLATFORM && text("namespace") == home,
            "User" => text("name") == format!("system:serviceaccount:{home}:{PCM_PLATFORM}"),
            "Group" => text("name") == format!("system:serviceaccounts:{home}"),
            _ => false,
        }
    })
}

/// What a binding refers to, and its rules; none for a role that is not there.
async fn role(client: &Client, binding: &Value) -> Result<(String, Vec<Value>), ClusterError> {
    let text = |pointer: &str| binding.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let role = json!({"apiVersion": RBAC, "kind": text("/roleRef/kind"),
        "metadata": {"name": text("/roleRef/name"), "namespace": if text("/roleRef/kind") == "Role" { text("/metadata/namespace") } else { "" }}});
    let live = object::get(client, &role).await?.unwrap_or_default();
    let rules = live.get("rules").and_then(Value::as_array).cloned().unwrap_or_default();
    Ok((format!("{} {}", text("/roleRef/kind"), text("/roleRef/name")), rules))
}

/// The first right of a rule that is more than looking, or looks at Secrets.
fn dangerous(rule: &Value) -> Option<String> {
    let list = |field: &str| rule.get(field).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect::<Vec<_>>();
    let (verbs, resources) = (list("verbs"), list("resources"));
    let secrets = resources.iter().any(|resource| matches!(*resource, "secrets" | "*"));
    let verb = verbs.iter().find(|verb| !LOOKING.contains(verb) || secrets)?;
    let resource = resources.iter().find(|resource| !secrets || matches!(**resource, "secrets" | "*")).copied();
    Some(format!("{verb} {}", resource.unwrap_or("what is no resource")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_looking_at_what_is_no_secret_is_harmless() {
        let rule = |verbs: Value, resources: Value| dangerous(&json!({"apiGroups": [""], "verbs": verbs, "resources": resources}));
        assert_eq!(rule(json!(["get", "list", "watch"]), json!(["pods", "configmaps"])), None);
        assert_eq!(rule(json!(["get"]), json!(["pods", "secrets"])).as_deref(), Some("get secrets"));
        assert_eq!(rule(json!(["watch"]), json!(["*"])).as_deref(), Some("watch *"));
        assert_eq!(rule(json!(["get", "create"]), json!(["pods/exec"])).as_deref(), Some("create pods/exec"));
        assert_eq!(rule(json!(["*"]), json!(["pods"])).as_deref(), Some("* pods"));
        assert_eq!(rule(json!(["impersonate"]), json!(["users"])).as_deref(), Some("impersonate users"));
        assert_eq!(dangerous(&json!({"nonResourceURLs": ["/metrics"], "verbs": ["get"]})), None);
    }

    #[test]
    fn the_account_is_known_by_all_its_names() {
        let binding = |subject: Value| json!({"subjects": [{"kind": "User", "name": "jo"}, subject]});
        for subject in [
            json!({"kind": "ServiceAccount", "name": "pcm-platform", "namespace": "home"}),
            json!({"kind": "User", "name": "system:serviceaccount:home:pcm-platform"}),
            json!({"kind": "Group", "name": "system:serviceaccounts:home"}),
        ] {
            assert!(names_account(&binding(subject.clone()), "home"), "{subject}");
            assert!(!names_account(&binding(subject.clone()), "other"), "{subject}");
        }
        assert!(!names_account(&json!({}), "home"));
    }

    #[test]
    fn ours_is_a_binding_by_its_role_and_its_place() {
        let check = |kind: &str, namespace: &str, name: &str, role: &str, expected: bool| {
            let binding = json!({"kind": kind, "metadata": {"name": name, "namespace": namespace, "labels": {OWN_LABEL: MANAGED_BY_APPROVE}},
                "roleRef": {"kind": kind.trim_end_matches("Binding"), "name": role}});
            assert_eq!(is_ours(&binding, "home"), expected, "{binding}");
        };
        check("RoleBinding", "a", "pcm-platform", "pcm-platform", true);
        check("ClusterRoleBinding", "", "pcm-platform", "pcm-platform", true);
        check("RoleBinding", "home", "pcm-platform-approval", "pcm-platform-approval", true);
        check("RoleBinding", "a", "pcm-platform", "cluster-admin", false);
        check("RoleBinding", "a", "pcm-platform-approval", "pcm-platform-approval", false);
        check("ClusterRoleBinding", "", "pcm-platform-approval", "pcm-platform-approval", false);
        check("RoleBinding", "home", "other", "other", false);
    }
}
