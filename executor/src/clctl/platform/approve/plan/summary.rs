//! A plan in numbers: what a person reads first.

use agent_api::kind::Half;
use executor_core::privilege::{Holding, Right};
use serde::Serialize;

use super::{Action, Plan, PlannedObject};

/// Both halves, and who may do what.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub(in super::super) struct Summary {
    pub(in super::super) permissions: Counts,
    pub(in super::super) workload: Counts,
    pub(in super::super) privileges: PrivilegeCounts,
    /// Workload objects with pods, and those of them that reach into their node.
    pub(in super::super) pods: usize,
    pub(in super::super) pods_in_node: usize,
}

/// Objects of a half.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub(in super::super) struct Counts {
    pub(in super::super) create: usize,
    pub(in super::super) change: usize,
    pub(in super::super) replace: usize,
    pub(in super::super) unchanged: usize,
    pub(in super::super) unknown: usize,
    pub(in super::super) refused: usize,
    pub(in super::super) left_over: usize,
}

/// Lines of rights.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub(in super::super) struct PrivilegeCounts {
    pub(in super::super) new: usize,
    /// Of the new ones.
    pub(in super::super) escalation: usize,
    /// Who gets new ones.
    pub(in super::super) identities: usize,
    pub(in super::super) ending: usize,
    pub(in super::super) lingering: usize,
    /// New ones in roles that nothing binds yet.
    pub(in super::super) unbound: usize,
}

impl Plan {
    /// The numbers.
    pub(in super::super) fn summary(&self) -> Summary {
        let left_over = |half| self.leftovers.iter().filter(|leftover| leftover.half == half).count();
        let half = |objects: &[PlannedObject], half| Counts { left_over: left_over(half), ..Counts::of(objects) };
        let rights = |holdings: &[Holding]| holdings.iter().map(|holding| holding.rights.len()).sum();
        let privileges = &self.privileges;
        let escalation = |right: &&Right| !right.escalation.is_empty();
        Summary {
            permissions: half(&self.permissions, Half::Permissions),
            workload: half(&self.workload, Half::Workload),
            privileges: PrivilegeCounts {
                new: rights(&privileges.new),
                escalation: privileges.new.iter().flat_map(|holding| &holding.rights).filter(escalation).count(),
                identities: privileges.new.len(),
                ending: rights(&privileges.ending),
                lingering: rights(&privileges.lingering),
                unbound: privileges.unbound.iter().map(|unbound| unbound.rights.len()).sum(),
            },
            pods: self.pods.len(),
            pods_in_node: self.pods.iter().filter(|pods| !pods.node.is_empty()).count(),
        }
    }
}

impl Counts {
    fn of(objects: &[PlannedObject]) -> Self {
        let mut counts = Self::default();
        for object in objects {
            *match object.action {
                Action::Create => &mut counts.create,
                Action::Change => &mut counts.change,
                Action::Replace => &mut counts.replace,
                Action::Unchanged => &mut counts.unchanged,
                Action::Unknown => &mut counts.unknown,
                Action::Refused => &mut counts.refused,
            } += 1;
        }
        counts
    }
}
