//! One chart at a time, for whoever has no bundle: pulled by a pinned reference, rendered twice.
//!
//! The same pull, bounds, engine and comparison as a bundle's. Deliberately absent: what is kept of it, which the caller decides.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use agent_api::digest::OciDigest;
use agent_api::manifest::Chart;
use jiff::Timestamp;

use crate::archive::{self, ArchiveError};
use crate::difference::{self, Difference};
use crate::engine::{Answer, ChartRenderer, EngineError, EngineOutput, Request};
use crate::pull::{PullError, Registry};
use crate::registry_access::RegistryAccess;

/// What the first rendering is told the time is; the second is told another, so that no chart that passes depends on it.
pub const CLOCK: Timestamp = Timestamp::constant(1_700_000_000, 0);

/// Pulls charts by references that name a digest. Logins outlive a pull.
pub struct ChartPuller {
    access: RegistryAccess,
    registries: Mutex<BTreeMap<String, Arc<Registry>>>,
}

/// Why a chart could not be had.
#[derive(Debug, thiserror::Error)]
pub enum PinnedError {
    /// Not `oci://host/path@sha256:…`.
    #[error("`{0}` is not of the form oci://host[:port]/path@sha256:…")]
    Reference(String),
    /// The registry does not give it.
    #[error("the chart cannot be pulled")]
    Pull(#[from] PullError),
    /// It breaks a bound.
    #[error("the chart's archive is refused")]
    Archive(#[from] ArchiveError),
}

impl ChartPuller {
    /// Pulls with this access.
    #[must_use]
    pub fn new(access: RegistryAccess) -> Self {
        Self { access, registries: Mutex::default() }
    }

    /// The archive of `oci://host[:port]/path[:tag]@sha256:…`, verified and within its bounds. A tag is not looked at.
    ///
    /// # Errors
    /// See [`PinnedError`].
    pub async fn pull(&self, reference: &str) -> Result<Vec<u8>, PinnedError> {
        let (host, path, digest) = parts(reference).ok_or_else(|| PinnedError::Reference(reference.to_owned()))?;
        let chart = Chart { name: path.to_owned(), version: String::new(), digest };
        let bytes = self.registry(&host.to_ascii_lowercase())?.chart(&chart).await?;
        archive::check(&bytes)?;
        Ok(bytes)
    }

    fn registry(&self, host: &str) -> Result<Arc<Registry>, PullError> {
        let mut registries = self.registries.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = registries.get(host) {
            return Ok(Arc::clone(known));
        }
        let registry = Arc::new(Registry::of_host(host, &self.access)?);
        registries.insert(host.to_owned(), Arc::clone(&registry));
        Ok(registry)
    }
}

/// Host, repository and digest.
fn parts(reference: &str) -> Option<(&str, &str, OciDigest)> {
    let (name, digest) = reference.strip_prefix("oci://")?.split_once('@')?;
    let (host, path) = name.split_once('/')?;
    let path = path.rsplit_once(':').map_or(path, |(path, _)| path);
    (!host.is_empty() && !path.is_empty()).then_some((host, path, digest.parse().ok()?))
}

/// Why a chart gives no objects.
#[derive(Debug, thiserror::Error)]
pub enum TwiceError {
    /// The engine's words.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The two renderings differ.
    #[error("the chart renders differently each time; give it a fixed value: {}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    Differs(Vec<Difference>),
}

/// What the engine answered, and that answer read.
pub struct Answered {
    /// For [`Answer::read`]: an eighth of the size of what it reads to.
    pub bytes: Vec<u8>,
    /// The first rendering.
    pub output: EngineOutput,
}

/// Renders one chart twice, with far-apart clocks and other chance, in one child. The request's inventions are to be a pair.
///
/// # Errors
/// See [`TwiceError`].
pub async fn render_twice(engine: &dyn ChartRenderer, component: &str, request: &Request<'_>) -> Result<Answered, TwiceError> {
    let bytes = engine.answer(&request.input()?).await?;
    let answer = Answer::read(&bytes)?;
    let chart = format!("{} {}", answer.first.chart.name, answer.first.chart.version);
    let differences = difference::of(component, &chart, &answer)?;
    if differences.is_empty() { Ok(Answered { bytes, output: answer.first }) } else { Err(TwiceError::Differs(differences)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_come_apart() {
        let digest = format!("sha256:{}", "0".repeat(64));
        for (reference, expected) in [
            (format!("oci://ghcr.io/acme/redis@{digest}"), Some(("ghcr.io", "acme/redis"))),
            (format!("oci://127.0.0.1:5000/redis:1.2.3@{digest}"), Some(("127.0.0.1:5000", "redis"))),
            (format!("oci://redis@{digest}"), None),
            (format!("https://ghcr.io/acme/redis@{digest}"), None),
            ("oci://ghcr.io/acme/redis:1.2.3".to_owned(), None),
            ("oci://ghcr.io/acme/redis@sha256:00".to_owned(), None),
        ] {
            assert_eq!(parts(&reference).map(|(host, path, _)| (host, path)), expected, "{reference}");
        }
    }
}
