//! navin-operator at a real API server with real controllers, as its own ServiceAccount with exactly the generated rights. Tests are named after the
//! seed's tables.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod arrets_et_pannes;
mod charts_epingles;
mod composants_et_operations;
mod dimensions;
mod mains_etrangeres;

mod protections;
mod rbac_de_l_operateur;
mod resource;

/// Running, healthy, done.
const STARTED: &str = "started ok succeeded compliant true";
/// Nothing runs, as asked.
const STOPPED: &str = "stopped ok succeeded compliant true";

/// The credential of an audit event.
fn credential_of(event: &serde_json::Value) -> &str {
    event["user"]["extra"]["authentication.kubernetes.io/credential-id"][0].as_str().unwrap_or_default()
}
