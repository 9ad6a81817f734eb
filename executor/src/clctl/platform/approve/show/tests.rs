//! The text of a plan, whole, as a person reads it.

use std::collections::BTreeSet;

use executor_core::privilege;
use serde_json::{Value, json};

use super::super::plan::{
    Action, BundleHeading, ClusterHeading, FieldChange, Leftover, Plan, PlannedObject, Replacement, WebhookLine, applied, compare,
};
use super::*;

fn object(name: &str, action: Action) -> PlannedObject {
    PlannedObject {
        object: name.into(),
        component: Some("operator".into()),
        action,
        estimate: false,
        foreign: false,
        fields: Vec::new(),
        grants: Vec::new(),
        approved_before: false,
        uid: None,
        replacement: None,
        unset: Vec::new(),
        refused: None,
        taken: Vec::new(),
    }
}

fn field(path: &str, old: Option<Value>, new: Option<Value>) -> FieldChange {
    FieldChange { path: path.into(), old, new }
}

fn empty() -> Plan {
    Plan {
        cluster: ClusterHeading {
            server: "https://bank.example:6443".into(),
            context: Some("bank".into()),
            uid: "u-1".into(),
            kubernetes: "v1.37.2".into(),
            checked: true,
        },
        bundle: BundleHeading {
            sha256: "abc".into(),
            environment: "env-1".into(),
            created_at: "2026-11-30T10:00:00Z".parse().unwrap(),
            received_at: None,
            workload_sha256: "def".into(),
            namespaces: vec!["platform".into()],
        },
        estimates: Vec::new(),
        permissions: Vec::new(),
        workload: Vec::new(),
        leftovers: Vec::new(),
        privileges: privilege::Comparison::default(),
        pods: Vec::new(),
        replace: false,
        webhooks: Vec::new(),
        placeholder_secrets: Vec::new(),
        missing_placeholder_secrets: Vec::new(),
        warnings: Vec::new(),
    }
}

fn full() -> Plan {
    let rbac = "rbac.authorization.k8s.io/v1";
    let role = |name: &str, rules: Value| json!({"apiVersion": rbac, "kind": "ClusterRole", "metadata": {"name": name}, "rules": rules});
    let bundle = [
        role(
            "operator",
            json!([{"apiGroups": [""], "resources": ["secrets", "pods"], "verbs": ["get", "list"]},
            {"apiGroups": ["apps"], "resources": ["statefulsets"], "verbs": ["create"]}]),
        ),
        role("spare", json!([{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}])),
        json!({"apiVersion": rbac, "kind": "RoleBinding", "metadata": {"name": "operator", "namespace": "platform"},
            "roleRef": {"kind": "ClusterRole", "name": "operator"},
            "subjects": [{"kind": "ServiceAccount", "name": "operator", "namespace": "platform"}]}),
    ];
    let deployment = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "operator", "namespace": "platform"},
        "spec": {"template": {"spec": {"serviceAccountName": "operator", "hostNetwork": true}}}});
    let mut plan = empty();
    plan.estimates.push("you may not patch roles: 1 object is estimated from what is live".into());
    let mut binding = object("RoleBinding.rbac.authorization.k8s.io platform/operator", Action::Create);
    binding.grants.push("gives ClusterRole operator to ServiceAccount platform/operator".into());
    let mut spare = object("ClusterRole.rbac.authorization.k8s.io spare", Action::Create);
    spare.grants.push("* on * (*)".into());
    let mut replaced = object("StorageClass.storage.k8s.io gp3", Action::Replace);
    replaced.fields.push(field("parameters.type", Some("gp2".into()), Some("gp3".into())));
    let by_hand = "kubectl delete storageclasses.storage.k8s.io gp3".into();
    replaced.replacement = Some(Replacement { reason: "parameters cannot be changed".into(), by_hand, stops_pods: false });
    let mut foreign = object("Role.rbac.authorization.k8s.io kube-system/reader", Action::Change);
    foreign.foreign = true;
    foreign.estimate = true;
    foreign.fields.push(field("rules[0].verbs[1]", None, Some("list".into())));
    plan.permissions = vec![binding, spare, replaced, foreign, object("Namespace platform", Action::Unchanged)];
    let mut changed = object("Deployment.apps platform/operator", Action::Change);
    changed.fields.push(field("spec.replicas", Some(1.into()), Some(2.into())));
    plan.workload = vec![changed, object("Secret platform/token", Action::Unknown)];
    plan.leftovers.push(Leftover {
        object: "Deployment.apps platform/old".into(),
        component: Some("old".into()),
        half: agent_api::kind::Half::Workload,
        running: true,
        key: agent_api::object::ObjectKey::of(&deployment),
        api_version: "apps/v1".into(),
        uid: "u-2".into(),
        keep: false,
        pruned: false,
    });
    plan.privileges = privilege::compare(&[], &bundle);
    plan.pods.extend(privilege::PodAccess::of(&deployment, None));
    plan.webhooks.push(WebhookLine {
        configuration: "hooks".into(),
        webhook: "pods.example.com".into(),
        intercepts: "create pods".into(),
        timeout_seconds: 5,
    });
    plan.placeholder_secrets.extend(["Secret platform/filled".into(), "Secret platform/licence".into()]);
    plan.missing_placeholder_secrets.push("Secret platform/licence".into());
    plan.warnings.push("Deployment.apps platform/old is left over from a former bundle, and goes on running".into());
    plan
}

const HEAD: &str = "\
Cluster  https://bank.example:6443 (context bank)
         uid u-1, Kubernetes v1.37.2
Bundle   abc
         environment env-1, created 2026-11-30T10:00:00Z
         workload def

";

const SUMMARY: &str = "\
Summary
  Permissions: 2 to create, 1 to change, 1 unchanged, 1 to replace, 0 left over
  Workload: 0 to create, 1 to change, 0 unchanged, 0 to replace, 1 left over, 1 not known
  Privileges: 3 new of 1 identity, 2 of them escalation-grade (!); 0 taken away, 0 left over
  Pods: 1 template, 1 with access to its node

Estimates: where you may not ask or read, the plan is worked out from what you may:
  you may not patch roles: 1 object is estimated from what is live

Must be replaced: no apply can change these:
  StorageClass.storage.k8s.io gp3: parameters cannot be changed; by hand: kubectl delete storageclasses.storage.k8s.io gp3

Warnings:
  Deployment.apps platform/old is left over from a former bundle, and goes on running
";

const PRIVILEGES: &str = "
New privileges (! leads to more rights than it says):
  ServiceAccount platform/operator: 3 rights
    it could read Secrets (namespace platform); run pods, as any ServiceAccount there (namespace platform)
        WHERE               VERBS      ON                   GIVEN BY
     !  namespace platform  get, list  secrets (core)       RoleBinding platform/operator → ClusterRole operator
     !  namespace platform  create     statefulsets (apps)  RoleBinding platform/operator → ClusterRole operator
        namespace platform  get, list  pods (core)          RoleBinding platform/operator → ClusterRole operator

New rights in roles that nothing binds yet:
  ClusterRole.rbac.authorization.k8s.io spare: 1 right
    who is bound to it could use whatever a `*` fits, now and later (the whole cluster)
        WHERE              VERBS  ON     GIVEN BY
     !  the whole cluster  *      * (*)

Pods of the workload:
  ! Deployment.apps platform/operator runs as ServiceAccount platform/operator, and new: shares its node's network (hostNetwork)
";

const CHANGES: &str = "
Permissions, applied now, with your credentials:
  create     RoleBinding.rbac.authorization.k8s.io platform/operator  (operator)
               gives ClusterRole operator to ServiceAccount platform/operator
  create     ClusterRole.rbac.authorization.k8s.io spare  (operator)
  replace    StorageClass.storage.k8s.io gp3  (operator)
               parameters cannot be changed
               parameters.type: \"gp2\" → \"gp3\"

Permissions in namespaces outside the bundle, applied now as well:
  change     Role.rbac.authorization.k8s.io kube-system/reader  (operator), estimated
               rules[0].verbs[1]: (none) → \"list\"

Workload, applied later by the executor as pcm-platform, inside platform:
  change     Deployment.apps platform/operator  (operator)
               spec.replicas: 1 → 2
  not known  Secret platform/token  (operator)

Left over from former bundles, and not touched:
  Deployment.apps platform/old  (old), running

Secrets that somebody else fills (created empty where they are missing):
  Secret platform/filled
  Secret platform/licence: missing, to be created

Webhooks that see requests, and let them pass when they fail:
  hooks, pods.example.com: sees create pods; a request waits up to 5 s for it
";

#[test]
fn numbers_come_first_and_details_as_they_are_asked_for() {
    let plan = full();
    for (details, expected) in [
        (&[Details::None][..], vec![HEAD, SUMMARY]),
        (&[Details::Privileges], vec![HEAD, SUMMARY, PRIVILEGES]),
        (&[Details::Changes], vec![HEAD, SUMMARY, CHANGES]),
        (&[Details::Changes, Details::Privileges], vec![HEAD, SUMMARY, PRIVILEGES, CHANGES]),
    ] {
        let found = text(&plan, details);
        let expected = expected.concat();
        assert_eq!(found, expected.trim_end(), "{details:?}\n{found}");
    }
    let all = text(&plan, &[Details::All]);
    assert!(all.contains("  unchanged  Namespace platform  (operator)\n") && all.contains("               * on * (*)\n"), "{all}");
}

#[test]
fn nothing_to_do_is_short() {
    let expected = "Summary\n  Permissions: 0 to create, 0 to change, 0 unchanged, 0 to replace, 0 left over\n  \
                    Workload: 0 to create, 0 to change, 0 unchanged, 0 to replace, 0 left over\n  \
                    Privileges: 0 new of 0 identities, 0 of them escalation-grade (!); 0 taken away, 0 left over\n  \
                    Pods: 0 templates, 0 with access to its node";
    assert_eq!(text(&empty(), &[Details::All]), format!("{HEAD}{expected}"));
}

#[test]
fn what_is_refused_is_a_line_with_its_reason() {
    let mut plan = empty();
    let mut refused = object("ConfigMap platform/settings", Action::Refused);
    refused.refused = Some("ConfigMap platform/settings: field conflict: .data.a is owned by `jo`".into());
    plan.workload = vec![refused, object("ConfigMap platform/other", Action::Create)];
    let text = text(&plan, &[Details::Changes]);
    assert!(text.contains("Workload: 1 to create, 0 to change, 0 unchanged, 0 to replace, 0 left over, 1 refused\n"), "{text}");
    let line = "  refused    ConfigMap platform/settings  (operator)\n               ConfigMap platform/settings: field conflict: .data.a is owned";
    assert!(text.contains(line) && text.contains("  create     ConfigMap platform/other"), "{text}");
}

#[test]
fn a_job_that_is_gone_of_what_is_approved_is_no_change() {
    let mut plan = empty();
    plan.workload = vec![object("Job.batch platform/migration", Action::Create), object("Service platform/s", Action::Unchanged)];
    assert!(plan.changes());
    plan.is_approved_before();
    assert!(!plan.changes());
    let line = "  create     Job.batch platform/migration  (operator), approved before: not run again where it has run";
    assert!(text(&plan, &[Details::Changes]).contains(line));
    plan.workload.push(object("ConfigMap platform/c", Action::Create));
    plan.is_approved_before();
    assert!(plan.changes() && !plan.workload[2].approved_before);
}

#[test]
fn who_replaces_reads_what_stops() {
    let mut plan = empty();
    let two_hours = Duration::from_secs(7200);
    assert_eq!(question(&plan, two_hours), "\nApply the permissions, and let the executor apply the workload for 2h?");
    let mut replaced = object("Deployment.apps platform/operator", Action::Replace);
    let by_hand = "kubectl delete deployments.apps -n platform operator".into();
    replaced.replacement = Some(Replacement { reason: "spec.selector cannot be changed".into(), by_hand, stops_pods: true });
    plan.workload = vec![replaced];
    assert!(text(&plan, &[Details::None]).contains("Must be replaced: no apply can change these:\n"));
    plan.replace = true;
    let text = text(&plan, &[Details::None]);
    let line = "Replaced: no apply can change these; they are deleted when you agree, and made anew:\n  Deployment.apps platform/operator: \
                spec.selector cannot be changed; by hand: kubectl delete deployments.apps -n platform operator; its pods stop until it is made anew";
    assert!(text.contains(line), "{text}");
    assert_eq!(
        question(&plan, two_hours),
        "\nDelete 1 object to make it anew (pods of 1 stop until it is made anew), apply the permissions, and let the executor apply the workload \
         for 2h?"
    );
}

#[test]
fn who_agrees_to_a_deletion_reads_it_whatever_is_shown() {
    let mut plan = full();
    plan.leftovers[0].pruned = true;
    assert!(
        text(&plan, &[Details::None])
            .contains("Deleted: left over from former bundles:\n  Deployment.apps platform/old  (old), running: deleted at the end\n")
    );
    plan.permissions.clear();
    assert_eq!(
        question(&plan, Duration::from_secs(7200)),
        "\nDelete 1 object left over, apply the permissions, and let the executor apply the workload for 2h?"
    );
}

#[test]
fn the_document_has_its_version_numbers_and_everything_else() {
    let document: Value = serde_json::from_str(&full().json().unwrap()).unwrap();
    assert_eq!(document["apiVersion"], "clicklink.io/plan/v1");
    assert_eq!(
        document["summary"]["permissions"],
        json!({"create": 2, "change": 1, "replace": 1, "unchanged": 1, "unknown": 0, "refused": 0, "left_over": 0})
    );
    assert_eq!(
        document["privileges"]["new"][0],
        json!({"identity": {"kind": "ServiceAccount", "namespace": "platform", "name": "operator"}, "rights": [
            {"escalation": ["reads_secrets"], "namespace": "platform", "verbs": ["get", "list"], "api_group": "", "resources": ["secrets"],
                "resource_names": [], "non_resource_urls": [], "given_by": ["RoleBinding platform/operator → ClusterRole operator"]},
            {"escalation": ["runs_pods"], "namespace": "platform", "verbs": ["create"], "api_group": "apps", "resources": ["statefulsets"],
                "resource_names": [], "non_resource_urls": [], "given_by": ["RoleBinding platform/operator → ClusterRole operator"]},
            {"escalation": [], "namespace": "platform", "verbs": ["get", "list"], "api_group": "", "resources": ["pods"],
                "resource_names": [], "non_resource_urls": [], "given_by": ["RoleBinding platform/operator → ClusterRole operator"]},
        ]})
    );
    assert_eq!(document["leftovers"][0]["half"], "workload");
    assert_eq!(document["permissions"][2]["replacement"]["reason"], "parameters cannot be changed");
}

#[test]
fn every_field_of_the_document_is_on_its_page() {
    let page = include_str!("../../../../../../docs/plan.md");
    let words: BTreeSet<&str> = page.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').collect();
    let mut keys = BTreeSet::new();
    keys_of(&serde_json::from_str(&full().json().unwrap()).unwrap(), &mut keys);
    let missing: Vec<&String> = keys.iter().filter(|key| !words.contains(key.as_str())).collect();
    assert!(keys.len() > 50 && missing.is_empty(), "{} fields, and not told: {missing:?}", keys.len());
}

/// What stands in an object's own fields is no part of the schema.
fn keys_of(value: &Value, keys: &mut BTreeSet<String>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| keys_of(item, keys)),
        Value::Object(map) => {
            keys.extend(map.keys().cloned());
            map.iter().filter(|_| !map.contains_key("path")).for_each(|(_, value)| keys_of(value, keys));
        }
        _ => {}
    }
}

#[test]
fn nothing_forges_a_line_and_nothing_of_a_secret_is_shown() {
    let mut plan = full();
    let forged = "x\u{1b}[2J\nApproved: 1\u{202e}".to_owned();
    plan.cluster.uid.clone_from(&forged);
    plan.permissions[0].object.clone_from(&forged);
    plan.permissions[1].grants[0].clone_from(&forged);
    plan.workload[0].fields[0].path.clone_from(&forged);
    plan.leftovers[0].object.clone_from(&forged);
    plan.pods[0].service_account.clone_from(&forged);
    plan.privileges.new[0].rights[0].resources[0].clone_from(&forged);
    plan.privileges.unbound[0].role.clone_from(&forged);
    let secret = |value: &str| json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "data": {"k": value}, "immutable": true, "type": "Opaque"});
    let (live, rendered) = (secret("aHVudGVyMg=="), secret("c2VjcmV0Mg=="));
    plan.workload[1].fields = compare(Some(&live), &applied(&live, &rendered, "m")).1;
    for shown in [text(&plan, &[Details::All]), plan.json().unwrap()] {
        assert!(
            !shown.contains('\u{1b}') && !shown.contains('\u{202e}') && !shown.lines().any(|line| line.starts_with("Approved")),
            "{shown}"
        );
        assert!(shown.contains("[secret]") && !shown.contains("aHVudGVyMg") && !shown.contains("c2VjcmV0Mg"), "{shown}");
    }
}

#[test]
fn what_could_fool_a_terminal_is_escaped() {
    assert_eq!(escaped("a\u{1b}[2Kb\u{202e}c é"), "a\\u{1b}[2Kb\\u{202e}c é");
}

#[test]
fn durations() {
    for (seconds, text) in [(7200, "2h"), (5400, "1h 30m"), (600, "10m"), (3601, "1h 1s")] {
        assert_eq!(duration(Duration::from_secs(seconds)), text);
    }
}

#[test]
fn long_values_are_cut_at_a_character() {
    let text = "é".repeat(200);
    assert_eq!(objects::short(&text).chars().count(), 161);
}
