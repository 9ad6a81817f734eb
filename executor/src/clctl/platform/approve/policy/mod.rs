//! The admission policies that compare what the account writes with what was approved, and the definition of the approval itself.
//!
//! Their text lies beside this file, as it is in the cluster. They are updated in place, never deleted and made anew: between the two
//! everything would pass.

use agent_api::names::{APPROVED_POLICY, APPROVED_SECRETS_POLICY, PCM_PLATFORM, PINS_SECRET};
use agent_api::platform_approval::CURRENT;
use serde_json::{Value, json};

use super::{MANAGED_BY_APPROVE, OWN_LABEL};

const ADMISSION: &str = "admissionregistration.k8s.io/v1";

const APPROVED: &str = include_str!("approved.yaml");
const APPROVED_SECRETS: &str = include_str!("approved_secrets.yaml");
const DEFINITION: &str = include_str!("platformapprovals.yaml");

/// Where a policy's `spec` lists its namespaces.
const NAMESPACES: &str = "/matchConstraints/namespaceSelector/matchExpressions/0/values";

/// The CustomResourceDefinition of PlatformApproval.
pub(super) fn definition() -> Value {
    let mut definition = read(DEFINITION);
    definition["metadata"]["labels"] = json!({OWN_LABEL: MANAGED_BY_APPROVE});
    definition
}

/// Both policies, each followed by its binding.
pub(super) fn policies<'a>(namespaces: impl IntoIterator<Item = &'a str>, home: &str) -> Vec<Value> {
    let namespaces: Vec<&str> = namespaces.into_iter().collect();
    let both = [(APPROVED_POLICY, APPROVED, CURRENT), (APPROVED_SECRETS_POLICY, APPROVED_SECRETS, PINS_SECRET)];
    both.into_iter().flat_map(|(name, text, parameter)| [policy(name, text, &namespaces, home), binding(name, parameter, home)]).collect()
}

fn policy(name: &str, text: &str, namespaces: &[&str], home: &str) -> Value {
    let mut spec = read(&text.replace("${who}", &format!("system:serviceaccount:{home}:{PCM_PLATFORM}")));
    if let Some(values) = spec.pointer_mut(NAMESPACES) {
        *values = json!(namespaces);
    }
    json!({"apiVersion": ADMISSION, "kind": "ValidatingAdmissionPolicy", "metadata": metadata(name), "spec": spec})
}

fn binding(name: &str, parameter: &str, home: &str) -> Value {
    let spec = json!({"policyName": name, "validationActions": ["Deny"],
        "paramRef": {"name": parameter, "namespace": home, "parameterNotFoundAction": "Deny"}});
    json!({"apiVersion": ADMISSION, "kind": "ValidatingAdmissionPolicyBinding", "metadata": metadata(name), "spec": spec})
}

fn metadata(name: &str) -> Value {
    json!({"name": name, "labels": {OWN_LABEL: MANAGED_BY_APPROVE}})
}

/// The files are this program's own, and a test reads each.
fn read(text: &str) -> Value {
    serde_saphyr::from_str(text).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use agent_api::kind::{Half, KINDS};
    use agent_api::platform_approval;

    use super::*;

    #[test]
    fn names_and_namespaces_are_filled_in() {
        let all = policies(["a", "b"], "home");
        let names: Vec<&str> = all.iter().map(|object| object["metadata"]["name"].as_str().unwrap()).collect();
        assert_eq!(names, [APPROVED_POLICY, APPROVED_POLICY, APPROVED_SECRETS_POLICY, APPROVED_SECRETS_POLICY]);
        for policy in all.iter().step_by(2) {
            let spec = &policy["spec"];
            assert_eq!(spec["failurePolicy"], "Fail");
            assert_eq!(spec.pointer(NAMESPACES), Some(&json!(["a", "b"])));
            assert_eq!(spec["matchConstraints"]["objectSelector"], json!({"matchLabels": {"clicklink.io/pinned": "true"}}));
            let who = json!([{"name": "who", "expression": "request.userInfo.username == 'system:serviceaccount:home:pcm-platform'"}]);
            assert_eq!(spec["matchConditions"], who);
        }
        let parameters: Vec<&Value> = all.iter().skip(1).step_by(2).map(|binding| &binding["spec"]["paramRef"]).collect();
        assert_eq!(
            parameters,
            [
                &json!({"name": "current", "namespace": "home", "parameterNotFoundAction": "Deny"}),
                &json!({"name": "pcm-platform-pins", "namespace": "home", "parameterNotFoundAction": "Deny"}),
            ]
        );
    }

    #[test]
    fn every_kind_that_the_account_may_write_is_compared() {
        let policies = policies([], "home");
        let rules = policies[0]["spec"]["matchConstraints"]["resourceRules"].as_array().unwrap().clone();
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let compared: BTreeSet<(String, String)> = rules
            .iter()
            .flat_map(|rule| rule["resources"].as_array().unwrap().iter().map(|name| (text(&rule["apiGroups"][0]), text(name))))
            .collect();
        let writable = KINDS.iter().filter(|row| row.half == Half::Workload).map(|row| (row.group.to_owned(), row.resource.to_owned()));
        assert_eq!(compared, writable.collect());
    }

    #[test]
    fn the_definition_is_of_the_contracts_type() {
        let definition = definition();
        assert_eq!(definition["metadata"]["name"], format!("{}.{}", platform_approval::RESOURCE, platform_approval::GROUP));
        let spec = &definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"];
        let written = platform_approval::PlatformApprovalSpec {
            sha256: agent_api::digest::Sha256::of(b""),
            workload_sha256: agent_api::digest::Sha256::of(b""),
            approved_by: String::new(),
            approved_at: jiff::Timestamp::UNIX_EPOCH,
            expires_at: jiff::Timestamp::UNIX_EPOCH,
            install_id: agent_api::name::InstallId(uuid::Uuid::nil()),
            objects: 0,
            credentials: Vec::new(),
            workloads: std::collections::BTreeMap::new(),
        };
        let written = serde_json::to_value(written).unwrap();
        let (written, defined) = (written.as_object().unwrap(), spec["properties"].as_object().unwrap());
        assert_eq!(written.keys().collect::<BTreeSet<_>>(), defined.keys().collect::<BTreeSet<_>>());
        assert_eq!(spec["required"].as_array().unwrap().len(), defined.len());
    }
}
