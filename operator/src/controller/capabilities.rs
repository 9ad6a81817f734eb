//! What the cluster serves, as charts are told it. Read at the start and when a spec has changed, never on a timer.

use std::sync::Arc;
use std::time::Duration;

use agent_api::approval::Capabilities;
use agent_api::digest::Sha256;
use cluster::{Client, ClusterError, capabilities};
use serde_json::json;
use tokio::sync::Mutex;
use tokio::time::Instant;

/// So long one reading serves all that want one: a thousand specs may change at once.
const FRESH: Duration = Duration::from_secs(2);
/// So long a reading may take: everybody waits for it.
const LIMIT: Duration = Duration::from_secs(30);
/// The kind of KEDA that scales.
const SCALED_OBJECT: &str = "keda.sh/v1alpha1/ScaledObject";
/// The operator's own kind.
const COMPONENT: &str = "platform.navin.ai/v1alpha1/ManagedComponent";

/// A reading.
#[derive(Clone, Debug)]
pub struct Served {
    /// All of it.
    pub capabilities: Arc<Capabilities>,
    /// Its digest.
    pub digest: Sha256,
    /// Whether KEDA's ScaledObject is served.
    pub keda: bool,
}

impl Served {
    /// An API server that has just begun answers without any definition's kinds for a while: what lacks the operator's own is no answer yet.
    fn of(capabilities: Capabilities) -> Result<Self, ClusterError> {
        let has = |kind: &str| capabilities.api_versions.binary_search_by(|served| served.as_str().cmp(kind)).is_ok();
        if !has(COMPONENT) {
            let message = format!("what it says to serve lacks {COMPONENT}: it has just begun, or the definition is not installed");
            return Err(ClusterError::Unreachable { about: "discovery".into(), message });
        }
        let (digest, keda) = (Sha256::of_json(&json!(capabilities)), has(SCALED_OBJECT));
        Ok(Self { capabilities: Arc::new(capabilities), digest, keda })
    }
}

/// The last reading.
pub struct Discovery {
    client: Client,
    last: Mutex<Option<(Instant, Served)>>,
}

impl Discovery {
    /// Nothing is read yet.
    #[must_use]
    pub fn new(client: Client) -> Self {
        Self { client, last: Mutex::default() }
    }

    /// What is served, read anew unless somebody just did.
    ///
    /// # Errors
    /// See [`ClusterError`].
    pub async fn fresh(&self) -> Result<Served, ClusterError> {
        let mut last = self.last.lock().await;
        if let Some((at, served)) = &*last
            && at.elapsed() < FRESH
        {
            return Ok(served.clone());
        }
        let read = tokio::time::timeout(LIMIT, capabilities::read(&self.client)).await;
        let silence =
            |_| ClusterError::Unreachable { about: "discovery".into(), message: format!("no answer within {} s", LIMIT.as_secs()) };
        let served = Served::of(read.map_err(silence)??)?;
        *last = Some((Instant::now(), served.clone()));
        Ok(served)
    }

    /// What was read last.
    ///
    /// # Errors
    /// Where nothing was read yet, as [`Discovery::fresh`].
    pub async fn last(&self) -> Result<Served, ClusterError> {
        if let Some((_, served)) = &*self.last.lock().await {
            return Ok(served.clone());
        }
        self.fresh().await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use agent_api::approval::ServerWords;

    fn served(kinds: &[&str]) -> Result<bool, String> {
        let api_versions = kinds.iter().map(ToString::to_string).collect();
        let server = Box::new(ServerWords { major: "1".into(), minor: "37".into(), unknown_groups: Vec::new() });
        let read = Served::of(Capabilities { kube_version: "v1.37.2".into(), api_versions, server });
        read.map(|served| served.keda).map_err(|error| error.to_string())
    }

    #[tokio::test(start_paused = true)]
    async fn silence_ends_after_a_while() {
        let silent = tower::service_fn(|_: http::Request<kube::client::Body>| {
            std::future::pending::<Result<http::Response<kube::client::Body>, std::convert::Infallible>>()
        });
        let error = Discovery::new(Client::new(silent, "default")).fresh().await.err().map(|error| error.to_string());
        assert!(error.is_some_and(|error| error.contains("no answer within 30 s")));
    }

    /// Else KEDA would be taken for gone, and its workloads be given a second autoscaler.
    #[test]
    fn an_answer_without_the_own_kind_is_none() {
        assert!(served(&["apps/v1", "apps/v1/Deployment", "v1", "v1/Pod"]).is_err_and(|error| error.contains("lacks")));
        assert_eq!(served(&["apps/v1", COMPONENT]), Ok(false));
        assert_eq!(served(&[SCALED_OBJECT, COMPONENT]), Ok(true));
    }
}
