//! What a permission object grants, in words: one line a rule, and a warning where a right leads to more rights. Pure.

use serde_json::Value;

/// Verbs by which an identity gets at more than its rules say.
const LEADS_FURTHER: [&str; 3] = ["escalate", "bind", "impersonate"];
/// Resources by which it does (subresources written as in rules), with the verbs that matter; `*` for any.
const OPENS: [(&str, &[&str]); 8] = [
    ("secrets", &["get", "list", "watch"]),
    ("pods/exec", &["create", "get"]),
    ("pods/attach", &["create", "get"]),
    ("nodes/proxy", &["*"]),
    ("serviceaccounts/token", &["create"]),
    ("validatingwebhookconfigurations", &["create", "update", "patch"]),
    ("mutatingwebhookconfigurations", &["create", "update", "patch"]),
    ("apiservices", &["create", "update", "patch"]),
];

/// Lines for the plan; empty for kinds that grant nothing by themselves.
pub(super) fn lines(object: &Value) -> Vec<String> {
    let kind = text(object, "kind");
    match kind {
        "Role" | "ClusterRole" => {
            let aggregated = object.get("aggregationRule").filter(|rule| !rule.is_null());
            let from_others = aggregated.map(|rule| format!("aggregates the rules of all ClusterRoles that match {rule}"));
            rules(object).map(rule_line).chain(from_others).collect()
        }
        "RoleBinding" | "ClusterRoleBinding" => {
            let role = object.get("roleRef").map(|role| format!("{} {}", text(role, "kind"), text(role, "name"))).unwrap_or_default();
            subjects(object).map(|subject| format!("gives {role} to {subject}")).collect()
        }
        _ => Vec::new(),
    }
}

/// What deserves a second look, each as a sentence without its object.
pub(super) fn warnings(object: &Value) -> Vec<String> {
    let mut found = Vec::new();
    match text(object, "kind") {
        "Role" | "ClusterRole" => {
            for rule in rules(object) {
                found.extend(rule_warnings(rule));
            }
            if object.get("aggregationRule").is_some_and(|rule| !rule.is_null()) {
                found.push("takes its rules from other ClusterRoles, also from later ones".to_owned());
            }
        }
        "RoleBinding" | "ClusterRoleBinding" if object.pointer("/roleRef/name").and_then(Value::as_str) == Some("cluster-admin") => {
            found.extend(subjects(object).map(|subject| format!("makes {subject} cluster-admin")));
        }
        _ => {}
    }
    found.sort();
    found.dedup();
    found
}

fn rule_line(rule: &Value) -> String {
    let verbs = words(rule, "verbs").join(", ");
    let urls = words(rule, "nonResourceURLs");
    if !urls.is_empty() {
        return format!("{verbs} on {}", urls.join(", "));
    }
    let groups: Vec<&str> = words(rule, "apiGroups").into_iter().map(|group| if group.is_empty() { "core" } else { group }).collect();
    let names = words(rule, "resourceNames");
    let named = if names.is_empty() { String::new() } else { format!(", named {}", names.join(", ")) };
    format!("{verbs} on {} ({}){named}", words(rule, "resources").join(", "), groups.join(", "))
}

fn rule_warnings(rule: &Value) -> Vec<String> {
    let (verbs, resources) = (words(rule, "verbs"), words(rule, "resources"));
    let has = |list: &[&str], word: &str| list.contains(&word) || list.contains(&"*");
    let mut found: Vec<String> = Vec::new();
    if verbs.contains(&"*") || resources.iter().any(|resource| resource.contains('*')) || words(rule, "apiGroups").contains(&"*") {
        found.push(format!("grants by wildcard: {}", rule_line(rule)));
        return found;
    }
    found.extend(LEADS_FURTHER.iter().filter(|verb| verbs.contains(verb)).map(|verb| format!("grants `{verb}`: {}", rule_line(rule))));
    let opens = OPENS.iter().filter(|(resource, needed)| {
        resources.contains(resource) && (needed.contains(&"*") || needed.iter().any(|verb| has(&verbs, verb)))
    });
    found.extend(opens.map(|(resource, _)| format!("reaches further by {resource}: {}", rule_line(rule))));
    found
}

fn rules(object: &Value) -> impl Iterator<Item = &Value> {
    object.get("rules").and_then(Value::as_array).into_iter().flatten()
}

fn subjects(object: &Value) -> impl Iterator<Item = String> + '_ {
    object.get("subjects").and_then(Value::as_array).into_iter().flatten().map(|subject| {
        let namespace = text(subject, "namespace");
        let place = if namespace.is_empty() { String::new() } else { format!("{namespace}/") };
        format!("{} {place}{}", text(subject, "kind"), text(subject, "name"))
    })
}

fn words<'a>(rule: &'a Value, field: &str) -> Vec<&'a str> {
    rule.get(field).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect()
}

fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value.get(field).and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn role(rules: Value) -> Value {
        json!({"kind": "ClusterRole", "rules": rules})
    }

    #[test]
    fn rules_and_bindings_in_words() {
        let rules = json!([
            {"apiGroups": ["", "apps"], "resources": ["pods", "deployments"], "verbs": ["get", "list"]},
            {"apiGroups": [""], "resources": ["configmaps"], "resourceNames": ["a"], "verbs": ["update"]},
            {"nonResourceURLs": ["/metrics"], "verbs": ["get"]},
        ]);
        assert_eq!(
            lines(&role(rules)),
            ["get, list on pods, deployments (core, apps)", "update on configmaps (core), named a", "get on /metrics",]
        );
        let binding = json!({"kind": "RoleBinding", "roleRef": {"kind": "Role", "name": "r"},
            "subjects": [{"kind": "ServiceAccount", "name": "s", "namespace": "n"}, {"kind": "User", "name": "u"}]});
        assert_eq!(lines(&binding), ["gives Role r to ServiceAccount n/s", "gives Role r to User u"]);
        assert_eq!(lines(&json!({"kind": "Namespace"})), [] as [&str; 0]);
    }

    #[test]
    fn rights_that_lead_to_rights_are_warned_of() {
        let check = |object: Value, expected: &[&str]| {
            let found = warnings(&object);
            assert_eq!(found.len(), expected.len(), "{found:?}");
            for (found, expected) in found.iter().zip(expected) {
                assert!(found.starts_with(expected), "{found} should begin with {expected}");
            }
        };
        let one = |resource: &str, verbs: &[&str]| role(json!([{"apiGroups": [""], "resources": [resource], "verbs": verbs}]));
        check(one("pods", &["get"]), &[]);
        check(one("secrets", &["get"]), &["reaches further by secrets"]);
        check(one("secrets", &["create"]), &[]);
        check(one("pods/exec", &["create"]), &["reaches further by pods/exec"]);
        check(one("serviceaccounts/token", &["create"]), &["reaches further by serviceaccounts/token"]);
        check(one("pods", &["*"]), &["grants by wildcard"]);
        check(one("*", &["get"]), &["grants by wildcard"]);
        check(one("pods/*", &["get"]), &["grants by wildcard"]);
        check(one("clusterroles", &["bind", "escalate"]), &["grants `bind`", "grants `escalate`"]);
        check(one("users", &["impersonate"]), &["grants `impersonate`"]);
        check(json!({"kind": "ClusterRole", "aggregationRule": {"clusterRoleSelectors": [{}]}, "rules": []}), &["takes its rules"]);
        let binding =
            json!({"kind": "ClusterRoleBinding", "roleRef": {"name": "cluster-admin"}, "subjects": [{"kind": "User", "name": "u"}]});
        check(binding, &["makes User u cluster-admin"]);
    }
}
