//! What is attempted with `pcm-platform`'s token, by what an attacker could hope for.

mod approval;
mod content;
mod elsewhere;
mod identities;
mod lifetime;
mod manners;
mod metadata;
mod owners;
mod pods;
mod pods_host;
mod reads;
mod subresources;
mod traffic;

pub(crate) use self::identities::token;
pub(crate) use self::owners::{ANNOTATION, LABEL, SHARED};
pub(crate) use self::pods::DEPLOYMENT;
pub(crate) use self::reads::FOREIGN;
use crate::row::Row;

/// Rules of the scope guard, by their messages.
pub(crate) mod guard {
    use crate::row::Denial;

    pub(crate) const WHOLE: Denial = Denial::Guard("guard: only create and update of whole objects");
    pub(crate) const PLACE: Denial = Denial::Guard("guard: namespace");
    pub(crate) const KIND: Denial = Denial::Guard("guard: kind");
    pub(crate) const MANNER: Denial = Denial::Guard("guard: only server-side apply as clicklink-executor");
    pub(crate) const SECRET_TYPE: Denial = Denial::Guard("guard: Secret type");
    pub(crate) const OWNERS: Denial = Denial::Guard("guard: ownerReferences and finalizers may not be touched");
    pub(crate) const TEMPLATE: Denial = Denial::Guard("guard: pod template metadata");
    pub(crate) const ADDRESSES: Denial = Denial::Guard("guard: externalIPs, ExternalName");
    pub(crate) const LABEL: Denial = Denial::Guard("guard: the label that puts the object under the pinning policy is missing");
    pub(crate) const OTHERS: Denial = Denial::Guard("guard: what other managers own");
}

/// Rules of the pinning policies, by their messages.
pub(crate) mod pin {
    use crate::row::Denial;

    pub(crate) const TOKEN: Denial = Denial::Pin("this token is not the one of the approval");
    pub(crate) const LISTED: Denial = Denial::Pin("not part of the approved bundle");
    pub(crate) const LABELS: Denial = Denial::Pin("labels are not the approved ones");
    pub(crate) const ANNOTATIONS: Denial = Denial::Pin("annotations are not the approved ones");
    pub(crate) const REMOVED: Denial = Denial::Pin("a label or annotation of another writer may not be removed");
    pub(crate) const POD: Denial = Denial::Pin("pod spec is not the approved one");
    pub(crate) const POD_LABELS: Denial = Denial::Pin("pod labels are not the approved ones");
    pub(crate) const POD_ANNOTATIONS: Denial = Denial::Pin("pod annotations are not the approved ones");
    pub(crate) const SPEC: Denial = Denial::Pin("spec is not the approved one");
    pub(crate) const PORTS: Denial = Denial::Pin("ports are not the approved ones");
    pub(crate) const CHOSEN: Denial = Denial::Pin("addresses are chosen by the cluster");
    pub(crate) const CONTENT: Denial = Denial::Pin("content is not the approved one");
    pub(crate) const SECRET: Denial = Denial::Pin("Secret content is not the approved one");
    pub(crate) const TYPE: Denial = Denial::Pin("type is not the approved one");
    pub(crate) const NO_PARAMETER: Denial = Denial::Pin("no params found");
}

/// Rows under a heading.
pub(crate) struct Section {
    pub(crate) title: &'static str,
    pub(crate) rows: Vec<Row>,
}

/// All that is asked with the token of the approval.
pub(crate) fn sections() -> Vec<Section> {
    let section = |title, rows| Section { title, rows };
    vec![
        section("Another credential", pods::credentials().into_iter().chain(content::secrets()).collect()),
        section("Another identity", pods::identities().into_iter().chain(identities::rows()).collect()),
        section("The host", pods_host::rows()),
        section("Other code in the pods", pods::code()),
        section("Where pods run, what they take", pods::scheduling()),
        section("Someone else's traffic", traffic::rows()),
        section("Configuration", content::config_maps()),
        section("Labels and annotations that controllers act on", metadata::rows()),
        section("What others own", owners::rows()),
        section("To outlive the token, to stop the platform", lifetime::rows()),
        section("Other manners of writing", manners::rows()),
        section("Elsewhere, other kinds", elsewhere::rows()),
        section("Subresources", subresources::rows()),
        section("Reading", reads::rows()),
        section("The approval itself", approval::rows()),
    ]
}
