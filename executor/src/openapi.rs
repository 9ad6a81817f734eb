//! One OpenAPI document for what the executor serves: the local API and the health port.
//!
//! Printed by `clicklink openapi`, committed in `docs/reference/openapi.json`, served at `/openapi.json` of the local API.

use utoipa::OpenApi;
use utoipa::openapi::path::Paths;
use utoipa::openapi::{OpenApi as Document, Server};

use crate::{health, local_api};

#[derive(OpenApi)]
#[openapi(
    info(
        title = "clicklink executor",
        description = "What an executor answers on its machine. The local API is on loopback only, and answers no web page; the health \
                       port is on all addresses. Both read only.",
    ),
    tags(
        (name = "platform", description = "The platform update: what is staged, approved, applied and observed"),
        (name = "commands", description = "The journal of commands"),
        (name = "health", description = "For kubelets, service monitors and people"),
        (name = "description", description = "This document"),
    ),
)]
struct Frame;

/// The document.
pub(crate) fn document() -> Document {
    let mut document = Frame::openapi();
    document.merge(at(local_api::Routes::openapi(), "http://127.0.0.1:9999", "Local API (`executor.api_port`)"));
    document.merge(at(health::Routes::openapi(), "http://127.0.0.1:8086", "Health port (`executor.observability.health_port`)"));
    document
}

/// The document as it is committed.
pub(crate) fn text() -> String {
    document().to_pretty_json().unwrap_or_default()
}

fn at(mut part: Document, url: &str, description: &str) -> Document {
    let Paths { paths, .. } = &mut part.paths;
    for item in paths.values_mut() {
        let mut server = Server::new(url);
        server.description = Some(description.to_owned());
        item.servers = Some(vec![server]);
    }
    part
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_route_is_described_and_every_description_has_its_route() {
        let served: BTreeSet<&str> =
            local_api::routes().iter().map(|(path, _)| *path).chain(health::routes().iter().map(|(path, _)| *path)).collect();
        let document = document();
        let described: BTreeSet<&str> = document.paths.paths.keys().map(String::as_str).collect();
        assert_eq!(served, described);
        assert!(document.paths.paths.values().all(|item| item.servers.is_some()));
    }

    #[test]
    fn names_are_not_taken_twice() {
        let document = serde_json::to_value(document()).unwrap();
        let operations: Vec<&str> =
            document["paths"].as_object().unwrap().values().map(|item| item["get"]["operationId"].as_str().unwrap()).collect();
        assert_eq!(operations.iter().collect::<BTreeSet<_>>().len(), operations.len(), "{operations:?}");
        let schemas = |part: Document| part.components.unwrap().schemas;
        let (local, health) = (schemas(local_api::Routes::openapi()), schemas(health::Routes::openapi()));
        let both: Vec<&String> = local.keys().filter(|name| health.contains_key(*name)).collect();
        assert_eq!(both, [""; 0], "one would hide the other");
    }

    #[test]
    fn every_reference_leads_somewhere() {
        let text = text();
        let document: serde_json::Value = serde_json::from_str(&text).unwrap();
        let references: BTreeSet<&str> = text.split("\"#").skip(1).filter_map(|rest| rest.split('"').next()).collect();
        assert!(references.len() > 10, "{references:?}");
        for reference in references {
            assert!(document.pointer(reference).is_some(), "#{reference}");
        }
    }
}
