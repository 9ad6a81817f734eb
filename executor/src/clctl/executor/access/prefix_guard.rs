//! `pcm-executor-prefix-guard`: the admission policy that keeps every write of `pcm-executor` inside the service prefix.
//!
//! At home three objects are admitted by name: its own token, its registry of instances, and, in a pod, the client certificate.
//! Reads are not confined: admission does not see them.

use agent_api::names::{HOME_NAMESPACE_VM, PCM_EXECUTOR, PREFIX_GUARD};
use serde_json::{Value, json};

const ADMISSION: &str = "admissionregistration.k8s.io/v1";
/// The executor's list of instances in a pod.
const REGISTRY_CONFIG_MAP: &str = "clicklink-instance-registry";
/// The client certificate in a pod.
const MTLS_SECRET: &str = "clicklink-mtls";

/// The policy. `prefix` and `home` hold nothing but what a namespace's name may.
pub(super) fn policy(prefix: &str, home: &str) -> Value {
    json!({
        "apiVersion": ADMISSION, "kind": "ValidatingAdmissionPolicy", "metadata": {"name": PREFIX_GUARD},
        "spec": {
            "failurePolicy": "Fail",
            "matchConstraints": {"resourceRules": [
                {"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*/*"]}]},
            "matchConditions": [
                {"name": "who", "expression": format!("request.userInfo.username == 'system:serviceaccount:{home}:{PCM_EXECUTOR}'")}],
            "variables": [
                {"name": "place", "expression": "request.?namespace.orValue('')"},
                {"name": "called", "expression": "request.?name.orValue('')"},
                {"name": "target", "expression":
                    "request.resource.group + '/' + request.resource.resource + (has(request.subResource) && request.subResource != '' ? \
                     '/' + request.subResource : '')"},
            ],
            "validations": [{"expression": expression(prefix, home), "message":
                format!("guard: pcm-executor writes in namespaces that begin with {prefix} only")}],
        },
    })
}

/// Its binding: no exception, no parameter.
pub(super) fn binding() -> Value {
    json!({"apiVersion": ADMISSION, "kind": "ValidatingAdmissionPolicyBinding", "metadata": {"name": PREFIX_GUARD},
        "spec": {"policyName": PREFIX_GUARD, "validationActions": ["Deny"]}})
}

fn expression(prefix: &str, home: &str) -> String {
    let mut at_home = vec![
        format!("(variables.target == '/serviceaccounts/token' && variables.called == '{PCM_EXECUTOR}')"),
        format!("(variables.target == '/configmaps' && variables.called == '{REGISTRY_CONFIG_MAP}' && request.operation != 'DELETE')"),
    ];
    if home != HOME_NAMESPACE_VM {
        at_home.push(format!("(variables.target == '/secrets' && variables.called == '{MTLS_SECRET}' && request.operation == 'UPDATE')"));
    }
    // A Namespace is judged by its own name; questions about its own rights change nothing.
    format!(
        "(variables.target.startsWith('/namespaces') ? variables.called.startsWith('{prefix}') : variables.place.startsWith('{prefix}')) \
         || (variables.place == '{home}' && ({})) \
         || variables.target in ['authorization.k8s.io/selfsubjectaccessreviews','authorization.k8s.io/selfsubjectrulesreviews',\
         'authentication.k8s.io/selfsubjectreviews']",
        at_home.join(" || ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_client_certificate_is_admitted_in_a_pod_only() {
        assert!(!expression("ns-", HOME_NAMESPACE_VM).contains(MTLS_SECRET));
        assert!(expression("ns-", "clicklink").contains(MTLS_SECRET));
    }

    #[test]
    fn of_all_tokens_at_home_its_own_is_admitted() {
        for home in [HOME_NAMESPACE_VM, "clicklink"] {
            let expression = expression("ns-", home);
            let own = format!(
                "variables.place == '{home}' && ((variables.target == '/serviceaccounts/token' && variables.called == 'pcm-executor')"
            );
            assert!(expression.contains(&own), "{expression}");
            assert_eq!(expression.matches("/serviceaccounts/token").count(), 1, "{expression}");
        }
    }

    #[test]
    fn names_are_filled_in() {
        let policy = policy("svc-", "clicklink");
        let who = "request.userInfo.username == 'system:serviceaccount:clicklink:pcm-executor'";
        assert_eq!(policy["spec"]["matchConditions"][0]["expression"], who);
        assert_eq!(policy["spec"]["failurePolicy"], "Fail");
        assert!(
            expression("svc-", "clicklink")
                .starts_with("(variables.target.startsWith('/namespaces') ? variables.called.startsWith('svc-')")
        );
    }
}
