//! The bundle rendered and judged, exactly as the executor will.

use agent_api::approval::{Capabilities, Versions};
use agent_api::manifest::Bundle;
use cluster::{Client, ClusterError, capabilities, inventory};
use executor_core::bundle::{Judged, Refusal, Refusals, Scope, judge};
use render::{CacheFolder, Difference, Engine, EngineError, RegistryAccess, RegistryAccessError, RenderError, Renderer};

use super::{Approve, live};
use crate::clctl::docker_config;
use crate::error_code::{Code, Coded};
use crate::terminal::talk;

/// The first Kubernetes with admission policies as approvals need them.
const OLDEST: (u32, u32) = (1, 30);

/// Why there is nothing to approve.
#[derive(Debug, thiserror::Error)]
pub(super) enum RenderingError {
    /// Too old.
    #[error(
        "Kubernetes {0} is older than 1.30: ValidatingAdmissionPolicy, which bounds what the executor may write, is not in force there"
    )]
    TooOld(String),
    /// The cluster could not be asked.
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    /// The engine.
    #[error("the chart engine cannot be used")]
    Engine(#[from] EngineError),
    /// Registry credentials.
    #[error(transparent)]
    Access(#[from] RegistryAccessError),
    /// A chart.
    #[error(transparent)]
    Render(#[from] RenderError),
    /// The rules.
    #[error(transparent)]
    Refused(#[from] Refusals),
}

impl Coded for RenderingError {
    fn code(&self) -> Code {
        match self {
            Self::TooOld(_) => Code::KubernetesTooOld,
            Self::Cluster(error) => error.code(),
            Self::Engine(error) => error.code(),
            Self::Access(error) => error.code(),
            Self::Render(error) => error.code(),
            Self::Refused(error) => error.code(),
        }
    }

    fn hints(&self) -> Vec<String> {
        match self {
            Self::TooOld(_) => Vec::new(),
            Self::Cluster(error) => error.hints(),
            Self::Engine(error) => error.hints(),
            Self::Access(error) => error.hints(),
            Self::Render(error) => error.hints(),
            Self::Refused(error) => error.hints(),
        }
    }
}

/// A bundle that may be approved.
pub(super) struct Rendering {
    pub(super) judged: Judged,
    pub(super) capabilities: Capabilities,
    pub(super) versions: Versions,
    /// What a person should know of it.
    pub(super) warnings: Vec<String>,
}

/// Reads what charts may ask of the cluster, renders twice, judges, and sees that the images are there.
pub(super) async fn render(arguments: &Approve, client: &Client, bundle: &Bundle, scope: &Scope<'_>) -> Result<Rendering, RenderingError> {
    let served = capabilities::read(client).await?;
    if inventory::major_minor(&served.kube_version).is_some_and(|version| version < OLDEST) {
        return Err(RenderingError::TooOld(served.kube_version));
    }
    let registry_config = arguments.registry_config.clone().or_else(docker_config::own_file);
    let access = RegistryAccess::load(registry_config.as_deref(), arguments.registry_ca_file.as_deref())?;
    let mut renderer = Renderer::new(Engine::locate().await?, access);
    match CacheFolder::of_person(std::env::var_os("XDG_CACHE_HOME"), std::env::var_os("HOME")) {
        Some(folder) => renderer = renderer.keeping_in(folder),
        None => tracing::debug!("renderings are not kept: neither XDG_CACHE_HOME nor HOME names a folder"),
    }
    let capabilities = renderer.capabilities_with_own_crds(bundle.manifest(), &served).await?;
    let (rendered, differences) = renderer.render_and_compare(bundle.manifest(), &capabilities).await?;
    renderer.full_disk().into_iter().for_each(|full| talk(format_args!("warning: {full}")));
    let live = live::read(client, &rendered.objects).await?;
    let left_out = rendered.left_out.iter();
    let left_out =
        left_out.map(|hook| format!("hook that never runs here: component {}, {}, {}", hook.component, hook.template, hook.object));
    let groups = capabilities.server.unknown_groups.iter();
    let groups = groups.map(|group| format!("API group {group} does not answer: charts are told that nothing of it is served"));
    let mut warnings: Vec<String> = left_out.chain(groups).collect();
    // What renders differently each time is refused together with all else.
    let judged = judge(bundle, rendered.objects, rendered.placeholders, scope, &live)
        .map_err(|refusals| refusals.and(differences.iter().map(refusal)))?;
    if !differences.is_empty() {
        return Err(RenderError::Differs(differences).into());
    }
    let images = renderer.require_images(bundle.manifest()).await?;
    warnings.extend(images.unchecked.iter().map(|image| format!("image of another registry, not checked: {image}")));
    let versions = Versions { clicklink: env!("CARGO_PKG_VERSION").to_owned(), engine: renderer.engine_version().to_owned() };
    Ok(Rendering { judged, capabilities, versions, warnings })
}

fn refusal(difference: &Difference) -> Refusal {
    Refusal {
        component: Some(difference.component.clone()),
        chart: Some(difference.chart.clone()),
        template: difference.template.clone(),
        object: difference.place.clone(),
        problem: format!("it renders differently each time: {}", difference.made_up()),
        hint: Some("give it a fixed value".to_owned()),
    }
}
