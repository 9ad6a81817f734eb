//! Which cluster this is.

use kube::Client;
use serde_json::{Value, json};

use crate::error::ClusterError;
use crate::object;
use crate::request::{self, Ask};

/// The uid of the `kube-system` Namespace, by which a cluster is known.
///
/// # Errors
/// See [`ClusterError`].
pub async fn cluster_uid(client: &Client) -> Result<String, ClusterError> {
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kube-system"}});
    let live = object::get(client, &namespace).await?;
    text(live.as_ref(), "/metadata/uid", "Namespace kube-system")
}

/// What the API server says of its version, in its own words.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ServerVersion {
    /// `gitVersion`, e.g. `v1.37.2`, `v1.32.3-eks-2d5f260`.
    pub git_version: String,
    /// `major`, e.g. `1`.
    pub major: String,
    /// `minor`, e.g. `37`, `32+`.
    pub minor: String,
}

/// `gitVersion` of the API server, e.g. `v1.37.2`.
///
/// # Errors
/// See [`ClusterError`].
pub async fn kubernetes_version(client: &Client) -> Result<String, ClusterError> {
    Ok(server_version(client).await?.git_version)
}

/// The API server's version.
///
/// # Errors
/// See [`ClusterError`].
pub async fn server_version(client: &Client) -> Result<ServerVersion, ClusterError> {
    let about = "version of the API server";
    let answer = request::send(client, &Ask::get("/version".into(), about.into())).await?;
    let field = |pointer: &str| text(Some(&answer.body), pointer, about);
    // Only the first is needed by everybody.
    let part = |pointer: &str| field(pointer).unwrap_or_default();
    Ok(ServerVersion { git_version: field("/gitVersion")?, major: part("/major"), minor: part("/minor") })
}

fn text(value: Option<&Value>, pointer: &str, about: &str) -> Result<String, ClusterError> {
    value.and_then(|value| value.pointer(pointer)).and_then(Value::as_str).map(str::to_owned).ok_or_else(|| ClusterError::Other {
        about: about.into(),
        code: 0,
        message: format!("the answer has no {pointer}"),
    })
}

/// Major and minor of a `gitVersion`; `None` where it has no such form.
#[must_use]
pub fn major_minor(git_version: &str) -> Option<(u32, u32)> {
    let mut parts = git_version.trim_start_matches('v').split('.');
    let major = parts.next()?.parse().ok()?;
    let digits: String = parts.next()?.chars().take_while(char::is_ascii_digit).collect();
    Some((major, digits.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions() {
        assert_eq!(major_minor("v1.37.2"), Some((1, 37)));
        assert_eq!(major_minor("v1.30+-eks-1"), Some((1, 30)));
        assert_eq!(major_minor("odd"), None);
    }
}
