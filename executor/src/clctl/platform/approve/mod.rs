//! `clctl platform approve`: a person approves one bundle. They apply its permissions half with their own credentials, and leave the
//! executor a short-lived token with which it may apply exactly the rest.
//!
//! The order is the contract's, one step a file. Until the token bundle is exchanged, at the very end, a former one is untouched;
//! running again after a stop converges.

mod account;
mod grant;
pub(super) mod grants;
mod live;
mod obstacles;
mod other_rights;
pub(super) mod permissions;
mod pins;
mod plan;
mod policy;
mod preview;
mod probe;
mod prune;
mod rendering;
mod replace;
mod rights;
mod roles;
mod scope_guard;
mod show;
mod take_over;
mod unset;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use agent_api::object::RenderedObject;
use agent_api::platform_approval::PlatformApprovalSpec;
use clap::{Args, ValueEnum};
use cluster::connect::{ConnectError, Connection};
use cluster::{Client, ClusterError, inventory, object};
use executor_core::bundle::Scope;
use serde_json::Value;

use self::obstacles::Obstacles;
use self::plan::{BundleHeading, ClusterHeading, Leftover, Plan, PlannedObject};
use self::prune::Prune;
use self::rendering::Rendering;
use super::arguments::{Connector, Person};
use super::pending::{self, Pending};
use super::removal::RemovalError;
use super::token_bundle::{self, Target};
use super::{MANAGED_BY_APPROVE, OWN_LABEL, record, revoke};
use crate::clctl::server::Server;
use crate::clctl::{namespace_prefix, requests, ttl};
use crate::error_code::{Code, Coded};
use crate::terminal::{agreed, data, report, talk};

/// A token that lives longer is warned of: a sync takes minutes.
const LONG_TTL: Duration = Duration::from_secs(24 * 3600);

/// Arguments.
#[derive(Args)]
pub(crate) struct Approve {
    /// Take the approval that holds back: the executor's rights, its token and its account go.
    // --config says where the connector is, may come from a variable, and must not stand in the way.
    #[arg(long, conflicts_with_all = [
        "bundle", "endpoint", "detailed_exitcode", "ttl", "server", "ca_data", "registry_config", "registry_ca_file", "replace", "take_over",
        "prune", "prune_crds", "prune_namespaces", "prune_storage_classes", "output", "show",
    ])]
    revoke: bool,
    /// Render and show the plan; change nothing.
    #[arg(long)]
    dry_run: bool,
    /// With --dry-run: exit with 2 where something would change.
    #[arg(long, requires = "dry_run")]
    detailed_exitcode: bool,
    #[command(flatten)]
    person: Person,
    /// How long the executor may apply the workload half; at least 10m.
    #[arg(long, default_value = "2h", value_parser = ttl::parse)]
    ttl: Duration,
    /// The connector's configuration; only its namespace prefix is read.
    #[arg(long, value_name = "FILE", env = "CLCTL_EXECUTOR_CONFIG")]
    config: Option<PathBuf>,
    /// Take the manifest from this file instead of the staged bundle.
    #[arg(long, value_name = "FILE")]
    bundle: Option<PathBuf>,
    #[command(flatten)]
    connector: Connector,
    /// Registry credentials: a docker config.json, of which `auths` is read (default: ~/.docker/config.json where it is there).
    #[arg(long, value_name = "FILE")]
    registry_config: Option<PathBuf>,
    /// PEM file of a private CA that signed the registry's certificate.
    #[arg(long, value_name = "FILE")]
    registry_ca_file: Option<PathBuf>,
    /// Address of the API server that the executor is told.
    #[arg(long, value_name = "URL")]
    server: Option<String>,
    /// CA of that address, PEM or base64 of it.
    #[arg(long, value_name = "DATA", allow_hyphen_values = true)]
    ca_data: Option<String>,
    /// Do not ask. Nobody is asked either where stdin is no terminal, as in a script.
    #[arg(long, short = 'y')]
    yes: bool,
    /// Delete and make anew what no apply can change; the plan names it, with the reason.
    #[arg(long)]
    replace: bool,
    /// Take the fields that other managers own over, with what they hold; the plan names each.
    #[arg(long)]
    take_over: bool,
    #[command(flatten)]
    prune: Prune,
    /// Form of the plan.
    #[arg(long, short, value_enum, default_value_t = Form::Table)]
    output: Form,
    /// What of the plan is told beside its numbers and warnings.
    #[arg(long, value_enum, value_name = "DETAILS", value_delimiter = ',', default_value = "changes,privileges")]
    show: Vec<show::Details>,
}

/// How the plan is printed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Form {
    /// For people.
    Table,
    /// All of it, as JSON.
    Json,
}

/// Why nothing was approved. Each step has its own error.
#[derive(Debug, thiserror::Error)]
enum ApproveError {
    #[error(transparent)]
    Prefix(#[from] namespace_prefix::PrefixError),
    #[error(transparent)]
    Pending(#[from] pending::PendingError),
    #[error(transparent)]
    Revoke(#[from] revoke::RevokeError),
    #[error(transparent)]
    Connect(#[from] ConnectError),
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    #[error("the bundle was staged for the cluster with uid {staged}, but {context} leads to {live}: choose the right --context")]
    OtherCluster { staged: String, context: String, live: String },
    #[error(transparent)]
    Server(#[from] token_bundle::ResolveError),
    #[error(transparent)]
    Rendering(#[from] rendering::RenderingError),
    #[error(transparent)]
    Obstacles(#[from] obstacles::Obstacles),
    #[error("--show none stands alone: what is told beside it would be something")]
    ShowNone,
    #[error("not approved: nothing was changed")]
    NotAgreed,
    #[error(transparent)]
    Replace(#[from] replace::ReplaceError),
    #[error("a webhook configuration of a former bundle is not gone, and nothing was applied: {0}")]
    Withdraw(RemovalError),
    #[error("the approval holds, and not everything of former bundles is gone: {0}")]
    Prune(RemovalError),
    #[error(transparent)]
    Permissions(#[from] permissions::PermissionsError),
    #[error(transparent)]
    Pin(#[from] pins::PinError),
    #[error(transparent)]
    Record(#[from] record::RecordError),
    #[error("the API server's token has no id (`jti`), so that an approval cannot name it: Kubernetes gives one from 1.30 on")]
    NoTokenId,
    #[error(transparent)]
    Probe(#[from] probe::ProbeError),
    #[error(transparent)]
    OtherRights(#[from] other_rights::OtherRightsError),
    #[error(transparent)]
    Deliver(#[from] token_bundle::DeliverError),
    #[error("the plan cannot be encoded: {0}")]
    Encode(#[from] serde_json::Error),
}

impl Coded for ApproveError {
    fn code(&self) -> Code {
        match self {
            Self::Prefix(error) => error.code(),
            Self::Pending(error) => error.code(),
            Self::Revoke(error) => error.code(),
            Self::Connect(error) => error.code(),
            Self::Cluster(error) => error.code(),
            Self::Server(error) => error.code(),
            Self::Rendering(error) => error.code(),
            Self::Obstacles(error) => error.code(),
            Self::Replace(error) => error.code(),
            Self::Withdraw(error) | Self::Prune(error) => error.code(),
            Self::Permissions(error) => error.code(),
            Self::Pin(error) => error.code(),
            Self::Record(error) => error.code(),
            Self::Probe(error) => error.code(),
            Self::OtherRights(error) => error.code(),
            Self::Deliver(error) => error.code(),
            Self::OtherCluster { .. } => Code::OtherCluster,
            Self::ShowNone => Code::Usage,
            Self::NotAgreed => Code::NotApproved,
            Self::NoTokenId => Code::KubernetesTooOld,
            Self::Encode(_) => Code::Internal,
        }
    }

    fn hints(&self) -> Vec<String> {
        match self {
            Self::Prefix(error) => error.hints(),
            Self::Pending(error) => error.hints(),
            Self::Revoke(error) => error.hints(),
            Self::Connect(error) => error.hints(),
            Self::Cluster(error) => error.hints(),
            Self::Server(error) => error.hints(),
            Self::Rendering(error) => error.hints(),
            Self::Obstacles(error) => error.hints(),
            Self::Replace(error) => error.hints(),
            Self::Withdraw(error) | Self::Prune(error) => error.hints(),
            Self::Permissions(error) => error.hints(),
            Self::Pin(error) => error.hints(),
            Self::Record(error) => error.hints(),
            Self::Probe(error) => error.hints(),
            Self::OtherRights(error) => error.hints(),
            Self::Deliver(error) => error.hints(),
            Self::OtherCluster { .. } => vec!["see the contexts: kubectl config get-contexts".into()],
            Self::ShowNone | Self::NotAgreed | Self::NoTokenId | Self::Encode(_) => Vec::new(),
        }
    }
}

impl Approve {
    pub(crate) async fn run(self) -> ExitCode {
        match self.approve().await {
            Ok(code) => code,
            Err(error) => report(&error),
        }
    }

    async fn approve(&self) -> Result<ExitCode, ApproveError> {
        let (home, target) = (self.connector.place.home(), self.connector.place.target());
        if self.revoke {
            return Ok(revoke::revoke(&self.person.connect().await?, home, &target, self.dry_run).await?);
        }
        if self.show.contains(&show::Details::None) && self.show.len() > 1 {
            return Err(ApproveError::ShowNone);
        }
        let prefix = namespace_prefix::read(self.config.as_deref())?;
        target.check()?;
        let pending = pending::take(&self.connector.source(self.bundle.as_deref())).await?;
        let connection = self.person.connect().await?;
        target.exists(&connection.client).await?;
        let cluster = heading(&connection, &pending).await?;
        let server = token_bundle::resolve(&connection, &target, home, self.server.as_deref(), self.ca_data.as_deref()).await?;
        talk(format_args!("Rendering bundle {} …", pending.bundle.sha256()));
        let scope = Scope { namespace_prefix: &prefix, home_namespace: home };
        let rendering = rendering::render(self, &connection.client, &pending.bundle, &scope).await?;
        let (plan, pinned, refused, former) = plan(self, &connection, cluster, &pending, &rendering).await?;
        data(match self.output {
            Form::Table => show::text(&plan, &self.show),
            Form::Json => plan.json()?,
        });
        Obstacles::check(&connection.client, &plan, refused, self.dry_run).await?;
        if self.dry_run {
            return Ok(if self.detailed_exitcode && plan.changes() { ExitCode::from(2) } else { ExitCode::SUCCESS });
        }
        let replaced = replace::of(&plan);
        replace::check(&connection.client, rendering.judged.permissions(), &replaced).await?;
        // Asked again when the account is there; here, so that nothing is deleted or applied for an approval that cannot be given.
        other_rights::check(&connection.client, home).await?;
        if !self.yes && !agreed(&show::question(&plan, self.ttl)) {
            return Err(ApproveError::NotAgreed);
        }
        let approval = Approved {
            connection,
            pending,
            rendering,
            server,
            target,
            home: home.to_owned(),
            cluster_uid: plan.cluster.uid,
            former,
            pinned,
            replaced,
            unset: plan.workload.iter().filter(|object| !object.unset.is_empty()).map(|object| object.object.clone()).collect(),
            taken: taken(&plan.permissions).chain(taken(&plan.workload)).collect(),
            leftovers: plan.leftovers,
            json: self.output == Form::Json,
        };
        approval.grant(self.ttl).await?;
        Ok(ExitCode::SUCCESS)
    }
}

/// Everything that was shown and agreed to.
struct Approved {
    connection: Connection,
    pending: Pending,
    rendering: Rendering,
    server: Server,
    target: Target,
    home: String,
    cluster_uid: String,
    /// The approval that held when the plan was made.
    former: Option<PlatformApprovalSpec>,
    /// What the API server made of objects for the plan, by key in the approval: so they are pinned.
    pinned: BTreeMap<String, Value>,
    /// What is deleted and made anew: its uid, by its name in the plan.
    replaced: BTreeMap<String, String>,
    /// Of what fields are unset, by its name in the plan.
    unset: BTreeSet<String>,
    /// Fields that are taken over, (manager, field) of each, by their object's name in the plan.
    taken: BTreeMap<String, Vec<(String, String)>>,
    leftovers: Vec<Leftover>,
    /// Stdout is one document: the closing lines go where talk goes.
    json: bool,
}

fn taken(half: &[PlannedObject]) -> impl Iterator<Item = (String, Vec<(String, String)>)> {
    let pair = |taken: &plan::Taken| (taken.manager.clone(), taken.field.clone());
    half.iter()
        .filter(|object| !object.taken.is_empty())
        .map(move |object| (object.object.clone(), object.taken.iter().map(pair).collect()))
}

async fn heading(connection: &Connection, pending: &Pending) -> Result<ClusterHeading, ApproveError> {
    let uid = inventory::cluster_uid(&connection.client).await?;
    if let Some(staged) = pending.cluster_uid.as_ref().filter(|staged| **staged != uid) {
        let context = connection.context.as_ref().map_or("your kubeconfig".to_owned(), |context| format!("context {context}"));
        return Err(ApproveError::OtherCluster { staged: staged.clone(), context, live: uid });
    }
    Ok(ClusterHeading {
        server: connection.server.clone(),
        context: connection.context.clone(),
        uid,
        kubernetes: inventory::kubernetes_version(&connection.client).await?,
        checked: pending.cluster_uid.is_some(),
    })
}

/// Those that are not there; what a person may not read counts as there.
async fn missing(client: &Client, placeholders: &[RenderedObject]) -> Result<Vec<String>, ClusterError> {
    let questions = placeholders.iter().map(|rendered| async move {
        match object::get(client, &rendered.object).await {
            Ok(None) => Ok(Some(rendered.key().to_string())),
            Ok(Some(_)) | Err(ClusterError::Forbidden { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    });
    Ok(requests::until_error(questions).await?.into_iter().flatten().collect())
}

async fn plan(
    arguments: &Approve,
    connection: &Connection,
    cluster: ClusterHeading,
    pending: &Pending,
    rendering: &Rendering,
) -> Result<(Plan, BTreeMap<String, Value>, Vec<ClusterError>, Option<PlatformApprovalSpec>), ApproveError> {
    let (bundle, judged) = (&pending.bundle, &rendering.judged);
    let manifest = bundle.manifest();
    let (served, take_over, estimates) = (&rendering.capabilities, arguments.take_over, arguments.dry_run);
    let mut seen = preview::preview(&connection.client, judged, bundle.sha256(), served, take_over, estimates).await?;
    arguments.prune.mark(&mut seen.leftovers);
    let mut warnings: Vec<String> = manifest
        .components
        .iter()
        .flat_map(|component| {
            let values = serde_json::Value::Object(component.values.clone());
            let found = agent_api::values::secrets_in(&values).into_iter();
            found.map(|path| format!("component {}: value {path} looks like a secret; a bundle is no place for one", component.name))
        })
        .collect();
    warnings.extend(rendering.warnings.iter().cloned());
    if arguments.ttl > LONG_TTL {
        let ttl = show::duration(arguments.ttl);
        warnings
            .push(format!("for {ttl} whoever holds the token may write the workload half; clctl platform approve --revoke ends it before"));
    }
    let running = seen.leftovers.iter().filter(|leftover| leftover.running && !leftover.pruned);
    warnings.extend(running.map(|leftover| format!("{} is left over from a former bundle, and goes on running", leftover.object)));
    let missing = missing(&connection.client, judged.placeholders()).await?;
    let mut plan = Plan {
        cluster,
        bundle: BundleHeading {
            sha256: bundle.sha256().to_string(),
            environment: manifest.environment.to_string(),
            created_at: manifest.created_at,
            received_at: pending.received_at,
            workload_sha256: judged.workload_sha256().to_string(),
            namespaces: manifest.namespaces.iter().map(ToString::to_string).collect(),
        },
        estimates: seen.estimates,
        permissions: seen.permissions,
        workload: seen.workload,
        leftovers: seen.leftovers,
        privileges: seen.privileges,
        pods: seen.pods,
        replace: arguments.replace,
        webhooks: judged.interceptions().iter().map(Into::into).collect(),
        placeholder_secrets: judged.placeholders().iter().map(|object| object.key().to_string()).collect(),
        missing_placeholder_secrets: missing,
        warnings,
    };
    let current = match record::current(&connection.client, arguments.connector.place.home()).await {
        // Who may not read it is told of each Job.
        Err(ClusterError::Forbidden { .. }) => None,
        current => current?,
    };
    if current.as_ref().is_some_and(|current| current.sha256 == *bundle.sha256() && current.workload_sha256 == judged.workload_sha256()) {
        plan.is_approved_before();
    }
    Ok((plan, seen.pinned, seen.refused, current))
}
