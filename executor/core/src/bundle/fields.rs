//! Fields that no object of a bundle may set, and those that the admission policies of `pcm-platform` would deny anyway.

use agent_api::object::{RenderedObject, is_empty};
use serde_json::Value;

use super::refusal::Findings;

/// Secret types that the scope guard lets through; an absent type means `Opaque`.
const SECRET_TYPES: [&str; 2] = ["Opaque", "kubernetes.io/tls"];

/// Metadata and kind-specific fields of one object.
pub(super) fn check(object: &RenderedObject, findings: &mut Findings<'_>) {
    check_metadata(object, findings);
    let key = object.key();
    match (key.group.as_str(), key.kind.as_str()) {
        ("", "Service") => check_service(object, findings),
        ("", "Secret") => check_secret(object, findings),
        _ => {}
    }
}

fn check_metadata(object: &RenderedObject, findings: &mut Findings<'_>) {
    let metadata = object.object.get("metadata");
    let field = |name: &str| metadata.and_then(|metadata| metadata.get(name)).filter(|value| !is_empty(value));
    if field("generateName").is_some() {
        findings.object(object, "metadata.generateName is refused: an approved object has one name", None);
    } else if field("name").and_then(Value::as_str).is_none() {
        findings.object(object, "metadata.name is missing", None);
    }
    for name in ["finalizers", "ownerReferences"] {
        if field(name).is_some() {
            findings.object(object, format!("metadata.{name} is refused: it decides over the deletion of objects"), None);
        }
    }
    for name in ["labels", "annotations"] {
        let entries = field(name).map(|value| value.as_object().ok_or(()));
        match entries {
            Some(Err(())) => findings.object(object, format!("metadata.{name} is not a map"), None),
            Some(Ok(map)) => {
                for (key, _) in map.iter().filter(|(_, value)| !value.is_string()) {
                    findings.object(object, format!("metadata.{name}.{key} is not a string"), Some("quote the value"));
                }
            }
            None => {}
        }
    }
}

fn check_service(object: &RenderedObject, findings: &mut Findings<'_>) {
    if object.object.pointer("/spec/type").and_then(Value::as_str) == Some("ExternalName") {
        findings.object(object, "a Service of type ExternalName is refused: it leads traffic out of the cluster by name", None);
    }
    if object.object.pointer("/spec/externalIPs").is_some_and(|value| !is_empty(value)) {
        findings.object(object, "spec.externalIPs is refused: it takes over traffic to addresses of others", None);
    }
}

fn check_secret(object: &RenderedObject, findings: &mut Findings<'_>) {
    let kind = object.object.get("type").and_then(Value::as_str).unwrap_or("Opaque");
    if !SECRET_TYPES.contains(&kind) {
        findings.object(object, format!("a Secret of type `{kind}` is refused; {} are allowed", SECRET_TYPES.join(" and ")), None);
    }
    let left_over = object.object.get("stringData").and_then(Value::as_object);
    for (key, _) in left_over.into_iter().flatten() {
        findings.object(object, format!("stringData.{key} is not a string"), Some("quote the value"));
    }
}
