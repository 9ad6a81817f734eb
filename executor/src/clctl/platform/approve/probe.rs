//! Seeing the policies at work before any right is given: as the account, in a dry run, on fresh connections.
//!
//! A new policy, and a new approval, is in force a moment after it is written, later on a second API server; admission fails open until
//! then. So for each policy one write that only it denies must be denied by its name, and the whole workload half must be accepted.

use std::sync::OnceLock;
use std::time::Duration;

use agent_api::keys;
use agent_api::manifest::Manifest;
use agent_api::names::{APPROVED_POLICY, APPROVED_SECRETS_POLICY, FIELD_MANAGER_EXECUTOR, PCM_PLATFORM, PLATFORM_POLICIES, SCOPE_GUARD};
use agent_api::object::RenderedObject;
use cluster::connect::{ConnectError, Connection};
use cluster::object::{self, Apply};
use cluster::{Client, ClusterError};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::error_code::{Code, Coded};

/// How long a policy or an approval may take until it is in force; longest where their kind was only just defined.
const IN_FORCE: Duration = Duration::from_secs(30);
/// Denials that prove that a policy is in force.
const IN_A_ROW: u32 = 3;
const PAUSE: Duration = Duration::from_millis(100);
/// How much later than the first API server another one may have the approval in force: what is denied after that stays denied.
const SETTLED: Duration = Duration::from_secs(5);
/// Requests side by side.
const PARALLEL: usize = 8;

/// What the probe found wrong.
#[derive(Debug, thiserror::Error)]
pub(super) enum ProbeError {
    /// No connection as the account.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// A policy lets pass what it must deny.
    #[error("the admission policy {0} does not deny a forbidden write after {seconds} s; no right was given", seconds = IN_FORCE.as_secs())]
    NotInForce(&'static str),
    /// The forbidden write failed, but not by the policy.
    #[error("the admission policy {0} could not be seen to deny; no right was given: {1}")]
    Other(&'static str, #[source] ClusterError),
    /// What the executor is to apply is denied.
    #[error("an object of the workload half would not be accepted from {PCM_PLATFORM}; no right was given: {0}")]
    Workload(#[source] ClusterError),
}

impl Coded for ProbeError {
    fn code(&self) -> Code {
        match self {
            Self::Connect(error) => error.code(),
            Self::NotInForce(_) => Code::GuardNotInForce,
            Self::Other(..) => Code::GuardUnclear,
            Self::Workload(_) => Code::WorkloadDenied,
        }
    }

    fn hints(&self) -> Vec<String> {
        match self {
            Self::Connect(error) => error.hints(),
            Self::NotInForce(_) => Vec::new(),
            Self::Other(_, source) => source.hints(),
            Self::Workload(source) => {
                let mut hints = source.hints();
                hints.push("if an admission webhook or policy has come or changed meanwhile, read the plan as it is now: run the same command again".into());
                hints
            }
        }
    }
}

const DRY: Apply = Apply { manager: FIELD_MANAGER_EXECUTOR, dry_run: true };

/// What is tried, and as whom.
pub(super) struct Probe<'a> {
    /// The person's connection.
    pub(super) connection: &'a Connection,
    /// Home namespace of the account.
    pub(super) home: &'a str,
    /// A credential that the approval knows for this purpose.
    pub(super) credential: &'a str,
    /// The bundle's manifest.
    pub(super) manifest: &'a Manifest,
    /// Its workload half.
    pub(super) workload: &'a [RenderedObject],
}

impl Probe<'_> {
    /// Probes until everything is as it must be, or for [`IN_FORCE`].
    pub(super) async fn run(&self) -> Result<(), ProbeError> {
        let deadline = Instant::now() + IN_FORCE;
        for (policy, forbidden) in forbidden(self.manifest, self.workload) {
            self.denied(policy, &forbidden, deadline).await?;
        }
        let (client, first) = (self.as_account()?, OnceLock::new());
        stream::iter(self.workload.iter().map(|rendered| accepted(&client, &rendered.object, deadline, &first)))
            .buffer_unordered(PARALLEL)
            .try_collect::<Vec<()>>()
            .await
            .map(drop)
            .map_err(ProbeError::Workload)
    }

    /// Denied by this policy, [`IN_A_ROW`] times, each on a connection of its own: behind one address there may be several API servers.
    async fn denied(&self, policy: &'static str, forbidden: &Value, deadline: Instant) -> Result<(), ProbeError> {
        let mut in_a_row = 0;
        while in_a_row < IN_A_ROW {
            match object::apply_over(&self.as_account()?, forbidden, None, DRY).await {
                Err(error) if error.denied_by(policy) => in_a_row += 1,
                // Passed, or another policy is not up to date yet.
                Ok(_) if Instant::now() < deadline => in_a_row = again().await,
                Err(error) if may_pass(&error) && Instant::now() < deadline => in_a_row = again().await,
                Ok(_) => return Err(ProbeError::NotInForce(policy)),
                Err(error) => return Err(ProbeError::Other(policy, error)),
            }
        }
        Ok(())
    }

    /// The group gives the right to try, since the account has none yet; the policies go by the name.
    fn as_account(&self) -> Result<Client, ConnectError> {
        let account = format!("system:serviceaccount:{}:{PCM_PLATFORM}", self.home);
        self.connection.impersonating(&account, &["system:masters"], Some(self.credential))
    }
}

async fn again() -> u32 {
    tokio::time::sleep(PAUSE).await;
    0
}

/// A denial may be by a policy's former version, or by the former approval; no more for long when one object was accepted, `first` says when.
async fn accepted(client: &Client, value: &Value, deadline: Instant, first: &OnceLock<Instant>) -> Result<(), ClusterError> {
    loop {
        let result = object::apply_over(client, value, None, DRY).await;
        let now = Instant::now();
        match result {
            Ok(_) => {
                first.get_or_init(|| now);
                return Ok(());
            }
            Err(error) if may_pass(&error) && now < first.get().map_or(deadline, |first| deadline.min(*first + SETTLED)) => {
                tokio::time::sleep(PAUSE).await;
            }
            Err(error) => return Err(error),
        }
    }
}

fn may_pass(error: &ClusterError) -> bool {
    PLATFORM_POLICIES.iter().any(|policy| error.denied_by(policy))
}

/// For each policy a write that only it denies.
fn forbidden(manifest: &Manifest, workload: &[RenderedObject]) -> Vec<(&'static str, Value)> {
    let namespace = manifest.namespaces.first().map(ToString::to_string).unwrap_or_default();
    let unpinned = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "clicklink-probe", "namespace": namespace}});
    let mut unlisted = unpinned.clone();
    unlisted["metadata"]["labels"] = json!({keys::PINNED: "true"});
    let mut forbidden = vec![(SCOPE_GUARD, unpinned), (APPROVED_POLICY, unlisted)];
    // An immutable one is refused before any policy is asked.
    let changeable = |rendered: &&RenderedObject| rendered.key().kind == "Secret" && rendered.object.get("immutable") != Some(&true.into());
    if let Some(secret) = workload.iter().find(changeable) {
        let mut other = secret.object.clone();
        other["data"]["clicklink-probe"] = "".into();
        forbidden.push((APPROVED_SECRETS_POLICY, other));
    }
    forbidden
}
