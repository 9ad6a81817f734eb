//! The order in which objects are applied.
//!
//! Permissions: by kind, as the table of kinds lists them, and inside a kind as the bundle does. Workload: by component, and inside
//! one in waves; the objects of a wave do not depend on one another.

use agent_api::object::{HookPhase, RenderedObject};

/// The place of a wave inside its component.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Phase {
    /// pre-install and pre-upgrade hooks of this weight; their Jobs complete before the next wave.
    PreHook(i64),
    /// Secrets and ConfigMaps.
    Configuration,
    /// Services.
    Services,
    /// Deployments and Jobs.
    Workloads,
    /// PodDisruptionBudgets.
    Disruption,
    /// post-install and post-upgrade hooks of this weight; their Jobs complete before the next wave.
    PostHook(i64),
}

/// Objects of one component that are applied side by side.
#[derive(Clone, PartialEq, Debug)]
pub struct Wave {
    /// Which wave; hook objects of one weight are several waves where their kinds need an order.
    pub phase: Phase,
    /// The objects, in the order of the rendering.
    pub objects: Vec<RenderedObject>,
}

/// Sorts a permissions half into the order of application.
pub(super) fn sort_permissions(objects: &mut [RenderedObject]) {
    objects.sort_by_key(|object| object.key().row().map_or(usize::MAX, agent_api::kind::Kind::order));
}

/// The waves of one component's workload objects.
pub(super) fn waves<'a>(objects: impl Iterator<Item = &'a RenderedObject>) -> Vec<Wave> {
    let mut keyed: Vec<((Phase, Phase), &RenderedObject)> = objects.map(|object| (place(object), object)).collect();
    keyed.sort_by_key(|(place, _)| *place);
    let mut waves: Vec<((Phase, Phase), Wave)> = Vec::new();
    for (place, object) in keyed {
        match waves.last_mut() {
            Some((last, wave)) if *last == place => wave.objects.push(object.clone()),
            _ => waves.push((place, Wave { phase: place.0, objects: vec![object.clone()] })),
        }
    }
    waves.into_iter().map(|(_, wave)| wave).collect()
}

/// Phase, and inside it the tier of the kind.
pub(super) fn place(object: &RenderedObject) -> (Phase, Phase) {
    let tier = match object.key().kind.as_str() {
        "Secret" | "ConfigMap" => Phase::Configuration,
        "Service" => Phase::Services,
        "PodDisruptionBudget" => Phase::Disruption,
        _ => Phase::Workloads,
    };
    let phase = match object.hook {
        Some(hook) => match hook.phase {
            HookPhase::Pre => Phase::PreHook(hook.weight),
            HookPhase::Post => Phase::PostHook(hook.weight),
        },
        None => tier,
    };
    (phase, tier)
}
