//! What identities may do: the rights that a bundle's roles and bindings give, compared with those that are live.
//!
//! Only RBAC counts, each identity by itself: what it has through a group, or from another authorizer, is not looked at. Deliberately
//! absent: reading a cluster, and how a plan is shown.

mod compare;
mod grant;
mod identity;
mod mark;
mod pods;
mod right;
mod state;

#[cfg(test)]
mod tests;

pub use compare::{Comparison, Holding, Unbound, compare};
pub use grant::Scope;
pub use identity::Identity;
pub use mark::Mark;
pub use pods::{NodeAccess, PodAccess};
pub use right::Right;
