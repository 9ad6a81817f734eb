//! What no apply can change, found before the first write: why, and how a person replaces it by hand.

use agent_api::object::ObjectKey;
use serde::Serialize;
use serde_json::Value;

/// Why an object must be replaced.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub(in super::super) struct Replacement {
    /// In words.
    pub(in super::super) reason: String,
    /// The command to run.
    pub(in super::super) by_hand: String,
    /// Whether pods of it stop until it is made anew.
    pub(in super::super) stops_pods: bool,
}

/// Whether pods go with an object of this kind.
pub(super) fn has_pods(kind: &str) -> bool {
    matches!(kind, "Deployment" | "Job")
}

/// Why `rendered` cannot become of `live` by an apply; `result` is what an apply would make of it otherwise. `None` where it can.
pub(in super::super) fn replacement(live: &Value, rendered: &Value, result: &Value) -> Option<Replacement> {
    let key = ObjectKey::of(rendered);
    if key.kind == "CustomResourceDefinition" {
        return definition(&key, live, rendered);
    }
    let reason = reason(&key.kind, live, rendered, result)?;
    Some(Replacement { reason, by_hand: delete(&key), stops_pods: has_pods(&key.kind) })
}

fn reason(kind: &str, live: &Value, rendered: &Value, result: &Value) -> Option<String> {
    let changes = |field: &&&str| value(live, field) != value(result, field);
    let fixed = |fields: &'static [&'static str]| {
        let changing: Vec<&str> = fields.iter().filter(changes).copied().collect();
        (!changing.is_empty()).then(|| format!("{} cannot be changed", changing.join(", ")))
    };
    match kind {
        // Selector and reference are each one value: an apply sets the whole.
        "Deployment" => {
            let selector = |object: &Value| object.pointer("/spec/selector").cloned().unwrap_or_default();
            (selector(live) != selector(rendered)).then(|| "spec.selector cannot be changed".to_owned())
        }
        "RoleBinding" | "ClusterRoleBinding" => {
            let role = |object: &Value| ["kind", "name"].map(|field| object.pointer(&format!("/roleRef/{field}")).cloned());
            let text = |object: &Value| {
                let [kind, name] = role(object).map(|part| part.as_ref().and_then(Value::as_str).unwrap_or_default().to_owned());
                format!("{kind} {name}")
            };
            (role(live) != role(rendered)).then(|| format!("roleRef cannot be changed: {} → {}", text(live), text(rendered)))
        }
        "StorageClass" => fixed(&["provisioner", "parameters", "reclaimPolicy", "volumeBindingMode"]),
        "PriorityClass" => fixed(&["value", "preemptionPolicy"]),
        "Secret" => fixed(&["type"]).or_else(|| immutable(live, result, &["data"])),
        "ConfigMap" => immutable(live, result, &["data", "binaryData"]),
        "Service" => {
            let address = |object: &Value| object.pointer("/spec/clusterIP").and_then(Value::as_str).unwrap_or_default().to_owned();
            let (old, new) = (address(live), address(rendered));
            (!old.is_empty() && !new.is_empty() && old != new).then(|| "spec.clusterIP cannot be changed".to_owned())
        }
        _ => None,
    }
}

/// The values of an immutable object stay, and so does its being immutable.
fn immutable(live: &Value, result: &Value, fields: &[&str]) -> Option<String> {
    let is = |object: &Value| object.get("immutable").and_then(Value::as_bool) == Some(true);
    let differs = !is(result) || fields.iter().any(|field| value(live, field) != value(result, field));
    (is(live) && differs).then(|| "it is immutable".to_owned())
}

/// A field, where an empty one is as good as none.
fn value<'a>(object: &'a Value, field: &str) -> Option<&'a Value> {
    object.get(field).filter(|value| !value.is_null() && value.as_object().is_none_or(|map| !map.is_empty()))
}

/// A definition is never deleted for this: all its objects would go with it.
fn definition(key: &ObjectKey, live: &Value, rendered: &Value) -> Option<Replacement> {
    let text = |object: &Value, pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
    if text(live, "/spec/scope") != text(rendered, "/spec/scope") {
        let reason = "spec.scope cannot be changed".to_owned();
        return Some(Replacement {
            reason,
            by_hand: format!("{} (its objects go with it: save them before)", delete(key)),
            stops_pods: false,
        });
    }
    let versions = rendered.pointer("/spec/versions").and_then(Value::as_array);
    let offered: Vec<String> = versions.into_iter().flatten().map(|version| text(version, "/name")).collect();
    let stored = live.pointer("/status/storedVersions").and_then(Value::as_array);
    let stored: Vec<&str> = stored.into_iter().flatten().filter_map(Value::as_str).collect();
    let (kept, lost): (Vec<&str>, Vec<&str>) = stored.into_iter().partition(|version| offered.iter().any(|offered| offered == version));
    if lost.is_empty() {
        return None;
    }
    let kept = if kept.is_empty() { offered.iter().map(String::as_str).collect() } else { kept };
    let patch = serde_json::json!({"status": {"storedVersions": kept}}).to_string();
    Some(Replacement {
        reason: format!("objects of it may be stored as {}, a version that the new one lacks", lost.join(", ")),
        by_hand: format!(
            "kubectl patch customresourcedefinition {} --subresource=status --type=merge -p {} (after all its objects were written again \
             as {})",
            quoted(&key.name),
            quoted(&patch),
            kept.join(", ")
        ),
        stops_pods: false,
    })
}

fn delete(key: &ObjectKey) -> String {
    format!("kubectl delete {}", object_argument(key))
}

/// The object as kubectl is told of it.
pub(super) fn object_argument(key: &ObjectKey) -> String {
    let resource = key.row().map_or_else(|| key.kind.to_lowercase(), |row| row.resource.to_owned());
    let group = if key.group.is_empty() { String::new() } else { format!(".{}", key.group) };
    let namespace = if key.namespace.is_empty() { String::new() } else { format!(" -n {}", quoted(&key.namespace)) };
    format!("{}{namespace} {}", quoted(&format!("{resource}{group}")), quoted(&key.name))
}

/// A word for a shell: the command is copied, and names come from a bundle.
fn quoted(word: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._/:".contains(&byte);
    if !word.is_empty() && !word.starts_with('-') && word.bytes().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::super::applied;
    use super::*;
    use serde_json::json;

    fn object(api_version: &str, kind: &str, namespace: Option<&str>, content: &Value) -> Value {
        let mut object = json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "x", "namespace": namespace}});
        object.as_object_mut().unwrap().extend(content.as_object().unwrap().clone());
        object
    }

    fn check(api_version: &str, kind: &str, live: Value, rendered: Value, expected: Option<(&str, &str)>) {
        let namespace = matches!(kind, "Deployment" | "RoleBinding" | "Secret" | "ConfigMap" | "Service").then_some("n");
        let (live, rendered) = (object(api_version, kind, namespace, &live), object(api_version, kind, namespace, &rendered));
        let found = replacement(&live, &rendered, &applied(&live, &rendered, "clicklink-approve"));
        let found = found.as_ref().map(|found| (found.reason.as_str(), found.by_hand.as_str()));
        assert_eq!(found, expected, "{kind} {rendered}");
    }

    #[test]
    fn what_cannot_be_changed_is_named_with_its_command() {
        let selector = |app: &str| json!({"spec": {"replicas": 1, "selector": {"matchLabels": {"app": app}}}});
        let command = "kubectl delete deployments.apps -n n x";
        check("apps/v1", "Deployment", selector("a"), selector("b"), Some(("spec.selector cannot be changed", command)));
        check("apps/v1", "Deployment", selector("a"), selector("a"), None);

        let class = |parameters: Value, mode: &str| json!({"provisioner": "p", "parameters": parameters, "volumeBindingMode": mode});
        let command = "kubectl delete storageclasses.storage.k8s.io x";
        let (live, other) = (class(json!({"type": "gp3"}), "Immediate"), class(json!({"type": "io2"}), "WaitForFirstConsumer"));
        check("storage.k8s.io/v1", "StorageClass", live.clone(), other, Some(("parameters, volumeBindingMode cannot be changed", command)));
        check("storage.k8s.io/v1", "StorageClass", live.clone(), json!({"provisioner": "p", "allowVolumeExpansion": true}), None);
        check("storage.k8s.io/v1", "StorageClass", json!({"provisioner": "p"}), json!({"provisioner": "p", "parameters": {}}), None);

        let reference = |name: &str| json!({"roleRef": {"kind": "ClusterRole", "name": name}});
        let rbac = "rbac.authorization.k8s.io/v1";
        let reason = "roleRef cannot be changed: ClusterRole view → ClusterRole edit";
        let command = "kubectl delete rolebindings.rbac.authorization.k8s.io -n n x";
        check(rbac, "RoleBinding", reference("view"), reference("edit"), Some((reason, command)));
        let command = "kubectl delete clusterrolebindings.rbac.authorization.k8s.io x";
        check(rbac, "ClusterRoleBinding", reference("view"), reference("edit"), Some((reason, command)));
        let filled = json!({"roleRef": {"kind": "ClusterRole", "name": "view", "apiGroup": "rbac.authorization.k8s.io"}});
        check(rbac, "RoleBinding", filled, reference("view"), None);

        let command = "kubectl delete secrets -n n x";
        let secret = |kind: &str| json!({"type": kind});
        check("v1", "Secret", secret("Opaque"), secret("kubernetes.io/tls"), Some(("type cannot be changed", command)));
        check("v1", "Secret", secret("Opaque"), json!({}), None);
        let fixed = |value: &str| json!({"type": "Opaque", "immutable": true, "data": {"k": value}});
        check("v1", "Secret", fixed("a"), fixed("b"), Some(("it is immutable", command)));
        check("v1", "Secret", fixed("a"), fixed("a"), None);
        check("v1", "ConfigMap", fixed("a"), fixed("b"), Some(("it is immutable", "kubectl delete configmaps -n n x")));
        check("v1", "ConfigMap", json!({"data": {"k": "a"}}), fixed("b"), None);

        let command = "kubectl delete priorityclasses.scheduling.k8s.io x";
        check(
            "scheduling.k8s.io/v1",
            "PriorityClass",
            json!({"value": 1}),
            json!({"value": 2}),
            Some(("value cannot be changed", command)),
        );
        let service = |address: &str| json!({"spec": {"clusterIP": address}});
        let command = "kubectl delete services -n n x";
        check("v1", "Service", service("10.0.0.1"), service("None"), Some(("spec.clusterIP cannot be changed", command)));
        check("v1", "Service", service("10.0.0.1"), json!({"spec": {}}), None);
    }

    #[test]
    fn a_definition_is_mended_and_not_deleted() {
        let kind = "CustomResourceDefinition";
        let live = |stored: Value| json!({"spec": {"scope": "Cluster"}, "status": {"storedVersions": stored}});
        let new = |names: &[&str]| json!({"spec": {"scope": "Cluster", "versions": names.iter().map(|name| json!({"name": name})).collect::<Vec<_>>()}});
        let reason = "objects of it may be stored as v1alpha1, a version that the new one lacks";
        let command = "kubectl patch customresourcedefinition x --subresource=status --type=merge -p '{\"status\":{\"storedVersions\":[\"v1\"]}}' \
                       (after all its objects were written again as v1)";
        let api_version = "apiextensions.k8s.io/v1";
        check(api_version, kind, live(json!(["v1alpha1"])), new(&["v1"]), Some((reason, command)));
        check(api_version, kind, live(json!(["v1alpha1", "v1"])), new(&["v1", "v2"]), Some((reason, command)));
        check(api_version, kind, live(json!(["v1"])), new(&["v1", "v2"]), None);
    }

    #[test]
    fn a_name_is_one_word_for_a_shell() {
        for (word, expected) in
            [("a.b-c:d", "a.b-c:d"), ("a;b", "'a;b'"), ("$(x)", "'$(x)'"), ("it's", "'it'\\''s'"), ("-x", "'-x'"), ("", "''")]
        {
            assert_eq!(quoted(word), expected);
        }
    }
}
