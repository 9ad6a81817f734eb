//! Carrying a plan out: counts that are taken, objects that are applied, objects that go. Every answer goes to the store at once.

use std::collections::BTreeMap;

use agent_api::object::ObjectKey;
use cluster::crd::component_kind::ComponentKind;
use cluster::object::{Apply, Propagation};
use cluster::{Client, ClusterError, exact, object};
use futures::{StreamExt as _, stream};
use serde_json::Value;

use super::queue::Queue;
use super::store::Store;
use super::watch::version_of;
use crate::reconcile::diff::{Write, Written};
use crate::reconcile::failure;
use crate::reconcile::plan::{Steps, Stopped};
use crate::reconcile::prune::Fate;
use crate::reconcile::workload::is_workload;
use crate::reconcile::{FIELD_MANAGER, Live};

/// Dry runs of one component at the same time.
const SIDE_BY_SIDE: usize = 4;
/// Most failures that one condition names.
const NAMED: usize = 5;

const APPLY: Apply = Apply { manager: FIELD_MANAGER, dry_run: false };

/// Whoever writes.
pub(super) struct Writer<'a> {
    /// Behind the fence.
    pub(super) client: &'a Client,
    /// Takes every answer.
    pub(super) store: &'a Store,
    /// Told of other components that an answer concerns.
    pub(super) queue: &'a Queue,
}

impl Writer<'_> {
    /// Tries all applies without storing anything, so that what cannot be is known before the first write.
    ///
    /// The inner error is what the API server refuses, all of it; the first reason counts.
    ///
    /// # Errors
    /// It does not answer.
    pub(super) async fn try_out(&self, writes: &[(Value, Write)]) -> Result<Result<(), Stopped>, ClusterError> {
        let tried = writes.iter().filter_map(|(object, write)| match write {
            Write::Nothing => None,
            Write::Apply { take_replicas } => Some((object.clone(), take_replicas.is_some())),
        });
        let tries: Vec<_> = tried
            .map(|(mut object, takes)| async move {
                if let (true, Some(spec)) = (takes, object.get_mut("spec").and_then(Value::as_object_mut)) {
                    spec.remove("replicas");
                }
                object::dry_run(self.client, &object, FIELD_MANAGER).await
            })
            .collect();
        let failures: Vec<ClusterError> =
            stream::iter(tries).buffered(SIDE_BY_SIDE).filter_map(|result| async move { result.err() }).collect().await;
        if let Some(silence) = failures.iter().find(|error| failure::is_silence(error)) {
            return Err(silence.clone());
        }
        let Some(first) = failures.first().map(failure::stopped) else { return Ok(Ok(())) };
        let mut told: Vec<String> = failures.iter().take(NAMED).map(ToString::to_string).collect();
        if failures.len() > NAMED {
            told.push(format!("and {} more", failures.len() - NAMED));
        }
        Ok(Err(Stopped::new(first.reason, told.join("; "))))
    }

    /// Carries steps out. What was written before a failure stays written, and is on record. A generation that was carried out before (`again`) is only
    /// mended: there one object's refusal keeps no other from coming back.
    ///
    /// # Errors
    /// The first write that fails; of deletions all are tried.
    pub(super) async fn carry_out(
        &self,
        steps: &Steps,
        again: bool,
        live: &Live,
        written: &mut BTreeMap<ObjectKey, Written>,
    ) -> Result<(), ClusterError> {
        match steps {
            Steps::Nothing => Ok(()),
            Steps::Raise(raises) => {
                for raise in raises {
                    if let Some(live) = live.get(&raise.workload) {
                        self.set_replicas(live, raise.to).await?;
                    }
                }
                Ok(())
            }
            Steps::Apply { writes, prune } => {
                let mut refused = None;
                for (object, write) in writes {
                    let Write::Apply { take_replicas } = write else { continue };
                    match self.apply(object, *take_replicas, live, written).await {
                        Err(error) if again && !exact::is_late(&error) && !failure::is_silence(&error) => refused = refused.or(Some(error)),
                        applied => applied?,
                    }
                }
                match refused {
                    Some(error) => Err(error),
                    None => self.remove(prune, live).await,
                }
            }
            Steps::Remove(fates) => self.remove(fates, live).await,
        }
    }

    async fn apply(
        &self,
        desired: &Value,
        take_replicas: Option<u32>,
        live: &Live,
        written: &mut BTreeMap<ObjectKey, Written>,
    ) -> Result<(), ClusterError> {
        let key = ObjectKey::of(desired);
        if let (Some(count), Some(live)) = (take_replicas, live.get(&key)) {
            self.set_replicas(live, count).await?;
        }
        let answer = object::apply_over(self.client, desired, None, APPLY).await?.object;
        written.insert(key, Written::of(desired, &answer));
        self.take(&answer);
        Ok(())
    }

    async fn set_replicas(&self, live: &Value, count: u32) -> Result<(), ClusterError> {
        let answer = exact::set_replicas(self.client, live, count, FIELD_MANAGER).await?;
        self.take(&answer);
        Ok(())
    }

    /// Deletes what is live and is not going already. A workload goes after its pods.
    async fn remove(&self, fates: &[(ObjectKey, Fate)], live: &Live) -> Result<(), ClusterError> {
        let mut failed = None;
        for (key, _) in fates.iter().filter(|(_, fate)| *fate == Fate::Delete) {
            let going = |live: &&Value| live.pointer("/metadata/deletionTimestamp").is_none();
            let Some(live) = live.get(key).filter(going) else { continue };
            let propagation = if is_workload(key) { Propagation::Foreground } else { Propagation::Background };
            if let Err(error) = exact::delete(self.client, &in_watched_version(live, key), propagation).await {
                failed = failed.or(Some(error));
            }
        }
        failed.map_or(Ok(()), Err)
    }

    /// What our own write did is no news to its component, which is at it; it may be to another.
    fn take(&self, answer: &Value) {
        let own = crate::reconcile::diff::owner(answer);
        let concerned = self.store.put(answer);
        concerned.into_iter().filter(|name| Some(name.name.as_str()) != own).for_each(|name| self.queue.add(name));
    }
}

/// Live objects are held as the last watch or answer gave them, maybe in a version that is served no more.
fn in_watched_version(live: &Value, key: &ObjectKey) -> Value {
    let mut object = live.clone();
    if let Some(kind) = ComponentKind::find(&key.group, &key.kind) {
        let slash = if key.group.is_empty() { "" } else { "/" };
        object["apiVersion"] = format!("{}{slash}{}", key.group, version_of(kind)).into();
    }
    object
}

/// A failed write as what stops the pass.
#[must_use]
pub(super) fn stopped(error: &ClusterError) -> Option<Stopped> {
    // What came too late is looked at again, and no failure.
    if exact::is_late(error) { None } else { Some(failure::stopped(error)) }
}
