//! What a role or binding says, in words: one line a rule or subject. Pure. What it comes to for whom is `executor_core::privilege`'s.

use serde_json::Value;

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
}
