//! What a bundle's own CRDs add to what charts may ask of the cluster.

use std::collections::BTreeSet;

use agent_api::approval::Capabilities;
use serde_json::Value;

/// Every `group/version` and `group/version/Kind` that the CustomResourceDefinitions among these objects serve, sorted.
pub fn own_crd_api_versions<'a>(objects: impl IntoIterator<Item = &'a Value>) -> Vec<String> {
    let mut found = BTreeSet::new();
    for object in objects {
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str);
        if text("/kind") != Some("CustomResourceDefinition") {
            continue;
        }
        let (Some(group), Some(kind)) = (text("/spec/group"), text("/spec/names/kind")) else { continue };
        for version in object.pointer("/spec/versions").and_then(Value::as_array).into_iter().flatten() {
            let served = version.get("served").and_then(Value::as_bool).unwrap_or(false);
            if let Some(name) = version.get("name").and_then(Value::as_str).filter(|_| served) {
                found.insert(format!("{group}/{name}"));
                found.insert(format!("{group}/{name}/{kind}"));
            }
        }
    }
    found.into_iter().collect()
}

/// Capabilities with these added; sorted, without repetition.
pub(crate) fn with(capabilities: &Capabilities, added: Vec<String>) -> Capabilities {
    let all: BTreeSet<String> = capabilities.api_versions.iter().cloned().chain(added).collect();
    Capabilities { api_versions: all.into_iter().collect(), ..capabilities.clone() }
}
