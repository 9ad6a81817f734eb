//! Keeps `pcm-executor`'s own token in `_cluster/` from ending: looks at it again and again, and asks for the next one in time.
//!
//! In a pod the kubelet renews the projected token, and nothing runs here. Deliberately absent: any other token. That of
//! `pcm-platform` is an approval and ends with it.

mod error;
mod rule;

use std::path::PathBuf;
use std::time::Duration;

use agent_api::access::TOKEN;
use agent_api::name::DnsLabel;
use agent_api::names::PCM_EXECUTOR;
use cluster::token::{self, Claims};
use jiff::Timestamp;
use tracing::{debug, info, warn};

use self::error::RenewalError;
use self::rule::Life;
use crate::config::TokenRenew;
use crate::error_code::{Code, Coded as _};
use crate::observe::{Access, Credentials};
use crate::terminal::chain;

/// Renews the access bundle's token while the process lives.
pub(crate) fn spawn(access: &Access, policy: TokenRenew) {
    let Access::Bundle(dir) = access else { return };
    tokio::spawn(Sweep { dir: dir.clone(), policy, pause: policy.sweep_interval, told: None }.keep());
}

/// Looks at one bundle.
struct Sweep {
    dir: PathBuf,
    policy: TokenRenew,
    /// Until the next look.
    pause: Duration,
    /// The failure that the log has told, until it is another one or over.
    told: Option<Code>,
}

impl Sweep {
    async fn keep(mut self) {
        loop {
            match self.look().await {
                Ok(()) => self.told = None,
                Err(error) => self.tell(&error),
            }
            tokio::time::sleep(self.pause).await;
        }
    }

    async fn look(&mut self) -> Result<(), RenewalError> {
        self.pause = self.policy.sweep_interval;
        let Some(held) = Credentials::read(&self.dir)? else { return Ok(()) };
        let claims = token::claims(&held.token)?;
        if !self.life(&claims).is_due(Timestamp::now()) {
            return Ok(());
        }
        let (next, expires_at) = renew(&held, &claims, self.policy.requested_ttl).await?;
        self.life(&next);
        info!(%expires_at, "access: the token of {PCM_EXECUTOR} was renewed");
        Ok(())
    }

    /// A token's life, which says when to look at it again.
    fn life(&mut self, claims: &Claims) -> Life {
        let life = Life::of(claims, self.policy.requested_ttl);
        self.pause = life.pause(self.policy.sweep_interval);
        life
    }

    /// A failure is told once, however long it lasts; the heartbeat says what comes of it.
    fn tell(&mut self, error: &RenewalError) {
        let message = chain(error);
        if self.told.replace(error.cause()) == Some(error.cause()) {
            debug!("access: the token of {PCM_EXECUTOR} is still not renewed: {message}");
            return;
        }
        let (code, next) = (error.code().name(), error.hints().join("; "));
        warn!(code, "access: the token of {PCM_EXECUTOR} is not renewed, and it is tried again at each sweep: {message}; {next}");
    }
}

/// Asks for the next token by the present one, and puts it in its place.
async fn renew(held: &Credentials, claims: &Claims, requested: Duration) -> Result<(Claims, Timestamp), RenewalError> {
    let home = home(claims)?;
    let connection = held.connect().await?;
    let (granted, expires_at) = token::request(&connection.client, home.as_str(), PCM_EXECUTOR, requested).await?;
    let next = token::claims(&granted)?;
    if next.subject != claims.subject {
        return Err(RenewalError::Odd);
    }
    if !held.bundle.is_in_place() {
        return Err(RenewalError::Exchanged);
    }
    held.bundle.replace(TOKEN, granted.expose().as_bytes()).map_err(RenewalError::Write)?;
    Ok((next, expires_at))
}

/// The namespace of the account whose token this is; a token of another account is refused.
fn home(claims: &Claims) -> Result<DnsLabel, RenewalError> {
    let account = claims.subject.as_deref().and_then(|subject| subject.strip_prefix("system:serviceaccount:"));
    let (namespace, name) = account.and_then(|account| account.split_once(':')).ok_or(RenewalError::OtherAccount)?;
    if name != PCM_EXECUTOR {
        return Err(RenewalError::OtherAccount);
    }
    namespace.parse().map_err(|_not_a_name| RenewalError::OtherAccount)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_token_of_this_account_is_renewed_in_its_namespace() {
        let home = |subject: Option<&str>| {
            let claims = Claims { expires_at: Timestamp::UNIX_EPOCH, issued_at: None, subject: subject.map(str::to_owned), id: None };
            super::home(&claims).ok().map(|home| home.to_string())
        };
        assert_eq!(home(Some("system:serviceaccount:clicklink-system:pcm-executor")).as_deref(), Some("clicklink-system"));
        for other in [
            "system:serviceaccount:clicklink-system:pcm-platform",
            "system:serviceaccount:clicklink-system:pcm-executor:x",
            "system:serviceaccount:a/../b:pcm-executor",
            "system:serviceaccount::pcm-executor",
            "system:node:pcm-executor",
            "pcm-executor",
        ] {
            assert_eq!(home(Some(other)), None, "{other}");
        }
        assert_eq!(home(None), None);
    }
}
