//! Webhooks: a person approves all of a bundle's before its first workload runs, and `pcm-platform` could never remove one.
//!
//! So a webhook that fails closed must be unable to stop anybody but its own kinds, and each must have a Service that is or will be
//! there. `matchConditions` and `objectSelector` prove nothing here: what objects will be like is not known.

use std::collections::BTreeSet;

use agent_api::manifest::Manifest;
use agent_api::object::RenderedObject;
use serde_json::{Map, Value};

use super::judged::LiveServices;
use super::refusal::Findings;
use super::scope::Scope;

/// The label that every Namespace carries with its own name; the API server sees to that.
const NAMESPACE_NAME_LABEL: &str = "kubernetes.io/metadata.name";

/// Namespace of the cluster's own parts, which no webhook may stop.
const KUBE_SYSTEM: &str = "kube-system";

/// What a webhook needs when `timeoutSeconds` is absent, by the API's default, in seconds.
const DEFAULT_TIMEOUT_SECONDS: u64 = 10;

/// Built-in resources that lie in namespaces, for rules that do not say `scope: Namespaced`.
const NAMESPACED: [(&str, &[&str]); 5] = [
    (
        "",
        &[
            "pods",
            "services",
            "configmaps",
            "secrets",
            "persistentvolumeclaims",
            "serviceaccounts",
            "endpoints",
            "events",
            "replicationcontrollers",
            "limitranges",
            "resourcequotas",
            "podtemplates",
        ],
    ),
    ("apps", &["deployments", "replicasets", "statefulsets", "daemonsets", "controllerrevisions"]),
    ("batch", &["jobs", "cronjobs"]),
    ("autoscaling", &["horizontalpodautoscalers"]),
    ("policy", &["poddisruptionbudgets"]),
];

/// A webhook that lets writes pass when it fails; the plan shows it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Interception {
    /// The webhook configuration, as `Kind.group name`.
    pub configuration: String,
    /// Name of the webhook in it.
    pub webhook: String,
    /// What it is asked about, as `create,update pods,apps/deployments`.
    pub intercepts: String,
    /// How long a write may wait for it, in seconds.
    pub timeout_seconds: u64,
}

/// Judges the webhooks and conversion webhooks of a bundle; answers with those that ignore their failures.
pub(super) fn check(
    manifest: &Manifest,
    objects: &[RenderedObject],
    scope: &Scope<'_>,
    live: &dyn LiveServices,
    findings: &mut Findings<'_>,
) -> Vec<Interception> {
    let bundle = Surroundings::of(manifest, objects, scope);
    let mut interceptions = Vec::new();
    for object in objects {
        match object.key().kind.as_str() {
            "ValidatingWebhookConfiguration" | "MutatingWebhookConfiguration" => {
                for webhook in list(&object.object, "/webhooks") {
                    check_client(object, objects, webhook, live, findings);
                    if webhook.get("failurePolicy").and_then(Value::as_str) == Some("Ignore") {
                        interceptions.push(interception(object, webhook));
                    } else if let Some(problem) = bundle.stops_others(webhook) {
                        findings.object(object, format!("webhook {}: {problem}", name(webhook)), Some(FAIL_HINT));
                    }
                }
            }
            "CustomResourceDefinition" => check_conversion(object, live, findings),
            _ => {}
        }
    }
    interceptions
}

const FAIL_HINT: &str = "set the chart's webhook failure policy to Ignore, narrow its rules or namespaceSelector, or switch it off";

/// What a webhook of this bundle must leave alone.
struct Surroundings {
    /// Groups of the bundle's own CRDs of which the bundle holds no object.
    own_groups: BTreeSet<String>,
    /// Namespaces that a selector must leave out.
    protected: Vec<String>,
}

impl Surroundings {
    fn of(manifest: &Manifest, objects: &[RenderedObject], scope: &Scope<'_>) -> Self {
        let held: BTreeSet<String> = objects.iter().map(|object| object.key().group).collect();
        let own_groups = objects
            .iter()
            .filter(|object| object.key().kind == "CustomResourceDefinition")
            .filter_map(|object| object.object.pointer("/spec/group").and_then(Value::as_str))
            .filter(|group| !held.contains(*group))
            .map(str::to_owned)
            .collect();
        let mut protected: Vec<String> = manifest.namespaces.iter().map(ToString::to_string).collect();
        protected.extend([scope.home_namespace.to_owned(), KUBE_SYSTEM.to_owned()]);
        Self { own_groups, protected }
    }

    /// Why a webhook that fails closed could stop others; `None` where it provably cannot.
    fn stops_others(&self, webhook: &Value) -> Option<String> {
        let selector = webhook.get("namespaceSelector");
        let reached: Vec<&str> = self.protected.iter().map(String::as_str).filter(|namespace| !leaves_out(selector, namespace)).collect();
        for rule in list(webhook, "/rules") {
            let groups: Vec<&str> = strings(rule, "apiGroups");
            if !groups.is_empty() && groups.iter().all(|group| self.own_groups.contains(*group)) {
                continue;
            }
            let what = describe(rule);
            if !reached.is_empty() {
                return Some(format!("failurePolicy Fail on {what} could stop writes in {} while its server is away", reached.join(", ")));
            }
            if !namespaced(rule) {
                return Some(format!(
                    "failurePolicy Fail on {what} reaches objects outside namespaces, which no namespaceSelector leaves out"
                ));
            }
        }
        None
    }
}

/// Whether a selector leaves a namespace out whatever its labels are, but for the one that carries its name.
fn leaves_out(selector: Option<&Value>, namespace: &str) -> bool {
    let Some(selector) = selector else { return false };
    let other = selector.pointer("/matchLabels").and_then(Value::as_object).and_then(|labels| labels.get(NAMESPACE_NAME_LABEL));
    if other.and_then(Value::as_str).is_some_and(|value| value != namespace) {
        return true;
    }
    list(selector, "/matchExpressions")
        .filter(|expression| expression.get("key").and_then(Value::as_str) == Some(NAMESPACE_NAME_LABEL))
        .any(|expression| {
            let named = strings(expression, "values").contains(&namespace);
            match expression.get("operator").and_then(Value::as_str) {
                Some("In") => !named,
                Some("NotIn") => named,
                Some("DoesNotExist") => true,
                Some(_) | None => false,
            }
        })
}

/// Whether a rule reaches only objects that lie in namespaces.
fn namespaced(rule: &Value) -> bool {
    if rule.get("scope").and_then(Value::as_str) == Some("Namespaced") {
        return true;
    }
    let known = |group: &str, resource: &str| {
        let resource = resource.split('/').next().unwrap_or_default();
        NAMESPACED.iter().any(|(row, resources)| *row == group && resources.contains(&resource))
    };
    let (groups, resources) = (strings(rule, "apiGroups"), strings(rule, "resources"));
    !groups.is_empty() && !resources.is_empty() && groups.iter().all(|group| resources.iter().all(|resource| known(group, resource)))
}

fn check_client(
    object: &RenderedObject,
    objects: &[RenderedObject],
    webhook: &Value,
    live: &dyn LiveServices,
    findings: &mut Findings<'_>,
) {
    let name = name(webhook);
    if webhook.pointer("/clientConfig/url").is_some_and(|url| !url.is_null()) {
        findings.object(object, format!("webhook {name}: clientConfig.url is refused: what is admitted would leave the cluster"), None);
        return;
    }
    let Some((namespace, service)) = service_of(webhook.get("clientConfig")) else {
        findings.object(object, format!("webhook {name}: clientConfig names no Service"), None);
        return;
    };
    let rendered = objects.iter().any(|candidate| {
        let key = candidate.key();
        candidate.component == object.component && key.kind == "Service" && key.namespace == namespace && key.name == service
    });
    if !rendered && !live.is_live(namespace, service) {
        let problem = format!("webhook {name}: its Service {namespace}/{service} is neither rendered by this component nor live");
        findings.object(object, problem, Some("switch the chart's webhook off, or its Service on"));
    }
}

fn check_conversion(object: &RenderedObject, live: &dyn LiveServices, findings: &mut Findings<'_>) {
    let Some(conversion) = object.object.pointer("/spec/conversion") else { return };
    if conversion.get("strategy").and_then(Value::as_str) != Some("Webhook") {
        return;
    }
    let client = conversion.pointer("/webhook/clientConfig");
    if client.and_then(|client| client.get("url")).is_some_and(|url| !url.is_null()) {
        findings.object(object, "the conversion webhook's clientConfig.url is refused: its objects would leave the cluster", None);
        return;
    }
    let Some((namespace, service)) = service_of(client) else {
        findings.object(object, "the conversion webhook's clientConfig names no Service", None);
        return;
    };
    if !live.has_ready_endpoints(namespace, service) && live.has_objects_of(&object.key().name) {
        let problem = format!(
            "it turns to a conversion webhook whose Service {namespace}/{service} has no ready endpoint while objects of it exist: \
             they could be neither read nor written"
        );
        findings.object(object, problem, Some("update the operator first, or switch the chart's conversion webhook off"));
    }
}

fn service_of(client: Option<&Value>) -> Option<(&str, &str)> {
    let service = client?.get("service")?;
    Some((service.get("namespace")?.as_str()?, service.get("name")?.as_str()?))
}

fn interception(object: &RenderedObject, webhook: &Value) -> Interception {
    Interception {
        configuration: object.key().to_string(),
        webhook: name(webhook).to_owned(),
        intercepts: list(webhook, "/rules").map(describe).collect::<Vec<_>>().join("; "),
        timeout_seconds: webhook.get("timeoutSeconds").and_then(Value::as_u64).unwrap_or(DEFAULT_TIMEOUT_SECONDS),
    }
}

/// `create,update apps/deployments`, for people.
fn describe(rule: &Value) -> String {
    let operations = strings(rule, "operations").join(",").to_ascii_lowercase();
    let resources = strings(rule, "resources").join(",");
    let groups: Vec<&str> = strings(rule, "apiGroups").into_iter().map(|group| if group.is_empty() { "core" } else { group }).collect();
    format!("{operations} of {resources} in {}", groups.join(","))
}

fn name(webhook: &Value) -> &str {
    webhook.get("name").and_then(Value::as_str).unwrap_or("without a name")
}

fn list<'a>(value: &'a Value, pointer: &str) -> impl Iterator<Item = &'a Value> {
    value.pointer(pointer).and_then(Value::as_array).into_iter().flatten()
}

fn strings<'a>(value: &'a Value, field: &str) -> Vec<&'a str> {
    let object: Option<&Map<String, Value>> = value.as_object();
    object.and_then(|map| map.get(field)).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect()
}
