//! Whether a desired object has to be written, from what is live and what was written last.
//!
//! What the API server makes of an object (defaults, `1000m` for `1`) is not compared with what was rendered: that would never end. An object is
//! written when its desired form is another than last time, or when the operator's own record of fields in the live object (`managedFields`) is
//! another than after that write: whoever changes one of them takes it from the record. Nothing is known after a start, so that each is written
//! once more then, which changes nothing.

use agent_api::digest::Sha256;
use agent_api::object::ObjectKey;
use cluster::crd::managed_component::COMPONENT_LABEL;
use serde_json::Value;

use super::FIELD_MANAGER;
use super::workload::Workload;

/// What is remembered of a write.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Written {
    /// Digest of the object as it was desired.
    pub desired: Sha256,
    /// Digest of the operator's record of fields in the answer.
    pub fields: Option<Sha256>,
}

impl Written {
    /// What to remember of an apply and its answer.
    #[must_use]
    pub fn of(desired: &Value, answer: &Value) -> Self {
        Self { desired: Sha256::of_json(desired), fields: own_fields(answer) }
    }
}

/// What is to be done about an object.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Write {
    /// Nothing.
    Nothing,
    /// A server-side apply that forces nothing.
    Apply {
        /// A count that another manager, or an earlier patch of ours, owns and that is set first, by a plain patch: an autoscaler's, which would be a conflict for ever. No
        /// other field is taken from anybody.
        take_replicas: Option<u32>,
    },
}

/// An object of the name is there, and is not this component's.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum DiffError {
    /// Another component's.
    #[error("{object} is of component `{owner}`")]
    OfAnother {
        /// Object.
        object: ObjectKey,
        /// The other component.
        owner: String,
    },
    /// Nobody's that we know.
    #[error("{0} is there and was not made by the operator; it is taken over only once somebody labels it {COMPONENT_LABEL}")]
    Foreign(ObjectKey),
}

/// Decides about one object.
///
/// # Errors
/// See [`DiffError`].
pub fn diff(component: &str, desired: &Value, live: Option<&Value>, written: Option<&Written>) -> Result<Write, DiffError> {
    let Some(live) = live else { return Ok(Write::Apply { take_replicas: None }) };
    match owner(live) {
        Some(owner) if owner == component => {}
        Some(owner) => return Err(DiffError::OfAnother { object: ObjectKey::of(desired), owner: owner.to_owned() }),
        None => return Err(DiffError::Foreign(ObjectKey::of(desired))),
    }
    let unchanged = written.is_some_and(|written| {
        written.desired == Sha256::of_json(desired) && written.fields.is_some() && written.fields == own_fields(live)
    });
    if unchanged { Ok(Write::Nothing) } else { Ok(Write::Apply { take_replicas: take_replicas(desired, live) }) }
}

/// The component that an object is labelled with.
#[must_use]
pub fn owner(live: &Value) -> Option<&str> {
    live.pointer("/metadata/labels")?.get(COMPONENT_LABEL)?.as_str()
}

fn take_replicas(desired: &Value, live: &Value) -> Option<u32> {
    let wanted = Workload::of(desired)?.replicas()?;
    let live = Workload::of(live)?;
    let conflict = live.others_own_replicas() || !live.owns_replicas();
    (live.replicas() != Some(wanted) && conflict).then_some(wanted)
}

/// The operator's own record of fields in a live object.
fn own_fields(live: &Value) -> Option<Sha256> {
    let entries = live.pointer("/metadata/managedFields")?.as_array()?;
    let ours = entries.iter().find(|entry| entry["manager"] == FIELD_MANAGER && entry["operation"] == "Apply")?;
    Some(Sha256::of_json(ours.get("fieldsV1")?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn deployment(replicas: Value, image: &str) -> Value {
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a", "namespace": "n",
            "labels": {"platform.navin.ai/component": "redis"}}, "spec": {"replicas": replicas, "image": image}})
    }

    /// Live, with the fields that the operator owns and the manager that owns the count.
    fn live(mut object: Value, own: &[&str], counts: &str) -> Value {
        let mut fields: Value = own.iter().map(|field| (format!("f:{field}"), json!({}))).collect::<serde_json::Map<_, _>>().into();
        if counts == FIELD_MANAGER {
            fields["f:replicas"] = json!({});
        }
        object["metadata"]["managedFields"] = json!([
            {"manager": FIELD_MANAGER, "operation": "Apply", "fieldsV1": {"f:spec": fields}},
            {"manager": counts, "operation": "Update", "subresource": "scale", "fieldsV1": {"f:spec": {"f:replicas": {}}}}]);
        object
    }

    #[test]
    fn what_has_to_be_written() {
        let desired = deployment(json!(2), "i:1");
        let answer = live(desired.clone(), &["image"], FIELD_MANAGER);
        let written = Written::of(&desired, &answer);
        let apply = |take_replicas| Ok(Write::Apply { take_replicas });
        let mut defaulted = answer.clone();
        defaulted["spec"]["strategy"] = json!({"type": "RollingUpdate"});
        defaulted["metadata"]["resourceVersion"] = json!("9");
        defaulted["status"] = json!({"replicas": 2});
        let edited = live(deployment(json!(2), "i:2"), &[], FIELD_MANAGER);
        let scaled = live(deployment(json!(8), "i:1"), &["image"], "kube-controller-manager");
        let patched = live(deployment(json!(0), "i:1"), &["image", "replicas"], FIELD_MANAGER);
        for (name, desired, live, written, expected) in [
            ("it is not there", &desired, None, None, apply(None)),
            ("it is as it was written", &desired, Some(&answer), Some(&written), Ok(Write::Nothing)),
            ("defaults and a status were added", &desired, Some(&defaulted), Some(&written), Ok(Write::Nothing)),
            ("the operator has just started", &desired, Some(&answer), None, apply(None)),
            ("another form is desired", &deployment(json!(2), "i:2"), Some(&answer), Some(&written), apply(None)),
            ("somebody edited a field", &desired, Some(&edited), Some(&written), apply(None)),
            ("an autoscaler's count is to be ours", &desired, Some(&scaled), Some(&written), apply(Some(2))),
            ("arrêt of what an autoscaler holds", &deployment(json!(0), "i:1"), Some(&scaled), Some(&written), apply(Some(0))),
            ("démarrage after a patch of ours", &deployment(json!(3), "i:1"), Some(&patched), Some(&written), apply(Some(3))),
            ("the count stays the autoscaler's", &deployment(json!(null), "i:1"), Some(&scaled), Some(&written), apply(None)),
        ] {
            assert_eq!(diff("redis", desired, live, written), expected, "{name}");
        }
    }

    #[test]
    fn what_is_of_others_is_not_taken() {
        let desired = deployment(json!(2), "i");
        let mut foreign = desired.clone();
        foreign["metadata"]["labels"] = json!({});
        let told = |component: &str, live: &Value| diff(component, &desired, Some(live), None).unwrap_err().to_string();
        assert_eq!(told("other", &desired), "Deployment.apps n/a is of component `redis`");
        assert!(told("redis", &foreign).starts_with("Deployment.apps n/a is there and was not made by the operator"));
    }
}
