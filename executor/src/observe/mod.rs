//! What is seen in the cluster through `pcm-executor`'s read rights, also when no approval is valid.
//!
//! One watch on each kind of the platform's workload that may be read, one on the approvals that the cluster keeps; nothing is polled. While nobody can look,
//! nothing is shown as known.

mod access;
mod approvals;
mod components;
mod workload;

use std::collections::BTreeMap;
use std::time::Duration;

use agent_api::digest::Sha256;
use agent_api::heartbeat::{AccessState, ApprovalRecord, ClusterInfo};
use agent_api::keys;
use agent_api::kind::Kind;
use futures::StreamExt;
use k8s_openapi::api::apps::v1::Deployment;
use kube::core::{ApiResource, DynamicObject, GroupVersionKind};
use kube::runtime::watcher;
use kube::{Api, ResourceExt};
use serde::Deserialize as _;
use serde_json::Value;
use tokio::sync::watch;
use tracing::{info, warn};

pub(crate) use access::{Access, AccessError, Credentials, KUBECONFIG};
pub(crate) use components::components;
pub(crate) use workload::Drifted;
use workload::{Missing, Workload};

use crate::terminal::chain;

/// Pause before the cluster is tried again after an error; also how often a missing access bundle is looked for.
const RETRY: Duration = Duration::from_secs(5);
/// A watch on which nothing comes is no proof that anybody is there: after so long without news the API server is asked something small.
const SIGN_OF_LIFE: Duration = Duration::from_secs(15);
/// How long it may take to answer.
const ANSWER: Duration = Duration::from_secs(10);

/// All that was observed.
#[derive(Clone)]
pub(crate) struct Observed {
    /// The cluster.
    pub(crate) cluster: ClusterInfo,
    /// `pcm-executor`'s access bundle, as far as the API server has said.
    pub(crate) access: AccessState,
    /// When its token ends, by its own word.
    pub(crate) token_expires_at: Option<jiff::Timestamp>,
    /// Platform Deployments by namespace and name; `None` before the first list.
    pub(crate) deployments: Option<BTreeMap<(String, String), Deployment>>,
    /// The workload half, and how it departs from the approval.
    workload: Workload,
    /// The approvals that the cluster keeps, the newest first.
    pub(crate) approvals: Vec<ApprovalRecord>,
    /// When the last event came.
    pub(crate) observed_at: Option<jiff::Timestamp>,
    /// A client with the same rights, for readiness.
    pub(crate) client: Option<kube::Client>,
}

impl Observed {
    /// Nothing known yet.
    pub(crate) fn nothing() -> Self {
        Self {
            cluster: ClusterInfo::default(),
            access: AccessState::Absent,
            token_expires_at: None,
            deployments: None,
            workload: Workload::default(),
            approvals: Vec::new(),
            observed_at: None,
            client: None,
        }
    }
}

impl Observed {
    /// What departs from the approval of the applied bundle; `None` while that is not known, as while nobody can look.
    pub(crate) fn drift(&self, applied: Option<&Sha256>) -> Option<impl Iterator<Item = &Drifted>> {
        self.workload.drift(applied).filter(|_| self.cluster.reachable)
    }

    /// What of the applied bundle is not there.
    fn missing(&self, applied: Option<&Sha256>) -> Vec<Missing> {
        if self.cluster.reachable { self.workload.missing(applied) } else { Vec::new() }
    }
}

/// Starts observing.
pub(crate) fn follow(access: Access) -> watch::Receiver<Observed> {
    let (sender, receiver) = watch::channel(Observed::nothing());
    tokio::spawn(async move {
        while !sender.is_closed() {
            // Before the files are read, so that what replaces them meanwhile is noticed.
            let fingerprint = access.fingerprint();
            match access.connect().await {
                Ok(Some(accessed)) => {
                    sender.send_modify(|observed| there(observed, accessed.expires_at));
                    observe(&access, fingerprint, accessed.connection, &sender).await;
                }
                Ok(None) => sender.send_modify(|observed| *observed = Observed::nothing()),
                Err(error) => {
                    warn!("cluster: {}", chain(&error));
                    sender.send_modify(|observed| *observed = Observed::nothing());
                }
            }
            tokio::time::sleep(RETRY).await;
        }
    });
    receiver
}

/// Watches until an error ends it or the access bundle is replaced.
async fn observe(
    access: &Access,
    fingerprint: Option<access::Fingerprint>,
    connection: cluster::connect::Connection,
    sender: &watch::Sender<Observed>,
) {
    if let Err(error) = greet(&connection, sender).await {
        warn!("cluster: {}", chain(&error));
        let unauthorized = matches!(error, cluster::ClusterError::Unauthorized { .. });
        return sender.send_modify(if unauthorized { expired } else { unreachable });
    }
    tokio::select! {
        () = live(access, fingerprint, &connection, sender) => {}
        () = approvals::follow(access, &connection.client, sender) => {}
    }
}

/// Watches the platform's workload; returns when the connection is to be made anew.
async fn live(
    access: &Access,
    fingerprint: Option<access::Fingerprint>,
    connection: &cluster::connect::Connection,
    sender: &watch::Sender<Observed>,
) {
    let labels = format!("{}={}", keys::MANAGED_BY, keys::MANAGED_BY_PLATFORM);
    let watched = workload::kinds().map(|kind| {
        let version = if kind.group.is_empty() { "v1".to_owned() } else { format!("{}/v1", kind.group) };
        let api: Api<DynamicObject> = Api::all_with(connection.client.clone(), &resource(kind));
        let event = move |event| (kind, version.clone(), event);
        watcher(api, watcher::Config::default().labels(&labels)).map(event).boxed()
    });
    let mut events = futures::stream::select_all(watched);
    let mut listed = BTreeMap::new();
    let mut heard = tokio::time::Instant::now();
    loop {
        let next = tokio::time::timeout(RETRY, events.next()).await;
        if access.fingerprint() != fingerprint {
            info!("cluster: the access bundle was replaced");
            return;
        }
        match next {
            Err(_quiet) if heard.elapsed() < SIGN_OF_LIFE => {}
            Err(_quiet) => {
                let lives = tokio::time::timeout(ANSWER, cluster::inventory::cluster_uid(&connection.client)).await;
                match lives {
                    Ok(Ok(_)) => sender.send_modify(seen),
                    Ok(Err(cluster::ClusterError::Unauthorized { .. })) => return sender.send_modify(expired),
                    Ok(Err(error)) => {
                        warn!("cluster: {}", chain(&error));
                        sender.send_modify(unreachable);
                    }
                    Err(_slow) => sender.send_modify(unreachable),
                }
                heard = tokio::time::Instant::now();
            }
            Ok(None) => return,
            Ok(Some((_, _, Err(error)))) => {
                warn!("cluster: {}", chain(&error));
                sender.send_modify(unreachable);
                if status(&error) == Some(401) {
                    return sender.send_modify(expired);
                }
                // The watcher itself would ask again at once, and for as long as nobody answers.
                tokio::time::sleep(RETRY).await;
            }
            Ok(Some((kind, version, Ok(event)))) => {
                heard = tokio::time::Instant::now();
                let listed = listed.entry(kind.kind).or_default();
                sender.send_modify(|observed| take(observed, listed, kind, &version, event));
            }
        }
    }
}

/// There is a bundle, whatever the API server will say of it.
fn there(observed: &mut Observed, token_expires_at: Option<jiff::Timestamp>) {
    observed.token_expires_at = token_expires_at;
    if observed.access == AccessState::Absent {
        observed.access = AccessState::Ok;
    }
}

fn unreachable(observed: &mut Observed) {
    observed.cluster.reachable = false;
}

/// The API server does not take the token any more: nothing can be read, and nobody else may read with it.
fn expired(observed: &mut Observed) {
    observed.access = AccessState::Expired;
    observed.client = None;
    unreachable(observed);
}

fn seen(observed: &mut Observed) {
    observed.cluster.reachable = true;
    observed.observed_at = Some(jiff::Timestamp::now());
    observed.cluster.observed_at = observed.observed_at;
}

/// The HTTP status that the API server answered with.
fn status(error: &watcher::Error) -> Option<u16> {
    match error {
        watcher::Error::InitialListFailed(kube::Error::Api(status))
        | watcher::Error::WatchStartFailed(kube::Error::Api(status))
        | watcher::Error::WatchFailed(kube::Error::Api(status))
        | watcher::Error::WatchError(status) => Some(status.code),
        _ => None,
    }
}

async fn greet(connection: &cluster::connect::Connection, sender: &watch::Sender<Observed>) -> Result<(), cluster::ClusterError> {
    let uid = cluster::inventory::cluster_uid(&connection.client).await?;
    let version = cluster::inventory::kubernetes_version(&connection.client).await?;
    sender.send_modify(|observed| {
        observed.cluster = ClusterInfo {
            uid: Some(uid),
            kubernetes_version: Some(version),
            api_address: Some(connection.server.clone()),
            reachable: true,
            observed_at: Some(jiff::Timestamp::now()),
            ..ClusterInfo::default()
        };
        observed.access = AccessState::Ok;
        observed.client = Some(connection.client.clone());
    });
    Ok(())
}

fn resource(kind: &Kind) -> ApiResource {
    let gvk = GroupVersionKind::gvk(kind.group, "v1", kind.kind);
    ApiResource::from_gvk_with_plural(&gvk, kind.resource)
}

/// `listed` holds the objects of a list that is not whole yet.
fn take(observed: &mut Observed, listed: &mut Vec<Value>, kind: &'static Kind, version: &str, event: watcher::Event<DynamicObject>) {
    let value = |object: DynamicObject| {
        let mut value = serde_json::to_value(object).unwrap_or_default();
        value["apiVersion"] = version.into();
        value["kind"] = kind.kind.into();
        value
    };
    match event {
        watcher::Event::Init => listed.clear(),
        watcher::Event::InitApply(object) => listed.push(value(object)),
        watcher::Event::InitDone => {
            let listed = std::mem::take(listed);
            if kind.kind == "Deployment" {
                observed.deployments = Some(listed.iter().filter_map(deployment).collect());
            }
            observed.workload.list(kind, listed);
        }
        watcher::Event::Apply(object) => {
            let object = value(object);
            if let Some((key, deployment)) = deployment(&object) {
                observed.deployments.get_or_insert_default().insert(key, deployment);
            }
            observed.workload.put(&object);
        }
        watcher::Event::Delete(object) => {
            let object = value(object);
            if let (Some((key, _)), Some(deployments)) = (deployment(&object), &mut observed.deployments) {
                deployments.remove(&key);
            }
            observed.workload.remove(&object);
        }
    }
    seen(observed);
}

/// A Deployment, with its namespace and name.
fn deployment(object: &Value) -> Option<((String, String), Deployment)> {
    if object.get("kind")? != "Deployment" {
        return None;
    }
    let deployment = Deployment::deserialize(object).ok()?;
    Some(((deployment.namespace().unwrap_or_default(), deployment.name_any()), deployment))
}
