//! What both sides show of what happened: all that is in the cluster, the manager's commands, the executor's log.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::{ENVIRONMENT, Landscape, SOON};
use crate::eventually::eventually;

/// Every kind of both halves, and others that nobody should write.
const COLLECTIONS: [&str; 21] = [
    "/api/v1/namespaces",
    "/api/v1/serviceaccounts",
    "/api/v1/services",
    "/api/v1/configmaps",
    "/api/v1/secrets",
    "/apis/apps/v1/deployments",
    "/apis/apps/v1/daemonsets",
    "/apis/apps/v1/statefulsets",
    "/apis/batch/v1/jobs",
    "/apis/policy/v1/poddisruptionbudgets",
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
    "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
    "/apis/rbac.authorization.k8s.io/v1/roles",
    "/apis/rbac.authorization.k8s.io/v1/rolebindings",
    "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations",
    "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations",
    "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies",
    "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings",
    "/apis/scheduling.k8s.io/v1/priorityclasses",
    "/apis/storage.k8s.io/v1/storageclasses",
];

impl Landscape {
    /// All objects of the cluster that somebody wrote, in all namespaces, without status, version and managers: equal before and after something
    /// that must not change anything.
    ///
    /// # Errors
    /// The API server does not answer.
    pub async fn content(&self) -> Result<BTreeMap<String, Value>> {
        let client = self.control_plane.client().await?;
        let mut content = BTreeMap::new();
        for collection in COLLECTIONS {
            let request = http::Request::get(collection).body(Vec::new())?;
            let mut listed: Value = client.request(request).await.with_context(|| format!("listing {collection}"))?;
            let items = listed["items"].as_array_mut().context("a list")?;
            content.extend(items.iter_mut().map(|item| (key(collection, item), without_status(item.take()))));
        }
        Ok(content)
    }

    /// All commands that the manager gave the executor, oldest first, with their results.
    ///
    /// # Errors
    /// The manager does not answer.
    pub async fn commands_at_manager(&self) -> Result<Vec<Value>> {
        let environment = self.environment().await?;
        let id = environment.pointer("/executors/0/id").and_then(Value::as_str).context("the executor's id")?;
        let listed = self.manager.quiet_cli(&["executor", "commands", id, "-o", "json"]).await?.ok()?;
        Ok(serde_json::from_str(&listed.stdout)?)
    }

    /// Has the manager try the newest proposal again, as if it had never failed.
    ///
    /// # Errors
    /// The manager refuses.
    pub async fn rearm(&self) -> Result<()> {
        self.manager.quiet_cli(&["environment", "rearm", ENVIRONMENT, "-o", "name"]).await?.ok()?;
        Ok(())
    }

    /// The executor's commands, newest first, without a command line in between.
    async fn commands_at_executor(&self) -> Result<Vec<Value>> {
        let answer = self.connector.local_api("/v1/commands").await?.error_for_status()?;
        Ok(serde_json::from_slice(&answer.bytes().await?)?)
    }

    /// Ids of all commands that the executor has.
    ///
    /// # Errors
    /// The local API does not answer.
    pub async fn known_commands(&self) -> Result<BTreeSet<String>> {
        let commands = self.commands_at_executor().await?;
        Ok(commands.iter().filter_map(|command| command["id"].as_str().map(str::to_owned)).collect())
    }

    /// How much the executor has logged; its log goes on over restarts.
    #[must_use]
    pub fn executor_log_length(&self) -> u64 {
        std::fs::metadata(self.connector.executor().log()).map_or(0, |file| file.len())
    }

    /// Waits until the executor has logged a line after `mark` that has all of this.
    ///
    /// # Panics
    /// It does not in time.
    pub async fn until_logged(&self, mark: u64, all: &[&str]) {
        eventually(&format!("the executor to log {all:?}"), SOON, || async {
            let text = std::fs::read(self.connector.executor().log())?;
            let new = String::from_utf8_lossy(&text[usize::try_from(mark)?.min(text.len())..]).into_owned();
            ensure!(new.lines().any(|line| all.iter().all(|what| line.contains(what))), "{new}");
            Ok(())
        })
        .await;
    }

    /// Waits until a command that is not known yet has ended at the executor; gives it.
    ///
    /// # Panics
    /// None does in time.
    pub async fn until_new_ended(&self, known: &BTreeSet<String>) -> Value {
        eventually("a new command to end", SOON, || async {
            let commands = self.commands_at_executor().await?;
            let new: Vec<&Value> = commands.iter().filter(|command| !known.contains(command["id"].as_str().unwrap_or_default())).collect();
            ensure!(new.len() == 1, "{} new commands: {new:?}", new.len());
            ensure!(new[0]["status"] == "failed" || new[0]["status"] == "completed", "{}", new[0]);
            Ok(new[0].clone())
        })
        .await
    }
}

/// What is told apart in two answers of [`Landscape::content`]: one line an object.
#[must_use]
pub fn difference(before: &BTreeMap<String, Value>, after: &BTreeMap<String, Value>) -> Vec<String> {
    let keys: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let line = |key: &String| match (before.get(key), after.get(key)) {
        (before, after) if before == after => None,
        (Some(before), Some(after)) => Some(format!("{key}: {before} became {after}")),
        (None, Some(_)) => Some(format!("{key} is new")),
        (_, _) => Some(format!("{key} is gone")),
    };
    keys.into_iter().filter_map(line).collect()
}

fn key(collection: &str, item: &Value) -> String {
    let text = |pointer: &str| item.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    format!("{collection} {}/{}", text("/metadata/namespace"), text("/metadata/name"))
}

/// The uid stays: an object that was deleted and made anew is another.
fn without_status(mut item: Value) -> Value {
    if let Some(object) = item.as_object_mut() {
        object.remove("status");
    }
    if let Some(metadata) = item["metadata"].as_object_mut() {
        metadata.remove("resourceVersion");
        metadata.remove("managedFields");
    }
    item
}
