//! Where a bundle's objects may lie, and of which kinds they may be.

use std::collections::BTreeMap;

use agent_api::kind::{Half, Refused};
use agent_api::manifest::Manifest;
use agent_api::object::{ObjectKey, RenderedObject};
use serde_json::Value;

use super::refusal::Findings;

/// What this installation keeps for others.
#[derive(Clone, Copy, Debug)]
pub struct Scope<'a> {
    /// Prefix of the namespaces of services (`namespace_prefix`, default `ns-`); platform namespaces lie outside.
    pub namespace_prefix: &'a str,
    /// Namespace of the connector and its identities.
    pub home_namespace: &'a str,
}

impl Scope<'_> {
    /// Why a namespace may not belong to the platform; `None` where it may.
    fn objection(&self, namespace: &str) -> Option<String> {
        if namespace.starts_with(self.namespace_prefix) {
            return Some(format!("namespace `{namespace}` lies inside the service prefix `{}`", self.namespace_prefix));
        }
        if namespace == self.home_namespace {
            return Some(format!("namespace `{namespace}` is the connector's own"));
        }
        if namespace == "default" || namespace.starts_with("kube-") {
            return Some(format!("namespace `{namespace}` belongs to the cluster"));
        }
        None
    }
}

/// Namespaces of the manifest, and Namespace objects that charts render.
pub(super) fn check_namespaces(manifest: &Manifest, objects: &[RenderedObject], scope: &Scope<'_>, findings: &mut Findings<'_>) {
    for (i, namespace) in manifest.namespaces.iter().enumerate() {
        if let Some(objection) = scope.objection(namespace.as_str()) {
            findings.place(format!("namespaces[{i}]"), format!("{objection}; a platform namespace may not"));
        }
    }
    for object in objects {
        let key = object.key();
        let listed = manifest.namespaces.iter().any(|namespace| namespace.as_str() == key.name);
        if key.group.is_empty()
            && key.kind == "Namespace"
            && !listed
            && let Some(objection) = scope.objection(&key.name)
        {
            findings.object(object, objection, Some("leave the Namespace out of the chart's values"));
        }
    }
}

/// Whether a document says what it is; nothing else can be said of one that does not.
pub(super) fn check_document(object: &RenderedObject, findings: &mut Findings<'_>) -> bool {
    let says = |field: &str| object.object.get(field).and_then(Value::as_str).is_some_and(|text| !text.is_empty());
    let is_object = says("apiVersion") && says("kind");
    if !is_object {
        findings.object(object, "the document has no apiVersion or no kind", None);
    }
    is_object
}

/// Kind and place of one object.
pub(super) fn check_object(manifest: &Manifest, object: &RenderedObject, findings: &mut Findings<'_>) {
    let key = object.key();
    let Some(row) = key.row() else {
        let avoid = Refused::find(&key.group, &key.kind).map(|row| row.avoid).filter(|avoid| !avoid.is_empty());
        findings.object(object, format!("{} is in neither half of a bundle", kind_name(&key)), avoid);
        return;
    };
    if row.namespaced && key.namespace.is_empty() {
        findings.object(object, "the object needs a namespace", None);
        return;
    }
    let inside = manifest.namespaces.iter().any(|namespace| namespace.as_str() == key.namespace);
    match row.half {
        Half::Workload if object.component.is_none() => {
            findings.object(object, "a workload object needs a component; `objects` holds permission kinds only", None);
        }
        Half::Workload if !inside => {
            let problem = format!("a workload object may lie in the bundle's `namespaces` only, not in `{}`", key.namespace);
            findings.object(object, problem, Some("set the chart's namespace override to the component's namespace, or leave it empty"));
        }
        Half::Workload | Half::Permissions => {}
    }
}

/// Two objects with one identity, wherever they come from.
pub(super) fn check_duplicates<'a>(objects: impl Iterator<Item = &'a RenderedObject>, findings: &mut Findings<'_>) {
    let mut first: BTreeMap<ObjectKey, &RenderedObject> = BTreeMap::new();
    for object in objects {
        let key = object.key();
        if key.name.is_empty() {
            continue;
        }
        if let Some(other) = first.get(&key) {
            let owner = other.component.as_deref().map(|name| format!(" of component {name}")).unwrap_or_default();
            findings.object(object, format!("the object is rendered twice, first by {}{owner}", other.template), None);
        } else {
            first.insert(key, object);
        }
    }
}

fn kind_name(key: &ObjectKey) -> String {
    if key.group.is_empty() { key.kind.clone() } else { format!("{}.{}", key.kind, key.group) }
}
