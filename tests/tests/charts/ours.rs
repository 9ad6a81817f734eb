//! What the product makes of a chart: the archive's bounds, the confined engine, lists opened.

use agent_api::approval::Capabilities;
use base64::Engine as _;
use render::engine::{Answer, ChartRenderer as _, EngineObject, EngineOutput, Invention, Request};
use render::normalise::opened;
use render::{Engine, archive};
use serde_json::Value;
use system_tests::chart_case::Case;
use system_tests::{chart_engine, engine_sandbox};

/// The cluster's version, for both.
pub(crate) const KUBE_VERSION: &str = "v1.37.2";

/// What `helm template` takes a cluster to serve, so that both are told the same.
const SERVED: &str = include_str!("../../corpus/served.txt");

/// The engine as the product runs it.
pub(crate) async fn engine() -> Engine {
    Engine::at(chart_engine(), engine_sandbox()).await.unwrap()
}

/// The first rendering of a chart, or the whole error in one line.
pub(crate) async fn outcome(engine: &Engine, case: &Case) -> Result<EngineOutput, String> {
    Ok(renderings(engine, case, &inventions()[..1]).await?.first)
}

/// As a person's `approve` has them.
pub(crate) fn inventions() -> [Invention; 2] {
    Invention::pair("2026-11-30T10:00:00Z".parse().unwrap())
}

/// As [`outcome`], with each of these.
pub(crate) async fn renderings(engine: &Engine, case: &Case, inventions: &[Invention]) -> Result<Answer, String> {
    let bytes = case.archive();
    archive::check(&bytes).map_err(|error| error.to_string())?;
    let api_versions = SERVED.lines().map(str::to_owned).collect();
    let capabilities = Capabilities { kube_version: KUBE_VERSION.into(), api_versions, ..Capabilities::default() };
    let request = Request {
        archive: &base64::engine::general_purpose::STANDARD.encode(bytes),
        release: "rel",
        namespace: "platform",
        values: &case.values,
        capabilities: &capabilities,
        inventions,
    };
    engine.render(request).await.map_err(|error| error.to_string())
}

/// A rendering's objects as kubectl would list them. The rules in which we differ:
/// - hooks of events that Helm does not know, which it drops with a word in its log, are told (and left out later, by name);
/// - a list is opened where it is a `List` or one of a kind that a bundle may hold, lists inside lists too.
pub(crate) fn objects(output: &EngineOutput) -> Vec<Value> {
    let known = |object: &&EngineObject| !object.hooks.iter().any(|event| event == "unknown");
    output.objects.iter().filter(known).flat_map(|object| opened(object.object.clone())).collect()
}
