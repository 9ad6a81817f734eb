//! What one may do at a registry, without pulling anything: who one is, and which charts and images are there for one.

use agent_api::manifest::{Manifest, RegistryMode};
use futures::{StreamExt as _, stream};

use crate::images::Images;
use crate::pull::{PullError, Registry, Who};
use crate::registry_access::RegistryAccess;

/// Requests at the same time.
const SIDE_BY_SIDE: usize = 4;

/// What was found at a bundle's registry.
#[derive(Debug)]
pub struct RegistryReport {
    /// `host[:port]`.
    pub host: String,
    /// How one logs in.
    pub mode: RegistryMode,
    /// Who one is there.
    pub who: Who,
    /// Charts in the bundle's order, then images by name.
    pub items: Vec<RegistryItem>,
    /// Images of other registries, not asked for.
    pub unchecked: Vec<String>,
}

/// A chart or an image, and whether it is there.
#[derive(Debug)]
pub struct RegistryItem {
    /// Which of the two.
    pub kind: ItemKind,
    /// `host/repository@digest`; an image as the bundle names it.
    pub reference: String,
    /// What the registry says: it is there, it is not, or why it does not tell.
    pub found: Result<bool, PullError>,
}

/// What lies in a registry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ItemKind {
    /// A Helm chart.
    Chart,
    /// A container image.
    Image,
}

/// Logs in at a bundle's registry and asks for each chart and image there, by digest.
///
/// # Errors
/// There is no login, or the registry does not let it in. What holds for one chart or image is in the report.
pub async fn check_registry(manifest: &Manifest, access: &RegistryAccess) -> Result<RegistryReport, PullError> {
    let registry = Registry::new(manifest, access)?;
    let who = log_in(&registry).await?;
    let Images { own, foreign } = Images::of(manifest, registry.host());
    let charts = manifest.components.iter().map(|component| {
        let repository = registry.repository(&component.chart);
        let reference = format!("{}/{repository}@{}", registry.host(), component.chart.digest);
        (ItemKind::Chart, reference, repository, component.chart.digest.clone())
    });
    let images = own.into_iter().map(|image| (ItemKind::Image, image.reference, image.repository, image.digest));
    let asks: Vec<_> = charts
        .chain(images)
        .map(|(kind, reference, repository, digest)| {
            let registry = &registry;
            async move { RegistryItem { kind, reference, found: registry.exists(&repository, &digest).await } }
        })
        .collect();
    let items = stream::iter(asks).buffered(SIDE_BY_SIDE).collect().await;
    Ok(RegistryReport { host: registry.host().to_owned(), mode: manifest.registry.mode, who, items, unchecked: foreign })
}

/// Logs in at a bundle's registry.
///
/// # Errors
/// There is no login, or the registry does not let it in.
pub async fn check_login(manifest: &Manifest, access: &RegistryAccess) -> Result<Who, PullError> {
    log_in(&Registry::new(manifest, access)?).await
}

/// Logs in at the registry of a host (`host[:port]`) with what `access` has for it.
///
/// # Errors
/// There is no login, or the registry does not let it in.
pub async fn check_host(host: &str, access: &RegistryAccess) -> Result<Who, PullError> {
    log_in(&Registry::of_host(host, access)?).await
}

async fn log_in(registry: &Registry) -> Result<Who, PullError> {
    let who = registry.who().await?;
    match registry.enter().await {
        // Some registries let nobody into `/v2/` and everybody to what is public.
        Err(PullError::NoCredentials { .. } | PullError::Unauthorized { .. } | PullError::Forbidden { .. }) if who.name.is_none() => {
            Ok(who)
        }
        result => result.map(|()| who),
    }
}
