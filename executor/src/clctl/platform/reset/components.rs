//! A manifest's components as they are live: found by our labels, removed in reverse order, each until it is gone.

use std::time::Duration;

use agent_api::keys;
use agent_api::kind::{Half, KINDS, Kind};
use agent_api::manifest::Manifest;
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
const TELL: Duration = Duration::from_secs(10);

/// Permission kinds that belong to what runs: a webhook whose Service is gone would only stand in the way.
const WEBHOOKS: [&str; 2] = ["ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"];

/// Why a component is not gone.
#[derive(Debug, thiserror::Error)]
pub(super) enum ComponentError {
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    #[error("{key} is being deleted and not gone after {} s{}", GONE.as_secs(), held(.finalizers))]
    Stays {
        /// What stays.
        key: ObjectKey,
        /// What holds it.
        finalizers: Vec<String>,
    },
}

impl Coded for ComponentError {
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

/// A component and what of it is live.
pub(super) struct Component {
    pub(super) name: String,
    pub(super) objects: Vec<Value>,
}

/// The components, the last one first: each needs those before it.
pub(super) async fn find(client: &Client, manifest: &Manifest) -> Result<Vec<Component>, ClusterError> {
    let mut components = Vec::new();
    for component in manifest.components.iter().rev() {
        let selector = format!("{}={},{}={}", keys::MANAGED_BY, keys::MANAGED_BY_PLATFORM, keys::COMPONENT, component.name);
        let mut objects = Vec::new();
        for row in kinds() {
            let namespaces: Vec<Option<&str>> =
                if row.namespaced { manifest.namespaces.iter().map(|name| Some(name.as_str())).collect() } else { vec![None] };
            for namespace in namespaces {
                objects.extend(object::list(client, &api_version(row), row.kind, namespace, Some(&selector)).await?);
            }
        }
        components.push(Component { name: component.name.to_string(), objects });
    }
    Ok(components)
}

/// Webhooks first, since they would see the rest go; then what runs, and last what it read.
fn kinds() -> impl Iterator<Item = &'static Kind> {
    let webhooks = KINDS.iter().filter(|row| WEBHOOKS.contains(&row.kind));
    webhooks.chain(KINDS.iter().filter(|row| row.half == Half::Workload).rev())
}

/// All of these kinds are stable.
fn api_version(row: &Kind) -> String {
    if row.group.is_empty() { "v1".to_owned() } else { format!("{}/v1", row.group) }
}

/// Deletes a component's objects and waits until they, and the pods behind them, are gone.
pub(super) async fn remove(client: &Client, component: &Component) -> Result<(), ComponentError> {
    for object in &component.objects {
        object::delete(client, object, Propagation::Foreground).await?;
    }
    for object in &component.objects {
        gone(client, object).await?;
    }
    Ok(())
}

async fn gone(client: &Client, object: &Value) -> Result<(), ComponentError> {
    let (deadline, mut tell) = (Instant::now() + GONE, Instant::now() + TELL);
    let uid = |object: &Value| object.pointer("/metadata/uid").cloned();
    loop {
        // One of the same name that somebody makes meanwhile is not this one.
        let Some(live) = object::get(client, object).await?.filter(|live| uid(live) == uid(object)) else { return Ok(()) };
        if Instant::now() >= deadline {
            let finalizers = live.pointer("/metadata/finalizers").and_then(Value::as_array).into_iter().flatten();
            let finalizers = finalizers.filter_map(Value::as_str).map(str::to_owned).collect();
            return Err(ComponentError::Stays { key: ObjectKey::of(object), finalizers });
        }
        if Instant::now() >= tell {
            talk(format_args!("  {} is being deleted …", ObjectKey::of(object)));
            tell = Instant::now() + TELL;
        }
        tokio::time::sleep(PAUSE).await;
    }
}
