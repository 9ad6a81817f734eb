//! ServiceAccount `pcm-platform`: its annotations say which bundle is approved, by whom and until when.

use agent_api::keys;
use agent_api::name::InstallId;
use agent_api::names::{FIELD_MANAGER_APPROVE, PCM_PLATFORM};
use agent_api::platform_approval::PlatformApprovalSpec;
use cluster::object::{self, Apply};
use cluster::{Client, ClusterError};
use serde_json::{Value, json};

use super::{MANAGED_BY_APPROVE, OWN_LABEL};

/// Makes the account where it is missing, without any annotation; answers with its install id where it has one.
///
/// A live account is left as it is: its annotations are of the approval that still holds.
pub(super) async fn ensure(client: &Client, home: &str) -> Result<Option<InstallId>, ClusterError> {
    let bare = account(home, json!({}));
    match object::get(client, &bare).await? {
        Some(live) => Ok(install_id(&live)),
        None => {
            object::apply_over(client, &bare, None, APPLY).await?;
            Ok(None)
        }
    }
}

/// Writes the annotations. The account is wholly ours: it is put whole, so that nobody's annotation stands in the way.
pub(super) async fn annotate(client: &Client, home: &str, approval: &PlatformApprovalSpec) -> Result<(), ClusterError> {
    let annotations = json!({
        keys::BUNDLE_SHA256: approval.sha256, keys::WORKLOAD_SHA256: approval.workload_sha256, keys::APPROVED_BY: approval.approved_by,
        keys::APPROVED_AT: approval.approved_at, keys::EXPIRES_AT: approval.expires_at, keys::INSTALL_ID: approval.install_id,
    });
    object::replace(client, &account(home, annotations), FIELD_MANAGER_APPROVE).await.map(drop)
}

const APPLY: Apply = Apply { manager: FIELD_MANAGER_APPROVE, dry_run: false };

fn account(home: &str, annotations: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ServiceAccount", "automountServiceAccountToken": false,
        "metadata": {"name": PCM_PLATFORM, "namespace": home, "labels": {OWN_LABEL: MANAGED_BY_APPROVE}, "annotations": annotations}})
}

fn install_id(live: &Value) -> Option<InstallId> {
    live.get("metadata")?.get("annotations")?.get(keys::INSTALL_ID)?.as_str()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_install_id_is_kept_and_an_odd_one_is_not() {
        let live = |id: &str| json!({"metadata": {"annotations": {"clicklink.io/install-id": id}}});
        let id = "01932b8c-7a5e-7000-8000-000000000001";
        assert_eq!(install_id(&live(id)).map(|id| id.to_string()), Some(id.to_owned()));
        assert_eq!(install_id(&live("odd")), None);
        assert_eq!(install_id(&json!({})), None);
    }
}
