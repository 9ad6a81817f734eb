//! What the operator reports of a component: four dimensions as observed, conditions with reasons, and what it applied.

use agent_api::digest::Sha256;
use agent_api::heartbeat::{Health, OperationState, SecurityState, State};
use agent_api::object::ObjectKey;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use super::{Autoscaling, DesiredState};

/// What was observed; never what was asked for.
#[derive(JsonSchema, Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ManagedComponentStatus {
    /// Newest generation of the spec that the operator has taken up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Observed on Deployments and StatefulSets: generations, replicas, revisions, conditions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "State")]
    pub state: Option<State>,
    /// Available pods against wanted ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Health")]
    pub health: Option<Health>,
    /// How the last operation that the spec asked for stands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "OperationState")]
    pub operation_state: Option<OperationState>,
    /// Whether a secret stands in plain text, or the chart produced an object that is forbidden.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "SecurityState")]
    pub security_state: Option<SecurityState>,
    /// True only when the newest generation is observed and what is observed is what is desired.
    #[serde(default)]
    pub converged: bool,
    /// Version of the chart that is applied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Pods that are available.
    #[serde(default)]
    pub available: u32,
    /// Pods that are wanted.
    #[serde(default)]
    pub wanted: u32,
    /// Why the four dimensions are what they are.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
    /// What the operator last carried out; the next spec is compared with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub taken_up: Option<TakenUp>,
    /// Every object that the operator applied and has not seen gone. Deleting the component removes them all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inventory: Vec<InventoryItem>,
    /// What the counts of workloads were before a stop.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kept_replicas: Vec<KeptReplicas>,
}

/// One statement with its reason, in the form that all Kubernetes resources use.
#[derive(JsonSchema, Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    /// What is stated.
    #[serde(rename = "type")]
    #[schemars(length(max = 316))]
    pub kind: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
    /// Generation of the spec that it speaks of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Since when `status` is what it is.
    #[schemars(schema_with = "time_schema")]
    pub last_transition_time: jiff::Timestamp,
    /// Why, as one word for programs.
    #[schemars(length(min = 1, max = 1024))]
    pub reason: String,
    /// Why, for people.
    #[schemars(length(max = 32768))]
    pub message: String,
}

/// What was carried out of a spec.
#[derive(JsonSchema, Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TakenUp {
    /// Generation of the spec.
    pub generation: i64,
    /// sha256 of source, version, values, secret references and disruption budget.
    #[schemars(with = "String")]
    pub configuration: Sha256,
    /// `replicas` of the spec.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replicas: Option<u32>,
    /// `autoscaling` of the spec.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub autoscaling: Option<Autoscaling>,
    /// `desiredState` of the spec.
    pub desired_state: DesiredState,
    /// `restartRequestedAt` of the spec.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "time_schema")]
    pub restart_requested_at: Option<jiff::Timestamp>,
}

/// An object that was applied.
#[derive(JsonSchema, Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InventoryItem {
    /// API group, empty for the core group.
    #[serde(default)]
    pub group: String,
    /// Kind.
    pub kind: String,
    /// Namespace.
    pub namespace: String,
    /// Name.
    pub name: String,
    /// Whether an update spares it (`helm.sh/resource-policy: keep`). Deleting the component does not.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub keep: bool,
}

impl InventoryItem {
    /// Its identity.
    #[must_use]
    pub fn key(&self) -> ObjectKey {
        ObjectKey { group: self.group.clone(), kind: self.kind.clone(), namespace: self.namespace.clone(), name: self.name.clone() }
    }

    /// The entry of an object.
    #[must_use]
    pub fn of(key: ObjectKey, keep: bool) -> Self {
        Self { group: key.group, kind: key.kind, namespace: key.namespace, name: key.name, keep }
    }
}

/// How many pods a workload had before it was stopped.
#[derive(JsonSchema, Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct KeptReplicas {
    /// `Deployment` or `StatefulSet`.
    pub kind: String,
    /// Name.
    pub name: String,
    /// Pods.
    pub replicas: u32,
}

fn time_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "string", "format": "date-time"})
}
