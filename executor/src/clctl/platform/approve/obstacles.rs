//! What stands in the way of an approval that a plan shows: told in one message, after the plan.

use cluster::{Client, ClusterError, object};
use serde_json::Value;

use super::plan::{Plan, Replacement};
use crate::error_code::{Code, Coded};
use crate::terminal::escaped;

/// The API server's words where a policy's parameter is not there.
const NO_PARAMETER: &str = "no params found for policy binding";
/// The field that an autoscaler writes.
const REPLICAS: &str = ".spec.replicas";

/// Why a plan cannot be carried out as it is.
#[derive(Debug, thiserror::Error)]
#[error("{}", self.told())]
pub(super) struct Obstacles {
    /// Objects that the API server does not take.
    refused: Vec<ClusterError>,
    /// Objects that no apply can change.
    replacements: Vec<(String, Replacement)>,
    /// Who scales what another writer's count stands in the way of.
    autoscalers: Vec<String>,
}

impl Obstacles {
    /// Those of a plan, of which `refused` is told by the API server. What must be replaced is none where that was asked for, and none for
    /// somebody who only looks: the plan says it.
    pub(super) async fn check(client: &Client, plan: &Plan, refused: Vec<ClusterError>, looks: bool) -> Result<(), Self> {
        let replacements: Vec<_> = match plan.replace || looks {
            true => Vec::new(),
            false => plan.replacements().map(|(object, how)| (object.to_owned(), how.clone())).collect(),
        };
        if refused.is_empty() && replacements.is_empty() {
            return Ok(());
        }
        let autoscalers = autoscalers(client, &refused).await;
        Err(Self { refused, replacements, autoscalers })
    }

    fn told(&self) -> String {
        let mut parts = Vec::new();
        if !self.refused.is_empty() {
            let items: String = self.refused.iter().map(|refusal| item(&refusal.to_string())).collect();
            parts.push(format!("{} cannot be applied, and nothing was changed:{items}", count(self.refused.len())));
        }
        if !self.replacements.is_empty() {
            let items = self.replacements.iter().map(|(object, how)| item(&format!("{object}: {}; by hand: {}", how.reason, how.by_hand)));
            let items: String = items.collect();
            parts.push(format!("{} must be replaced, and nothing was changed:{items}", count(self.replacements.len())));
        }
        parts.join("\n")
    }
}

fn count(n: usize) -> &'static str {
    if n == 1 { "an object" } else { "objects" }
}

impl Coded for Obstacles {
    fn code(&self) -> Code {
        Code::ObjectsRefused
    }

    fn hints(&self) -> Vec<String> {
        let mut hints = self.autoscalers.clone();
        if self.refused.iter().any(|error| error.to_string().contains(NO_PARAMETER)) {
            hints.push(
                "PlatformApproval `current` or the Secret `pcm-platform-pins` was removed; put ended ones in their place: clicklink clctl \
                 platform approve --revoke"
                    .into(),
            );
        }
        if self.refused.iter().any(|error| matches!(error, ClusterError::Conflict { .. })) {
            hints.push("move the ownership of these fields with their content: the same command with --take-over".into());
        }
        if !self.replacements.is_empty() {
            hints.push(
                "delete them and make them anew: the same command with --replace; what is deleted is gone until the bundle is applied"
                    .into(),
            );
        }
        hints
    }
}

/// One line: the name of a role may hold a line break.
fn item(text: &str) -> String {
    format!("\n  - {}", escaped(text, &[]))
}

/// Names the autoscalers behind conflicts about a count: taken over it would be scaled away again at once. Who may not list them is told of none.
async fn autoscalers(client: &Client, refused: &[ClusterError]) -> Vec<String> {
    let mut hints = Vec::new();
    for error in refused {
        let ClusterError::Conflict { about, fields } = error else { continue };
        let Some((namespace, name)) = about.strip_prefix("Deployment.apps ").and_then(|object| object.split_once('/')) else { continue };
        if fields.iter().all(|(_, field)| field != REPLICAS) {
            continue;
        }
        let listed = object::list(client, "autoscaling/v2", "HorizontalPodAutoscaler", Some(namespace), None).await;
        let scales = |autoscaler: &&Value| {
            let target = |field: &str| autoscaler.pointer(&format!("/spec/scaleTargetRef/{field}")).and_then(Value::as_str);
            (target("kind"), target("name")) == (Some("Deployment"), Some(name))
        };
        for autoscaler in listed.unwrap_or_default().iter().filter(scales) {
            let autoscaler = autoscaler.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
            hints.push(escaped(
                &format!(
                    "HorizontalPodAutoscaler {namespace}/{autoscaler} writes {REPLICAS} of {about}: a bundle whose chart leaves the count out \
                     lives with it; else delete it first"
                ),
                &[],
            ));
        }
    }
    hints
}
