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
    #[error("nothing was ever approved in namespace {home}, and nothing was taken back; an account of a connector is in {}", elsewhere.join(", "))]
    Elsewhere { home: String, elsewhere: Vec<String> },
    #[error("{0}; nothing was taken back")]
    Place(ClusterError),
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
            Self::Elsewhere { .. } => Code::ObjectNotFound,
            Self::Place(error) | Self::Cluster(error) => error.code(),
            Self::Record(error) => error.code(),
            Self::Bundle(error) => error.code(),
        }
    }

    fn hints(&self) -> Vec<String> {
        match self {
            Self::Connect(error) => error.hints(),
            Self::Elsewhere { elsewhere, .. } => elsewhere.iter().map(|home| format!("run: {}", command(home))).collect(),
            Self::Place(error) | Self::Cluster(error) => error.hints(),
            Self::Record(error) => error.hints(),
            Self::Bundle(error) => error.hints(),
        }
    }
}

/// Takes back whatever is there; says what it was. A second run finds nothing and succeeds.
pub(super) async fn revoke(connection: &Connection, home: &str, target: &Target, dry_run: bool) -> Result<ExitCode, RevokeError> {
    let client = &connection.client;
    // The bindings are found by their names wherever they are: where the wrong place was named they are not touched.
    target.exists(client).await.map_err(RevokeError::Place)?;
    let current = record::current(client, home).await?;
    let (here, elsewhere) = homes(client, home).await?;
    if !here && current.is_none() && !elsewhere.is_empty() {
        return Err(RevokeError::Elsewhere { home: home.to_owned(), elsewhere });
    }
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
    for elsewhere in elsewhere {
        talk(format_args!("hint: an account of a connector is also in namespace {elsewhere}: {}", command(&elsewhere)));
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

/// Whether an approval made the account at home, and other namespaces in which one did.
async fn homes(client: &Client, home: &str) -> Result<(bool, Vec<String>), ClusterError> {
    let accounts = object::list(client, "v1", "ServiceAccount", None, Some(&made_by_approve())).await?;
    let homes = accounts.iter().map(ObjectKey::of).filter(|key| key.name == PCM_PLATFORM).map(|key| key.namespace);
    let (here, elsewhere): (Vec<String>, Vec<String>) = homes.partition(|namespace| namespace == home);
    Ok((!here.is_empty(), elsewhere))
}

/// What takes the approval of a home back.
fn command(home: &str) -> String {
    let place = if home == HOME_NAMESPACE_VM { String::new() } else { format!(" --secret-namespace {home}") };
    format!("clicklink clctl platform approve --revoke{place}")
}
