//! What a chart rendered, in one form: lists opened, hooks that never run left out, every object in the component's namespace and labelled.
//!
//! Hooks of install and upgrade are ordinary objects here, applied at their place; kinds that run once (Jobs) are no kinds of a component.

use agent_api::object::{ObjectKey, RenderedObject, metadata_map};
use cluster::crd::component_kind::ComponentKind;
use cluster::crd::managed_component::COMPONENT_LABEL;
use render::engine::EngineObject;
use render::normalise::{LeftOut, drop_server_fields, hook_of, left_out, opened_as};
use serde_json::Value;

/// A chart's objects in one form.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Normalised {
    /// To be guarded.
    pub objects: Vec<RenderedObject>,
    /// Hooks that never run (test, delete, rollback), named in the status.
    pub left_out: Vec<LeftOut>,
}

/// Normalises what one component's chart rendered.
#[must_use]
pub fn normalise(component: &str, namespace: &str, rendered: Vec<EngineObject>) -> Normalised {
    let mut result = Normalised::default();
    for object in rendered {
        if let Some(events) = left_out(&object) {
            let (key, template) = (ObjectKey::of(&object.object), object.template);
            result.left_out.push(LeftOut { component: component.to_owned(), template, object: key, events });
            continue;
        }
        let hook = hook_of(&object);
        for mut single in opened_as(object.object, &|group, kind| ComponentKind::find(group, kind).is_some()) {
            drop_server_fields(&mut single);
            let key = ObjectKey::of(&single);
            if ComponentKind::find(&key.group, &key.kind).is_some() {
                set_namespace(&mut single, namespace);
                if let Some(labels) = metadata_map(&mut single, "labels") {
                    labels.insert(COMPONENT_LABEL.to_owned(), component.into());
                }
            }
            let component = Some(component.to_owned());
            result.objects.push(RenderedObject { component, template: object.template.clone(), hook, object: single });
        }
    }
    result
}

fn set_namespace(object: &mut Value, namespace: &str) {
    let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) else { return };
    if metadata.get("namespace").and_then(Value::as_str).is_none_or(str::is_empty) {
        metadata.insert("namespace".to_owned(), namespace.into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn engine(object: Value, hooks: &[&str]) -> EngineObject {
        let hooks = hooks.iter().map(ToString::to_string).collect();
        EngineObject { template: "redis/templates/x.yaml".into(), hooks, weight: 0, crd: false, object }
    }

    #[test]
    fn lists_are_opened_namespaces_defaulted_and_labels_set() {
        let map = |name: &str| json!({"metadata": {"name": name}});
        let typed = json!({"apiVersion": "apps/v1", "kind": "StatefulSetList", "items": [map("a")]});
        let plain = json!({"apiVersion": "v1", "kind": "List", "items": [
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "b", "namespace": "elsewhere"}, "status": {}}]});
        let found = normalise("redis", "here", vec![engine(typed, &[]), engine(plain, &["pre-install"])]);
        let objects: Vec<&Value> = found.objects.iter().map(|rendered| &rendered.object).collect();
        let labels = json!({"platform.navin.ai/component": "redis"});
        let first =
            json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "a", "namespace": "here", "labels": labels}});
        let second =
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "b", "namespace": "elsewhere", "labels": labels}});
        assert_eq!(objects, [&first, &second]);
        assert_eq!((found.objects[0].hook, found.objects[1].hook.is_some()), (None, true));
    }

    /// The table "hooks" of docs/operator.md.
    #[test]
    fn hooks_that_never_run_are_left_out_and_named() {
        let pod = |name: &str| json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}});
        for (event, applied) in [
            ("pre-install", true),
            ("pre-upgrade", true),
            ("post-install", true),
            ("post-upgrade", true),
            ("test", false),
            ("pre-delete", false),
            ("post-delete", false),
            ("pre-rollback", false),
            ("post-rollback", false),
        ] {
            let found = normalise("redis", "here", vec![engine(pod("p"), &[event])]);
            assert_eq!((found.objects.len(), found.left_out.len()), if applied { (1, 0) } else { (0, 1) }, "{event}");
        }
    }
}
