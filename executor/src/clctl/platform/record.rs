//! The approval as the cluster keeps it: `current`, former ones, and the pins of Secret values.
//!
//! Both are replaced, never applied: fields of a former approval would stay. What was stored is compared with what was sent, since a
//! mutating webhook or policy in between could put another credential or another object into it.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use agent_api::digest::Sha256;
use agent_api::name::InstallId;
use agent_api::names::{APPROVED_POLICY, FIELD_MANAGER_APPROVE, PINS_SECRET};
use agent_api::object::ObjectKey;
use agent_api::platform_approval::{API_VERSION, CURRENT, KEPT, KIND, PlatformApprovalSpec, former_name};
use cluster::object::{self, Apply, Propagation};
use cluster::{Client, ClusterError};
use serde_json::{Value, json};

use super::approve::grants;
use super::approve::permissions::{self, PermissionsError};
use super::{MANAGED_BY_APPROVE, OWN_LABEL, made_by_approve};
use crate::error_code::{Code, Coded};

/// Why there is no record.
#[derive(Debug, thiserror::Error)]
pub(super) enum RecordError {
    /// The cluster.
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    /// Somebody in between changed it.
    #[error(
        "{0} is not stored as it was sent: a mutating webhook or admission policy of this cluster changes it, and the approval would not \
         be what you saw; no right was given"
    )]
    Changed(String),
    /// Somebody changed it when the token was written into it.
    #[error(
        "{0} is not stored as it was sent: a mutating webhook or admission policy of this cluster changes it where a token is written into \
         it; the approval was ended, and nobody may write under it"
    )]
    ChangedByToken(String),
    /// Another approval took its place meanwhile, or it was taken back.
    #[error(
        "another approval, or a revocation, took the place of this one while it was under way; no token was handed over: run approve again"
    )]
    Overtaken,
    /// The home namespace, or the approval's definition.
    #[error(transparent)]
    Permissions(#[from] PermissionsError),
    /// Cannot be written.
    #[error("the approval cannot be encoded")]
    Encode(#[from] serde_json::Error),
}

impl Coded for RecordError {
    fn code(&self) -> Code {
        match self {
            Self::Cluster(error) => error.code(),
            Self::Permissions(error) => error.code(),
            Self::Changed(_) | Self::ChangedByToken(_) => Code::ApprovalChanged,
            Self::Overtaken => Code::ApprovalOvertaken,
            Self::Encode(_) => Code::Internal,
        }
    }

    fn hints(&self) -> Vec<String> {
        match self {
            Self::Cluster(error) => error.hints(),
            Self::Permissions(error) => error.hints(),
            Self::Changed(_) | Self::ChangedByToken(_) | Self::Overtaken | Self::Encode(_) => Vec::new(),
        }
    }
}

/// The approval that holds; `None` where there is none, or one of another version that cannot be read.
pub(super) async fn current(client: &Client, home: &str) -> Result<Option<PlatformApprovalSpec>, ClusterError> {
    Ok(object::get(client, &named(home, CURRENT)).await?.as_ref().and_then(spec))
}

/// Keeps a former approval's record without what gives rights, and of all such records the newest.
pub(super) async fn keep(client: &Client, home: &str, ended: &PlatformApprovalSpec) -> Result<(), RecordError> {
    let bare = PlatformApprovalSpec { credentials: Vec::new(), workloads: BTreeMap::new(), ..ended.clone() };
    object::replace(client, &approval(home, &former_name(ended), &bare)?, FIELD_MANAGER_APPROVE).await?;
    for old in former(client, home).await?.iter().skip(KEPT) {
        object::delete(client, &named(home, &former_name(old)), Propagation::Background).await?;
    }
    Ok(())
}

/// Former approvals, the newest first.
pub(super) async fn former(client: &Client, home: &str) -> Result<Vec<PlatformApprovalSpec>, ClusterError> {
    let all = object::list(client, API_VERSION, KIND, Some(home), Some(&made_by_approve())).await;
    let all = match all {
        // Nobody has ever approved here.
        Err(ClusterError::NotFound { .. }) => Vec::new(),
        all => all?,
    };
    let former = all.iter().filter(|object| object.pointer("/metadata/name").is_some_and(|name| name != CURRENT));
    let mut former: Vec<PlatformApprovalSpec> = former.filter_map(spec).collect();
    former.sort_by_key(|spec| std::cmp::Reverse(spec.approved_at));
    Ok(former)
}

/// Ends the approval that holds: no credential may write under it. Where somebody removed it, or the pins, an ended one of nothing takes its
/// place: without their parameters the policies would refuse every writer of the platform's objects, the person's own preview too.
///
/// `install_id` begins another installation with the next approval.
pub(super) async fn end(client: &Client, home: &str, now: jiff::Timestamp, install_id: Option<InstallId>) -> Result<(), RecordError> {
    let now = jiff::Timestamp::from_second(now.as_second()).unwrap_or(now);
    let ended = |spec: PlatformApprovalSpec| PlatformApprovalSpec {
        credentials: Vec::new(),
        expires_at: spec.expires_at.min(now),
        install_id: install_id.unwrap_or(spec.install_id),
        ..spec
    };
    let change = |live: &Value| approval(home, CURRENT, &ended(spec(live)?)).ok();
    let changed = object::modify(client, &named(home, CURRENT), FIELD_MANAGER_APPROVE, change).await?;
    let binding = json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": APPROVED_POLICY}});
    if object::get(client, &binding).await?.is_none() {
        // No policy looks for anything.
        return Ok(());
    }
    permissions::home(client, home).await?;
    grants::define(client).await?;
    if changed.is_none() {
        object::replace(client, &approval(home, CURRENT, &ended(of_nothing(now)))?, FIELD_MANAGER_APPROVE).await?;
    }
    match object::create(client, &pins(home, json!({})), Apply { manager: FIELD_MANAGER_APPROVE, dry_run: false }).await {
        Ok(_) | Err(ClusterError::AlreadyExists { .. } | ClusterError::NotFound { .. }) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

fn pins(home: &str, data: Value) -> Value {
    let metadata = json!({"name": PINS_SECRET, "namespace": home, "labels": {OWN_LABEL: MANAGED_BY_APPROVE}});
    json!({"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "metadata": metadata, "data": data})
}

fn of_nothing(now: jiff::Timestamp) -> PlatformApprovalSpec {
    let nothing = Sha256::of(b"");
    PlatformApprovalSpec {
        sha256: nothing.clone(),
        workload_sha256: nothing,
        approved_by: String::new(),
        approved_at: now,
        expires_at: now,
        install_id: InstallId(uuid::Uuid::now_v7()),
        objects: 0,
        credentials: Vec::new(),
        workloads: BTreeMap::new(),
    }
}

/// Puts the approval in the place of `former`, which was read before, then the pins of Secret values. Whatever else has come there meanwhile, an
/// approval or a revocation, is somebody's later word: with it in `former`'s place nothing is put. The approval comes first for that; until its own
/// token is given nothing new can be written under it.
pub(super) async fn put(
    client: &Client,
    home: &str,
    spec: &PlatformApprovalSpec,
    pins: Value,
    former: Option<&PlatformApprovalSpec>,
) -> Result<(), RecordError> {
    let wanted = approval(home, CURRENT, spec)?;
    let made = match object::get(client, &wanted).await? {
        Some(live) => object::going(&live).map_or(Ok(false), Err)?,
        None => make(client, &wanted).await?,
    };
    if !made {
        // Also what this very call put, where the answer was lost.
        let in_place = |live: &Value| {
            let found = self::spec(live);
            found.as_ref() == former || found.as_ref() == Some(spec)
        };
        let put = |live: &Value| in_place(live).then(|| wanted.clone());
        object::modify(client, &wanted, FIELD_MANAGER_APPROVE, put).await?.ok_or(RecordError::Overtaken)?;
    }
    stored(client, &wanted, "spec").await?;
    put_pins(client, &self::pins(home, pins)).await
}

/// One that somebody made immutable, or of another type, no write can change: it goes, and until the new one is there the policies refuse everybody.
async fn put_pins(client: &Client, pins: &Value) -> Result<(), RecordError> {
    if object::get(client, pins).await?.is_some() || !make(client, pins).await? {
        match object::replace(client, pins, FIELD_MANAGER_APPROVE).await {
            Err(ClusterError::Invalid { .. }) => {
                object::delete(client, pins, Propagation::Background).await?;
                object::replace(client, pins, FIELD_MANAGER_APPROVE).await?;
            }
            replaced => drop(replaced?),
        }
    }
    stored(client, pins, "data").await
}

/// Makes what is not there; `false` where somebody made another one meanwhile. It is applied, not created: the API server holds the creation of an
/// object of a kind that was defined under two seconds ago back for two more (apiextensions-apiserver, `crdHandler`), and an apply it takes at
/// once. With what somebody made meanwhile it may be merged, which [`stored`] finds.
async fn make(client: &Client, wanted: &Value) -> Result<bool, RecordError> {
    match permissions::patiently(client, wanted).await {
        Ok(()) => Ok(true),
        Err(ClusterError::Conflict { .. }) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Sees that nothing was changed on the way.
async fn stored(client: &Client, wanted: &Value, field: &str) -> Result<(), RecordError> {
    let stored = object::get(client, wanted).await?.unwrap_or_default();
    if is_same(&stored, wanted, field) { Ok(()) } else { Err(RecordError::Changed(ObjectKey::of(wanted).to_string())) }
}

fn is_same(stored: &Value, wanted: &Value, field: &str) -> bool {
    let empty = json!({});
    stored.get(field).unwrap_or(&empty) == wanted.get(field).unwrap_or(&empty)
}

/// Whether the approval that holds is the one that knows `credential`.
pub(super) async fn holds(client: &Client, home: &str, credential: &str) -> Result<(), RecordError> {
    let ours = current(client, home).await?.is_some_and(|current| current.credentials.iter().any(|known| known == credential));
    if ours { Ok(()) } else { Err(RecordError::Overtaken) }
}

/// Changes the approval that holds, as long as it is the one that knows `credential`. One that is stored otherwise than it was sent, with another
/// credential perhaps, is ended.
pub(super) async fn amend(
    client: &Client,
    home: &str,
    credential: &str,
    change: impl Fn(&mut PlatformApprovalSpec),
) -> Result<(), RecordError> {
    let sent = Mutex::new(Value::Null);
    let changed = |live: &Value| {
        let mut spec = spec(live)?;
        let ours = spec.credentials.iter().any(|known| known == credential);
        change(&mut spec);
        // A change that was made already, and whose answer was lost, is made again.
        spec.credentials.sort();
        spec.credentials.dedup();
        let changed = approval(home, CURRENT, &spec).ok().filter(|_| ours)?;
        sent.lock().unwrap_or_else(PoisonError::into_inner).clone_from(&changed);
        Some(changed)
    };
    object::modify(client, &named(home, CURRENT), FIELD_MANAGER_APPROVE, changed).await?.ok_or(RecordError::Overtaken)?;
    let sent = sent.into_inner().unwrap_or_else(PoisonError::into_inner);
    let stored = object::get(client, &sent).await?.unwrap_or_default();
    if is_same(&stored, &sent, "spec") {
        return Ok(());
    }
    let credentials = |object: &Value| self::spec(object).map(|spec| spec.credentials).unwrap_or_default();
    let kept = credentials(&stored);
    if credentials(&sent).iter().any(|credential| !kept.contains(credential)) {
        return Err(RecordError::Overtaken);
    }
    end(client, home, jiff::Timestamp::now(), None).await?;
    Err(RecordError::ChangedByToken(ObjectKey::of(&sent).to_string()))
}

fn named(home: &str, name: &str) -> Value {
    json!({"apiVersion": API_VERSION, "kind": KIND,
        "metadata": {"name": name, "namespace": home, "labels": {OWN_LABEL: MANAGED_BY_APPROVE}}})
}

fn approval(home: &str, name: &str, spec: &PlatformApprovalSpec) -> Result<Value, serde_json::Error> {
    let mut object = named(home, name);
    object["spec"] = serde_json::to_value(spec)?;
    Ok(object)
}

fn spec(object: &Value) -> Option<PlatformApprovalSpec> {
    serde_json::from_value(object.get("spec")?.clone()).ok()
}
