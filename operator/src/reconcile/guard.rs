//! What a chart may produce: eleven kinds, in the component's own namespace, under names of its own. Everything that is not so is refused, all
//! of it at once, with template and object.

use std::collections::BTreeMap;
use std::fmt;

use agent_api::object::{ObjectKey, RenderedObject, is_empty};
use agent_api::values::secrets_in;
use cluster::crd::component_kind::ComponentKind;
use serde_json::{Map, Value};

/// Objects that passed; there is no other way to have one.
#[derive(Clone, PartialEq, Debug)]
pub struct Allowed {
    objects: Vec<RenderedObject>,
    plain_secrets: Vec<String>,
}

impl Allowed {
    /// The objects.
    #[must_use]
    pub fn objects(&self) -> &[RenderedObject] {
        &self.objects
    }

    /// The objects, to be transformed.
    #[must_use]
    pub fn into_objects(self) -> Vec<RenderedObject> {
        self.objects
    }

    /// Where a rendered object holds what looks like a secret in plain text: object and path, never the text. It is told, not refused.
    #[must_use]
    pub fn plain_secrets(&self) -> &[String] {
        &self.plain_secrets
    }
}

/// One object that is refused.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Refusal {
    /// Template.
    pub template: String,
    /// The object, as `Kind.group namespace/name`.
    pub object: String,
    /// Why.
    pub problem: String,
}

/// Every refusal; never empty.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Refusals(pub Vec<Refusal>);

impl fmt::Display for Refusals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines: Vec<String> =
            self.0.iter().map(|refusal| format!("{}, {}: {}", refusal.template, refusal.object, refusal.problem)).collect();
        f.write_str(&lines.join("; "))
    }
}

impl std::error::Error for Refusals {}

/// Judges what a chart rendered, normalised, for a namespace.
///
/// # Errors
/// All refusals.
pub fn guard(objects: Vec<RenderedObject>, namespace: &str) -> Result<Allowed, Refusals> {
    let mut refusals = Vec::new();
    let mut first: BTreeMap<ObjectKey, String> = BTreeMap::new();
    for rendered in &objects {
        let key = rendered.key();
        let mut problems = problems(&rendered.object, &key, namespace);
        if let Some(template) = first.get(&key).filter(|_| !key.name.is_empty()) {
            problems.push(format!("it is rendered twice, first by {template}"));
        }
        first.entry(key.clone()).or_insert_with(|| rendered.template.clone());
        let object = key.to_string().trim().to_owned();
        refusals.extend(problems.into_iter().map(|problem| Refusal {
            template: rendered.template.clone(),
            object: object.clone(),
            problem,
        }));
    }
    if !refusals.is_empty() {
        return Err(Refusals(refusals));
    }
    let plain_secrets = objects.iter().flat_map(|rendered| plain_secrets(&rendered.object)).collect();
    Ok(Allowed { objects, plain_secrets })
}

fn problems(object: &Value, key: &ObjectKey, namespace: &str) -> Vec<String> {
    let says = |field: &str| object.get(field).and_then(Value::as_str).is_some_and(|text| !text.is_empty());
    if !says("apiVersion") || !says("kind") {
        return vec!["it has no apiVersion or no kind".into()];
    }
    let mut problems = Vec::new();
    if ComponentKind::find(&key.group, &key.kind).is_none() {
        problems.push(kind_problem(key));
    } else if key.namespace != namespace {
        problems.push(format!("it lies in namespace `{}`, the component in `{namespace}`", key.namespace));
    }
    let field = |name: &str| object.pointer(&format!("/metadata/{name}")).filter(|value| !is_empty(value));
    if field("generateName").is_some() {
        problems.push("metadata.generateName: an applied object has one name".into());
    } else if key.name.is_empty() {
        problems.push("metadata.name is missing".into());
    }
    for name in ["finalizers", "ownerReferences"] {
        if field(name).is_some() {
            problems.push(format!("metadata.{name}: it decides over the deletion of objects"));
        }
    }
    problems
}

fn kind_problem(key: &ObjectKey) -> String {
    let why = match (key.group.as_str(), key.kind.as_str()) {
        ("", "Secret") => "secrets stay Secrets that secretRefs name",
        ("rbac.authorization.k8s.io", _) => "no component grants rights",
        ("apiextensions.k8s.io" | "admissionregistration.k8s.io" | "storage.k8s.io" | "scheduling.k8s.io", _) | ("", "Namespace") => {
            "it belongs to the whole cluster"
        }
        ("batch", "Job" | "CronJob") | ("", "Pod") => "nothing that runs once is applied",
        _ => "it is not one of the kinds of a component",
    };
    let dot = if key.group.is_empty() { "" } else { "." };
    format!("{}{dot}{} is forbidden: {why}", key.kind, key.group)
}

/// Keys of a ConfigMap, and environment variables with a value of their own, that look like secrets.
fn plain_secrets(object: &Value) -> Vec<String> {
    let key = ObjectKey::of(object);
    let mut found: Vec<String> = Vec::new();
    if key.group.is_empty() && key.kind == "ConfigMap" {
        let data = object.get("data").cloned().unwrap_or_default();
        found.extend(secrets_in(&data).into_iter().map(|path| format!("{key}, data.{path}")));
    }
    for list in ["containers", "initContainers"] {
        let containers = object.pointer(&format!("/spec/template/spec/{list}")).and_then(Value::as_array);
        for variables in containers.into_iter().flatten().filter_map(|container| container.get("env")?.as_array()) {
            let named: Map<String, Value> = variables
                .iter()
                .filter_map(|variable| Some((variable.get("name")?.as_str()?.to_owned(), variable.get("value")?.clone())))
                .collect();
            found.extend(secrets_in(&Value::Object(named)).into_iter().map(|name| format!("{key}, environment variable {name}")));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn rendered(object: Value) -> RenderedObject {
        RenderedObject { component: Some("redis".into()), template: "redis/templates/x.yaml".into(), hook: None, object }
    }

    fn object(api_version: &str, kind: &str, metadata: Value) -> RenderedObject {
        let mut whole = json!({"name": "a", "namespace": "here"});
        for (field, value) in metadata.as_object().unwrap() {
            whole[field] = value.clone();
        }
        rendered(json!({"apiVersion": api_version, "kind": kind, "metadata": whole}))
    }

    fn refused(objects: Vec<RenderedObject>) -> String {
        guard(objects, "here").err().map(|refusals| refusals.to_string()).unwrap_or_default()
    }

    /// "Protections": the kinds that charts may produce, row by row.
    #[test]
    fn eleven_kinds_are_allowed() {
        for (api_version, kind) in [
            ("v1", "ConfigMap"),
            ("v1", "Service"),
            ("v1", "ServiceAccount"),
            ("v1", "PersistentVolumeClaim"),
            ("apps/v1", "Deployment"),
            ("apps/v1", "StatefulSet"),
            ("networking.k8s.io/v1", "NetworkPolicy"),
            ("networking.k8s.io/v1", "Ingress"),
            ("policy/v1", "PodDisruptionBudget"),
            ("autoscaling/v2", "HorizontalPodAutoscaler"),
            ("keda.sh/v1alpha1", "ScaledObject"),
        ] {
            assert_eq!(refused(vec![object(api_version, kind, json!({}))]), "", "{kind}");
        }
    }

    /// "Protections": RBAC, Secrets, what belongs to the cluster, and other namespaces.
    #[test]
    fn everything_else_is_refused_by_name() {
        let plain = json!({});
        for (found, expected) in [
            (object("v1", "Secret", plain.clone()), "Secret here/a: Secret is forbidden: secrets stay Secrets"),
            (object("rbac.authorization.k8s.io/v1", "Role", plain.clone()), "no component grants rights"),
            (object("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", plain.clone()), "no component grants rights"),
            (object("apiextensions.k8s.io/v1", "CustomResourceDefinition", plain.clone()), "it belongs to the whole cluster"),
            (object("v1", "Namespace", plain.clone()), "it belongs to the whole cluster"),
            (object("apps/v1", "DaemonSet", plain.clone()), "DaemonSet.apps is forbidden: it is not one of the kinds"),
            (object("batch/v1", "Job", plain.clone()), "nothing that runs once"),
            (object("platform.navin.ai/v1alpha1", "ManagedComponent", plain.clone()), "is forbidden"),
            (object("extensions/v1beta1", "Deployment", plain), "Deployment.extensions is forbidden"),
            (object("v1", "ConfigMap", json!({"namespace": "kube-system"})), "it lies in namespace `kube-system`, the component in `here`"),
            (object("v1", "ConfigMap", json!({"namespace": null})), "it lies in namespace ``"),
            (object("v1", "ConfigMap", json!({"name": null})), "metadata.name is missing"),
            (object("v1", "ConfigMap", json!({"generateName": "a-"})), "metadata.generateName"),
            (object("v1", "ConfigMap", json!({"finalizers": ["a/b"]})), "metadata.finalizers"),
            (object("v1", "ConfigMap", json!({"ownerReferences": [{"uid": "u"}]})), "metadata.ownerReferences"),
            (rendered(json!({"kind": "ConfigMap"})), "it has no apiVersion or no kind"),
            (rendered(json!("text")), "it has no apiVersion or no kind"),
        ] {
            let told = refused(vec![found.clone()]);
            assert!(told.starts_with("redis/templates/x.yaml, ") && told.contains(expected), "{}: {told}", found.object);
        }
        let twice = refused(vec![object("v1", "ConfigMap", json!({})), object("v1", "ConfigMap", json!({}))]);
        assert!(twice.contains("it is rendered twice, first by redis/templates/x.yaml"), "{twice}");
    }

    #[test]
    fn all_refusals_are_told_at_once() {
        let found = guard(vec![object("v1", "Secret", json!({"finalizers": ["x"]})), object("v1", "Pod", json!({}))], "here").unwrap_err();
        assert_eq!(found.0.len(), 3, "{found}");
    }

    #[test]
    fn a_secret_in_plain_text_is_told_by_its_place_and_not_refused() {
        let planted = "planted-5e0b7a";
        let mut map = object("v1", "ConfigMap", json!({}));
        map.object["data"] = json!({"admin-password": planted, "passwordKey": "k", "redis.conf": "x"});
        let mut set = object("apps/v1", "StatefulSet", json!({}));
        set.object["spec"] = json!({"template": {"spec": {"containers": [{"name": "c", "env": [
            {"name": "DB_PASSWORD", "value": planted}, {"name": "API_TOKEN", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}},
            {"name": "LEVEL", "value": "info"}]}]}}});
        let allowed = guard(vec![map, set], "here").unwrap();
        let expected = ["ConfigMap here/a, data.admin-password", "StatefulSet.apps here/a, environment variable DB_PASSWORD"];
        assert_eq!(allowed.plain_secrets(), expected);
    }
}
