//! What the rules of a bundle ask of the live cluster: the Services that its webhooks and conversions name.
//!
//! The rules are pure, so that everything they may ask is read before.

use std::collections::{BTreeMap, BTreeSet};

use agent_api::object::RenderedObject;
use cluster::object;
use cluster::{Client, ClusterError};
use executor_core::bundle::LiveServices;
use serde_json::{Value, json};

/// What was read.
#[derive(Debug, Default)]
pub(super) struct Live {
    /// Service, and whether it has a ready endpoint; absent where it is not there.
    services: BTreeMap<(String, String), bool>,
    /// Definitions with a conversion webhook of which no object is there.
    unused: BTreeSet<String>,
}

impl LiveServices for Live {
    fn is_live(&self, namespace: &str, name: &str) -> bool {
        self.services.contains_key(&(namespace.to_owned(), name.to_owned()))
    }

    fn has_ready_endpoints(&self, namespace: &str, name: &str) -> bool {
        self.services.get(&(namespace.to_owned(), name.to_owned())).copied().unwrap_or(false)
    }

    fn has_objects_of(&self, definition: &str) -> bool {
        !self.unused.contains(definition)
    }
}

/// Reads what `objects` refer to.
pub(super) async fn read(client: &Client, objects: &[RenderedObject]) -> Result<Live, ClusterError> {
    let mut live = Live::default();
    let values: Vec<&Value> = objects.iter().map(|object| &object.object).collect();
    for (namespace, name) in services(&values) {
        let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"namespace": namespace, "name": name}});
        if object::get(client, &service).await?.is_some() {
            let selector = format!("kubernetes.io/service-name={name}");
            let slices = object::list(client, "discovery.k8s.io/v1", "EndpointSlice", Some(&namespace), Some(&selector)).await?;
            live.services.insert((namespace, name), slices.iter().any(has_ready_endpoint));
        }
    }
    for definition in values.iter().filter(|value| value.pointer("/spec/conversion/webhook").is_some()) {
        if !object::any_of(client, definition).await? {
            live.unused.insert(text(definition, "/metadata/name"));
        }
    }
    Ok(live)
}

/// (namespace, name) of each Service that a webhook or a conversion calls.
fn services(objects: &[&Value]) -> BTreeSet<(String, String)> {
    let named = |service: &Value| (text(service, "/namespace"), text(service, "/name"));
    objects
        .iter()
        .flat_map(|object| {
            let webhooks = object.get("webhooks").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
            let called = webhooks.iter().filter_map(|webhook| webhook.pointer("/clientConfig/service"));
            called.chain(object.pointer("/spec/conversion/webhook/clientConfig/service")).map(named)
        })
        .filter(|(namespace, name)| !namespace.is_empty() && !name.is_empty())
        .collect()
}

fn has_ready_endpoint(slice: &Value) -> bool {
    let endpoints = slice.get("endpoints").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    endpoints.iter().any(|endpoint| endpoint.pointer("/conditions/ready").and_then(Value::as_bool).unwrap_or(true))
}

fn text(value: &Value, pointer: &str) -> String {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn services_are_collected_from_webhooks_and_conversions() {
        let hook = json!({"webhooks": [{"clientConfig": {"service": {"namespace": "a", "name": "b"}}}, {"clientConfig": {"url": "x"}}]});
        let crd = json!({"spec": {"conversion": {"webhook": {"clientConfig": {"service": {"namespace": "c", "name": "d"}}}}}});
        let found: Vec<_> = services(&[&hook, &crd, &json!({})]).into_iter().collect();
        assert_eq!(found, [("a".to_owned(), "b".to_owned()), ("c".to_owned(), "d".to_owned())]);
    }

    #[test]
    fn an_endpoint_without_a_condition_is_ready() {
        assert!(has_ready_endpoint(&json!({"endpoints": [{"conditions": {"ready": false}}, {}]})));
        assert!(!has_ready_endpoint(&json!({"endpoints": [{"conditions": {"ready": false}}]})));
        assert!(!has_ready_endpoint(&json!({"endpoints": null})));
    }
}
