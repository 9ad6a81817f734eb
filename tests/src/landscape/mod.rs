//! The whole landscape of the main job, with the built binaries: a control plane, a registry, the vendor's manager, the customer's
//! connector. Tests take it in one line; the demo takes the same steps aloud.

mod booted;
mod closing;
mod connector;
mod disk;
mod manager;
mod narrator;
mod pod;
mod seen;

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::Value;

pub use booted::{Booted, Debian};
pub use closing::Closing;
pub use connector::Connector;
pub use disk::let_fsync_succeed;
pub use manager::Manager;
pub use narrator::Narrator;
pub use pod::{MountNamespace, secret, server_in_cluster};
pub use seen::difference;

use crate::bundle::{NAMESPACE, Release};
use crate::control_plane::ControlPlane;
use crate::eventually::{eventually, until};
use crate::registry::Registry;

/// Name of the environment, as it stands in manifests.
pub const ENVIRONMENT: &str = "env-7c1d";
/// Name of the cluster at the manager.
pub const CLUSTER: &str = "bank-prod";
/// How long anything that should happen soon may take on a busy machine.
pub const SOON: Duration = Duration::from_secs(60);

/// All four parts, running. Shows their logs when a test panics.
pub struct Landscape {
    /// Kubernetes.
    pub control_plane: ControlPlane,
    /// Charts and images.
    pub registry: Registry,
    /// The vendor's side.
    pub manager: Manager,
    /// The customer's side.
    pub connector: Connector,
}

impl Landscape {
    /// Everything up: the connector enrolled, its access granted, the executor connected. Nothing is proposed yet.
    ///
    /// # Panics
    /// A part does not come up.
    pub async fn new() -> Self {
        let landscape = Self::start(&Narrator::silent()).await;
        landscape.unwrap_or_else(|error| panic!("the landscape did not come up: {error:#}"))
    }

    /// As [`Landscape::new`], telling each step.
    ///
    /// # Errors
    /// A part does not come up.
    pub async fn start(narrator: &Narrator) -> Result<Self> {
        let mut landscape = Self::enrolled(narrator).await?;
        landscape.connector.grant_access().await?;
        narrator.step("The executor starts and opens its one outbound channel");
        landscape.connector.start_executor()?;
        landscape.until_connected().await?;
        Ok(landscape)
    }

    /// As [`Landscape::start`], up to the enrolment: no access is granted, and no executor runs.
    ///
    /// # Errors
    /// A part does not come up.
    pub async fn enrolled(narrator: &Narrator) -> Result<Self> {
        narrator.step("Start a control plane (Kubernetes 1.37), a registry and the vendor's manager");
        let (control_plane, registry) = tokio::join!(ControlPlane::start(), Registry::start());
        let control_plane = control_plane?;
        let manager = Manager::start(narrator.clone()).await?;
        manager.set_up(&registry).await?;
        narrator.step("The customer enrols a connector, reviews what its executor may see, and grants it");
        let connector = Connector::enrol(&control_plane, &registry, &manager, narrator.clone()).await?;
        Ok(Self { control_plane, registry, manager, connector })
    }

    /// Waits until the executor is connected and has said how the platform is.
    ///
    /// # Errors
    /// It is not in time.
    pub async fn until_connected(&self) -> Result<()> {
        until("the executor to be connected", SOON, || async {
            let environment = self.environment().await?;
            let connected = environment.pointer("/executors/0/connected").and_then(Value::as_bool) == Some(true);
            let sees = environment.pointer("/executors/0/platform/status").is_some();
            anyhow::ensure!(connected && sees, "{environment}");
            Ok(())
        })
        .await
    }

    /// Makes a release of this name and proposes it; gives the bundle's sha256.
    ///
    /// # Errors
    /// The manager refuses.
    pub async fn propose(&self, name: &str, release: &Release) -> Result<String> {
        self.manager.create_release(name, release).await?;
        let proposed = self.manager.cli(&["release", "propose", name, "--environment", ENVIRONMENT, "-o", "json"]).await?.ok()?;
        let proposed: Value = serde_json::from_str(&proposed.stdout)?;
        let sha256 = proposed["sha256"].as_str().context("sha256 of the proposal")?;
        Ok(sha256.to_owned())
    }

    /// The environment as the manager shows it.
    ///
    /// # Errors
    /// The manager does not answer.
    pub async fn environment(&self) -> Result<Value> {
        let shown = self.manager.quiet_cli(&["environment", "get", ENVIRONMENT, "-o", "json"]).await?.ok()?;
        Ok(serde_json::from_str(&shown.stdout)?)
    }

    /// What was written into the platform namespace, by kind and name, without what the cluster keeps by itself: equal before and after
    /// something that must not change anything.
    ///
    /// # Errors
    /// The API server does not answer.
    pub async fn workload(&self) -> Result<BTreeMap<String, Value>> {
        let kinds = "deployments,services,configmaps,secrets,jobs,poddisruptionbudgets";
        let listed = self.control_plane.kubectl(&["get", kinds, "-n", NAMESPACE, "-o", "json", "--ignore-not-found"]).await?.ok()?;
        let listed: Value = if listed.stdout.trim().is_empty() { Value::Null } else { serde_json::from_str(&listed.stdout)? };
        let items = listed["items"].as_array().cloned().unwrap_or_default();
        let text = |item: &Value, pointer: &str| item.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
        let named = items.into_iter().map(|mut item| {
            let key = format!("{}/{}", text(&item, "/kind"), text(&item, "/metadata/name"));
            let uid = text(&item, "/metadata/uid");
            let kept = ["labels", "annotations"].map(|field| item["metadata"][field].take());
            if let Some(object) = item.as_object_mut() {
                object.remove("metadata");
                object.remove("status");
            }
            (key, serde_json::json!([uid, kept[0], item]))
        });
        Ok(named.filter(|(key, _)| key != "ConfigMap/kube-root-ca.crt").collect())
    }

    /// Waits until the manager has heard this platform status for this bundle.
    ///
    /// # Panics
    /// It does not come to that in time.
    pub async fn until_status(&self, status: &str, sha256: &str) {
        eventually(&format!("the manager to hear `{status}`"), SOON, || self.has_status(status, sha256)).await;
    }

    /// Whether the manager has heard this platform status for this bundle.
    ///
    /// # Errors
    /// Not, and what it heard instead.
    pub async fn has_status(&self, status: &str, sha256: &str) -> Result<()> {
        let environment = self.environment().await?;
        let platform = &environment["executors"][0]["platform"];
        anyhow::ensure!(platform["status"] == status && platform["pending_sha256"] == sha256, "{platform}");
        Ok(())
    }

    /// Waits until the newest command at the executor that carries this bundle has ended; gives it.
    ///
    /// # Panics
    /// It does not end in time.
    pub async fn until_ended(&self, sha256: &str) -> Value {
        eventually("the command to end", SOON, || async {
            let commands = self.connector.commands().await?;
            let newest = commands.into_iter().find(|command| command["sha256"] == sha256).context("no command of this bundle")?;
            anyhow::ensure!(newest["status"] == "failed" || newest["status"] == "completed", "{newest}");
            Ok(newest)
        })
        .await
    }
}

impl Drop for Landscape {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.control_plane.show_logs();
        }
    }
}
