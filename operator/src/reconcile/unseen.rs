//! What the operator has no right to see. A component that has to do with none of it goes on as ever; another is told, and stays as it is: what
//! cannot be seen must not be taken for gone.

use std::collections::BTreeSet;

use agent_api::object::ObjectKey;
use cluster::crd::component_kind::{COMPONENT_KINDS, ComponentKind};
use cluster::crd::managed_component::InventoryItem;

use super::observe::Outcome;
use super::plan::{Component, Plan, Stopped, refused};
use super::reason::Reason;
use super::transform::autoscaler;
use super::workload::is_workload;

/// Kinds that cannot be listed in a namespace.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Unseen(BTreeSet<(&'static str, &'static str)>);

impl Unseen {
    /// These: group and kind.
    #[must_use]
    pub fn of(kinds: impl IntoIterator<Item = (&'static str, &'static str)>) -> Self {
        Self(kinds.into_iter().collect())
    }

    fn has(&self, key: &ObjectKey) -> bool {
        self.0.iter().any(|(group, kind)| key.group == *group && key.kind == *kind)
    }

    /// The plan, or the refusal of one that touches what cannot be seen.
    #[must_use]
    pub fn judge(&self, component: &Component<'_>, plan: Plan) -> Plan {
        if self.0.is_empty() {
            return plan;
        }
        let keys: Vec<ObjectKey> = plan.inventory.iter().map(InventoryItem::key).collect();
        let runs = !component.deleting && keys.iter().any(is_workload);
        let concerns = |kind: &&ComponentKind| {
            let key = ObjectKey { group: kind.group.into(), kind: kind.kind.into(), namespace: String::new(), name: String::new() };
            // Somebody else's autoscaler or budget of a workload counts as much as the component's own.
            let bounds = autoscaler::is_autoscaler(&key) || kind.group == "policy";
            self.has(&key) && (keys.iter().any(|other| other.group == kind.group && other.kind == kind.kind) || (runs && bounds))
        };
        let named: Vec<String> = COMPONENT_KINDS.iter().filter(concerns).map(|kind| dotted(kind.resource, kind.group)).collect();
        if named.is_empty() {
            return plan;
        }
        let message = format!("the operator has no right to list {} in namespace `{}`", named.join(", "), component.namespace);
        let mut plan = match plan.outcome {
            Outcome::Failed { .. } => plan,
            Outcome::Written | Outcome::NothingAsked { .. } | Outcome::Blocked { .. } => {
                refused(component, Stopped::new(Reason::Forbidden, message))
            }
        };
        plan.expected.retain(|expected| !self.has(&expected.key));
        plan
    }
}

fn dotted(resource: &str, group: &str) -> String {
    let dot = if group.is_empty() { "" } else { "." };
    format!("{resource}{dot}{group}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reconcile::Live;
    use crate::reconcile::plan::{Cluster, Steps, plan};
    use cluster::crd::managed_component::{ManagedComponentSpec, ManagedComponentStatus};
    use serde_json::json;
    use std::collections::BTreeMap;

    const INGRESS: (&str, &str) = ("networking.k8s.io", "Ingress");
    const SCALER: (&str, &str) = ("autoscaling", "HorizontalPodAutoscaler");

    /// What is told of a component with this inventory where these kinds cannot be listed; empty where it goes on.
    fn told(inventory: &[(&str, &str)], deleting: bool, unseen: &[(&'static str, &'static str)]) -> String {
        let spec: ManagedComponentSpec = serde_json::from_value(json!({"service": "a", "source": {"local": "a"}})).unwrap();
        let item = |(group, kind): &(&str, &str)| InventoryItem {
            group: (*group).into(),
            kind: (*kind).into(),
            namespace: "here".into(),
            name: "a".into(),
            keep: false,
        };
        let status = ManagedComponentStatus { inventory: inventory.iter().map(item).collect(), ..ManagedComponentStatus::default() };
        let component = Component { name: "a", namespace: "here", generation: 1, deleting, spec: &spec, status: &status };
        let (live, written) = (Live::new(), BTreeMap::new());
        let planned =
            plan(&component, &Cluster { live: &live, keda_served: false, written: &written, unanswered: &[] }, |_| Ok(Vec::new()));
        let judged = Unseen::of(unseen.iter().copied()).judge(&component, planned);
        match judged.outcome {
            Outcome::Failed { reason, message } => {
                assert_eq!((judged.steps, reason), (Steps::Nothing, Reason::Forbidden));
                assert_eq!(judged.inventory, status.inventory, "what cannot be seen is not taken for gone");
                message
            }
            _ => String::new(),
        }
    }

    #[test]
    fn only_what_it_concerns_is_kept_from_going_on() {
        let (map, deployment) = (("", "ConfigMap"), ("apps", "Deployment"));
        let ingresses = "the operator has no right to list ingresses.networking.k8s.io in namespace `here`";
        let scalers = "the operator has no right to list horizontalpodautoscalers.autoscaling in namespace `here`";
        for (name, inventory, deleting, unseen, expected) in [
            ("all is seen", &[map, INGRESS][..], true, &[][..], ""),
            ("it has none", &[map], true, &[INGRESS], ""),
            ("a deletion of one", &[map, INGRESS], true, &[INGRESS], ingresses),
            ("an update with one", &[map, INGRESS], false, &[INGRESS], ingresses),
            ("somebody's autoscaler may own the count", &[deployment], false, &[SCALER], scalers),
            ("which is nothing to a deletion", &[deployment], true, &[SCALER], ""),
            ("nor to what has no pods", &[map], false, &[SCALER], ""),
        ] {
            assert_eq!(told(inventory, deleting, unseen), expected, "{name}");
        }
    }
}
