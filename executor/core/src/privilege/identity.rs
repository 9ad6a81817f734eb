//! Who has a right: the subjects of bindings.

use std::fmt;

use serde::Serialize;
use serde_json::Value;

/// How the API server names a ServiceAccount as a user.
const ACCOUNT_USER: &str = "system:serviceaccount:";

/// A subject. A ServiceAccount that a binding names by its user name is the same ServiceAccount.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(tag = "kind")]
pub enum Identity {
    /// A ServiceAccount.
    ServiceAccount {
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
    },
    /// A user, as the API server names them.
    User {
        /// The name.
        name: String,
    },
    /// A group of users.
    Group {
        /// The name.
        name: String,
    },
}

impl Identity {
    /// The identity of a binding's subject; a ServiceAccount without a namespace is one of the binding's. `None` for a kind that
    /// Kubernetes gives no rights to.
    pub(super) fn of(subject: &Value, binding_namespace: &str) -> Option<Self> {
        let text = |field: &str| subject.get(field).and_then(Value::as_str).unwrap_or_default();
        let name = text("name").to_owned();
        match text("kind") {
            "ServiceAccount" => {
                let namespace = Some(text("namespace")).filter(|namespace| !namespace.is_empty()).unwrap_or(binding_namespace);
                Some(Self::ServiceAccount { namespace: namespace.to_owned(), name })
            }
            "User" => Some(match name.strip_prefix(ACCOUNT_USER).and_then(|account| account.split_once(':')) {
                Some((namespace, name)) => Self::ServiceAccount { namespace: namespace.to_owned(), name: name.to_owned() },
                None => Self::User { name },
            }),
            "Group" => Some(Self::Group { name }),
            _ => None,
        }
    }
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ServiceAccount { namespace, name } => write!(f, "ServiceAccount {namespace}/{name}"),
            Self::User { name } => write!(f, "User {name}"),
            Self::Group { name } => write!(f, "Group {name}"),
        }
    }
}
