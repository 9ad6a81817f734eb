//! The chart engine against the real `helm template`: every chart of ours, in both editions, object by object.

use std::collections::BTreeMap;
use std::time::Duration;

use base64::Engine as _;
use serde_json::{Value, json};
use system_tests::bundle::{self, Component, Edition};
use system_tests::{Program, Registry, TempFolder, chart_engine};

const KUBE_VERSION: &str = "v1.37.2";

#[tokio::test(flavor = "multi_thread")]
async fn the_engine_renders_what_helm_renders() {
    let registry = Registry::start().await;
    let home = TempFolder::new("charts").unwrap();
    let mut kinds: Vec<String> = Vec::new();
    for edition in [Edition::First, Edition::Second] {
        for component in bundle::push(&registry, edition).await.unwrap().components {
            for values in [component.values.clone(), other_values(&component)] {
                let name = format!("{} {} with {values}", component.chart.name, component.chart.version);
                let archive = registry.read(&registry.archive_digest(&component.chart).unwrap()).unwrap();
                let ours = engine(&home, &archive, &component, &values).await;
                let theirs = helm(&registry, &home, &archive, &component, &values).await;
                assert_eq!(theirs.keys().collect::<Vec<_>>(), ours.keys().collect::<Vec<_>>(), "{name}");
                for (key, object) in &theirs {
                    assert_eq!(&ours[key], object, "{name}: {key}");
                }
                kinds.extend(theirs.into_keys());
            }
        }
    }
    for kind in ["CustomResourceDefinition", "Deployment", "Job", "Secret", "ValidatingWebhookConfiguration", "PodDisruptionBudget"] {
        assert!(kinds.iter().any(|key| key.starts_with(kind)), "no {kind} was compared");
    }
}

/// Switches turned, texts that YAML reads oddly, numbers, nulls that take a default away.
fn other_values(component: &Component) -> Value {
    let mut values = component.values.clone();
    values["replicaCount"] = json!(3);
    values["podAnnotations"] = json!({"a": "yes", "b": "0x1F", "c": "1e3", "d": "null", "e": "- x: y\n", "f": "", "g": "ümlaut ✓"});
    match component.name.as_str() {
        "clickhouse-operator" => {
            values["webhook"] = json!({"enabled": false});
            values["settings"] = json!({"reconcileInterval": "1h"});
        }
        "monitoring-collectors" => {
            values["gateway"]["enabled"] = json!(false);
            values["endpoints"] = json!(["a:1", "b:2"]);
            values["migration"]["podAnnotations"] = json!({"x": "1"});
        }
        _ => values["logLevel"] = json!(5),
    }
    values
}

/// What a chart may ask of the cluster in both renderings: helm adds these to what it has built in.
fn api_versions() -> Vec<&'static str> {
    vec!["apps/v1", "apps/v1/Deployment", "policy/v1", "policy/v1/PodDisruptionBudget", "snapshot.storage.k8s.io/v1", "v1"]
}

/// By the engine's own protocol: one request on its stdin, a line that says what was rendered, one object a line.
async fn engine(home: &TempFolder, archive: &[u8], component: &Component, values: &Value) -> BTreeMap<String, Value> {
    let request = json!({
        "archive": base64::engine::general_purpose::STANDARD.encode(archive),
        "release": component.name, "namespace": component.namespace, "values": values,
        "capabilities": {"kubeVersion": KUBE_VERSION, "apiVersions": api_versions()},
        "inventions": [{"clock": "2026-11-30T10:00:00Z", "seed": 0}],
    });
    let program = Program::new("engine", chart_engine()).only_given_env().stdin(request.to_string());
    let rendered = program.run(home, Duration::from_secs(60)).await.unwrap().ok().unwrap();
    let mut lines: Vec<Value> = rendered.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let head = lines.remove(0)["rendering"].take();
    assert_eq!(head["objects"], lines.len(), "{head}");
    assert_eq!(head["functions"], json!([]), "{}: nothing is made up", component.name);
    assert_eq!(head["chart"]["version"], component.chart.version);
    keyed(lines.into_iter().map(|mut line| {
        let object = line["object"].take();
        let hooks = object.pointer("/metadata/annotations/helm.sh~1hook").and_then(Value::as_str).unwrap_or_default();
        let told: Vec<&str> = line["hooks"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
        assert_eq!(told.join(","), hooks, "{}: the hook events of {object}", line["template"]);
        object
    }))
}

async fn helm(registry: &Registry, home: &TempFolder, archive: &[u8], component: &Component, values: &Value) -> BTreeMap<String, Value> {
    let chart = home.write(format!("{}-{}.tgz", component.chart.name, component.chart.version), archive).unwrap();
    let values = home.write("values.json", values.to_string()).unwrap();
    let (versions, chart, values) = (api_versions().join(","), chart.display().to_string(), values.display().to_string());
    let mut args = vec!["template", &component.name, &chart, "--namespace", &component.namespace, "--values", &values];
    args.extend(["--include-crds", "--kube-version", KUBE_VERSION, "--api-versions", &versions]);
    let rendered = registry.helm_on_registry(args).await.unwrap().ok().unwrap();
    let objects: Vec<Value> = serde_saphyr::from_multiple(&rendered.stdout).unwrap();
    keyed(objects.into_iter().filter(|object| !object.is_null()))
}

/// By kind and name; two of one name would hide one another.
fn keyed(objects: impl Iterator<Item = Value>) -> BTreeMap<String, Value> {
    let mut keyed = BTreeMap::new();
    for object in objects {
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
        let key = format!("{} {}/{}", text("/kind"), text("/metadata/namespace"), text("/metadata/name"));
        assert!(keyed.insert(key.clone(), object).is_none(), "{key} is there twice");
    }
    keyed
}
