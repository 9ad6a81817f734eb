//! The live roles and bindings that a bundle's are compared with.

use std::collections::BTreeSet;

use agent_api::kind::{KINDS, Kind};
use agent_api::object::ObjectKey;
use cluster::object;
use cluster::{Client, ClusterError};
use executor_core::bundle::Judged;
use serde_json::{Value, json};

use super::gaps::Gaps;

const GROUP: &str = "rbac.authorization.k8s.io";
const API_VERSION: &str = "rbac.authorization.k8s.io/v1";

/// What follows where a kind cannot be listed.
const ONLY_KNOWN: &str = "rights are compared with what could be read one by one, and may be shown as new though they are not";

/// All live roles and bindings: others may bind a role of the bundle, or take it into theirs. Of a kind that may not be listed, those
/// that were `seen` already and those that the bundle's bindings name.
pub(super) async fn live<'a>(
    client: &Client,
    judged: &Judged,
    seen: impl Iterator<Item = &'a Value>,
    gaps: &mut Gaps,
) -> Result<Vec<Value>, ClusterError> {
    let seen: Vec<&Value> = seen.filter(|object| ObjectKey::of(object).group == GROUP).collect();
    let mut live = Vec::new();
    for kind in KINDS.iter().filter(|kind| kind.group == GROUP) {
        match object::list(client, API_VERSION, kind.kind, None, None).await {
            Ok(items) => live.extend(items),
            Err(error) if gaps.lets_pass(&error) => {
                gaps.unlisted(kind, "", ONLY_KNOWN);
                live.extend(seen.iter().filter(|object| ObjectKey::of(object).kind == kind.kind).map(|object| (*object).clone()));
                live.extend(named(client, judged, kind, gaps).await?);
            }
            Err(error) => return Err(error),
        }
    }
    Ok(live)
}

/// The roles of a kind that the bundle's bindings name and the bundle does not have.
async fn named(client: &Client, judged: &Judged, kind: &Kind, gaps: &Gaps) -> Result<Vec<Value>, ClusterError> {
    let own: BTreeSet<ObjectKey> = judged.permissions().iter().map(agent_api::object::RenderedObject::key).collect();
    let wanted: BTreeSet<ObjectKey> = judged.permissions().iter().filter_map(|rendered| role_of(&rendered.object, kind)).collect();
    let mut found = Vec::new();
    for key in wanted.difference(&own) {
        let mut role = json!({"apiVersion": API_VERSION, "kind": key.kind, "metadata": {"name": key.name}});
        if kind.namespaced {
            role["metadata"]["namespace"] = key.namespace.clone().into();
        }
        match object::get(client, &role).await {
            Ok(live) => found.extend(live),
            // It is told as a role that is not known.
            Err(error) if gaps.lets_pass(&error) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(found)
}

fn role_of(binding: &Value, kind: &Kind) -> Option<ObjectKey> {
    let text = |pointer: &str| binding.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
    let namespace = if kind.namespaced { text("/metadata/namespace") } else { String::new() };
    (text("/roleRef/kind") == kind.kind).then(|| ObjectKey {
        group: GROUP.into(),
        kind: kind.kind.into(),
        namespace,
        name: text("/roleRef/name"),
    })
}
