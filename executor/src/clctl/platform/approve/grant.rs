//! What follows a person's yes: permissions, rights under guard, and at the very end the token.

use std::time::Duration;

use agent_api::approval::Approval;
use agent_api::name::InstallId;
use agent_api::names::PCM_PLATFORM;
use cluster::{review, token};

use super::account::{self, Stamp};
use super::token_bundle::Target;
use super::{ApproveError, Approved, grants, other_rights, permissions, probe};
use crate::terminal::{data, talk};

impl Approved {
    /// Applies, grants, delivers, and says so.
    pub(super) async fn grant(&self, ttl: Duration) -> Result<(), ApproveError> {
        let client = &self.connection.client;
        let (bundle, judged, home) = (&self.pending.bundle, &self.rendering.judged, self.home.as_str());
        let manifest = bundle.manifest();

        self.target.prepare(client).await?;
        talk("Applying the permissions half …");
        permissions::home(client, home).await?;
        permissions::apply(client, judged, bundle.sha256()).await?;

        talk("Granting rights under the scope guard …");
        let kept = account::ensure(client, home).await?;
        grants::prepare(client, manifest, judged.workload(), home).await?;
        probe::probe(&self.connection, manifest, judged.workload(), home).await?;
        other_rights::check(client, home).await?;

        let now = seconds(jiff::Timestamp::now());
        let workload = judged.workload_sha256();
        let approved_by = review::who_am_i(client).await?;
        let asked = now + ttl;
        let mut stamp = Stamp {
            bundle: bundle.sha256(),
            workload: &workload,
            approved_by: &approved_by,
            approved_at: now,
            expires_at: asked,
            install_id: kept.unwrap_or_else(|| InstallId(uuid::Uuid::now_v7())),
        };
        account::annotate(client, home, &stamp).await?;
        grants::bind(client, manifest, home).await?;
        for removed in grants::remove_former(client, manifest).await? {
            talk(format_args!("  removed: {removed}"));
        }

        let (token, granted) = token::request(client, home, PCM_PLATFORM, ttl).await?;
        let granted = seconds(granted);
        if granted != asked {
            stamp.expires_at = granted;
            account::annotate(client, home, &stamp).await?;
        }
        let approval = Approval {
            bundle_sha256: bundle.sha256().clone(),
            workload_sha256: workload.clone(),
            cluster_uid: self.cluster_uid.clone(),
            install_id: stamp.install_id,
            approved_by: approved_by.clone(),
            approved_at: now,
            expires_at: granted,
            home_namespace: home.to_owned(),
            capabilities: self.rendering.capabilities.clone(),
            versions: self.rendering.versions.clone(),
            leftovers: 0,
        };
        if let Some(warning) = self.target.deliver(client, &token, &self.server, &approval).await? {
            talk(format_args!("warning: {warning}"));
        }
        self.close(granted);
        Ok(())
    }

    /// The last lines, to the letter.
    fn close(&self, expiry: jiff::Timestamp) {
        let (permissions, workload) = (self.rendering.judged.permissions().len(), self.rendering.judged.workload().len());
        let namespaces: Vec<String> = self.pending.bundle.manifest().namespaces.iter().map(ToString::to_string).collect();
        data(format_args!(
            "\nApproved: {permissions} permission object(s) applied, platform token valid until {expiry}.\n\
             The executor may now apply the {workload} workload object(s) of this bundle inside {}.",
            namespaces.join(", ")
        ));
        if let Target::Secret { namespace, name } = &self.target {
            data(format_args!(
                "Bundle written to Secret {namespace}/{name}; the executor pod sees it once the kubelet refreshes the mount, within about \
                 a minute."
            ));
        }
    }
}

/// Times of an approval are told in whole seconds, as tokens are.
fn seconds(time: jiff::Timestamp) -> jiff::Timestamp {
    jiff::Timestamp::from_second(time.as_second()).unwrap_or(time)
}
