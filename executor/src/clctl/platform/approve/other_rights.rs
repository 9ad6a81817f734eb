//! Whether the account has, from anybody, rights that lead round its guard: asked of all authorizers before it is given any.
//!
//! The scope guard goes by the account's name, so that a right to act as another, to mint tokens or to write roles is not bounded by
//! it. Bindings to groups that hold every account, and authorizers other than RBAC, are caught here.

use agent_api::names::PCM_PLATFORM;
use cluster::review::{self, Action};
use cluster::{Client, ClusterError};

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
    /// The question failed.
    #[error(transparent)]
    Cluster(#[from] ClusterError),
}

impl Coded for OtherRightsError {
    fn code(&self) -> Code {
        match self {
            Self::Found { .. } => Code::OtherRights,
            Self::Cluster(error) => error.code(),
        }
    }

    fn hints(&self) -> Vec<String> {
        match self {
            // The command to run stands in the message.
            Self::Found { .. } => Vec::new(),
            Self::Cluster(error) => error.hints(),
        }
    }
}

/// Asks for each of them, cluster-wide.
pub(super) async fn check(client: &Client, home: &str) -> Result<(), OtherRightsError> {
    let account = format!("system:serviceaccount:{home}:{PCM_PLATFORM}");
    let groups = [format!("system:serviceaccounts:{home}"), "system:serviceaccounts".to_owned(), "system:authenticated".to_owned()];
    let mut rights = Vec::new();
    for (verb, group, resource, subresource) in FORBIDDEN {
        let action = Action { verb, group, resource, subresource, ..Action::default() };
        if review::may(client, &account, &groups, action).await? {
            let slash = if subresource.is_empty() { "" } else { "/" };
            rights.push(format!("{verb} {resource}{slash}{subresource}"));
        }
    }
    if rights.is_empty() { Ok(()) } else { Err(OtherRightsError::Found { account, rights }) }
}
