//! Each rule of the format, broken one at a time in a manifest that is otherwise whole.

use super::*;
use serde_json::json;

const GOOD: &str = include_str!("../../tests/wire/manifest.json");

fn check(pointer: &str, value: Value, expected: &str) {
    let mut document: Value = serde_json::from_str(GOOD).unwrap();
    let (parent, last) = pointer.rsplit_once('/').unwrap();
    match document.pointer_mut(parent).unwrap() {
        Value::Object(map) => drop(map.insert(last.to_owned(), value)),
        Value::Array(items) => items.push(value),
        other => panic!("{other}"),
    }
    let error = Bundle::parse(document.to_string()).expect_err(expected).to_string();
    assert!(error.contains(expected), "{error}\nshould hold: {expected}");
}

#[test]
fn a_good_manifest_is_read_and_keeps_its_bytes() {
    let bundle = Bundle::parse(GOOD.to_owned()).unwrap();
    assert_eq!(bundle.text(), GOOD);
    assert_eq!(bundle.sha256(), &Sha256::of(GOOD.as_bytes()));
    assert_eq!(bundle.manifest().components.len(), 3);
}

#[test]
fn each_rule_names_its_place() {
    check("/apiVersion", json!("clicklink.io/v9"), "apiVersion: `clicklink.io/v9` is unknown");
    check("/kind", json!("Bundle"), "kind: `Bundle` is unknown");
    check("/environment", json!("Env 1"), "environment: `Env 1` is not a DNS label");
    check("/createdAt", json!("yesterday"), "createdAt: ");
    check("/registry/mode", json!("ftp"), "registry.mode: unknown variant `ftp`");
    check("/registry/chartBase", json!("https://x/y"), "registry.chartBase: `https://x/y` is not of the form");
    check("/registry/chartBase", json!("oci://"), "registry.chartBase: ");
    check("/registry/chartBase", json!("oci://h/p?x=1"), "registry.chartBase: ");
    check("/registry/mode", json!("direct"), "registry.pullRoleArn: mode `direct` needs");
    check("/namespaces", json!([]), "namespaces: at least one");
    check("/namespaces/-", json!("kube-system"), "namespaces[1]: `kube-system` may not be");
    check("/namespaces/-", json!("default"), "namespaces[1]: `default` may not be");
    check("/namespaces/-", json!("clickhouse-platform"), "namespaces[1]: `clickhouse-platform` is there twice");
    check("/namespaces/-", json!("Upper"), "namespaces[1]: `Upper` is not a DNS label");
    check("/components", json!([]), "components: at least one");
    check("/components/1/name", json!("snapshot-controller"), "components[1].name: `snapshot-controller` is there twice");
    check("/components/1/namespace", json!("elsewhere"), "components[1].namespace: `elsewhere` is not one of");
    check("/components/0/release", json!("r".repeat(54)), "components[0].release: ");
    check("/components/0/chart/name", json!("../x"), "components[0].chart.name: ");
    check("/components/0/chart/digest", json!("1.2.3"), "components[0].chart.digest: `1.2.3` is not an OCI digest");
    check("/components/2/images/-", json!("registry/x:latest"), "components[2].images[1]: `registry/x:latest` is not pinned");
    check("/components/2/values", json!("x"), "components[2].values: ");
    check("/objects/-", json!({"kind": "X"}), "objects[1]: apiVersion, kind and metadata.name are needed");
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}});
    check("/objects/-", secret, "objects[1]: Secret s is not of a permission kind");
    for name in ["..", "a/b", "a%2fb", "a\nb", "a\u{1b}[2J", "a b", "a?x"] {
        let named = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        check("/objects/-", named, "that Kubernetes takes for no object");
    }
    let again = json!({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "gp3-encrypted"}});
    check("/objects/-", again, "objects[1]: StorageClass.storage.k8s.io gp3-encrypted is there twice");
}

#[test]
fn duplicate_keys_and_size_are_refused() {
    let doubled = GOOD.replacen("{ \"replicas\": 2 }", "{ \"replicas\": 2, \"replicas\": 3 }", 1);
    let error = Bundle::parse(doubled).expect_err("duplicate").to_string();
    assert!(error.contains("components[0].values.replicas: duplicate key"), "{error}");
    let long = format!("{GOOD}{}", " ".repeat(MAX_BYTES));
    assert!(matches!(Bundle::parse(long), Err(ManifestError::TooLarge(_))));
}

#[test]
fn unknown_fields_are_ignored() {
    let mut document: Value = serde_json::from_str(GOOD).unwrap();
    document["later"] = json!(true);
    document["components"][0]["later"] = json!([1]);
    assert!(Bundle::parse(document.to_string()).is_ok());
}
