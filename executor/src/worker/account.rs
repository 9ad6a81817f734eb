//! `pcm-platform` in one sync: its client, and whether the token that it has is still the one at hand.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use agent_api::names::PLATFORM_POLICIES;
use agent_api::secret::Secret;
use cluster::{Client, ClusterError};
use executor_core::{ApplyError, ReadError};

use crate::approval;
use crate::terminal::chain;

/// How long a denial is taken for rights that have not reached every API server yet, or for one that has just started.
const PROPAGATION: Duration = Duration::from_secs(30);
/// How long a token that is not the approval's may wait for the one that is: a kubelet renews a mounted Secret within about a minute.
const MOUNTED: Duration = Duration::from_secs(90);
/// What the policy says of such a token (`approve/policy/approved.yaml`).
const OTHER_TOKEN: &str = "this token is not the one of the approval";
/// Pause between tries of what was denied.
const PAUSE: Duration = Duration::from_secs(1);

/// Cheap to clone.
#[derive(Clone)]
pub(super) struct Account {
    /// For reads and writes as the account.
    pub(super) client: Client,
    token: Arc<Secret>,
    access_dir: PathBuf,
}

/// What ends a try.
pub(super) enum Denied {
    /// Another approval took the place of the one that this sync began with.
    Replaced,
    /// 401.
    Unauthorized,
    /// The API server's answer.
    Refused(ClusterError),
}

impl From<Denied> for ReadError {
    fn from(denied: Denied) -> Self {
        match denied {
            Denied::Replaced => Self::Replaced,
            Denied::Unauthorized => Self::Unauthorized,
            Denied::Refused(error) => Self::Other(chain(&error)),
        }
    }
}

impl From<Denied> for ApplyError {
    fn from(denied: Denied) -> Self {
        match denied {
            Denied::Replaced => Self::Replaced,
            Denied::Unauthorized => Self::Unauthorized,
            Denied::Refused(error) => Self::Other(chain(&error)),
        }
    }
}

impl Account {
    pub(super) fn new(client: Client, token: Secret, access_dir: PathBuf) -> Self {
        Self { client, token: Arc::new(token), access_dir }
    }

    /// Whether another token bundle lies in the place of the one that this sync began with, or none.
    pub(super) fn is_replaced(&self) -> bool {
        !approval::read(&self.access_dir).is_ok_and(|found| found.token == *self.token)
    }

    /// After an error: returns when it is worth to try again, and else what it means. `began` is when the first try did.
    pub(super) async fn try_again(&self, error: ClusterError, began: Instant) -> Result<(), Denied> {
        let unauthorized = matches!(error, ClusterError::Unauthorized { .. });
        let patience = patience(&error);
        if (unauthorized || patience.is_some()) && self.is_replaced() {
            return Err(Denied::Replaced);
        }
        match patience {
            _ if unauthorized => Err(Denied::Unauthorized),
            Some(patience) if began.elapsed() < patience => {
                tokio::time::sleep(PAUSE).await;
                Ok(())
            }
            Some(_) | None => Err(Denied::Refused(error)),
        }
    }
}

/// How long a denial may be one of rights or policies that have not reached every API server yet; `None` for what is none.
fn patience(error: &ClusterError) -> Option<Duration> {
    let by_policy = PLATFORM_POLICIES.iter().any(|policy| error.denied_by(policy));
    if by_policy && error.to_string().contains(OTHER_TOKEN) {
        return Some(MOUNTED);
    }
    (by_policy || matches!(error, ClusterError::Forbidden { .. })).then_some(PROPAGATION)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_denial_is_waited_for() {
        let denied = |message: &str| ClusterError::Invalid {
            about: "x".into(),
            message: format!("ValidatingAdmissionPolicy 'pcm-platform-approved' with binding 'b' denied request: {message}"),
        };
        assert_eq!(patience(&denied(OTHER_TOKEN)), Some(MOUNTED));
        assert_eq!(patience(&denied("not part of the approved bundle")), Some(PROPAGATION));
        assert_eq!(patience(&ClusterError::Forbidden { about: "x".into(), message: "no".into() }), Some(PROPAGATION));
        assert_eq!(patience(&ClusterError::Invalid { about: "x".into(), message: OTHER_TOKEN.into() }), None);
        assert_eq!(patience(&ClusterError::Unauthorized { about: "x".into() }), None);
    }

    #[test]
    fn the_policys_words_are_these() {
        assert!(include_str!("../clctl/platform/approve/policy/approved.yaml").contains(&format!("message: {OTHER_TOKEN}\n")));
    }
}
