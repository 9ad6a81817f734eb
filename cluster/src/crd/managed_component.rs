//! `ManagedComponent` (`platform.navin.ai/v1alpha1`): a component of the catalogue that the operator keeps in a namespace.
//!
//! What the API server can check by itself (CEL, Kubernetes 1.29) is declared here; that values hold no secret is the operator's to see. The
//! same rules are checked again by the operator, whoever wrote the resource.

#![expect(clippy::duplicated_attributes, reason = "each printed column has a type of its own")]

mod status;

use std::borrow::Cow;
use std::fmt;

use kube::{CustomResource, CustomResourceExt as _};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

pub use status::{Condition, InventoryItem, KeptReplicas, ManagedComponentStatus, TakenUp};

/// API group; labels and annotations of the operator lie under it.
pub const GROUP: &str = "platform.navin.ai";
/// Version.
pub const VERSION: &str = "v1alpha1";
/// `apiVersion`.
pub const API_VERSION: &str = "platform.navin.ai/v1alpha1";
/// Kind.
pub const KIND: &str = "ManagedComponent";
/// Resource.
pub const RESOURCE: &str = "managedcomponents";

/// Longest name: Helm's limit for a release, which leaves ten characters for what charts append.
pub const MAX_NAME: usize = 53;
/// Most secret references.
pub const MAX_SECRET_REFS: usize = 64;
/// Most replicas that can be asked for.
pub const MAX_REPLICAS: u32 = 10_000;
/// Pods' CPU that an autoscaler aims at where nothing is said, in percent of what they request.
pub const TARGET_CPU: u32 = 80;

/// A DNS label (RFC 1123).
pub const LABEL_PATTERN: &str = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$";
/// A DNS subdomain (RFC 1123), as Secrets are named.
pub const SUBDOMAIN_PATTERN: &str = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$";
/// A chart below `--charts-dir`: no part begins with a dot, so that none leads out.
pub const LOCAL_PATTERN: &str = "^[A-Za-z0-9][A-Za-z0-9._-]*(/[A-Za-z0-9][A-Za-z0-9._-]*)*$";
/// A chart in a registry, by digest; a tag may stand before it and is not looked at.
pub const OCI_PATTERN: &str =
    r"^oci://[a-z0-9.-]+(:[0-9]+)?(/[a-z0-9]+([._-]+[a-z0-9]+)*)+(:[A-Za-z0-9_][A-Za-z0-9._-]*)?@sha256:[0-9a-f]{64}$";
/// A key of a Secret.
pub const SECRET_KEY_PATTERN: &str = "^[-._A-Za-z0-9]+$";
/// Keys of chart values, joined by dots.
pub const VALUE_PATH_PATTERN: &str = r"^[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*$";
/// A share in percent.
pub const PERCENT_PATTERN: &str = "^(100|[1-9]?[0-9])%$";

/// A rule that the API server checks (CEL), and what it says where it does not hold.
type Rule = (&'static str, &'static str);

/// Rules over the whole resource. Of its metadata, CEL sees the name.
const RULES: [Rule; 2] = [
    ("size(self.metadata.name) <= 53", "metadata.name: at most 53 characters, so that charts can append to it"),
    ("self.metadata.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')", "metadata.name: a DNS label, without dots"),
];

/// Rules over several fields of the spec. A share of pods is compared once the chart is rendered.
const SPEC_RULES: [Rule; 2] = [
    (
        "!has(self.replicas) || !has(self.pdb) || !has(self.pdb.minAvailable) || type(self.pdb.minAvailable) != int \
         || self.replicas >= self.pdb.minAvailable",
        "replicas: fewer than pdb.minAvailable",
    ),
    (
        "!has(self.autoscaling) || !has(self.pdb) || !has(self.pdb.minAvailable) || type(self.pdb.minAvailable) != int \
         || self.autoscaling.minReplicas >= self.pdb.minAvailable",
        "autoscaling.minReplicas: fewer than pdb.minAvailable",
    ),
];

fn rules(rules: &[Rule]) -> Value {
    rules.iter().map(|(rule, message)| json!({"rule": rule, "message": message})).collect()
}

/// What a component is and how it is to run.
#[derive(CustomResource, JsonSchema, Clone, PartialEq, Debug, Serialize, Deserialize)]
#[kube(
    group = "platform.navin.ai",
    version = "v1alpha1",
    kind = "ManagedComponent",
    namespaced,
    status = "ManagedComponentStatus",
    derive = "PartialEq",
    shortname = "mc",
    category = "navin",
    doc = "A component of the catalogue, which the Navin Platform Operator keeps in this namespace as its chart and this spec say.",
    printcolumn(name = "Service", type_ = "string", json_path = ".spec.service", description = "Service of the catalogue"),
    printcolumn(name = "State", type_ = "string", json_path = ".status.state", description = "What was observed"),
    printcolumn(name = "Health", type_ = "string", json_path = ".status.health", description = "Available pods against wanted ones"),
    printcolumn(name = "Operation", type_ = "string", json_path = ".status.operationState", description = "The last operation asked for"),
    printcolumn(
        name = "Security",
        type_ = "string",
        json_path = ".status.securityState",
        description = "Secrets in plain text, forbidden objects"
    ),
    printcolumn(name = "Converged", type_ = "boolean", json_path = ".status.converged", description = "Observed is what is desired"),
    printcolumn(name = "Version", type_ = "string", json_path = ".status.version", description = "Version of the chart that is applied"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = rules(&SPEC_RULES)))]
pub struct ManagedComponentSpec {
    /// Service of the catalogue that this component is, a DNS label.
    #[schemars(length(min = 1, max = 63), regex(pattern = LABEL_PATTERN), extend("example" = "redis"))]
    pub service: String,
    /// Where the chart comes from: exactly one of `local` and `oci`.
    pub source: Source,
    /// Version that the chart must have; another is refused. Without it the source alone decides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 128), extend("example" = "1.2.3"))]
    pub version: Option<String>,
    /// Values over the chart's own. They hold no secret: name a Secret in `secretRefs`.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    #[schemars(schema_with = "values_schema")]
    pub values: Map<String, Value>,
    /// Secrets of this namespace whose names the chart is given.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["valuePath"]))]
    pub secret_refs: Vec<SecretRef>,
    /// Pods of each Deployment and StatefulSet; without it the chart's own count. To have none, say `desiredState: Stopped`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 10_000))]
    pub replicas: Option<u32>,
    /// Disruption budget of each Deployment and StatefulSet, in place of the chart's own: exactly one of `minAvailable` and `maxUnavailable`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pdb: Option<Pdb>,
    /// Autoscaler of each Deployment and StatefulSet, in place of the chart's own. It owns the number of pods while it is there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub autoscaling: Option<Autoscaling>,
    /// Whether it is to run; `Stopped` puts every Deployment and StatefulSet at zero pods.
    #[serde(default)]
    pub desired_state: DesiredState,
    /// When a restart was asked for (RFC 3339). Each new value replaces every pod once, within the disruption budget.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "time_schema", extend("example" = "2026-11-30T10:00:00Z"))]
    pub restart_requested_at: Option<jiff::Timestamp>,
    /// While true, stopping, restarting, having fewer pods, configuring and deleting are refused. More pods stay allowed.
    #[serde(default)]
    pub maintenance: bool,
}

/// Where a chart comes from: exactly one of the two.
#[derive(JsonSchema, Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = rules(&[("has(self.local) != has(self.oci)", "source: exactly one of local and oci")])))]
pub struct Source {
    /// Chart folder or archive (`.tgz`) below the operator's `--charts-dir`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253), regex(pattern = LOCAL_PATTERN), extend("example" = "redis"))]
    pub local: Option<String>,
    /// Chart in an OCI registry, pinned by digest: `oci://host/path@sha256:…`. A tag alone is refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 512), regex(pattern = OCI_PATTERN), extend("example" = "oci://ghcr.io/acme/redis@sha256:0920e45a4d371a6a9096c0019afea688e3aecbd1167182f5dacfe86b37605449"))]
    pub oci: Option<String>,
}

/// A Secret of this namespace whose name the chart is given. Its value is never read beyond whether the key is there.
#[derive(JsonSchema, Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SecretRef {
    /// Name of the Secret.
    #[schemars(length(min = 1, max = 253), regex(pattern = SUBDOMAIN_PATTERN), extend("example" = "redis-auth"))]
    pub secret_name: String,
    /// Key that the Secret must have.
    #[schemars(length(min = 1, max = 253), regex(pattern = SECRET_KEY_PATTERN), extend("example" = "password"))]
    pub key: String,
    /// Chart value that is given the Secret's name, keys joined by dots.
    #[schemars(length(min = 1, max = 253), regex(pattern = VALUE_PATH_PATTERN), extend("example" = "auth.existingSecret"))]
    pub value_path: String,
}

/// A disruption budget: exactly one of the two.
#[derive(JsonSchema, Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = rules(&[("has(self.minAvailable) != has(self.maxUnavailable)", "pdb: exactly one of minAvailable and maxUnavailable")])))]
pub struct Pdb {
    /// So many pods stay available: a number, or a share that is rounded up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_available: Option<Amount>,
    /// So many pods may be unavailable: a number, or a share that is rounded up, as the API server rounds it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_unavailable: Option<Amount>,
}

/// A number of pods, or a share of them in percent.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Amount {
    /// Pods.
    Count(u32),
    /// `0%` to `100%`.
    Percent(String),
}

impl Amount {
    /// Of so many pods; a share is rounded up. `None` where the text is no share.
    #[must_use]
    pub fn of(&self, pods: u32) -> Option<u32> {
        match self {
            Self::Count(count) => Some(*count),
            Self::Percent(text) => {
                let percent: u64 = text.strip_suffix('%')?.parse().ok().filter(|percent| *percent <= 100)?;
                u32::try_from((u64::from(pods) * percent).div_ceil(100)).ok()
            }
        }
    }
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Count(count) => write!(f, "{count}"),
            Self::Percent(text) => f.write_str(text),
        }
    }
}

impl JsonSchema for Amount {
    fn schema_name() -> Cow<'static, str> {
        "Amount".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"x-kubernetes-int-or-string": true, "minimum": 0, "maximum": MAX_REPLICAS, "pattern": PERCENT_PATTERN, "maxLength": 4})
    }
}

/// How many pods an autoscaler may keep, and what it aims at.
#[derive(JsonSchema, Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = rules(&[("self.minReplicas <= self.maxReplicas", "autoscaling: minReplicas is more than maxReplicas")])))]
pub struct Autoscaling {
    /// Fewest pods.
    #[schemars(range(min = 1, max = 10_000))]
    pub min_replicas: u32,
    /// Most pods.
    #[schemars(range(min = 1, max = 10_000))]
    pub max_replicas: u32,
    /// Average CPU of the pods that is aimed at, in percent of what they request.
    #[serde(rename = "targetCPUUtilizationPercentage", default = "target_cpu")]
    #[schemars(range(min = 1, max = 1_000))]
    pub target_cpu_utilization_percentage: u32,
    /// `hpa` or `keda`. Without it: `keda` where KEDA's ScaledObject is served, else `hpa`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Engine")]
    pub engine: Option<Engine>,
}

/// What scales.
#[derive(JsonSchema, Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Engine {
    /// A HorizontalPodAutoscaler.
    Hpa,
    /// A ScaledObject of KEDA.
    Keda,
}

/// Whether a component is to run.
#[derive(JsonSchema, Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub enum DesiredState {
    /// It is to run.
    #[default]
    Running,
    /// It is to have no pods.
    Stopped,
}

fn target_cpu() -> u32 {
    TARGET_CPU
}

fn values_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})
}

fn time_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "string", "format": "date-time"})
}

/// The CustomResourceDefinition, as it is installed.
///
/// # Panics
/// Never: the definition is made of constants, and a test makes it.
#[must_use]
pub fn definition() -> Value {
    let mut definition = serde_json::to_value(ManagedComponent::crd()).expect("a definition is JSON");
    tidy(&mut definition);
    for schema in definition.pointer_mut("/spec/versions").and_then(Value::as_array_mut).into_iter().flatten() {
        schema["schema"]["openAPIV3Schema"]["x-kubernetes-validations"] = rules(&RULES);
    }
    definition
}

/// An explicit null is the same as leaving a field out, for which the API server wants it not to be `nullable`. `uint32` is no format that it
/// knows; `minimum` says the same.
fn tidy(schema: &mut Value) {
    match schema {
        Value::Object(map) => {
            if map.get("nullable") == Some(&Value::Bool(true)) {
                map.remove("nullable");
            }
            if map.get("format").and_then(Value::as_str) == Some("uint32") {
                map.insert("format".to_owned(), "int32".into());
            }
            map.values_mut().for_each(tidy);
        }
        Value::Array(items) => items.iter_mut().for_each(tidy),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Label on every object that the operator applies: the component's name.
pub const COMPONENT_LABEL: &str = "platform.navin.ai/component";
/// Annotation on pod templates: the restart request that they carry.
pub const RESTARTED_AT: &str = "platform.navin.ai/restarted-at";
/// Finalizer of a ManagedComponent: what it applied is removed before it is.
pub const FINALIZER: &str = "platform.navin.ai/cleanup";

#[cfg(test)]
mod tests;
