//! What follows a person's yes: permissions, rights under guard, and at the very end the token.

use std::time::Duration;

use agent_api::approval::Approval;
use agent_api::name::InstallId;
use agent_api::names::{FIELD_MANAGER_APPROVE, FIELD_MANAGER_EXECUTOR, PCM_PLATFORM};
use agent_api::platform_approval::{PlatformApprovalSpec, TOKEN_ID, is_for_record};
use cluster::{review, token};

use super::probe::Probe;
use super::{ApproveError, Approved, Target, account, grants, other_rights, permissions, pins, prune, record, replace, take_over, unset};
use crate::terminal::{data, talk};

impl Approved {
    /// Applies, grants, delivers, and says so.
    pub(super) async fn grant(&self, ttl: Duration) -> Result<(), ApproveError> {
        let client = &self.connection.client;
        let (bundle, judged, home) = (&self.pending.bundle, &self.rendering.judged, self.home.as_str());
        let manifest = bundle.manifest();

        let former = self.former.as_ref();
        if record::current(client, home).await?.as_ref() != former {
            return Err(record::RecordError::Overtaken.into());
        }
        self.target.prepare(client).await?;
        talk("Applying the permissions half …");
        permissions::home(client, home).await?;
        grants::define(client).await?;
        prune::withdraw(client, &self.leftovers).await.map_err(ApproveError::Withdraw)?;
        take_over::all(client, judged.permissions(), &self.taken, FIELD_MANAGER_APPROVE).await?;
        take_over::all(client, judged.workload(), &self.taken, FIELD_MANAGER_EXECUTOR).await?;
        replace::remove(client, judged.permissions(), &self.replaced).await?;
        permissions::apply(client, judged, bundle.sha256()).await?;

        talk("Pinning what was approved …");
        let pins = pins::make(client, judged.workload(), &self.pinned).await?;
        let kept = account::ensure(client, home).await?;
        let now = seconds(jiff::Timestamp::now());
        let approved_by = review::who_am_i(client).await?;
        let mut spec = PlatformApprovalSpec {
            sha256: bundle.sha256().clone(),
            workload_sha256: judged.workload_sha256(),
            approved_by,
            approved_at: now,
            expires_at: now + ttl,
            install_id: kept.or(former.map(|former| former.install_id)).unwrap_or_else(|| InstallId(uuid::Uuid::now_v7())),
            objects: u32::try_from(judged.workload().len()).unwrap_or(u32::MAX),
            credentials: vec![format!("probe={}", uuid::Uuid::new_v4())],
            workloads: pins.workloads.clone(),
        };
        let probe = spec.credentials.concat();
        grants::roles(client, manifest, judged.workload(), home).await?;
        let on_record = former.cloned().filter(|former| is_for_record(&former.approved_by, &former.credentials));
        let (again, ended) = match on_record {
            Some(former) if former.is_given() && former.is_of_the_same(&spec) => (Some(former), None),
            former => (None, former),
        };
        if let Some(ended) = ended {
            record::keep(client, home, &ended).await?;
        }
        // The token at hand may go on until the new one is, and until then it is the former approval that holds.
        let before = again.as_ref().map_or_else(|| spec.clone(), |former| spec.awaiting(former));
        replace::remove(client, judged.workload(), &self.replaced).await?;
        unset::all(client, judged.workload(), &self.unset).await?;
        record::put(client, home, &before, pins.secrets(), former).await?;
        // Nothing can be written any more where a bundle leaves a namespace; the rights go before the policies look elsewhere.
        for removed in grants::remove_former(client, manifest).await? {
            talk(format_args!("  removed: {removed}"));
        }
        grants::guard(client, manifest, home).await?;

        talk("Seeing the guards at work …");
        let seen = Probe { connection: &self.connection, home, credential: &probe, manifest, workload: judged.workload() };
        if let Err(error) = seen.run().await {
            // Another approval that came in between looks like a guard that denies too much.
            record::holds(client, home, &probe).await?;
            return Err(error.into());
        }
        for binding in other_rights::check(client, home).await? {
            talk(format_args!("  note: {binding}"));
        }

        talk("Giving the rights, and the token …");
        record::holds(client, home, &probe).await?;
        account::annotate(client, home, &before).await?;
        grants::bind(client, manifest, home).await?;
        let (token, granted) = token::request(client, home, PCM_PLATFORM, ttl).await?;
        let granted = seconds(granted);
        let id =
            token::claims(&token).ok().and_then(|claims| claims.id).map(|id| format!("{TOKEN_ID}{id}")).ok_or(ApproveError::NoTokenId)?;
        spec.expires_at = granted;
        if let Some(former) = again {
            record::keep(client, home, &former).await?;
        }
        record::amend(client, home, &probe, |current| {
            current.credentials.push(id.clone());
            current.approved_by.clone_from(&spec.approved_by);
            current.approved_at = spec.approved_at;
            current.expires_at = granted;
        })
        .await?;
        account::annotate(client, home, &spec).await?;
        let approval = Approval {
            bundle_sha256: spec.sha256,
            workload_sha256: spec.workload_sha256,
            cluster_uid: self.cluster_uid.clone(),
            install_id: spec.install_id,
            approved_by: spec.approved_by,
            approved_at: now,
            expires_at: granted,
            home_namespace: home.to_owned(),
            capabilities: self.rendering.capabilities.clone(),
            versions: self.rendering.versions.clone(),
            leftovers: u32::try_from(self.leftovers.iter().filter(|leftover| !leftover.pruned).count()).unwrap_or(u32::MAX),
        };
        if let Some(warning) = self.target.deliver(client, &token, &self.server, &approval).await? {
            talk(format_args!("warning: {warning}"));
        }
        // From here on no other token of the account can write.
        record::amend(client, home, &id, |current| current.credentials.retain(|known| *known == id)).await?;
        prune::delete(client, &self.leftovers).await.map_err(ApproveError::Prune)?;
        self.close(granted);
        Ok(())
    }

    /// The last lines, to the letter.
    fn close(&self, expiry: jiff::Timestamp) {
        let (permissions, workload) = (self.rendering.judged.permissions().len(), self.rendering.judged.workload().len());
        let namespaces: Vec<String> = self.pending.bundle.manifest().namespaces.iter().map(ToString::to_string).collect();
        let say = if self.json { |line: std::fmt::Arguments<'_>| talk(line) } else { |line: std::fmt::Arguments<'_>| data(line) };
        say(format_args!(
            "\nApproved: {permissions} permission object(s) applied, platform token valid until {expiry}.\n\
             The executor may now apply the {workload} workload object(s) of this bundle inside {}.",
            namespaces.join(", ")
        ));
        if let Target::Secret { namespace, name } = &self.target {
            say(format_args!(
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
