//! The account's own rights, in an order that never gives more than is guarded: roles, the removal of what the former bundle's namespaces had,
//! policies, and after the probe the bindings.

use agent_api::manifest::Manifest;
use agent_api::names::{FIELD_MANAGER_APPROVE, PCM_PLATFORM};
use agent_api::object::RenderedObject;
use cluster::object::{self, Apply, Propagation};
use cluster::{Client, ClusterError};
use serde_json::Value;

use super::super::made_by_approve;
use super::permissions::{self, PermissionsError};
use super::{policy, roles, scope_guard};
use crate::clctl::requests;

const APPLY: Apply = Apply { manager: FIELD_MANAGER_APPROVE, dry_run: false };

/// The definition of an approval, until it is served.
pub(in crate::clctl::platform) async fn define(client: &Client) -> Result<(), PermissionsError> {
    let definition = policy::definition();
    object::replace(client, &definition, FIELD_MANAGER_APPROVE).await?;
    permissions::established(client, &[definition]).await
}

/// Roles without bindings. Replaced, not applied: an aggregation that somebody added would go on widening them.
pub(super) async fn roles(client: &Client, manifest: &Manifest, workload: &[RenderedObject], home: &str) -> Result<(), ClusterError> {
    let mut objects = roles::roles(manifest, workload);
    objects.extend([roles::cluster_role(), roles::approval_role(home)]);
    requests::all(objects.iter().map(|object| object::replace(client, object, FIELD_MANAGER_APPROVE))).await.map(drop)
}

/// The policies. Replaced, not applied: a condition or selector that somebody added would open them. The scope guard comes before all others: in a
/// namespace that the bundle leaves, whose objects the others compare no more, it alone denies the former token.
pub(super) async fn guard(client: &Client, manifest: &Manifest, home: &str) -> Result<(), ClusterError> {
    let namespaces = manifest.namespaces.iter().map(agent_api::name::DnsLabel::as_str);
    object::replace(client, &scope_guard::policy(manifest, home), FIELD_MANAGER_APPROVE).await?;
    let mut objects = vec![scope_guard::binding()];
    objects.extend(policy::policies(namespaces, home));
    requests::all(objects.iter().map(|object| object::replace(client, object, FIELD_MANAGER_APPROVE))).await.map(drop)
}

/// The bindings: from here on the account has its rights.
pub(super) async fn bind(client: &Client, manifest: &Manifest, home: &str) -> Result<(), ClusterError> {
    let mut objects = roles::role_bindings(manifest, home);
    objects.extend([roles::cluster_role_binding(home), roles::approval_role_binding(home)]);
    requests::all(objects.iter().map(|object| object::apply_over(client, object, None, APPLY))).await.map(drop)
}

/// Removes our Roles and bindings in namespaces that the bundle does not have; bindings first. Answers with what was removed.
pub(super) async fn remove_former(client: &Client, manifest: &Manifest) -> Result<Vec<String>, ClusterError> {
    let mut removed = Vec::new();
    for kind in ["RoleBinding", "Role"] {
        let live = object::list(client, "rbac.authorization.k8s.io/v1", kind, None, Some(&made_by_approve())).await?;
        for former in live.iter().filter(|object| is_former(object, manifest)) {
            if object::delete(client, former, Propagation::Background).await? {
                removed.push(agent_api::object::ObjectKey::of(former).to_string());
            }
        }
    }
    Ok(removed)
}

fn is_former(object: &Value, manifest: &Manifest) -> bool {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    text("/metadata/name") == PCM_PLATFORM && manifest.namespaces.iter().all(|namespace| namespace.as_str() != text("/metadata/namespace"))
}
