//! From rendered to normalised objects nothing is lost, and nothing changes but what a rule says:
//!
//! - hooks that never run here (test, delete, rollback, unknown to Helm) are left out, by name;
//! - `status` and an empty `creationTimestamp` go; labels of ours are added;
//! - an object gets its component's namespace, a cluster-scoped one loses it;
//! - `stringData` of a Secret is folded into `data`; a Job's name is made longer by its content's digest;
//! - an empty `caBundle` goes (no chart of the corpus has one).

use agent_api::manifest::{Bundle, Manifest};
use agent_api::object::ObjectKey;
use render::engine::EngineOutput;
use render::normalise::{left_out, normalise, opened};
use serde_json::{Value, json};

fn manifest() -> Manifest {
    let text = json!({
        "apiVersion": "clicklink.io/v1", "kind": "PlatformBundle", "environment": "e", "createdAt": "2026-11-30T10:00:00Z",
        "registry": {"mode": "anonymous", "chartBase": "oci://r.example/p"}, "namespaces": ["platform"],
        "components": [{"name": "c", "namespace": "platform", "release": "rel",
            "chart": {"name": "c", "version": "1", "digest": format!("sha256:{}", "0".repeat(64))}}]
    });
    Bundle::parse(text.to_string()).unwrap().manifest().clone()
}

/// The first object that is lost, new, or changed against the rules.
pub(crate) fn check(output: &EngineOutput) -> Result<(), String> {
    let normalised = normalise(&manifest(), vec![output.clone()]);
    let (applied, aside): (Vec<_>, Vec<_>) = output.objects.iter().partition(|object| left_out(object).is_none());
    let expected: Vec<Value> = applied.into_iter().flat_map(|object| opened(object.object.clone())).collect();
    let of_charts = normalised.objects.iter().chain(&normalised.placeholders).filter(|object| object.component.is_some());
    let mut found: Vec<&Value> = of_charts.map(|object| &object.object).collect();
    for object in &expected {
        let Some(place) = found.iter().position(|found| is_kept(object, found)) else {
            return Err(format!("{} is lost or changed: {object}", ObjectKey::of(object)));
        };
        found.remove(place);
    }
    match found.first() {
        Some(new) => Err(format!("nobody rendered {new}")),
        None if normalised.left_out.len() != aside.len() => {
            Err(format!("{} are left out, {} said", aside.len(), normalised.left_out.len()))
        }
        None => Ok(()),
    }
}

fn is_kept(rendered: &Value, normalised: &Value) -> bool {
    let mut rendered = rendered.clone();
    if let Some(metadata) = rendered.pointer_mut("/spec/template/metadata").and_then(Value::as_object_mut) {
        metadata.retain(|field, value| !(field == "creationTimestamp" && value.is_null()));
    }
    let key = ObjectKey::of(&rendered);
    let row = key.row();
    let job = (key.group.as_str(), key.kind.as_str()) == ("batch", "Job");
    let secret = (key.group.as_str(), key.kind.as_str()) == ("", "Secret");
    let (Some(rendered), Some(normalised)) = (rendered.as_object(), normalised.as_object()) else { return false };
    let in_metadata = |field: &str, value: &Value, now: Option<&Value>| match (field, value, now) {
        ("name", Value::String(name), Some(Value::String(now))) if job => now.starts_with(&format!("{name}-")),
        ("namespace", Value::String(given), Some(now)) if given.is_empty() => now == "platform",
        ("labels", Value::Null, Some(Value::Object(_))) => true,
        ("namespace", _, None) => row.is_some_and(|row| !row.namespaced),
        ("creationTimestamp", Value::Null, None) => true,
        ("labels", Value::Object(labels), Some(Value::Object(now))) => labels.iter().all(|(key, value)| now.get(key) == Some(value)),
        (_, value, now) => now == Some(value),
    };
    rendered.iter().all(|(field, value)| match (field.as_str(), value, normalised.get(field)) {
        ("status", _, None) => true,
        ("stringData", _, None) | ("data", _, Some(_)) if secret => true,
        ("metadata", Value::Object(metadata), Some(Value::Object(now))) => {
            metadata.iter().all(|(field, value)| in_metadata(field, value, now.get(field)))
        }
        (_, value, now) => now == Some(value),
    })
}
