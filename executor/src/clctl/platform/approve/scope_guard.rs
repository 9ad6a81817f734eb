//! `pcm-platform-scope-guard`: the admission policy that bounds what the account may ever touch, whatever rights it has.
//!
//! The rules were tried against a real API server with attacks and honest use; they are taken as they were, with names filled in.
//! Each violation has a message of its own. The policy is updated in place, never deleted and made anew.

use agent_api::keys;
use agent_api::kind::{Half, KINDS};
use agent_api::manifest::Manifest;
use agent_api::names::{FIELD_MANAGER_EXECUTOR, PCM_PLATFORM, SCOPE_GUARD};
use serde_json::{Value, json};

use super::{MANAGED_BY_APPROVE, OWN_LABEL};

const ADMISSION: &str = "admissionregistration.k8s.io/v1";

/// The policy.
pub(super) fn policy(manifest: &Manifest, home: &str) -> Value {
    let namespaces = list(manifest.namespaces.iter().map(|namespace| namespace.to_string()));
    let kinds = list(KINDS.iter().filter(|row| row.half == Half::Workload).map(|row| format!("{}/{}", row.group, row.resource)));
    let validations: Vec<Value> = rules(&namespaces, &kinds)
        .into_iter()
        .map(|(expression, message)| json!({"expression": expression, "message": format!("guard: {message}")}))
        .collect();
    json!({
        "apiVersion": ADMISSION, "kind": "ValidatingAdmissionPolicy", "metadata": metadata(),
        "spec": {
            "failurePolicy": "Fail",
            "matchConstraints": {"resourceRules": [
                {"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*/*"]}]},
            "matchConditions": [
                {"name": "who", "expression": format!("request.userInfo.username == 'system:serviceaccount:{home}:{PCM_PLATFORM}'")}],
            "validations": validations,
        },
    })
}

/// Its binding: no exception, no parameter.
pub(super) fn binding() -> Value {
    json!({"apiVersion": ADMISSION, "kind": "ValidatingAdmissionPolicyBinding", "metadata": metadata(),
        "spec": {"policyName": SCOPE_GUARD, "validationActions": ["Deny"]}})
}

fn metadata() -> Value {
    json!({"name": SCOPE_GUARD, "labels": {OWN_LABEL: MANAGED_BY_APPROVE}})
}

/// A CEL list of texts. Namespaces are DNS labels and the kinds are ours, so that nothing needs quoting.
fn list(items: impl Iterator<Item = String>) -> String {
    format!("[{}]", items.map(|item| format!("'{item}'")).collect::<Vec<_>>().join(","))
}

/// (expression, message) of each rule.
fn rules(namespaces: &str, kinds: &str) -> [(String, &'static str); 10] {
    let manager = FIELD_MANAGER_EXECUTOR;
    let pinned = keys::PINNED;
    [
        ("request.operation in ['CREATE','UPDATE'] && !has(request.subResource)".into(), "only create and update of whole objects"),
        // A cluster-scoped object has none.
        (format!("request.?namespace.orValue('') in {namespaces}"), "namespace"),
        (format!("(request.resource.group + '/' + request.resource.resource) in {kinds}"), "kind"),
        (
            format!(
                "request.options.?fieldManager.orValue('') == '{manager}' && object.metadata.?managedFields.orValue([]).exists(m, \
                 m.manager == '{manager}' && m.operation == 'Apply') && object.metadata.managedFields.all(m, m.manager != '{manager}' \
                 || m.operation == 'Apply' || (oldObject != null && oldObject.metadata.?managedFields.orValue([]).exists(n, n == m)))"
            ),
            "only server-side apply as clicklink-executor",
        ),
        ("request.resource.resource != 'secrets' || object.type in ['Opaque','kubernetes.io/tls']".into(), "Secret type"),
        (
            "(oldObject == null ? [] : oldObject.metadata.?ownerReferences.orValue([])) == object.metadata.?ownerReferences.orValue([]) \
             && (oldObject == null ? [] : oldObject.metadata.?finalizers.orValue([])) == object.metadata.?finalizers.orValue([])"
                .into(),
            "ownerReferences and finalizers may not be touched",
        ),
        (
            "!(request.resource.resource in ['deployments','jobs']) || object.spec.template.metadata.all(k, k in \
             ['labels','annotations','creationTimestamp'])"
                .into(),
            "pod template metadata",
        ),
        (
            "request.resource.resource != 'services' || (!has(object.spec.externalIPs) && object.spec.type != 'ExternalName')".into(),
            "externalIPs, ExternalName",
        ),
        (
            format!(
                "oldObject == null || (oldObject.metadata.?managedFields.orValue([]).all(m, m.manager == '{manager}' || m in \
                 object.metadata.?managedFields.orValue([])) && object.metadata.?managedFields.orValue([]).all(m, m.manager in \
                 ['{manager}', 'before-first-apply'] || m in oldObject.metadata.?managedFields.orValue([])))"
            ),
            "what other managers own may neither be taken from them nor be given to them",
        ),
        (
            format!("object.metadata.?labels[?'{pinned}'].orValue('') == 'true'"),
            "the label that puts the object under the pinning policy is missing",
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_filled_in() {
        let rules = rules(&list(["a".to_owned(), "b".to_owned()].into_iter()), "[]");
        assert_eq!(rules[1].0, "request.?namespace.orValue('') in ['a','b']");
        assert!(rules[3].0.starts_with("request.options.?fieldManager.orValue('') == 'clicklink-executor' && "));
        assert_eq!(rules[9].0, "object.metadata.?labels[?'clicklink.io/pinned'].orValue('') == 'true'");
    }

    #[test]
    fn every_rule_fails_closed_and_denies() {
        let text = include_str!("../../../../../agent-api/tests/wire/manifest.json");
        let bundle = agent_api::manifest::Bundle::parse(text.to_owned()).unwrap();
        let spec = &policy(bundle.manifest(), "home")["spec"];
        assert_eq!(spec["failurePolicy"], "Fail");
        let everything = json!([{"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*/*"]}]);
        assert_eq!(spec["matchConstraints"], json!({"resourceRules": everything}));
        let who = "request.userInfo.username == 'system:serviceaccount:home:pcm-platform'";
        assert_eq!(spec["matchConditions"], json!([{"name": "who", "expression": who}]));
        assert_eq!(spec["validations"].as_array().unwrap().len(), 10);
        assert_eq!(binding()["spec"], json!({"policyName": "pcm-platform-scope-guard", "validationActions": ["Deny"]}));
    }
}
