//! Live objects with a bundle's labels, to tell which of them this bundle lacks.

use std::collections::BTreeSet;

use agent_api::approval::Capabilities;
use agent_api::keys;
use agent_api::kind::{Half, KINDS, Kind};
use agent_api::object::{ObjectKey, RenderedObject};
use cluster::object;
use cluster::{Client, ClusterError};
use executor_core::bundle::Judged;
use serde_json::Value;

use super::super::plan::{self, Leftover};
use super::gaps::{self, Gaps};
use crate::clctl::requests;

/// What follows where a kind cannot be listed.
const NOT_KNOWN: &str = "what is left over of them is not known";

/// What the bundle lacks of `live`.
pub(super) fn of(live: &[Value], judged: &Judged) -> Vec<Leftover> {
    let all = judged.permissions().iter().chain(judged.workload()).chain(judged.placeholders());
    plan::leftovers(live, &all.map(RenderedObject::key).collect())
}

/// Everything that carries our label: permission objects wherever they are, workload objects in the bundle's namespaces and in those
/// that a former bundle made. A label elsewhere is not ours.
pub(super) async fn live(client: &Client, judged: &Judged, served: &Capabilities, gaps: &mut Gaps) -> Result<Vec<Value>, ClusterError> {
    let permissions: Vec<_> = KINDS.iter().filter(|kind| kind.half == Half::Permissions).map(|kind| (kind, String::new())).collect();
    let mut live = list(client, permissions, served, gaps).await?;
    let own = judged.permissions().iter().map(RenderedObject::key);
    let former = live.iter().filter(|object| is_stamped(object)).map(ObjectKey::of);
    let namespaces: BTreeSet<String> = own.chain(former).filter(|key| key.kind == "Namespace").map(|key| key.name).collect();
    let workload = KINDS.iter().filter(|kind| kind.half == Half::Workload);
    let workload = workload.flat_map(|kind| namespaces.iter().map(move |namespace| (kind, namespace.clone()))).collect();
    live.extend(list(client, workload, served, gaps).await?);
    Ok(live)
}

async fn list(
    client: &Client,
    places: Vec<(&'static Kind, String)>,
    served: &Capabilities,
    gaps: &mut Gaps,
) -> Result<Vec<Value>, ClusterError> {
    let selector = format!("{}={}", keys::MANAGED_BY, keys::MANAGED_BY_PLATFORM);
    let selector = selector.as_str();
    let asked = places.into_iter().filter_map(|(kind, namespace)| Some((kind, namespace, version(kind, served)?)));
    let questions = asked.map(|(kind, namespace, version)| async move {
        let place = (!namespace.is_empty()).then_some(namespace.as_str());
        let answer = object::list(client, &version, kind.kind, place, Some(selector)).await;
        (kind, namespace, answer)
    });
    let answers = requests::each(questions).await;
    let mut live = Vec::new();
    for (kind, namespace, answer) in answers {
        match answer {
            Ok(items) => live.extend(items),
            // It comes with the bundle.
            Err(ClusterError::NotFound { .. }) => {}
            // An approval neither touches what is left over nor depends on it: who may not list it may approve.
            Err(error) if gaps::is_missing_right(&error) => gaps.unlisted(kind, &namespace, NOT_KNOWN),
            Err(error) => return Err(error),
        }
    }
    Ok(live)
}

/// The `apiVersion` that a kind is served in, the stable one where there are several.
fn version(kind: &Kind, served: &Capabilities) -> Option<String> {
    let versions = served.api_versions.iter().filter_map(|served| {
        let version = served.strip_suffix(kind.kind)?.strip_suffix('/')?;
        let group = version.split_once('/').map_or("", |(group, _)| group);
        (group == kind.group).then_some(version)
    });
    versions.min_by_key(|version| (!version.ends_with("v1"), *version)).map(str::to_owned)
}

fn is_stamped(object: &Value) -> bool {
    object.get("metadata").and_then(|metadata| metadata.get("annotations")?.get(keys::BUNDLE_SHA256)).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_is_listed_in_the_version_that_is_served() {
        let served = ["v1", "v1/Secret", "apps/v1", "apps/v1/Deployment", "policy/v1beta1/PodDisruptionBudget", "x.io/v1/Secret"];
        let served = Capabilities { api_versions: served.map(str::to_owned).to_vec(), ..Capabilities::default() };
        for (group, kind, expected) in [
            ("", "Secret", Some("v1")),
            ("apps", "Deployment", Some("apps/v1")),
            ("policy", "PodDisruptionBudget", Some("policy/v1beta1")),
            ("batch", "Job", None),
        ] {
            assert_eq!(version(Kind::find(group, kind).unwrap(), &served).as_deref(), expected, "{kind}");
        }
    }
}
