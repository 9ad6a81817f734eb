//! Deleting objects until they, and the pods behind them, are gone.

use std::time::Duration;

use agent_api::object::ObjectKey;
use cluster::object::{self, Propagation};
use cluster::{Client, ClusterError};
use serde_json::Value;
use tokio::time::Instant;

use crate::error_code::{Code, Coded};
use crate::terminal::talk;

/// How long an object may take to be gone, its pods included.
const GONE: Duration = Duration::from_secs(180);
const PAUSE: Duration = Duration::from_millis(250);
/// How often it is told what is waited for.
const TELL: Duration = Duration::from_secs(5);

/// Why an object is not gone.
#[derive(Debug, thiserror::Error)]
pub(super) enum RemovalError {
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    #[error("{key} is being deleted and not gone after {seconds} s{}", held(.finalizers), seconds = GONE.as_secs())]
    Stays {
        /// What stays.
        key: ObjectKey,
        /// What holds it.
        finalizers: Vec<String>,
    },
}

impl Coded for RemovalError {
    fn code(&self) -> Code {
        match self {
            Self::Cluster(error) => error.code(),
            Self::Stays { .. } => Code::NotGone,
        }
    }

    fn hints(&self) -> Vec<String> {
        match self {
            Self::Cluster(error) => error.hints(),
            Self::Stays { .. } => Vec::new(),
        }
    }
}

fn held(finalizers: &[String]) -> String {
    if finalizers.is_empty() { String::new() } else { format!("; its finalizers wait for their controllers: {}", finalizers.join(", ")) }
}

/// Of others: the one that we put there ourselves only waits for the object's dependants.
fn finalizers(live: &Value) -> Vec<String> {
    object::finalizers(live).into_iter().filter(|finalizer| finalizer != "foregroundDeletion").collect()
}

/// Deletes objects and waits until they are gone. One that is not there is gone, and so is one that is given with its `uid` where another one
/// has its name by now: nobody agreed to delete that.
pub(super) async fn remove(client: &Client, objects: &[Value]) -> Result<(), RemovalError> {
    let mut going = Vec::new();
    for object in objects {
        let Some(live) = object::get(client, object).await? else { continue };
        if uid(object).is_some_and(|seen| uid(&live) != Some(seen)) {
            talk(format_args!("  {} is another one than was shown, and stays", ObjectKey::of(object)));
        } else if object::delete(client, &live, Propagation::Foreground).await? {
            going.push(live);
        }
    }
    for object in going {
        gone(client, &object).await?;
    }
    Ok(())
}

fn uid(object: &Value) -> Option<&Value> {
    object.pointer("/metadata/uid")
}

async fn gone(client: &Client, object: &Value) -> Result<(), RemovalError> {
    let (deadline, mut tell) = (Instant::now() + GONE, Instant::now() + TELL);
    loop {
        // One of the same name that somebody makes meanwhile is not this one.
        let Some(live) = object::get(client, object).await?.filter(|live| uid(live) == uid(object)) else { return Ok(()) };
        if Instant::now() >= deadline {
            return Err(RemovalError::Stays { key: ObjectKey::of(object), finalizers: finalizers(&live) });
        }
        if Instant::now() >= tell {
            talk(format_args!("  {} is being deleted{} …", ObjectKey::of(object), held(&finalizers(&live))));
            tell = Instant::now() + TELL;
        }
        tokio::time::sleep(PAUSE).await;
    }
}
