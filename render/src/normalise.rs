//! What charts render, brought into one form before anything is judged or digested.
//!
//! Pure. Nothing is refused here: what a bundle may hold is judged elsewhere, so that all that is wrong with it stands in one message.

use agent_api::kind::{Half, Kind};
use agent_api::manifest::Manifest;
use agent_api::object::{Hook, HookPhase, ObjectKey, RenderedObject, metadata_map};
use agent_api::{digest::Sha256, keys};
use base64::Engine as _;
use serde_json::{Map, Value, json};

use crate::engine::{EngineObject, EngineOutput};

/// Longest name of a Job: its pods carry it in a label.
const MAX_JOB_NAME: usize = 63;
/// Hex digits of a Job's digest in its name.
const JOB_DIGEST_DIGITS: usize = 8;

/// Hook events that run before a component's objects.
const PRE_EVENTS: [&str; 2] = ["pre-install", "pre-upgrade"];
/// Hook events that run after them.
const POST_EVENTS: [&str; 2] = ["post-install", "post-upgrade"];

/// A bundle's objects in one form.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Normalised {
    /// All but placeholders: components in order, then the bundle's own objects, then added Namespaces.
    pub objects: Vec<RenderedObject>,
    /// Secrets without data: places for somebody else's secret.
    pub placeholders: Vec<RenderedObject>,
    /// What charts render and nobody applies.
    pub left_out: Vec<LeftOut>,
}

/// A hook that never runs here.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LeftOut {
    /// Component.
    pub component: String,
    /// Template.
    pub template: String,
    /// The object.
    pub object: ObjectKey,
    /// Its hook events.
    pub events: Vec<String>,
}

/// Normalises what the components of a manifest rendered (one output each, in order) with the manifest's own objects.
#[must_use]
pub fn normalise(manifest: &Manifest, outputs: Vec<EngineOutput>) -> Normalised {
    let mut result = Normalised::default();
    for (component, output) in manifest.components.iter().zip(outputs) {
        let origin = Origin { component: Some(component.name.as_str()), namespace: Some(component.namespace.as_str()) };
        for object in output.objects {
            if let Some(events) = left_out(&object) {
                result.left_out.push(LeftOut {
                    component: component.name.to_string(),
                    template: object.template.clone(),
                    object: ObjectKey::of(&object.object),
                    events,
                });
                continue;
            }
            let hook = hook_of(&object);
            for single in opened(object.object) {
                result.add(&origin, &object.template, hook, single);
            }
        }
    }
    let origin = Origin { component: None, namespace: None };
    for (i, object) in manifest.objects.iter().enumerate() {
        result.add(&origin, &format!("objects[{i}]"), None, object.clone());
    }
    for (i, namespace) in manifest.namespaces.iter().enumerate() {
        let there = result.objects.iter().any(|object| {
            let key = object.key();
            key.group.is_empty() && key.kind == "Namespace" && key.name == namespace.as_str()
        });
        if !there {
            let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace.as_str()}});
            result.add(&origin, &format!("namespaces[{i}]"), None, object);
        }
    }
    result
}

/// The events of a hook of which none is install or upgrade (test, delete, rollback, unknown to Helm); `None` for what is applied.
#[must_use]
pub fn left_out(object: &EngineObject) -> Option<Vec<String>> {
    let runs = |event: &String| PRE_EVENTS.contains(&event.as_str()) || POST_EVENTS.contains(&event.as_str());
    (!object.hooks.is_empty() && !object.hooks.iter().any(runs)).then(|| object.hooks.clone())
}

/// A hook's place; one that is both before and after runs before. `None` for what is no hook, and for a hook that never runs.
#[must_use]
pub fn hook_of(object: &EngineObject) -> Option<Hook> {
    let any = |events: [&str; 2]| object.hooks.iter().any(|event| events.contains(&event.as_str()));
    let phase = if any(PRE_EVENTS) {
        HookPhase::Pre
    } else if any(POST_EVENTS) {
        HookPhase::Post
    } else {
        return None;
    };
    Some(Hook { phase, weight: object.weight })
}

/// Where an object comes from, and so where it lies when it does not say.
struct Origin<'a> {
    component: Option<&'a str>,
    namespace: Option<&'a str>,
}

impl Normalised {
    fn add(&mut self, origin: &Origin<'_>, template: &str, hook: Option<Hook>, mut object: Value) {
        let row = ObjectKey::of(&object).row();
        drop_server_fields(&mut object);
        if let Some(row) = row {
            set_namespace(&mut object, row, origin.namespace);
            if row.kind == "RoleBinding" {
                complete_subjects(&mut object);
            }
            if row.kind == "Secret" {
                fold_string_data(&mut object);
            }
            if row.half == Half::Permissions {
                drop_empty_ca_bundles(&mut object);
            }
        }
        let placeholder = row.is_some_and(|row| row.kind == "Secret") && is_placeholder(&object);
        let workload = row.is_some_and(|row| row.half == Half::Workload);
        label(&mut object, keys::MANAGED_BY, keys::MANAGED_BY_PLATFORM);
        if let Some(component) = origin.component {
            label(&mut object, keys::COMPONENT, component);
        }
        if workload && !placeholder {
            label(&mut object, keys::PINNED, "true");
        }
        if row.is_some_and(|row| row.group == "batch" && row.kind == "Job") {
            name_by_content(&mut object);
        }
        // Hook objects of the permissions half stay, and stand in its order; only what the executor applies has a place of its own.
        let hook = hook.filter(|_| workload && !placeholder);
        let rendered = RenderedObject { component: origin.component.map(str::to_owned), template: template.to_owned(), hook, object };
        if placeholder { self.placeholders.push(rendered) } else { self.objects.push(rendered) }
    }
}

/// The objects of a `List`, and of typed lists of kinds that a bundle may hold; anything else as it is. A list whose template looped
/// over nothing has `items` and none in it.
#[must_use]
pub fn opened(object: Value) -> Vec<Value> {
    opened_as(object, &|group, kind| Kind::find(group, kind).is_some())
}

/// The same for another table of kinds: `known` says of a group and kind whether its typed lists are opened.
#[must_use]
pub fn opened_as(object: Value, known: &dyn Fn(&str, &str) -> bool) -> Vec<Value> {
    let key = ObjectKey::of(&object);
    let single = key.kind.strip_suffix("List");
    let plain = key.group.is_empty() && key.kind == "List";
    let typed = single.is_some_and(|single| known(&key.group, single));
    let items = match object.get("items") {
        Some(Value::Array(items)) if plain || typed => items.clone(),
        Some(Value::Null) if plain || typed => Vec::new(),
        Some(_) | None => return vec![object],
    };
    let api_version = object.get("apiVersion").cloned().unwrap_or_default();
    let complete = |mut item: Value| {
        if let (true, Some(map)) = (typed, item.as_object_mut()) {
            map.entry("apiVersion").or_insert_with(|| api_version.clone());
            map.entry("kind").or_insert_with(|| Value::from(single.unwrap_or_default()));
        }
        item
    };
    items.into_iter().map(complete).flat_map(|item| opened_as(item, known)).collect()
}

/// What only a server sets: `status`, and the empty `creationTimestamp` that generators print.
pub fn drop_server_fields(object: &mut Value) {
    if let Some(map) = object.as_object_mut() {
        map.remove("status");
    }
    for pointer in ["/metadata", "/spec/template/metadata"] {
        if let Some(metadata) = object.pointer_mut(pointer).and_then(Value::as_object_mut)
            && metadata.get("creationTimestamp").is_some_and(Value::is_null)
        {
            metadata.remove("creationTimestamp");
        }
    }
}

fn set_namespace(object: &mut Value, row: &Kind, default: Option<&str>) {
    let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) else { return };
    let given = metadata.get("namespace").and_then(Value::as_str).is_some_and(|namespace| !namespace.is_empty());
    if !row.namespaced {
        metadata.remove("namespace");
    } else if let (false, Some(default)) = (given, default) {
        metadata.insert("namespace".to_owned(), Value::from(default));
    }
}

/// An empty `caBundle` is a place for another writer's: whoever set it to nothing would take it back from them, or be in conflict with them.
fn drop_empty_ca_bundles(object: &mut Value) {
    let drop_empty = |client: Option<&mut Value>| {
        if let Some(client) = client.and_then(Value::as_object_mut)
            && client.get("caBundle").is_some_and(|bundle| bundle.is_null() || bundle == "")
        {
            client.remove("caBundle");
        }
    };
    for webhook in object.get_mut("webhooks").and_then(Value::as_array_mut).into_iter().flatten() {
        drop_empty(webhook.get_mut("clientConfig"));
    }
    drop_empty(object.pointer_mut("/spec/conversion/webhook/clientConfig"));
}

/// A service account that a RoleBinding names without a namespace is one of the binding's.
fn complete_subjects(object: &mut Value) {
    let Some(namespace) = object.pointer("/metadata/namespace").cloned() else { return };
    for subject in object.get_mut("subjects").and_then(Value::as_array_mut).into_iter().flatten() {
        let account = subject.get("kind").and_then(Value::as_str) == Some("ServiceAccount");
        let given = subject.get("namespace").and_then(Value::as_str).is_some_and(|namespace| !namespace.is_empty());
        if let (true, false, Some(map)) = (account, given, subject.as_object_mut()) {
            map.insert("namespace".to_owned(), namespace.clone());
        }
    }
}

/// `stringData` wins over `data`, as at the API server. An entry that is no text stays where it is, to be refused by name.
fn fold_string_data(object: &mut Value) {
    let Some(map) = object.as_object_mut() else { return };
    let Some(Value::Object(texts)) = map.remove("stringData") else { return };
    let data = map.entry("data").or_insert_with(|| Value::Object(Map::new()));
    if data.is_null() {
        *data = Value::Object(Map::new());
    }
    let mut rest = Map::new();
    for (key, value) in texts {
        match (value, data.as_object_mut()) {
            (Value::String(text), Some(data)) => {
                data.insert(key, Value::from(base64::engine::general_purpose::STANDARD.encode(text)));
            }
            (value, _) => {
                rest.insert(key, value);
            }
        }
    }
    if !rest.is_empty() {
        map.insert("stringData".to_owned(), Value::Object(rest));
    }
}

fn is_placeholder(object: &Value) -> bool {
    let empty = |field: &str| match object.get(field) {
        None | Some(Value::Null) => true,
        Some(value) => value.as_object().is_some_and(Map::is_empty),
    };
    empty("data") && empty("stringData")
}

fn label(object: &mut Value, key: &str, value: &str) {
    if let Some(labels) = metadata_map(object, "labels") {
        labels.insert(key.to_owned(), Value::from(value));
    }
}

/// A Job's template cannot change, so a Job of other content is another Job.
fn name_by_content(object: &mut Value) {
    let digest = Sha256::of_json(object);
    let Some(Value::String(name)) = object.pointer_mut("/metadata/name") else { return };
    let mut end = name.len().min(MAX_JOB_NAME - 1 - JOB_DIGEST_DIGITS);
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    let kept = name[..end].trim_end_matches(['-', '.']);
    *name = format!("{kept}-{}", &digest.as_str()[..JOB_DIGEST_DIGITS]);
}

#[cfg(test)]
mod tests;
