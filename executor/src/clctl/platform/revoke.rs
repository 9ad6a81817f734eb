//! `clctl platform approve --revoke`: a person takes an approval back before it ends by itself.
//!
//! Writes end with the first step: the bindings go before all else. The account goes late, since the API server takes a deleted
//! account's token for some seconds more.

use std::process::ExitCode;

use agent_api::names::{APPROVAL_ROLE, HOME_NAMESPACE_VM, PCM_PLATFORM};
use agent_api::object::ObjectKey;
use cluster::connect::{ConnectError, Connection};
use cluster::object::{self, Propagation};
use cluster::{Client, ClusterError};
use serde_json::{Value, json};

use super::made_by_approve;
use super::record::{self, RecordError};
use super::token_bundle::{DeliverError, Target};
use crate::error_code::{Code, Coded};
use crate::terminal::{data, talk};

const RBAC: &str = "rbac.authorization.k8s.io/v1";

/// Where revoking stopped.
#[derive(Debug, thiserror::Error)]
pub(super) enum RevokeError {
    #[error(transparent)]
    Connect(#[from] ConnectError),
    #[error("{0}; run it again: what is done is done")]
    Cluster(#[from] ClusterError),
    #[error("{0}; run it again: what is done is done")]
    Record(#[from] RecordError),
    #[error("the token bundle was not removed (the token in it cannot write any more): {0}")]
    Bundle(#[from] DeliverError),
}

impl Coded for RevokeError {
    fn code(&self) -> Code {
        match self {
            Self::Connect(error) => error.code(),
            Self::Cluster(error) => error.code(),
            Self::Record(error) => error.code(),
            Self::Bundle(error) => error.code(),
        }
    }

    fn hints(&self) -> Vec<String> {
        match self {
            Self::Connect(error) => error.hints(),
            Self::Cluster(error) => error.hints(),
            Self::Record(error) => error.hints(),
            Self::Bundle(error) => error.hints(),
        }
    }
}

/// Takes back whatever is there; says what it was. A second run finds nothing and succeeds.
pub(super) async fn revoke(connection: &Connection, home: &str, target: &Target, dry_run: bool) -> Result<ExitCode, RevokeError> {
    let client = &connection.client;
    let current = record::current(client, home).await?;
    let rights = bindings(client).await?;
    for binding in &rights {
        let key = ObjectKey::of(binding);
        if dry_run {
            data(format_args!("would remove {key}"));
        } else if object::delete(client, binding, Propagation::Background).await? {
            talk(format_args!("  removed {key}: the account has no right by it"));
        }
    }
    let bundle = current.as_ref().map_or_else(|| "no bundle".to_owned(), |current| format!("bundle {}", current.sha256));
    if dry_run {
        data(format_args!("would end the approval of {bundle}, remove ServiceAccount {home}/{PCM_PLATFORM} and {target}"));
        return Ok(ExitCode::SUCCESS);
    }
    record::end(client, home, jiff::Timestamp::now(), None).await?;
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": PCM_PLATFORM, "namespace": home}});
    object::delete(client, &account, Propagation::Background).await?;
    target.remove(client).await?;
    for elsewhere in other_homes(client, home).await? {
        let place = if elsewhere == HOME_NAMESPACE_VM { String::new() } else { format!(" --secret-namespace {elsewhere}") };
        talk(format_args!(
            "hint: an account of a connector is also in namespace {elsewhere}: clicklink clctl platform approve --revoke{place}"
        ));
    }
    data(format_args!("Revoked: the executor may apply nothing to the platform until you approve again ({bundle})."));
    Ok(ExitCode::SUCCESS)
}

/// Every binding by which the account has rights of ours.
async fn bindings(client: &Client) -> Result<Vec<Value>, ClusterError> {
    let mut all = object::list(client, RBAC, "RoleBinding", None, Some(&made_by_approve())).await?;
    all.extend(object::list(client, RBAC, "ClusterRoleBinding", None, Some(&made_by_approve())).await?);
    all.retain(|binding| [PCM_PLATFORM, APPROVAL_ROLE].contains(&ObjectKey::of(binding).name.as_str()));
    Ok(all)
}

/// Other namespaces in which an approval made the account.
async fn other_homes(client: &Client, home: &str) -> Result<Vec<String>, ClusterError> {
    let accounts = object::list(client, "v1", "ServiceAccount", None, Some(&made_by_approve())).await?;
    let homes = accounts.iter().map(ObjectKey::of).filter(|key| key.name == PCM_PLATFORM && key.namespace != home);
    Ok(homes.map(|key| key.namespace).collect())
}
