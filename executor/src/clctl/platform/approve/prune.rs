//! `--prune`: deletes what former bundles left, after everything else. What holds data of others has a flag of its own, and what a chart says is to
//! be kept stays.
//!
//! Webhook configurations that this bundle lacks are withdrawn in any case, and before anything is applied: their server may go with this
//! bundle, and `pcm-platform` could never remove one.

use clap::Args;
use cluster::Client;
use serde_json::{Value, json};

use super::super::removal::{self, RemovalError};
use super::plan::Leftover;
use crate::terminal::talk;

/// What may be deleted.
#[derive(Args, Clone, Copy, Debug, Default)]
pub(super) struct Prune {
    /// Delete what former bundles left and this one lacks; not definitions, namespaces and storage classes, and not what says
    /// helm.sh/resource-policy: keep.
    #[arg(long)]
    prune: bool,
    /// Also CustomResourceDefinitions, with all their objects.
    #[arg(long, requires = "prune")]
    prune_crds: bool,
    /// Also Namespaces, with all that is in them.
    #[arg(long, requires = "prune")]
    prune_namespaces: bool,
    /// Also StorageClasses and snapshot classes.
    #[arg(long, requires = "prune")]
    prune_storage_classes: bool,
}

impl Prune {
    /// Marks those that are to be deleted.
    pub(super) fn mark(&self, leftovers: &mut [Leftover]) {
        for leftover in leftovers {
            leftover.pruned = self.takes(leftover);
        }
    }

    fn takes(&self, leftover: &Leftover) -> bool {
        if leftover.is_webhook() {
            return true;
        }
        let asked = match leftover.key.kind.as_str() {
            "CustomResourceDefinition" => self.prune_crds,
            "Namespace" => self.prune_namespaces,
            "StorageClass" | "VolumeSnapshotClass" | "VolumeGroupSnapshotClass" => self.prune_storage_classes,
            _ => self.prune,
        };
        asked && !leftover.keep
    }
}

/// Deletes the webhook configurations that are marked.
pub(super) async fn withdraw(client: &Client, leftovers: &[Leftover]) -> Result<(), RemovalError> {
    for leftover in leftovers.iter().filter(|leftover| leftover.pruned && leftover.is_webhook()) {
        talk(format_args!("  withdrawn: {}", leftover.key));
        removal::remove(client, &[object(leftover)]).await?;
    }
    Ok(())
}

/// Deletes what else is marked: what runs first, what grants rights or defines kinds last.
pub(super) async fn delete(client: &Client, leftovers: &[Leftover]) -> Result<(), RemovalError> {
    let mut marked: Vec<&Leftover> = leftovers.iter().filter(|leftover| leftover.pruned && !leftover.is_webhook()).collect();
    marked.sort_by_key(|leftover| std::cmp::Reverse(leftover.key.row().map(agent_api::kind::Kind::order)));
    for leftover in marked {
        talk(format_args!("  pruned: {}", leftover.key));
        removal::remove(client, &[object(leftover)]).await?;
    }
    Ok(())
}

fn object(leftover: &Leftover) -> Value {
    let mut object = json!({"apiVersion": leftover.api_version, "kind": leftover.key.kind, "metadata": {"name": leftover.key.name}});
    object["metadata"]["uid"] = leftover.uid.clone().into();
    if !leftover.key.namespace.is_empty() {
        object["metadata"]["namespace"] = leftover.key.namespace.clone().into();
    }
    object
}

#[cfg(test)]
mod tests {
    use agent_api::kind::Half;
    use agent_api::object::ObjectKey;

    use super::*;

    fn leftover(kind: &str, keep: bool) -> Leftover {
        let key = ObjectKey { group: String::new(), kind: kind.into(), namespace: String::new(), name: "x".into() };
        Leftover {
            object: key.to_string(),
            component: None,
            half: Half::Permissions,
            running: false,
            key,
            api_version: "v1".into(),
            uid: "u".into(),
            keep,
            pruned: false,
        }
    }

    #[test]
    fn what_holds_data_of_others_has_a_flag_of_its_own() {
        let all = ["ConfigMap", "ClusterRole", "CustomResourceDefinition", "Namespace", "StorageClass", "VolumeSnapshotClass"];
        let mut leftovers: Vec<Leftover> = all.iter().map(|kind| leftover(kind, false)).collect();
        leftovers.push(leftover("Secret", true));
        let mut kinds = |prune: Prune| {
            prune.mark(&mut leftovers);
            let marked = leftovers.iter().filter(|leftover| leftover.pruned);
            marked.map(|leftover| leftover.key.kind.as_str()).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(kinds(Prune::default()), "");
        let prune = Prune { prune: true, ..Prune::default() };
        assert_eq!(kinds(prune), "ConfigMap ClusterRole");
        assert_eq!(kinds(Prune { prune_crds: true, ..prune }), "ConfigMap ClusterRole CustomResourceDefinition");
        assert_eq!(kinds(Prune { prune_namespaces: true, ..prune }), "ConfigMap ClusterRole Namespace");
        assert_eq!(kinds(Prune { prune_storage_classes: true, ..prune }), "ConfigMap ClusterRole StorageClass VolumeSnapshotClass");
    }
    /// Whoever approves a bundle without them does not want them in force, whatever their charts said.
    #[test]
    fn webhooks_that_a_bundle_lacks_are_withdrawn() {
        let hooks = ["ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"];
        let mut leftovers: Vec<Leftover> = hooks.iter().flat_map(|kind| [leftover(kind, false), leftover(kind, true)]).collect();
        leftovers.push(leftover("ClusterRole", false));
        Prune::default().mark(&mut leftovers);
        assert_eq!(leftovers.iter().filter(|leftover| leftover.pruned).count(), 4, "{leftovers:?}");
    }
}
