use super::*;

fn schema() -> Value {
    definition().pointer("/spec/versions/0/schema/openAPIV3Schema").unwrap().clone()
}

/// Every schema below one, with its path.
fn walk<'a>(schema: &'a Value, path: &str, visit: &mut impl FnMut(&str, &'a Value)) {
    visit(path, schema);
    for (name, child) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
        walk(child, &format!("{path}.{name}"), visit);
    }
    if let Some(items) = schema.get("items") {
        walk(items, &format!("{path}[]"), visit);
    }
}

#[test]
fn the_schema_is_structural_and_every_field_is_described() {
    let schema = schema();
    walk(&schema, "", &mut |path, schema| {
        let typed = schema.get("type").is_some() || schema["x-kubernetes-int-or-string"] == true;
        assert!(typed, "{path} has no type: {schema}");
        for keyword in ["$ref", "oneOf", "anyOf", "allOf", "nullable", "const", "examples"] {
            assert!(schema.get(keyword).is_none(), "{path}: {keyword}: {schema}");
        }
        let described = schema.get("description").and_then(Value::as_str).is_some_and(|text| !text.is_empty());
        // A list says what it is; its items need no sentence of their own.
        assert!(described || path.ends_with("[]") || path == ".metadata", "{path} has no description: {schema}");
    });
}

#[test]
fn the_columns_are_those_of_kubectl_get_mc() {
    let definition = definition();
    let version = &definition["spec"]["versions"][0];
    let columns: Vec<&str> =
        version["additionalPrinterColumns"].as_array().unwrap().iter().map(|column| column["name"].as_str().unwrap()).collect();
    assert_eq!(columns, ["Service", "State", "Health", "Operation", "Security", "Converged", "Version", "Age"]);
    assert_eq!(version["subresources"], json!({"status": {}}));
    assert_eq!(definition["metadata"]["name"], "managedcomponents.platform.navin.ai");
    assert_eq!(definition["spec"]["names"]["shortNames"], json!(["mc"]));
}

#[test]
fn the_dimensions_have_the_words_of_the_contract() {
    let schema = schema();
    for (field, values) in [
        ("state", json!(["installing", "starting", "started", "stopping", "stopped", "failed", "uninstalling"])),
        ("health", json!(["ok", "warning", "critical", "unknown"])),
        ("operationState", json!(["running", "succeeded", "failed", "blocked", "idle"])),
        ("securityState", json!(["compliant", "non_compliant", "unknown"])),
    ] {
        assert_eq!(schema["properties"]["status"]["properties"][field]["enum"], values, "{field}");
    }
    // The resource's own words, not those of the contract's types.
    let security = schema.pointer("/properties/status/properties/securityState/description").unwrap().as_str().unwrap();
    assert!(security.contains("forbidden"), "{security}");
}

#[test]
fn a_resource_that_says_little_gets_defaults_and_is_written_back_as_it_was() {
    let little = json!({"service": "redis", "source": {"local": "redis"}});
    let spec: ManagedComponentSpec = serde_json::from_value(little).unwrap();
    assert_eq!(spec.desired_state, DesiredState::Running);
    let much = json!({"service": "redis", "source": {"local": "redis"}, "values": {"a": {"b": [1]}}, "replicas": 3,
        "pdb": {"minAvailable": "50%"}, "desiredState": "Stopped", "restartRequestedAt": "2026-11-30T10:00:00Z", "maintenance": true,
        "secretRefs": [{"secretName": "s", "key": "k", "valuePath": "auth.existingSecret"}], "version": "1.0.0",
        "autoscaling": {"minReplicas": 1, "maxReplicas": 2, "targetCPUUtilizationPercentage": 70, "engine": "keda"}});
    let spec: ManagedComponentSpec = serde_json::from_value(much.clone()).unwrap();
    assert_eq!(serde_json::to_value(spec).unwrap(), much);
}

#[test]
fn a_share_of_pods_is_rounded_up() {
    for (amount, pods, expected) in [
        (Amount::Count(3), 1, Some(3)),
        (Amount::Percent("30%".into()), 1, Some(1)),
        (Amount::Percent("30%".into()), 10, Some(3)),
        (Amount::Percent("0%".into()), 10, Some(0)),
        (Amount::Percent("100%".into()), 7, Some(7)),
        (Amount::Percent("101%".into()), 7, None),
        (Amount::Percent("half".into()), 7, None),
    ] {
        assert_eq!(amount.of(pods), expected, "{amount} of {pods}");
    }
}
