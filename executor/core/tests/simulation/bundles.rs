//! Three bundles that differ, judged once.

use std::sync::Arc;

use agent_api::digest::Sha256;
use agent_api::manifest::Bundle;
use agent_api::object::RenderedObject;
use executor_core::bundle::{Judged, Scope, Trusted, judge};
use serde_json::json;

/// A bundle and what it renders to.
pub(crate) struct Made {
    pub(crate) text: String,
    pub(crate) sha256: Sha256,
    pub(crate) judged: Arc<Judged>,
}

pub(crate) fn make() -> Vec<Made> {
    (0..3).map(one).collect()
}

fn one(edition: u32) -> Made {
    let digest = format!("sha256:{}", "a".repeat(64));
    let component = |name: &str| json!({"name": name, "namespace": "p", "release": name, "chart": {"name": name, "version": "1.0.0", "digest": digest}});
    let text = json!({
        "apiVersion": "clicklink.io/v1", "kind": "PlatformBundle", "environment": format!("e{edition}"), "createdAt": "2026-11-30T10:00:00Z",
        "registry": {"mode": "anonymous", "chartBase": "oci://r.example/p"}, "namespaces": ["p"],
        "components": [component("first"), component("second")],
    })
    .to_string();
    let bundle = Bundle::parse(text.clone()).unwrap();
    let object = |component: &str, object: serde_json::Value| RenderedObject {
        component: Some(component.into()),
        template: format!("{component}/t.yaml"),
        hook: None,
        object,
    };
    let config = |component: &str, name: &str| {
        object(
            component,
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "p"}, "data": {"edition": edition.to_string()}}),
        )
    };
    let objects = vec![
        object(
            "first",
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "p", "labels": {"edition": edition.to_string()}}}),
        ),
        config("first", "a"),
        config("first", "b"),
        config("second", "c"),
    ];
    let scope = Scope { namespace_prefix: "ns-", home_namespace: "home" };
    let judged = Arc::new(judge(&bundle, objects, Vec::new(), &scope, &Trusted).unwrap());
    Made { sha256: bundle.sha256().clone(), text, judged }
}
