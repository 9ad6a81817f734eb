use super::*;
use crate::run_arguments::RunArguments;
use clap::Parser;
use std::path::PathBuf;

/// Every committed file, and what it should be.
fn files() -> [(&'static str, String); 5] {
    [
        ("crd/platform.navin.ai_managedcomponents.yaml", crd()),
        ("manager/manager.yaml", deployment()),
        ("rbac/role.yaml", super::rbac(RbacFile::Role)),
        ("rbac/role_binding.yaml", super::rbac(RbacFile::RoleBinding)),
        ("rbac/manager_access.yaml", super::rbac(RbacFile::ManagerAccess)),
    ]
}

fn documents(text: &str) -> Vec<Value> {
    serde_saphyr::from_multiple(text).unwrap()
}

#[test]
fn the_committed_files_are_fresh() {
    for (name, generated) in files() {
        let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("config").join(name);
        let committed = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(committed == generated, "{} is stale: run `make gen` and commit", path.display());
    }
}

#[test]
fn what_is_printed_reads_back_as_what_was_made() {
    assert_eq!(documents(&crd()), [managed_component::definition()]);
    assert_eq!(documents(&deployment()), deployment::objects());
    assert_eq!(documents(&super::rbac(RbacFile::ManagerAccess)), rbac::manager_access());
}

#[test]
fn the_operator_is_bound_by_namespace_and_never_to_the_whole_cluster() {
    let bindings = rbac::bindings();
    let kinds: Vec<&str> = bindings.iter().map(|object| object["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["ServiceAccount", "RoleBinding"]);
    assert_eq!(bindings[1]["metadata"], serde_json::json!({"name": OPERATOR, "namespace": MANAGED}));
    assert_eq!(bindings[1]["roleRef"]["kind"], "ClusterRole");
}

/// What the manager does, and never does, on a customer's cluster.
#[test]
fn the_manager_writes_managed_components_and_nothing_else() {
    let written = ["create", "update", "patch", "delete"];
    for object in rbac::manager_access() {
        for rule in object["rules"].as_array().into_iter().flatten() {
            let writes = rule["verbs"].as_array().unwrap().iter().any(|verb| written.contains(&verb.as_str().unwrap()));
            assert_eq!(writes, rule["resources"] == serde_json::json!(["managedcomponents"]), "{rule}");
            assert!(!rule["resources"].as_array().unwrap().contains(&"secrets".into()), "{rule}");
        }
    }
}

#[test]
fn the_pod_has_no_root_no_capability_and_nothing_to_write_to() {
    let objects = deployment::objects();
    let pod = &objects[1]["spec"]["template"]["spec"];
    assert_eq!(pod["securityContext"]["runAsNonRoot"], true);
    assert_eq!(pod["securityContext"]["seccompProfile"]["type"], "RuntimeDefault");
    for container in pod["containers"].as_array().unwrap() {
        let context = &container["securityContext"];
        assert_eq!(context["readOnlyRootFilesystem"], true);
        assert_eq!(context["allowPrivilegeEscalation"], false);
        assert_eq!(context["capabilities"], serde_json::json!({"drop": ["ALL"]}));
        assert!(container["volumeMounts"].as_array().unwrap().iter().all(|mount| mount["readOnly"] == true), "{container}");
    }
}

#[test]
fn its_arguments_are_flags_that_are_taken() {
    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        run: RunArguments,
    }
    let objects = deployment::objects();
    let arguments = objects[1].pointer("/spec/template/spec/containers/0/args").unwrap().as_array().unwrap();
    let options = Line::try_parse_from(arguments.iter().map(|argument| argument.as_str().unwrap())).unwrap().run.check().unwrap();
    assert_eq!(options.namespaces.iter().map(ToString::to_string).collect::<Vec<_>>(), [MANAGED]);
    assert_eq!(options.listen.port(), 8086);
}
