//! The approvals that the cluster keeps, for the manager's audit: who consented to what, when, and until when.
//!
//! Of the pinned objects only those are kept that can be compared with what is live (see [`workload`]); the others, ConfigMaps with their
//! content above all, are passed over while the answer is read.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use agent_api::heartbeat::ApprovalRecord;
use agent_api::names::HOME_NAMESPACE_VM;
use agent_api::platform_approval::{CURRENT, GROUP, KIND, RESOURCE, is_for_record, object_of};
use futures::StreamExt;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::core::NamespaceResourceScope;
use kube::runtime::watcher;
use kube::{Api, Client, Resource, ResourceExt};
use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use tokio::sync::watch;
use tracing::{debug, info, warn};

use super::workload::{self, Pins};
use super::{Access, Observed, RETRY, status};
use crate::terminal::chain;

/// `PlatformApproval` as far as it is read here.
#[derive(Clone, Debug, Deserialize)]
struct PlatformApproval {
    metadata: ObjectMeta,
    spec: Spec,
}

/// What is kept of it. Texts, so that one approval that somebody wrote
/// by hand does not hide the others.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Spec {
    sha256: String,
    approved_by: String,
    approved_at: String,
    expires_at: String,
    objects: u32,
    credentials: Vec<String>,
    #[serde(deserialize_with = "compared")]
    workloads: BTreeMap<String, Value>,
}

/// The pins of kinds that are watched.
fn compared<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BTreeMap<String, Value>, D::Error> {
    struct Compared;
    impl<'de> Visitor<'de> for Compared {
        type Value = BTreeMap<String, Value>;

        fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
            formatter.write_str("a map of pinned objects")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut kept = BTreeMap::new();
            while let Some(key) = map.next_key::<String>()? {
                if workload::kinds().any(|kind| kind.kind == object_of(&key).kind) {
                    kept.insert(key, map.next_value()?);
                } else {
                    map.next_value::<IgnoredAny>()?;
                }
            }
            Ok(kept)
        }
    }
    deserializer.deserialize_map(Compared)
}

impl Resource for PlatformApproval {
    type DynamicType = ();
    type Scope = NamespaceResourceScope;

    fn kind((): &()) -> Cow<'_, str> {
        KIND.into()
    }

    fn group((): &()) -> Cow<'_, str> {
        GROUP.into()
    }

    fn version((): &()) -> Cow<'_, str> {
        "v1alpha1".into()
    }

    fn plural((): &()) -> Cow<'_, str> {
        RESOURCE.into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

impl PlatformApproval {
    /// What it says of objects that can be compared with what is live.
    fn pins(&self) -> Option<Pins> {
        Some(Pins { sha256: self.spec.sha256.parse().ok()?, objects: self.spec.workloads.clone() })
    }

    /// `None` for what is no person's approval: the ended one of nothing that `approve --revoke` leaves, or one that cannot be read.
    fn record(self) -> Option<ApprovalRecord> {
        let name = self.name_any();
        let Spec { sha256, approved_by, approved_at, expires_at, objects, credentials, workloads: _ } = self.spec;
        if !is_for_record(&approved_by, &credentials) {
            return None;
        }
        match (sha256.parse(), approved_at.parse(), expires_at.parse()) {
            (Ok(sha256), Ok(approved_at), Ok(expires_at)) => Some(ApprovalRecord { sha256, approved_by, approved_at, expires_at, objects }),
            _ => {
                warn!("cluster: PlatformApproval {name} is not readable and is left out of the audit");
                None
            }
        }
    }
}

/// What is known of all approvals.
#[derive(Default)]
struct Known {
    /// By the name of their object.
    records: BTreeMap<String, ApprovalRecord>,
    /// What the one that holds says of the workload.
    pins: Option<Pins>,
}

/// Watches for as long as the connection is good. Nobody may have approved here yet: then there is no such kind, and it is looked again.
pub(super) async fn follow(access: &Access, client: &Client, sender: &watch::Sender<Observed>) {
    let home = match access {
        Access::Bundle(_) => HOME_NAMESPACE_VM,
        Access::InCluster => client.default_namespace(),
    };
    let api: Api<PlatformApproval> = Api::namespaced(client.clone(), home);
    let mut events = watcher(api, watcher::Config::default()).boxed();
    let (mut known, mut listed) = (Known::default(), Known::default());
    let mut told = false;
    while let Some(event) = events.next().await {
        match event {
            Ok(event) => {
                told = false;
                take(&mut known, &mut listed, event);
            }
            Err(error) => {
                match status(&error) {
                    Some(404) => {
                        debug!("cluster: there are no platform approvals yet");
                        known = Known::default();
                    }
                    // An access that was granted by a former version: said once, the rest of the observation goes on.
                    Some(403) if !told => {
                        info!("cluster: approvals cannot be read, and the manager is not told of them: {}", chain(&error))
                    }
                    _ if !told => warn!("cluster: approvals: {}", chain(&error)),
                    _ => {}
                }
                told = true;
            }
        }
        let now = newest(&known.records);
        let pins = known.pins.clone();
        sender.send_if_modified(|observed| {
            let approvals = std::mem::replace(&mut observed.approvals, now.clone()) != now;
            observed.workload.approve(pins) || approvals
        });
        if told {
            tokio::time::sleep(RETRY).await;
        }
    }
}

fn take(known: &mut Known, listed: &mut Known, event: watcher::Event<PlatformApproval>) {
    let put = |into: &mut Known, approval: PlatformApproval| {
        let name = approval.name_any();
        if name == CURRENT {
            into.pins = approval.pins();
        }
        match approval.record() {
            Some(record) => drop(into.records.insert(name, record)),
            None => drop(into.records.remove(&name)),
        }
    };
    match event {
        watcher::Event::Init => *listed = Known::default(),
        watcher::Event::InitApply(approval) => put(listed, approval),
        watcher::Event::InitDone => *known = std::mem::take(listed),
        watcher::Event::Apply(approval) => put(known, approval),
        watcher::Event::Delete(approval) => {
            let name = approval.name_any();
            known.records.remove(&name);
            known.pins.take_if(|_| name == CURRENT);
        }
    }
}

/// The newest first, each once and [`ApprovalRecord::MOST`] in all. While an approval makes room for the next one it is there twice; what
/// `current` says of it counts.
fn newest(known: &BTreeMap<String, ApprovalRecord>) -> Vec<ApprovalRecord> {
    let mut all: Vec<&ApprovalRecord> = known.get(CURRENT).into_iter().collect();
    for (_, record) in known.iter().filter(|(name, _)| *name != CURRENT) {
        if !all.iter().any(|other| (&other.sha256, other.approved_at) == (&record.sha256, record.approved_at)) {
            all.push(record);
        }
    }
    all.sort_by_key(|record| std::cmp::Reverse(record.approved_at));
    all.into_iter().take(ApprovalRecord::MOST).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn approval(name: &str, day: u32, by: &str, until: &str) -> PlatformApproval {
        serde_json::from_value(json!({
            "apiVersion": "clicklink.io/v1alpha1", "kind": "PlatformApproval",
            "metadata": {"name": name, "namespace": "clicklink-system"},
            "spec": {"sha256": "ab".repeat(32), "workloadSha256": "cd".repeat(32), "approvedBy": by,
                "approvedAt": format!("2026-11-{day:02}T10:00:00Z"), "expiresAt": until, "objects": 3,
                "credentials": ["JTI=1"], "workloads": {"apps/Deployment/n/d": {"spec": {"replicas": 2}}}},
        }))
        .unwrap()
    }

    #[test]
    fn each_approval_once_the_newest_first_and_no_more_than_are_kept() {
        let (mut known, mut listed) = (Known::default(), Known::default());
        let mut on = |event| {
            take(&mut known, &mut listed, event);
            newest(&known.records)
                .into_iter()
                .map(|record| (record.approved_at.to_string(), record.expires_at.to_string()))
                .collect::<Vec<_>>()
        };
        let end = "2026-11-30T12:00:00Z";
        on(watcher::Event::Init);
        on(watcher::Event::InitApply(approval("ab-1", 1, "alice", end)));
        assert!(on(watcher::Event::InitApply(approval(CURRENT, 2, "alice", end))).is_empty(), "not before the list is whole");
        let seen = on(watcher::Event::InitDone);
        assert_eq!(seen, [("2026-11-02T10:00:00Z".into(), end.into()), ("2026-11-01T10:00:00Z".into(), end.into())]);
        // Revoked, and then kept as a former one beside itself.
        let revoked = "2026-11-02T11:00:00Z";
        on(watcher::Event::Apply(approval(CURRENT, 2, "alice", revoked)));
        let seen = on(watcher::Event::Apply(approval("ab-2", 2, "alice", end)));
        assert_eq!(seen[0], ("2026-11-02T10:00:00Z".into(), revoked.into()));
        assert_eq!(seen.len(), 2);
        for day in 3..30 {
            on(watcher::Event::Apply(approval(&format!("ab-{day}"), day, "alice", end)));
        }
        let seen = on(watcher::Event::Delete(approval("ab-29", 29, "alice", end)));
        assert_eq!((seen.len(), seen[0].0.as_str()), (ApprovalRecord::MOST, "2026-11-28T10:00:00Z"));
    }

    #[test]
    fn what_is_no_persons_approval_is_left_out() {
        let end = "2026-11-30T12:00:00Z";
        assert!(approval(CURRENT, 1, "", end).record().is_none());
        assert!(approval(CURRENT, 1, "alice", "soon").record().is_none());
        assert_eq!(approval(CURRENT, 1, "alice", end).record().unwrap().objects, 3);
    }
}
