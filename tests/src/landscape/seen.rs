//! What both sides show of what happened: all that is in the cluster, the manager's commands, the executor's log.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::{ENVIRONMENT, Landscape, SOON};
use crate::eventually::eventually;

/// Every kind of both halves, and others that nobody should write.
const KINDS: &str = "namespaces,customresourcedefinitions,serviceaccounts,clusterroles,clusterrolebindings,roles,rolebindings,\
                     validatingwebhookconfigurations,mutatingwebhookconfigurations,validatingadmissionpolicies,\
                     validatingadmissionpolicybindings,priorityclasses,storageclasses,deployments,services,configmaps,secrets,jobs,\
                     poddisruptionbudgets,daemonsets,statefulsets";

impl Landscape {
    /// All objects of the cluster that somebody wrote, in all namespaces, without status and version: equal before and after something
    /// that must not change anything.
    ///
    /// # Errors
    /// The API server does not answer.
    pub async fn content(&self) -> Result<BTreeMap<String, Value>> {
        let listed = self.control_plane.kubectl(&["get", KINDS, "-A", "-o", "json"]).await?.ok()?;
        let mut listed: Value = serde_json::from_str(&listed.stdout)?;
        let items = listed["items"].as_array_mut().context("a list")?;
        Ok(items.iter_mut().map(|item| (key(item), without_status(item.take()))).collect())
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

    /// Ids of all commands that the executor has.
    ///
    /// # Errors
    /// The local API does not answer.
    pub async fn known_commands(&self) -> Result<BTreeSet<String>> {
        let commands = self.connector.commands().await?;
        Ok(commands.iter().filter_map(|command| command["id"].as_str().map(str::to_owned)).collect())
    }

    /// Waits until a command that is not known yet has ended at the executor; gives it.
    ///
    /// # Panics
    /// None does in time.
    pub async fn until_new_ended(&self, known: &BTreeSet<String>) -> Value {
        eventually("a new command to end", SOON, || async {
            let commands = self.connector.commands().await?;
            let new: Vec<&Value> = commands.iter().filter(|command| !known.contains(command["id"].as_str().unwrap_or_default())).collect();
            ensure!(new.len() == 1, "{} new commands: {new:?}", new.len());
            ensure!(new[0]["status"] == "failed" || new[0]["status"] == "completed", "{}", new[0]);
            Ok(new[0].clone())
        })
        .await
    }
}

fn key(item: &Value) -> String {
    let text = |pointer: &str| item.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    format!("{} {}/{}", text("/kind"), text("/metadata/namespace"), text("/metadata/name"))
}

/// The uid stays: an object that was deleted and made anew is another.
fn without_status(mut item: Value) -> Value {
    if let Some(object) = item.as_object_mut() {
        object.remove("status");
    }
    if let Some(metadata) = item["metadata"].as_object_mut() {
        metadata.remove("resourceVersion");
    }
    item
}
