//! Seeing the policies at work before any right is given: as the account, in a dry run, on fresh connections.
//!
//! A new policy, and a new approval, is in force a moment after it is written, later on a second API server; admission fails open until
//! then. So for each policy one write that only it denies must be denied by its name, and the whole workload half must be accepted.

use std::sync::OnceLock;
use std::time::Duration;

use agent_api::keys;
use agent_api::manifest::Manifest;
use agent_api::names::{APPROVED_POLICY, APPROVED_SECRETS_POLICY, PCM_PLATFORM, PLATFORM_POLICIES, SCOPE_GUARD};
use agent_api::object::RenderedObject;
use cluster::connect::Connection;
use cluster::object;
use cluster::{Client, ClusterError};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::clctl::guard::{self, Bounded, GuardError};
use crate::clctl::requests;
use crate::error_code::{Code, Coded};

/// How much later than the first API server another one may have the approval in force: what is denied after that stays denied.
const SETTLED: Duration = Duration::from_secs(5);

/// What the probe found wrong.
#[derive(Debug, thiserror::Error)]
pub(super) enum ProbeError {
    /// A policy was not seen to deny.
    #[error(transparent)]
    Guard(#[from] GuardError),
    /// What the executor is to apply is denied.
    #[error("an object of the workload half would not be accepted from {PCM_PLATFORM}; no right was given: {0}")]
    Workload(#[source] ClusterError),
}

impl Coded for ProbeError {
    fn code(&self) -> Code {
        match self {
            Self::Guard(error) => error.code(),
            Self::Workload(_) => Code::WorkloadDenied,
        }
    }

    fn hints(&self) -> Vec<String> {
        match self {
            Self::Guard(error) => error.hints(),
            Self::Workload(source) => {
                let mut hints = source.hints();
                hints.push("if an admission webhook or policy has come or changed meanwhile, read the plan as it is now: run the same command again".into());
                hints
            }
        }
    }
}

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
    /// Probes until everything is as it must be, or for [`guard::IN_FORCE`].
    pub(super) async fn run(&self) -> Result<(), ProbeError> {
        let deadline = Instant::now() + guard::IN_FORCE;
        let account = (self.home, PCM_PLATFORM);
        let bounded = Bounded { connection: self.connection, account, credential: Some(self.credential), policies: &PLATFORM_POLICIES };
        let forbidden = forbidden(self.manifest, self.workload);
        requests::until_error(forbidden.iter().map(|(policy, forbidden)| bounded.denied(policy, forbidden, deadline))).await?;
        let (client, first) = (bounded.client().map_err(GuardError::Connect)?, OnceLock::new());
        let accepted = self.workload.iter().map(|rendered| accepted(&bounded, &client, &rendered.object, deadline, &first));
        requests::until_error(accepted).await.map(drop).map_err(ProbeError::Workload)
    }
}

/// A denial may be by a policy's former version, or by the former approval; no more for long when one object was accepted, `first` says when.
async fn accepted(
    bounded: &Bounded<'_>,
    client: &Client,
    value: &Value,
    deadline: Instant,
    first: &OnceLock<Instant>,
) -> Result<(), ClusterError> {
    loop {
        let result = object::apply_over(client, value, None, guard::DRY).await;
        let now = Instant::now();
        match result {
            Ok(_) => {
                first.get_or_init(|| now);
                return Ok(());
            }
            Err(error) if bounded.may_pass(&error) && now < first.get().map_or(deadline, |first| deadline.min(*first + SETTLED)) => {
                tokio::time::sleep(guard::PAUSE).await;
            }
            Err(error) => return Err(error),
        }
    }
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
