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
/// The kind of KEDA that scales.
const SCALED_OBJECT: &str = "keda.sh/v1alpha1/ScaledObject";

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
    fn of(capabilities: Capabilities) -> Self {
        let digest = Sha256::of_json(&json!(capabilities));
        let keda = capabilities.api_versions.binary_search_by(|served| served.as_str().cmp(SCALED_OBJECT)).is_ok();
        Self { capabilities: Arc::new(capabilities), digest, keda }
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
        let served = Served::of(capabilities::read(&self.client).await?);
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
