//! A bundle that obeys every rule. Its only constructor is [`judge`].

use std::collections::BTreeMap;

use agent_api::digest::Sha256;
use agent_api::kind::Half;
use agent_api::manifest::{Bundle, Manifest};
use agent_api::object::{ObjectKey, RenderedObject, workload_digest};

use super::order::{self, Wave};
use super::refusal::{Findings, Refusals};
use super::scope::{self, Scope};
use super::webhooks::{self, Interception};
use super::{fields, images, reserved};

/// What the rules ask of the live cluster. Whoever judges answers from what they read before.
pub trait LiveServices {
    /// Whether this Service is there.
    fn is_live(&self, namespace: &str, name: &str) -> bool;

    /// Whether this Service has a ready endpoint; asked for conversion webhooks.
    fn has_ready_endpoints(&self, _namespace: &str, _name: &str) -> bool {
        false
    }

    /// Whether any object of this CustomResourceDefinition (`<plural>.<group>`) is there; asked for conversion webhooks.
    fn has_objects_of(&self, _definition: &str) -> bool {
        true
    }
}

/// The answers of somebody who may not ask: what a person approved was judged against the live cluster by `approve`, and is judged
/// again by the executor on everything else.
#[derive(Clone, Copy, Debug)]
pub struct Trusted;

impl LiveServices for Trusted {
    fn is_live(&self, _namespace: &str, _name: &str) -> bool {
        true
    }

    fn has_ready_endpoints(&self, _namespace: &str, _name: &str) -> bool {
        true
    }
}

/// A bundle's rendered objects, judged: in halves, in order, without any refusal.
#[derive(Clone, PartialEq, Debug)]
pub struct Judged {
    permissions: Vec<RenderedObject>,
    workload: Vec<RenderedObject>,
    /// Where each is in `workload`.
    places: BTreeMap<ObjectKey, usize>,
    placeholders: Vec<RenderedObject>,
    workload_sha256: Sha256,
    foreign: Vec<usize>,
    interceptions: Vec<Interception>,
}

/// Judges the normalised objects of a bundle. `placeholders` are its Secrets without data.
///
/// # Errors
/// Every reason to refuse the bundle at once.
pub fn judge(
    bundle: &Bundle,
    objects: Vec<RenderedObject>,
    placeholders: Vec<RenderedObject>,
    scope: &Scope<'_>,
    live: &dyn LiveServices,
) -> Result<Judged, Refusals> {
    let manifest = bundle.manifest();
    let mut findings = Findings::new(manifest);
    scope::check_namespaces(manifest, &objects, scope, &mut findings);
    for object in objects.iter().chain(&placeholders) {
        if !scope::check_document(object, &mut findings) {
            continue;
        }
        scope::check_object(manifest, object, &mut findings);
        fields::check(object, &mut findings);
        reserved::check(object, scope, &mut findings);
        if object.half() == Some(Half::Workload) {
            images::check(manifest, object, &mut findings);
        }
    }
    scope::check_duplicates(objects.iter().chain(&placeholders), &mut findings);
    let interceptions = webhooks::check(manifest, &objects, scope, live, &mut findings);
    findings.into_result()?;
    Ok(Judged::sorted(manifest, objects, placeholders, interceptions))
}

impl Judged {
    fn sorted(
        manifest: &Manifest,
        objects: Vec<RenderedObject>,
        placeholders: Vec<RenderedObject>,
        interceptions: Vec<Interception>,
    ) -> Self {
        let (mut permissions, mut workload): (Vec<_>, Vec<_>) =
            objects.into_iter().partition(|object| object.half() == Some(Half::Permissions));
        order::sort_permissions(&mut permissions);
        let component = |object: &RenderedObject| {
            manifest.components.iter().position(|component| Some(component.name.as_str()) == object.component.as_deref())
        };
        workload.sort_by_key(|object| (component(object), order::place(object)));
        let outside = |namespace: &str| !namespace.is_empty() && manifest.namespaces.iter().all(|own| own.as_str() != namespace);
        let foreign = (0..permissions.len()).filter(|i| outside(&permissions[*i].key().namespace)).collect();
        let places = workload.iter().enumerate().map(|(place, object)| (object.key(), place)).collect();
        Self { workload_sha256: workload_digest(&workload), permissions, workload, places, placeholders, foreign, interceptions }
    }

    /// The permissions half, in the order in which `approve` applies it.
    #[must_use]
    pub fn permissions(&self) -> &[RenderedObject] {
        &self.permissions
    }

    /// The workload half: by component, and inside one in the order of its waves.
    #[must_use]
    pub fn workload(&self) -> &[RenderedObject] {
        &self.workload
    }

    /// The workload object of this key, where the bundle has it.
    #[must_use]
    pub fn workload_object(&self, key: &ObjectKey) -> Option<&RenderedObject> {
        self.workload.get(*self.places.get(key)?)
    }

    /// Secrets without data: `approve` creates them where they are missing and never changes them.
    #[must_use]
    pub fn placeholders(&self) -> &[RenderedObject] {
        &self.placeholders
    }

    /// Permission objects in namespaces outside the bundle (as kube-system); the plan shows them apart.
    #[must_use]
    pub fn foreign_permissions(&self) -> Vec<&RenderedObject> {
        self.foreign.iter().map(|i| &self.permissions[*i]).collect()
    }

    /// What the bundle's webhooks that may fail without stopping anybody (`failurePolicy: Ignore`) intercept.
    #[must_use]
    pub fn interceptions(&self) -> &[Interception] {
        &self.interceptions
    }

    /// Digest of the workload half; the order of rendering is without effect.
    #[must_use]
    pub fn workload_sha256(&self) -> Sha256 {
        self.workload_sha256.clone()
    }

    /// The workload half of one component, in the order in which the executor applies it; empty for an unknown name.
    #[must_use]
    pub fn waves(&self, component: &str) -> Vec<Wave> {
        order::waves(self.workload.iter().filter(|object| object.component.as_deref() == Some(component)))
    }
}
