//! Tables: every mark, aggregation, what a wider right holds, subjects of each kind, and where a binding gives its role.

use serde_json::{Value, json};

use super::*;

const RBAC: &str = "rbac.authorization.k8s.io/v1";

fn rule(group: &str, resources: &[&str], verbs: &[&str]) -> Value {
    json!({"apiGroups": [group], "resources": resources, "verbs": verbs})
}

fn cluster_role(name: &str, rules: Vec<Value>) -> Value {
    json!({"apiVersion": RBAC, "kind": "ClusterRole", "metadata": {"name": name, "labels": {"clicklink.io/managed-by": "platform"}}, "rules": rules})
}

fn aggregated(name: &str, selector: Value) -> Value {
    let mut role = cluster_role(name, vec![]);
    role["aggregationRule"] = json!({"clusterRoleSelectors": [selector]});
    role
}

fn labelled(mut role: Value, key: &str, value: &str) -> Value {
    role["metadata"]["labels"][key] = value.into();
    role
}

fn role(namespace: &str, name: &str, rules: Vec<Value>) -> Value {
    json!({"apiVersion": RBAC, "kind": "Role", "metadata": {"name": name, "namespace": namespace}, "rules": rules})
}

/// A ClusterRoleBinding, or with a namespace a RoleBinding, to ServiceAccount `n/a`.
fn binding(name: &str, namespace: Option<&str>, role: (&str, &str)) -> Value {
    let mut binding = json!({"apiVersion": RBAC, "kind": "ClusterRoleBinding",
        "metadata": {"name": name, "labels": {"clicklink.io/managed-by": "platform"}}, "roleRef": {"kind": role.0, "name": role.1},
        "subjects": [{"kind": "ServiceAccount", "namespace": "n", "name": "a"}]});
    if let Some(namespace) = namespace {
        binding["kind"] = "RoleBinding".into();
        binding["metadata"]["namespace"] = namespace.into();
    }
    binding
}

fn foreign(mut object: Value) -> Value {
    object["metadata"].as_object_mut().unwrap().remove("labels");
    object
}

/// `identity: verbs resources (group) [names] @namespace !marks`, one a right.
fn lines(holdings: &[Holding]) -> Vec<String> {
    let line = |identity: &Identity, right: &Right| {
        let mut line = format!(
            "{identity}: {} {}",
            right.verbs.join(","),
            [right.resources.clone(), right.non_resource_urls.clone()].concat().join(",")
        );
        if let Some(group) = right.api_group.as_deref().filter(|group| !group.is_empty()) {
            line += &format!(" ({group})");
        }
        if !right.resource_names.is_empty() {
            line += &format!(" [{}]", right.resource_names.join(","));
        }
        if let Scope::Namespace(namespace) = &right.scope {
            line += &format!(" @{namespace}");
        }
        right.escalation.iter().for_each(|mark| line += &format!(" !{mark:?}"));
        line
    };
    holdings.iter().flat_map(|holding| holding.rights.iter().map(|right| line(&holding.identity, right))).collect()
}

fn new(live: &[Value], bundle: &[Value]) -> Vec<String> {
    lines(&compare(live, bundle).new)
}

/// The rights of `n/a` that are new where it held `had` and gets `gets`, by one ClusterRole.
fn check(had: Vec<Value>, gets: Vec<Value>, expected: &[&str]) {
    let state = |rules: Vec<Value>| [cluster_role("r", rules), binding("b", None, ("ClusterRole", "r"))];
    let expected: Vec<String> = expected.iter().map(|right| format!("ServiceAccount n/a: {right}")).collect();
    assert_eq!(new(&state(had.clone()), &state(gets.clone())), expected, "{had:?} to {gets:?}");
}

#[test]
fn every_escalation_grade_right_is_marked_and_no_other() {
    let admission = "admissionregistration.k8s.io";
    for (group, resource, verb, marks) in [
        ("", "secrets", "get", " !ReadsSecrets"),
        ("", "secrets", "list", " !ReadsSecrets"),
        ("", "secrets", "watch", " !ReadsSecrets"),
        ("", "secrets", "create", ""),
        ("", "secrets", "*", " !Wildcard !ReadsSecrets"),
        ("*", "secrets", "get", " !Wildcard !ReadsSecrets"),
        ("apps", "*", "get", " !Wildcard"),
        ("*", "*", "*", " !Wildcard"),
        ("", "*", "get", " !Wildcard !ReadsSecrets !ReachesNodes !EntersPods"),
        ("", "*/exec", "create", " !Wildcard !EntersPods"),
        ("other.io", "secrets", "get", ""),
        ("rbac.authorization.k8s.io", "clusterroles", "bind", " !Binds"),
        ("rbac.authorization.k8s.io", "roles", "escalate", " !Escalates"),
        ("rbac.authorization.k8s.io", "clusterroles", "*", " !Wildcard !Binds !Escalates"),
        ("rbac.authorization.k8s.io", "clusterroles", "create", ""),
        ("", "users", "impersonate", " !Impersonates"),
        ("authentication.k8s.io", "userextras/scopes", "impersonate", " !Impersonates"),
        ("authentication.k8s.io", "users", "impersonate:user-info", " !Impersonates"),
        ("", "serviceaccounts", "*", " !Wildcard !Impersonates"),
        ("", "nodes/proxy", "get", " !ReachesNodes"),
        ("", "nodes/metrics", "get", " !ReachesNodes"),
        ("", "nodes", "patch", " !ReachesNodes"),
        ("", "nodes", "get", ""),
        ("", "pods/exec", "create", " !EntersPods"),
        ("", "pods/exec", "get", " !EntersPods"),
        ("", "pods/attach", "create", " !EntersPods"),
        ("", "pods/ephemeralcontainers", "patch", " !EntersPods"),
        ("", "pods/log", "get", ""),
        ("", "serviceaccounts/token", "create", " !MintsTokens"),
        (admission, "validatingwebhookconfigurations", "update", " !WritesWebhooks"),
        (admission, "mutatingwebhookconfigurations", "patch", " !WritesWebhooks"),
        (admission, "mutatingadmissionpolicies", "create", " !WritesWebhooks"),
        (admission, "validatingadmissionpolicybindings", "delete", " !WritesWebhooks"),
        (admission, "validatingwebhookconfigurations", "get", ""),
        ("apiextensions.k8s.io", "customresourcedefinitions", "create", " !WritesDefinitions"),
        ("apiextensions.k8s.io", "customresourcedefinitions", "list", ""),
        ("apiregistration.k8s.io", "apiservices", "update", " !WritesApiServices"),
        ("", "pods", "create", " !RunsPods"),
        ("", "pods", "delete", ""),
        ("apps", "statefulsets", "patch", " !RunsPods"),
        ("batch", "cronjobs", "create", " !RunsPods"),
        ("", "persistentvolumes", "create", " !MakesVolumes"),
        ("certificates.k8s.io", "certificatesigningrequests/approval", "update", " !ApprovesCertificates"),
    ] {
        let named = if group.is_empty() { String::new() } else { format!(" ({group})") };
        check(vec![], vec![rule(group, &[resource], &[verb])], &[&format!("{verb} {resource}{named}{marks}")]);
    }
}

#[test]
fn in_one_namespace_only_what_lies_in_namespaces_is_marked() {
    let role = role(
        "m",
        "r",
        vec![rule("", &["nodes", "secrets"], &["*"]), rule("apiextensions.k8s.io", &["customresourcedefinitions"], &["create"])],
    );
    let found = new(&[], &[role, binding("b", Some("m"), ("Role", "r"))]);
    assert_eq!(
        found,
        [
            "ServiceAccount n/a: * nodes @m !Wildcard",
            "ServiceAccount n/a: * secrets @m !Wildcard !ReadsSecrets",
            "ServiceAccount n/a: create customresourcedefinitions (apiextensions.k8s.io) @m",
        ]
    );
}

#[test]
fn what_a_wider_right_holds_is_not_new() {
    let get = |resources: &[&str]| rule("", resources, &["get"]);
    let named = |names: &[&str]| json!({"apiGroups": [""], "resources": ["configmaps"], "resourceNames": names, "verbs": ["get"]});
    let url = |url: &str| json!({"nonResourceURLs": [url], "verbs": ["get"]});
    check(vec![get(&["pods"])], vec![get(&["pods"])], &[]);
    check(vec![get(&["pods"])], vec![rule("", &["pods"], &["get", "list"])], &["list pods"]);
    check(vec![rule("", &["pods"], &["*"])], vec![get(&["pods"])], &[]);
    check(vec![rule("", &["*"], &["*"])], vec![get(&["pods", "pods/log"])], &[]);
    check(vec![rule("", &["*"], &["*"])], vec![rule("apps", &["deployments"], &["get"])], &["get deployments (apps)"]);
    check(vec![rule("*", &["pods"], &["get"])], vec![get(&["pods"])], &[]);
    check(vec![get(&["*/log"])], vec![get(&["pods/log"])], &[]);
    check(vec![get(&["*/log"])], vec![get(&["pods/status"])], &["get pods/status"]);
    // The other way round it is.
    check(vec![get(&["pods"])], vec![rule("", &["pods"], &["*"])], &["* pods !Wildcard !RunsPods"]);
    check(vec![get(&["configmaps"])], vec![named(&["a"])], &[]);
    check(vec![named(&["a"])], vec![named(&["a", "b", "c"])], &["get configmaps [b,c]"]);
    check(vec![named(&["a"])], vec![get(&["configmaps"])], &["get configmaps"]);
    check(vec![url("*")], vec![url("/metrics")], &[]);
    check(vec![url("/healthz/*")], vec![url("/healthz/ready"), url("/healthz/a/*")], &[]);
    check(vec![url("/healthz/*")], vec![url("/healthz"), url("/metrics")], &["get /healthz,/metrics"]);
    check(vec![], vec![url("*")], &["get * !Wildcard"]);
    // What the new rights hold themselves is said once.
    check(vec![], vec![rule("*", &["*"], &["*"]), get(&["pods"]), get(&["secrets"])], &["* * (*) !Wildcard"]);
}

#[test]
fn rules_are_put_together_into_few_lines() {
    let rules = vec![
        rule("", &["pods", "services"], &["get", "list"]),
        rule("", &["services"], &["watch"]),
        rule("", &["pods"], &["watch"]),
        rule("apps", &["deployments"], &["get"]),
        rule("", &["secrets"], &["get", "create"]),
    ];
    check(vec![], rules, &["create,get secrets !ReadsSecrets", "get,list,watch pods,services", "get deployments (apps)"]);
}

#[test]
fn subjects_of_each_kind() {
    let mut of_many = binding("b", Some("m"), ("ClusterRole", "r"));
    of_many["subjects"] = json!([
        {"kind": "ServiceAccount", "name": "same"}, {"kind": "User", "name": "system:serviceaccount:x:y"}, {"kind": "User", "name": "u"},
        {"kind": "Group", "name": "g"}, {"kind": "Robot", "name": "r"}
    ]);
    let found = new(&[], &[cluster_role("r", vec![rule("", &["pods"], &["get"])]), of_many]);
    let expected = ["ServiceAccount m/same", "ServiceAccount x/y", "User u", "Group g"].map(|identity| format!("{identity}: get pods @m"));
    assert_eq!(found, expected);
}

#[test]
fn a_role_binding_gives_a_cluster_role_in_its_namespace_only() {
    let role = || cluster_role("r", vec![rule("", &["pods"], &["get"]), json!({"nonResourceURLs": ["/metrics"], "verbs": ["get"]})]);
    let inside = [role(), binding("b", Some("m"), ("ClusterRole", "r"))];
    assert_eq!(new(&[], &inside), ["ServiceAccount n/a: get pods @m"]);
    let everywhere = [role(), binding("b", None, ("ClusterRole", "r"))];
    assert_eq!(new(&inside, &everywhere), ["ServiceAccount n/a: get /metrics", "ServiceAccount n/a: get pods"]);
    // The other way round nothing is new, and what it had elsewhere stays, by the binding that is left over.
    let back = compare(&everywhere, &inside);
    assert_eq!(lines(&back.new), [] as [&str; 0]);
    assert_eq!(lines(&back.lingering), ["ServiceAccount n/a: get /metrics", "ServiceAccount n/a: get pods"]);
}

#[test]
fn a_binding_to_a_live_role_has_that_roles_rules() {
    let admin = foreign(cluster_role("cluster-admin", vec![rule("*", &["*"], &["*"])]));
    let bundle = [binding("b", None, ("ClusterRole", "cluster-admin"))];
    let found = compare(&[admin], &bundle);
    assert_eq!(lines(&found.new), ["ServiceAccount n/a: * * (*) !Wildcard"]);
    assert_eq!(found.new[0].rights[0].given_by, ["ClusterRoleBinding b → ClusterRole cluster-admin"]);
    assert_eq!(found.unresolved, [] as [&str; 0]);

    let found = compare(&[], &bundle);
    let expected =
        "ClusterRoleBinding b names ClusterRole cluster-admin, which is not there or could not be read: what it gives is not known";
    assert_eq!(found.unresolved, [expected]);
}

#[test]
fn an_aggregated_role_takes_live_rules_and_the_bundles() {
    let key = "example.com/collect";
    let source = |name: &str, resource: &str| labelled(cluster_role(name, vec![rule("", &[resource], &["get"])]), key, "true");
    let bundle =
        [aggregated("all", json!({"matchLabels": {key: "true"}})), binding("b", None, ("ClusterRole", "all")), source("of-bundle", "pods")];
    let live = [foreign(cluster_role("unrelated", vec![rule("", &["nodes"], &["get"])])), source("live", "secrets")];
    assert_eq!(new(&live, &bundle), ["ServiceAccount n/a: get secrets !ReadsSecrets", "ServiceAccount n/a: get pods"]);

    for (selector, fits) in [
        (json!({}), true),
        (json!({"matchLabels": {key: "false"}}), false),
        (json!({"matchExpressions": [{"key": key, "operator": "In", "values": ["true", "x"]}]}), true),
        (json!({"matchExpressions": [{"key": key, "operator": "NotIn", "values": ["true"]}]}), false),
        (json!({"matchExpressions": [{"key": key, "operator": "Exists"}]}), true),
        (json!({"matchExpressions": [{"key": key, "operator": "DoesNotExist"}]}), false),
    ] {
        let bundle = [aggregated("all", selector.clone()), binding("b", None, ("ClusterRole", "all"))];
        let expected: &[&str] = if fits { &["ServiceAccount n/a: get secrets !ReadsSecrets"] } else { &[] };
        assert_eq!(new(&[source("live", "secrets")], &bundle), expected, "{selector}");
    }
}

#[test]
fn a_role_that_is_aggregated_into_a_live_one_widens_it_for_its_holders() {
    let to = |role: Value, name: &str| labelled(role, &format!("to-{name}"), "true");
    let mut edit = foreign(aggregated("edit", json!({"matchLabels": {"to-edit": "true"}})));
    edit["rules"] = json!([rule("", &["pods"], &["get"])]);
    edit["metadata"]["labels"] = json!({"to-admin": "true"});
    let mut admin = foreign(aggregated("admin", json!({"matchLabels": {"to-admin": "true"}})));
    admin["rules"] = edit["rules"].clone();
    let live = [
        edit,
        admin,
        foreign(binding("theirs", Some("m"), ("ClusterRole", "admin"))),
        foreign(binding("other", None, ("ClusterRole", "x"))),
    ];
    let bundle = [to(cluster_role("r", vec![rule("clickhouse.com", &["clusters"], &["create"])]), "edit")];
    let found = compare(&live, &bundle);
    assert_eq!(lines(&found.new), ["ServiceAccount n/a: create clusters (clickhouse.com) @m"]);
    assert_eq!(found.new[0].rights[0].given_by, ["RoleBinding m/theirs → ClusterRole admin"]);
}

#[test]
fn roles_that_aggregate_each_other_end() {
    let key = "loop";
    let one = |name: &str| labelled(aggregated(name, json!({"matchLabels": {key: "true"}})), key, "true");
    let bundle = [one("a"), one("b"), binding("b", None, ("ClusterRole", "a"))];
    assert_eq!(new(&[], &bundle), [] as [&str; 0]);
}

#[test]
fn what_the_bundle_gives_no_more_ends_or_lingers() {
    let live = [
        cluster_role("r", vec![rule("", &["pods"], &["get", "list"])]),
        binding("b", None, ("ClusterRole", "r")),
        cluster_role("gone", vec![rule("", &["secrets"], &["get"])]),
        binding("gone", None, ("ClusterRole", "gone")),
        foreign(cluster_role("theirs", vec![rule("", &["nodes"], &["get"])])),
        foreign(binding("theirs", None, ("ClusterRole", "theirs"))),
    ];
    let bundle = [cluster_role("r", vec![rule("", &["pods"], &["get"])]), binding("b", None, ("ClusterRole", "r"))];
    let found = compare(&live, &bundle);
    assert_eq!(lines(&found.new), [] as [&str; 0]);
    assert_eq!(lines(&found.ending), ["ServiceAccount n/a: list pods"]);
    assert_eq!(lines(&found.lingering), ["ServiceAccount n/a: get secrets !ReadsSecrets"]);
}

#[test]
fn a_right_that_somebody_else_gave_is_new_where_the_bundle_gives_it() {
    let live =
        [foreign(cluster_role("theirs", vec![rule("", &["pods"], &["get"])])), foreign(binding("theirs", None, ("ClusterRole", "theirs")))];
    let bundle = [cluster_role("r", vec![rule("", &["pods"], &["get"])]), binding("b", None, ("ClusterRole", "r"))];
    assert_eq!(new(&live, &bundle), ["ServiceAccount n/a: get pods"]);
    // A binding of theirs to a role of the bundle counts with what the role had.
    let live = [cluster_role("r", vec![]), foreign(binding("theirs", None, ("ClusterRole", "r")))];
    assert_eq!(new(&live, &bundle[..1]), ["ServiceAccount n/a: get pods"]);
}

#[test]
fn a_role_that_nothing_binds_is_told_apart() {
    let bundle = [cluster_role("r", vec![rule("*", &["*"], &["*"])])];
    let found = compare(&[], &bundle);
    assert_eq!(lines(&found.new), [] as [&str; 0]);
    assert_eq!(found.unbound[0].role, "ClusterRole.rbac.authorization.k8s.io r");
    assert_eq!(found.unbound[0].rights[0].escalation, [Mark::Wildcard]);
    assert_eq!(compare(&bundle, &bundle).unbound, []);
}

#[test]
fn more_than_can_be_compared_counts_as_everything() {
    let many: Vec<String> = (0..100).map(|n| format!("x{n}")).collect();
    let huge = json!({"apiGroups": many, "resources": many, "verbs": many});
    let bundle = [cluster_role("r", vec![huge]), binding("b", None, ("ClusterRole", "r"))];
    for live in [&[][..], &bundle[..]] {
        let found = compare(live, &bundle);
        assert_eq!(lines(&found.new), ["ServiceAccount n/a: * * (*) !Wildcard"]);
        assert_eq!(found.unresolved, ["ClusterRole r has more rules than can be compared: it counts as everything"]);
    }
}
