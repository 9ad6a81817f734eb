//! Seeing an admission policy deny what it must, before any right is given: as the account that it bounds, in a dry run.
//!
//! A new policy is in force a moment after it is written, later on a second API server; admission fails open until then.

use std::time::Duration;

use agent_api::names::FIELD_MANAGER_EXECUTOR;
use cluster::connect::{ConnectError, Connection};
use cluster::object::{self, Apply};
use cluster::{Client, ClusterError};
use serde_json::Value;
use tokio::time::Instant;

use super::requests;
use crate::error_code::{Code, Coded};

/// How long a policy may take until it is in force; longest where the kind of its parameter was only just defined.
pub(super) const IN_FORCE: Duration = Duration::from_secs(30);
/// Pause between tries.
pub(super) const PAUSE: Duration = Duration::from_millis(100);
/// Denials that prove that a policy is in force.
const IN_A_ROW: usize = 3;

/// As an account's writes are tried.
pub(super) const DRY: Apply = Apply { manager: FIELD_MANAGER_EXECUTOR, dry_run: true };

/// What was seen instead.
#[derive(Debug, thiserror::Error)]
pub(super) enum GuardError {
    /// No connection as the account.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// A policy lets pass what it must deny.
    #[error("the admission policy {0} does not deny a forbidden write after {seconds} s; no right was given", seconds = IN_FORCE.as_secs())]
    NotInForce(&'static str),
    /// The forbidden write failed, but not by the policy.
    #[error("the admission policy {0} could not be seen to deny; no right was given: {1}")]
    Unclear(&'static str, #[source] ClusterError),
}

impl Coded for GuardError {
    fn code(&self) -> Code {
        match self {
            Self::Connect(error) => error.code(),
            Self::NotInForce(_) => Code::GuardNotInForce,
            Self::Unclear(..) => Code::GuardUnclear,
        }
    }

    fn hints(&self) -> Vec<String> {
        match self {
            Self::Connect(error) => error.hints(),
            Self::NotInForce(_) => Vec::new(),
            Self::Unclear(_, source) => source.hints(),
        }
    }
}

/// An account whose rights are bounded by policies.
pub(super) struct Bounded<'a> {
    /// The person's connection.
    pub(super) connection: &'a Connection,
    /// Its ServiceAccount: namespace and name.
    pub(super) account: (&'a str, &'a str),
    /// A credential that a policy knows.
    pub(super) credential: Option<&'a str>,
    /// Policies that may be behind, and deny what only another one should.
    pub(super) policies: &'a [&'a str],
}

impl Bounded<'_> {
    /// Until `forbidden` is denied by this policy, [`IN_A_ROW`] times, each on a connection of its own: behind one address there may be several API
    /// servers.
    pub(super) async fn denied(&self, policy: &'static str, forbidden: &Value, deadline: Instant) -> Result<(), GuardError> {
        loop {
            let tries = (0..IN_A_ROW).map(|_| self.try_once(policy, forbidden));
            let seen = requests::each(tries).await.into_iter().find_map(Result::err);
            match seen {
                None => return Ok(()),
                // Passed, or another policy is not up to date yet.
                Some(GuardError::NotInForce(_)) if Instant::now() < deadline => {}
                Some(GuardError::Unclear(_, error)) if self.may_pass(&error) && Instant::now() < deadline => {}
                Some(error) => return Err(error),
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    async fn try_once(&self, policy: &'static str, forbidden: &Value) -> Result<(), GuardError> {
        match object::apply_over(&self.client()?, forbidden, None, DRY).await {
            Err(error) if error.denied_by(policy) => Ok(()),
            Err(error) => Err(GuardError::Unclear(policy, error)),
            Ok(_) => Err(GuardError::NotInForce(policy)),
        }
    }

    /// Whether a denial may be by a policy that is not up to date.
    pub(super) fn may_pass(&self, error: &ClusterError) -> bool {
        self.policies.iter().any(|policy| error.denied_by(policy))
    }

    /// The group gives the right to try, since the account has none yet; the policies go by the name.
    pub(super) fn client(&self) -> Result<Client, ConnectError> {
        let (namespace, name) = self.account;
        self.connection.impersonating(&format!("system:serviceaccount:{namespace}:{name}"), &["system:masters"], self.credential)
    }
}
