//! A resource as it is at the API server, read whatever it says: the definition's schema takes more than this program can read (a date of the year
//! 9999), and a status can be edited by hand. What cannot be read is told; it never keeps a resource from being deleted.

use cluster::crd::managed_component::{FINALIZER, InventoryItem, ManagedComponentSpec, ManagedComponentStatus};
use cluster::object;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::queue::Name;
use crate::reconcile::plan::{Component, Stopped};
use crate::reconcile::reason::Reason;

/// A resource that was read.
pub(super) struct Resource {
    /// Whole, as the next write goes over it.
    pub(super) object: Value,
    /// What could be read of the spec.
    pub(super) spec: ManagedComponentSpec,
    /// What could not.
    pub(super) unreadable: Option<Stopped>,
    /// Generation of the spec.
    pub(super) generation: i64,
    /// Whether it is being deleted.
    pub(super) deleting: bool,
}

impl Resource {
    /// The resource, and what its status can be trusted for.
    pub(super) fn read(object: Value) -> (Self, ManagedComponentStatus) {
        let (spec, unreadable) = spec(&object["spec"]);
        let status = status(&object["status"], object.pointer("/metadata/namespace").and_then(Value::as_str).unwrap_or_default());
        let generation = object.pointer("/metadata/generation").and_then(Value::as_i64).unwrap_or_default();
        let deleting = object.pointer("/metadata/deletionTimestamp").is_some();
        (Self { object, spec, unreadable, generation, deleting }, status)
    }

    pub(super) fn component<'a>(&'a self, name: &'a Name, status: &'a ManagedComponentStatus) -> Component<'a> {
        let Self { spec, generation, deleting, .. } = self;
        Component { name: &name.name, namespace: &name.namespace, generation: *generation, deleting: *deleting, spec, status }
    }

    pub(super) fn has_finalizer(&self) -> bool {
        object::finalizers(&self.object).iter().any(|finalizer| finalizer == FINALIZER)
    }

    /// Which resource of its name it is.
    pub(super) fn uid(&self) -> &str {
        self.object.pointer("/metadata/uid").and_then(Value::as_str).unwrap_or_default()
    }
}

/// A spec, and which of its fields cannot be read: those are left out, and what is required stands empty.
fn spec(written: &Value) -> (ManagedComponentSpec, Option<Stopped>) {
    if let Ok(spec) = ManagedComponentSpec::deserialize_from(written) {
        return (spec, None);
    }
    let mut read = json!({"service": "", "source": {}});
    let mut problems = Vec::new();
    for (field, value) in written.as_object().into_iter().flatten() {
        let former = read[field].take();
        read[field] = value.clone();
        if let Err(error) = ManagedComponentSpec::deserialize_from(&read) {
            problems.push(format!("{field}: {error}"));
            read[field] = former;
            if read[field].is_null()
                && let Some(map) = read.as_object_mut()
            {
                map.remove(field);
            }
        }
    }
    let unreadable = Some(Stopped::new(Reason::InvalidSpec, problems.join("; ")));
    (ManagedComponentSpec::deserialize_from(&read).unwrap_or_else(|_| empty()), unreadable)
}

fn empty() -> ManagedComponentSpec {
    ManagedComponentSpec {
        service: String::new(),
        source: Default::default(),
        version: None,
        values: Map::new(),
        secret_refs: Vec::new(),
        replicas: None,
        pdb: None,
        autoscaling: None,
        desired_state: Default::default(),
        restart_requested_at: None,
        maintenance: false,
    }
}

/// A status, without what cannot be read of it. An inventory that names another namespace was written by somebody else: no component has an object
/// there, and none is deleted there, whoever owns it.
fn status(written: &Value, namespace: &str) -> ManagedComponentStatus {
    let mut status = ManagedComponentStatus::deserialize_from(written).unwrap_or_else(|_| {
        let mut read = written.as_object().cloned().unwrap_or_default();
        read.retain(|field, value| ManagedComponentStatus::deserialize_from(&json!({field: value})).is_ok() || field == "inventory");
        if let Some(items) = read.get_mut("inventory").and_then(Value::as_array_mut) {
            items.retain(|item| InventoryItem::deserialize_from(item).is_ok());
        }
        ManagedComponentStatus::deserialize_from(&Value::Object(read)).unwrap_or_default()
    });
    status.inventory.retain(|item| item.namespace == namespace);
    status
}

trait DeserializeFrom: DeserializeOwned {
    /// From JSON; nothing at all is an empty object.
    fn deserialize_from(value: &Value) -> Result<Self, serde_json::Error> {
        if value.is_null() { serde_json::from_value(json!({})) } else { serde_json::from_value(value.clone()) }
    }
}

impl<T: DeserializeOwned> DeserializeFrom for T {}

#[cfg(test)]
mod tests {
    use super::*;
    use cluster::crd::managed_component::DesiredState;

    fn read(spec: Value, status: Value) -> (Resource, ManagedComponentStatus) {
        let metadata = json!({"name": "a", "namespace": "here", "uid": "u", "generation": 3, "deletionTimestamp": "2026-12-01T00:00:00Z"});
        Resource::read(json!({"metadata": metadata, "spec": spec, "status": status}))
    }

    #[test]
    fn what_the_schema_takes_and_nobody_can_read_is_named_and_the_rest_counts() {
        for time in ["9999-12-31T23:59:59Z", "2026-11-30T10:00:00+30:00", "2026-11-30T10:00:00.1234567890123Z"] {
            let spec = json!({"service": "redis", "source": {"local": "redis"}, "maintenance": true, "desiredState": "Stopped",
                "values": {"a": 1}, "restartRequestedAt": time});
            let (resource, _) = read(spec, Value::Null);
            let told = resource.unreadable.unwrap();
            assert_eq!(told.reason, Reason::InvalidSpec);
            assert!(told.message.starts_with("restartRequestedAt: "), "{}", told.message);
            let spec = resource.spec;
            assert_eq!((spec.service.as_str(), spec.maintenance, spec.desired_state), ("redis", true, DesiredState::Stopped));
            assert!(resource.deleting && spec.restart_requested_at.is_none());
        }
        let (resource, _) = read(json!({"service": 3}), Value::Null);
        assert!(resource.unreadable.is_some_and(|told| told.message.starts_with("service: ")));
        let (resource, _) = read(json!({"service": "a", "source": {"local": "a"}}), Value::Null);
        assert!(resource.unreadable.is_none());
    }

    #[test]
    fn a_status_that_somebody_edited_is_trusted_for_what_can_be_read_of_it() {
        let item = |namespace: &str, name: &str| json!({"group": "apps", "kind": "Deployment", "namespace": namespace, "name": name});
        let (_, status) = read(
            json!({"service": "a", "source": {"local": "a"}}),
            json!({"observedGeneration": 2, "takenUp": {"generation": 1, "configuration": "no digest", "desiredState": "Running"},
                "conditions": [{"type": "Converged", "status": "True", "lastTransitionTime": "9999-12-31T23:59:59Z", "reason": "r",
                    "message": "m"}],
                "inventory": [item("here", "mine"), {"kind": 3}, item("elsewhere", "of-another")]}),
        );
        let names: Vec<&str> = status.inventory.iter().map(|item| item.name.as_str()).collect();
        assert_eq!((names, status.observed_generation, status.taken_up), (vec!["mine"], Some(2), None));
    }

    /// A component of the same name elsewhere has the same label: only the namespace tells them apart.
    #[test]
    fn an_inventory_never_leads_into_another_namespace() {
        let poison = json!({"inventory": [{"group": "", "kind": "Service", "namespace": "other", "name": "a"}]});
        assert_eq!(read(json!({"service": "a", "source": {"local": "a"}}), poison).1.inventory, []);
    }
}
