//! What the rules of webhooks ask of the cluster and of other components, and what they tell a person.

use executor_core::bundle::LiveServices;

use super::webhooks::ROWS;
use super::{Live, Row, check, judged, rendered};
use crate::ours;

/// A cluster in which there is nothing.
struct Fresh;

impl LiveServices for Fresh {
    fn is_live(&self, _namespace: &str, _name: &str) -> bool {
        false
    }

    fn has_objects_of(&self, _definition: &str) -> bool {
        false
    }
}

/// Where no object of it exists, a conversion webhook may come before its server; a webhook's live Service has to be live.
#[tokio::test]
async fn what_is_asked_of_the_cluster_is_its_answer() {
    let row = |rule: &str| ROWS.iter().find(|row| row.rule.starts_with(rule)).unwrap();
    let turns = row("a CRD that turns");
    let ignores = row("Ignore is allowed");
    check(
        &[
            Row { says: &[], ..*turns },
            Row { says: &["its Service elsewhere/live is neither rendered by this component nor live"], ..*ignores },
        ],
        &Fresh,
    )
    .await;
}

/// A Service of another component is none: it would go without this one.
#[tokio::test]
async fn the_service_of_another_component_does_not_count() {
    let own = ROWS.iter().find(|row| row.rule.starts_with("its Service may")).unwrap().chart;
    let (service, webhook) = own.split_once("\n---\n").unwrap();
    let (bundle, normalised) = rendered(&ours::engine().await, &[service, webhook]).await;
    let text = judged(&bundle, normalised, &Live).unwrap_err().to_string();
    assert!(text.contains("component c1 (chart c 1.0.0)") && text.contains("Service platform/hook is neither rendered"), "{text}");
}

/// What ignores its failures is told to whoever approves: what it intercepts, and how long a write may wait for it.
#[tokio::test]
async fn what_ignores_its_failures_is_told() {
    let ignores = ROWS.iter().find(|row| row.rule == "Ignore is allowed").unwrap().chart;
    let (bundle, normalised) = rendered(&ours::engine().await, &[ignores]).await;
    let judged = judged(&bundle, normalised, &Live).unwrap();
    let told: Vec<_> = judged
        .interceptions()
        .iter()
        .map(|told| (told.configuration.as_str(), told.webhook.as_str(), told.intercepts.as_str(), told.timeout_seconds))
        .collect();
    assert_eq!(told, [("ValidatingWebhookConfiguration.admissionregistration.k8s.io a", "w.ignores.io", "* of * in *", 10)]);
}
