//! `clctl executor access apply --cluster`: applies the rendered access with the person's credentials, and mints the token.

use std::process::ExitCode;
use std::time::Duration;

use agent_api::access::RBAC;
use agent_api::frame::Outcome;
use agent_api::names::{CLUSTER_DIR, FIELD_MANAGER_APPROVE, PCM_EXECUTOR, PREFIX_GUARD};
use agent_api::object::ObjectKey;
use clap::Args;
use cluster::connect::{self, ConnectError, Connection};
use cluster::object::{self, Apply as How};
use cluster::{ClusterError, token};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::Shared;
use super::bundle::{self, BundleError, Rendered};
use super::grant::{self, ServerSourceError};
use crate::clctl::guard::{self, Bounded, GuardError};
use crate::clctl::server::ServerError;
use crate::clctl::ttl;
use crate::error_code::{Code, Coded};
use crate::terminal::{data, report, talk};

/// Arguments.
#[derive(Args)]
pub(crate) struct Apply {
    #[command(flatten)]
    shared: Shared,
    /// How long the first token lasts; the API server may grant less.
    #[arg(long, value_name = "DURATION", default_value = "2160h", value_parser = ttl::parse)]
    token_duration: Duration,
}

#[derive(Debug, thiserror::Error)]
enum ApplyError {
    #[error(transparent)]
    Bundle(#[from] BundleError),
    #[error(transparent)]
    Connect(#[from] ConnectError),
    #[error(transparent)]
    Server(#[from] ServerError),
    #[error(transparent)]
    ServerSource(#[from] ServerSourceError),
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    #[error(transparent)]
    Guard(#[from] GuardError),
}

impl Coded for ApplyError {
    fn code(&self) -> Code {
        match self {
            Self::Bundle(error) => error.code(),
            Self::Connect(error) => error.code(),
            Self::Server(error) => error.code(),
            Self::ServerSource(error) => error.code(),
            Self::Cluster(error) => error.code(),
            Self::Guard(error) => error.code(),
        }
    }

    fn hints(&self) -> Vec<String> {
        match self {
            Self::Bundle(error) => error.hints(),
            Self::Connect(error) => error.hints(),
            Self::Server(error) => error.hints(),
            Self::ServerSource(error) => error.hints(),
            Self::Cluster(error) => error.hints(),
            Self::Guard(error) => error.hints(),
        }
    }
}

/// Sees the prefix guard deny a write outside the prefix, before the binding gives any right.
async fn guarded(connection: &Connection, home: &str) -> Result<(), GuardError> {
    let forbidden = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "clicklink-probe", "namespace": home}});
    let bounded = Bounded { connection, account: (home, PCM_EXECUTOR), credential: None, policies: &[PREFIX_GUARD] };
    bounded.denied(PREFIX_GUARD, &forbidden, Instant::now() + guard::IN_FORCE).await
}

impl Apply {
    pub(crate) async fn run(self) -> ExitCode {
        match self.apply().await {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => report(&error),
        }
    }

    async fn apply(&self) -> Result<(), ApplyError> {
        let shared = &self.shared;
        let rendered = bundle::render(shared)?;
        if !shared.force && rendered.on_disk.as_ref().is_some_and(|on_disk| *on_disk != rendered.rbac) {
            return Err(BundleError::Differs(RBAC).into());
        }
        let server = match &rendered.server {
            Some(server) => server.clone().overridden(shared.server.as_deref(), shared.ca_data.as_deref())?,
            None => grant::server(shared).await?,
        };
        let connection = connect::person(shared.kubeconfig.as_deref(), shared.context.as_deref()).await?;
        self.apply_objects(&connection, &rendered).await?;
        if shared.dry_run {
            return Ok(());
        }
        let (token, expiry) = token::request(&connection.client, &rendered.home, PCM_EXECUTOR, self.token_duration).await?;
        if let Some(warning) = bundle::write(shared, &rendered.rbac, &server, Some(token.expose().as_bytes()))? {
            talk(format_args!("warning: {warning}"));
        }
        data(format_args!(
            "Access applied: {PCM_EXECUTOR} in {}, token in {} valid until {expiry}.",
            rendered.home,
            shared.output_dir.join(CLUSTER_DIR).display()
        ));
        Ok(())
    }

    async fn apply_objects(&self, connection: &Connection, rendered: &Rendered) -> Result<(), ApplyError> {
        for object in &rendered.objects.before {
            self.apply_one(connection, object).await?;
        }
        if !self.shared.dry_run {
            guarded(connection, &rendered.home).await?;
        }
        for binding in &rendered.objects.last {
            self.apply_one(connection, binding).await?;
        }
        Ok(())
    }

    async fn apply_one(&self, connection: &Connection, value: &Value) -> Result<(), ApplyError> {
        let dry_run = self.shared.dry_run;
        let key = ObjectKey::of(value);
        let live = object::get(&connection.client, value).await?;
        if key.kind == "Namespace" && live.is_some() {
            // A live one is the connector's or somebody else's, and not ours to change.
            talk(format_args!("  {key}: is there"));
            return Ok(());
        }
        let guards = key.kind.starts_with("ValidatingAdmissionPolicy");
        let applied = if guards && !dry_run {
            // Replaced, not applied: a condition or selector that somebody added would open the guard.
            object::replace(&connection.client, value, FIELD_MANAGER_APPROVE).await
        } else {
            let how = How { manager: FIELD_MANAGER_APPROVE, dry_run };
            object::apply_over(&connection.client, value, live.as_ref(), how).await.map(|applied| applied.outcome)
        };
        let outcome = match applied {
            Ok(outcome) => outcome,
            // In a dry run the account's namespace may not be there yet.
            Err(ClusterError::NotFound { .. }) if dry_run && live.is_none() => Outcome::Created,
            Err(error) => return Err(error.into()),
        };
        let said = match (outcome, dry_run) {
            (Outcome::Created, false) => "created",
            (Outcome::Changed, false) => "changed",
            (Outcome::Unchanged, _) => "unchanged",
            (Outcome::Created, true) => "would be created",
            (Outcome::Changed, true) => "would be changed",
        };
        if dry_run {
            data(format_args!("{key}: {said}"));
        } else {
            talk(format_args!("  {key}: {said}"));
        }
        Ok(())
    }
}
