//! `clctl platform reset`: uninstalls the platform of a test cluster, so that its first installation can be replayed.
//!
//! Found by the manifest's components and our labels; nothing is rendered and no registry is asked. Refused while a service exists.
//! CustomResourceDefinitions, RBAC, namespaces and the StorageClass stay.

mod components;
mod services;

use std::path::PathBuf;
use std::process::ExitCode;

use agent_api::keys;
use agent_api::name::InstallId;
use agent_api::names::{FIELD_MANAGER_APPROVE, PCM_PLATFORM};
use agent_api::object::ObjectKey;
use clap::Args;
use cluster::connect::ConnectError;
use cluster::{Client, ClusterError, inventory, object};
use serde_json::{Value, json};

use super::arguments::{Person, Place};
use super::pending::{self, PendingError};
use super::record::{self, RecordError};
use super::removal;
use super::token_bundle::DeliverError;
use crate::clctl::namespace_prefix;
use crate::error_code::{Code, Coded};
use crate::terminal::{agreed, data, report, talk};
use components::Component;

/// Arguments.
#[derive(Args)]
pub(crate) struct Reset {
    /// The platform manifest whose components are removed, or a copy of the staged platform-pending.json.
    #[arg(long, value_name = "FILE")]
    bundle: PathBuf,
    /// Look for services and show the plan; change nothing.
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    person: Person,
    /// The connector's configuration; only its namespace prefix is read.
    #[arg(long, value_name = "FILE", env = "CLCTL_EXECUTOR_CONFIG")]
    config: Option<PathBuf>,
    #[command(flatten)]
    place: Place,
    /// Do not ask. Nobody is asked either where stdin is no terminal, as in a script.
    #[arg(long, short = 'y')]
    yes: bool,
}

/// Why nothing, or not everything, was removed.
#[derive(Debug, thiserror::Error)]
enum ResetError {
    #[error(transparent)]
    Prefix(#[from] namespace_prefix::PrefixError),
    #[error(transparent)]
    Pending(#[from] PendingError),
    #[error(transparent)]
    Connect(#[from] ConnectError),
    #[error("the bundle was staged for the cluster with uid {staged}, but {context} leads to {live}: nothing was removed")]
    OtherCluster { staged: String, context: String, live: String },
    #[error("services exist, and nothing was removed:{}\nA platform under running services is not reset: delete them first", lines(.0))]
    Services(Vec<ObjectKey>),
    #[error("not agreed: nothing was removed")]
    NotAgreed,
    #[error("{0}; run it again: what is removed is removed")]
    Cluster(#[from] ClusterError),
    #[error("{0}; run it again: what is removed is removed")]
    Removal(#[from] removal::RemovalError),
    #[error("{0}; run it again: what is removed is removed")]
    Record(#[from] RecordError),
    #[error("the token bundle was not removed (the token in it cannot write any more): {0}")]
    Bundle(#[from] DeliverError),
}

impl Coded for ResetError {
    fn code(&self) -> Code {
        match self {
            Self::Prefix(error) => error.code(),
            Self::Pending(error) => error.code(),
            Self::Connect(error) => error.code(),
            Self::OtherCluster { .. } => Code::OtherCluster,
            Self::Services(_) => Code::ServicesExist,
            Self::NotAgreed => Code::NotApproved,
            Self::Cluster(error) => error.code(),
            Self::Removal(error) => error.code(),
            Self::Record(error) => error.code(),
            Self::Bundle(error) => error.code(),
        }
    }

    fn hints(&self) -> Vec<String> {
        match self {
            Self::Prefix(error) => error.hints(),
            Self::Pending(error) => error.hints(),
            Self::Connect(error) => error.hints(),
            Self::OtherCluster { .. } => vec!["see the contexts: kubectl config get-contexts".into()],
            Self::Services(_) => vec!["see them: kubectl get clickhouseclusters,keeperclusters -A".into()],
            Self::NotAgreed => Vec::new(),
            Self::Cluster(error) => error.hints(),
            Self::Removal(error) => error.hints(),
            Self::Record(error) => error.hints(),
            Self::Bundle(error) => error.hints(),
        }
    }
}

fn lines(keys: &[ObjectKey]) -> String {
    keys.iter().map(|key| format!("\n  - {key}")).collect()
}

impl Reset {
    pub(super) async fn run(self) -> ExitCode {
        match self.reset().await {
            Ok(code) => code,
            Err(error) => report(&error),
        }
    }

    async fn reset(&self) -> Result<ExitCode, ResetError> {
        let prefix = namespace_prefix::read(self.config.as_deref())?;
        let pending = pending::take(&pending::Source::Either(self.bundle.clone())).await?;
        let bundle = &pending.bundle;
        let connection = self.person.connect().await?;
        let (client, home, target) = (&connection.client, self.place.home(), self.place.target());
        target.exists(client).await?;
        if let Some(staged) = &pending.cluster_uid {
            let live = inventory::cluster_uid(client).await?;
            if *staged != live {
                return Err(ResetError::OtherCluster { staged: staged.clone(), context: context(&connection), live });
            }
        }
        let services = services::find(client, &prefix).await?;
        if !services.is_empty() {
            return Err(ResetError::Services(services));
        }
        let plan = components::find(client, bundle.manifest()).await?;
        let current = record::current(client, home).await?.filter(|current| !current.approved_by.is_empty());
        if let Some(other) = current.map(|current| current.sha256).filter(|approved| approved != bundle.sha256()) {
            talk(format_args!(
                "warning: what was approved last in this cluster is bundle {other}, and this is bundle {}: objects that only the former has stay",
                bundle.sha256()
            ));
        }
        data(format_args!("Cluster  {} ({})\nBundle   {}", connection.server, context(&connection), bundle.sha256()));
        data(format_args!("No service exists in namespaces {prefix}*.\n\nRemoved, in this order:"));
        plan.iter().for_each(show);
        data(format_args!("  {target}\n\nCustomResourceDefinitions, RBAC, namespaces and StorageClasses stay."));
        if self.dry_run {
            return Ok(ExitCode::SUCCESS);
        }
        if !self.yes && !agreed("\nUninstall the platform of this cluster?") {
            return Err(ResetError::NotAgreed);
        }
        // First of all, so that no sync puts back what is removed. The next approval begins another installation, for which every Job runs
        // again, also where this stops in the middle.
        record::end(client, home, jiff::Timestamp::now(), Some(InstallId(uuid::Uuid::now_v7()))).await?;
        forget_installation(client, home).await?;
        for component in &plan {
            talk(format_args!("Removing {} …", component.name));
            removal::remove(client, &component.objects).await?;
        }
        target.remove(client).await?;
        data("\nReset: the platform is uninstalled. Run approve again before the next platform sync.");
        Ok(ExitCode::SUCCESS)
    }
}

fn context(connection: &cluster::connect::Connection) -> String {
    connection.context.as_ref().map_or_else(|| "your kubeconfig".to_owned(), |context| format!("context {context}"))
}

fn show(component: &Component) {
    data(format_args!("  {}", component.name));
    for object in component.objects.iter().map(ObjectKey::of) {
        data(format_args!("    {object}"));
    }
    if component.objects.is_empty() {
        data("    (nothing is there)");
    }
}

/// The account says no installation any more.
async fn forget_installation(client: &Client, home: &str) -> Result<(), ClusterError> {
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": PCM_PLATFORM, "namespace": home}});
    let without = |live: &Value| {
        let mut account = live.clone();
        account.pointer_mut("/metadata/annotations")?.as_object_mut()?.remove(keys::INSTALL_ID)?;
        Some(account)
    };
    object::modify(client, &account, FIELD_MANAGER_APPROVE, without).await.map(drop)
}
