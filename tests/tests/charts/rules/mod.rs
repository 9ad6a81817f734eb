//! The rules for what a bundle holds, a chart each: rendered by the real engine, normalised and judged as `approve` and the executor do.
//!
//! What a rule does to a live cluster (webhook configurations that are withdrawn, another writer's `caBundle`, a write that a webhook holds
//! up) is in `tests/updates` and beside the code.

mod normalising;
mod order;
mod refusals;
mod rendering;
mod webhooks;
mod webhooks_live;

use agent_api::manifest::Bundle;
use executor_core::bundle::{Judged, LiveServices, Refusals, Scope, judge};
use render::Engine;
use render::normalise::{Normalised, normalise};
use serde_json::{Map, Value, json};
use system_tests::chart_case::Case;

use super::ours;

/// The only image that the components name, twice: with this digest, and one that no chart runs.
const IMAGE: &str = "r.example/app@sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
const STARTED_BY_AN_OPERATOR: &str = "r.example/helper@sha256:bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb";
const SCOPE: Scope<'static> = Scope { namespace_prefix: "ns-", home_namespace: "clicklink-system" };

/// A chart of one template, and what the rule makes of it.
struct Row {
    /// The rule, in the words of the format.
    rule: &'static str,
    /// `templates/x.yaml`; `IMAGE` stands for the image that is listed.
    chart: &'static str,
    /// What the refusals say, one text each, in order; none where the chart is taken.
    says: &'static [&'static str],
}

/// Every row's chart by itself; all that is not as its rule says in one message.
async fn check(rows: &[Row], live: &dyn LiveServices) {
    let engine = ours::engine().await;
    let mut wrong = Vec::new();
    for Row { rule, chart, says } in rows {
        let (bundle, normalised) = rendered(&engine, &[chart]).await;
        let found: Vec<String> = match judged(&bundle, normalised, live) {
            Ok(_) => Vec::new(),
            Err(refusals) => refusals.iter().iter().map(ToString::to_string).collect(),
        };
        let placed = |text: &String| text.starts_with("component c0 (chart c 1.0.0), c/templates/x.yaml");
        if found.len() != says.len() || !found.iter().zip(*says).all(|(found, says)| found.contains(says) && placed(found)) {
            wrong.push(format!("{rule}:\n  expected {says:?}\n  found {found:#?}"));
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

/// A bundle whose components `c0`, `c1`, … have a chart `c` of one template each, and what they render to, normalised.
async fn rendered(engine: &Engine, charts: &[&str]) -> (Bundle, Normalised) {
    let mut outputs = Vec::new();
    for chart in charts {
        let case = Case::of("rule", &chart.replace("IMAGE", IMAGE), "", Map::new());
        outputs.push(ours::outcome(engine, &case).await.unwrap_or_else(|error| panic!("{error}\n{chart}")));
    }
    let bundle = bundle(charts.len());
    let normalised = normalise(bundle.manifest(), outputs);
    (bundle, normalised)
}

fn bundle(components: usize) -> Bundle {
    let component = |n: usize| {
        json!({"name": format!("c{n}"), "namespace": "platform", "release": "rel", "images": [IMAGE, STARTED_BY_AN_OPERATOR],
            "chart": {"name": "c", "version": "1.0.0", "digest": format!("sha256:{}", "0".repeat(64))}})
    };
    let text = json!({
        "apiVersion": "clicklink.io/v1", "kind": "PlatformBundle", "environment": "e", "createdAt": "2026-11-30T10:00:00Z",
        "registry": {"mode": "anonymous", "chartBase": "oci://r.example/p"}, "namespaces": ["platform", "platform-extra"],
        "components": (0..components).map(component).collect::<Vec<Value>>(),
    });
    Bundle::parse(text.to_string()).unwrap()
}

fn judged(bundle: &Bundle, normalised: Normalised, live: &dyn LiveServices) -> Result<Judged, Refusals> {
    judge(bundle, normalised.objects, normalised.placeholders, &SCOPE, live)
}

/// A cluster with one Service, `elsewhere/live`, which is ready; of every CRD there are objects.
struct Live;

impl LiveServices for Live {
    fn is_live(&self, namespace: &str, name: &str) -> bool {
        (namespace, name) == ("elsewhere", "live")
    }

    fn has_ready_endpoints(&self, namespace: &str, name: &str) -> bool {
        self.is_live(namespace, name)
    }
}
