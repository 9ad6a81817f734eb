//! A bundle's manifest in, its normalised objects out.

use std::collections::BTreeMap;
use std::sync::Arc;

use agent_api::approval::Capabilities;
use agent_api::digest::OciDigest;
use agent_api::manifest::{Component, Manifest};
use agent_api::name::DnsLabel;
use agent_api::object::RenderedObject;
use base64::Engine as _;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use tokio::sync::Mutex;

use crate::archive::{self, ArchiveError};
use crate::cache::{Cache, CacheFolder};
use crate::capabilities::{self, own_crd_api_versions};
use crate::difference::{self, Difference};
use crate::engine::{Answer, ChartMetadata, ChartRenderer, Engine, EngineError, EngineOutput, Invention, Request};
use crate::images::Images;
use crate::normalise::{LeftOut, normalise};
use crate::pull::{PullError, Registry};
use crate::registry_access::RegistryAccess;

/// Charts that are pulled, and images that are asked for, at the same time.
const PULLS_SIDE_BY_SIDE: usize = 4;
/// Rounds in which a bundle's own CRDs are looked for: a chart may render more once it sees those of another.
const CRD_ROUNDS: usize = 4;

/// Renders bundles: pulls, verifies, renders, normalises. One can be shared.
pub struct Renderer {
    engine: Cache,
    access: RegistryAccess,
    /// The last manifest's registry, with its login.
    registry: Mutex<Option<(Place, Arc<Registry>)>>,
    /// Archives of the last manifest, verified and checked, as base64, by manifest digest.
    archives: Mutex<BTreeMap<OciDigest, Arc<str>>>,
}

/// What tells one login from another: the manifest's registry and its environment.
type Place = (agent_api::manifest::Registry, DnsLabel);

/// What a bundle became.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Rendered {
    /// Normalised objects: components in order, the bundle's own objects, added Namespaces.
    pub objects: Vec<RenderedObject>,
    /// Secrets rendered without data, in no half, count or digest.
    pub placeholders: Vec<RenderedObject>,
    /// Hooks that never run here (test, delete, rollback).
    pub left_out: Vec<LeftOut>,
    /// `Chart.yaml` of each component, by its name.
    pub charts: BTreeMap<String, ChartMetadata>,
}

/// Which images of a bundle are there.
#[derive(Debug, Default)]
pub struct ImageReport {
    /// How many were asked for.
    pub checked: usize,
    /// Those that the bundle's own registry does not have.
    pub missing: Vec<String>,
    /// Those that it does not let this login pull (401, 403).
    pub denied: Vec<DeniedImage>,
    /// Those of other registries, not asked for.
    pub unchecked: Vec<String>,
}

/// An image that the bundle's own registry refuses to this login.
#[derive(Debug)]
pub struct DeniedImage {
    /// As the bundle names it.
    pub image: String,
    /// The registry's refusal, which begins with the reference that was asked for.
    pub why: PullError,
}

/// Why a bundle was not rendered.
#[derive(Debug, thiserror::Error)]
pub enum RenderError {
    /// The registry cannot be used at all.
    #[error("the bundle's registry cannot be used")]
    Registry(#[source] PullError),
    /// A chart could not be had.
    #[error("component {component}: chart {chart} cannot be pulled")]
    Pull {
        /// Component.
        component: String,
        /// Chart, as `name version`.
        chart: String,
        /// Why.
        #[source]
        source: PullError,
    },
    /// A chart's archive breaks a bound.
    #[error("component {component}: the archive of chart {chart} is refused")]
    Archive {
        /// Component.
        component: String,
        /// Chart, as `name version`.
        chart: String,
        /// Why.
        #[source]
        source: ArchiveError,
    },
    /// The chart is another than the manifest says.
    #[error("component {component}: the archive holds chart {found}, the bundle names {chart}")]
    Identity {
        /// Component.
        component: String,
        /// Named in the manifest, as `name version`.
        chart: String,
        /// In the archive's `Chart.yaml`.
        found: String,
    },
    /// The chart does not render.
    #[error("component {component}: chart {chart} cannot be rendered")]
    Chart {
        /// Component.
        component: String,
        /// Chart, as `name version`.
        chart: String,
        /// Why.
        #[source]
        source: EngineError,
    },
    /// Charts that render differently each time.
    #[error("charts that render differently each time are refused; give them a fixed value:{}", list(.0))]
    Differs(Vec<Difference>),
    /// Images that the bundle's own registry does not have, or does not give.
    #[error("images of the bundle cannot be pulled from its registry:{}{}", missing_lines(missing), denied_lines(denied))]
    Images {
        /// Not there.
        missing: Vec<String>,
        /// Refused to this login.
        denied: Vec<DeniedImage>,
    },
    /// The registry could not say whether an image is there.
    #[error("cannot check whether image {image} exists")]
    Image {
        /// The image.
        image: String,
        /// Why.
        #[source]
        source: PullError,
    },
}

fn missing_lines(images: &[String]) -> String {
    images.iter().map(|image| format!("\n  - missing: {image}")).collect()
}

fn denied_lines(images: &[DeniedImage]) -> String {
    images.iter().map(|denied| format!("\n  - denied: {}", denied.why)).collect()
}

fn list(differences: &[Difference]) -> String {
    differences.iter().map(|difference| format!("\n  - {difference}")).collect()
}

impl Renderer {
    /// A renderer with this engine, pulling with this access.
    #[must_use]
    pub fn new(engine: Engine, access: RegistryAccess) -> Self {
        Self::over(Arc::new(engine), access)
    }

    /// A renderer over another engine.
    #[must_use]
    pub fn over(engine: Arc<dyn ChartRenderer>, access: RegistryAccess) -> Self {
        Self { engine: Cache::new(engine), access, registry: Mutex::default(), archives: Mutex::default() }
    }

    /// With a folder in which renderings outlive this process.
    #[must_use]
    pub fn keeping_in(mut self, folder: CacheFolder) -> Self {
        self.engine = self.engine.keeping_in(folder);
        self
    }

    /// That the disk had no room to keep what was rendered, for a person; nothing else comes of it.
    #[must_use]
    pub fn full_disk(&self) -> Option<&str> {
        self.engine.full_disk()
    }

    /// Name and version of the engine, as recorded in an approval.
    #[must_use]
    pub fn engine_version(&self) -> &str {
        self.engine.version()
    }

    /// Renders every component once: the executor's way. Its invention is that of the first rendering of [`Self::render_twice`].
    ///
    /// # Errors
    /// The first component, in order, that cannot be pulled, checked or rendered.
    pub async fn render(&self, manifest: &Manifest, capabilities: &Capabilities) -> Result<Rendered, RenderError> {
        let archives = self.archives(manifest).await?;
        let [first, _] = Invention::pair(manifest.created_at);
        let answers = self.render_all(manifest, &archives, capabilities, &[first]).await?;
        Ok(finish(manifest, answers))
    }

    /// Renders every component twice, with far-apart clocks and other chance: the person's way. The result is the first rendering.
    ///
    /// # Errors
    /// As [`Self::render`], and [`RenderError::Differs`] with every template that the two renderings differ in.
    pub async fn render_twice(&self, manifest: &Manifest, capabilities: &Capabilities) -> Result<Rendered, RenderError> {
        let (rendered, differences) = self.render_and_compare(manifest, capabilities).await?;
        if differences.is_empty() { Ok(rendered) } else { Err(RenderError::Differs(differences)) }
    }

    /// As [`Self::render_twice`], for whoever has more to say of the bundle in the same message: the first rendering, and every template
    /// that the two differ in.
    ///
    /// # Errors
    /// As [`Self::render`].
    pub async fn render_and_compare(
        &self,
        manifest: &Manifest,
        capabilities: &Capabilities,
    ) -> Result<(Rendered, Vec<Difference>), RenderError> {
        let archives = self.archives(manifest).await?;
        let answers = self.render_all(manifest, &archives, capabilities, &Invention::pair(manifest.created_at)).await?;
        let mut differences = Vec::new();
        for (component, answer) in manifest.components.iter().zip(&answers) {
            let found = difference::of(component.name.as_str(), &chart_name(component), answer);
            differences.extend(found.map_err(|source| chart_error(component, source))?);
        }
        Ok((finish(manifest, answers), differences))
    }

    /// What the bundle's charts may ask of a cluster: what it serves, and what the bundle's own CRDs will make it serve.
    ///
    /// The rule: render all, add the served versions and kinds of every CRD among the objects (`crds/`, templates, the bundle's own), and
    /// again until nothing is added, at most four times. A chart that cannot render yet adds nothing in that round; nothing once
    /// added is taken away. `approve` records the result; the executor renders with what was recorded. Each round renders twice, so that the
    /// last one has done what [`Self::render_and_compare`] asks for.
    ///
    /// # Errors
    /// Charts that cannot be pulled or whose archives are refused. That a chart does not render is for the rendering itself to tell.
    pub async fn capabilities_with_own_crds(&self, manifest: &Manifest, live: &Capabilities) -> Result<Capabilities, RenderError> {
        let archives = self.archives(manifest).await?;
        let inventions = Invention::pair(manifest.created_at);
        let mut known = capabilities::with(live, own_crd_api_versions(&manifest.objects));
        for _ in 0..CRD_ROUNDS {
            let renderings: Vec<_> = manifest
                .components
                .iter()
                .zip(&archives)
                .map(|(component, archive)| self.render_one(component, archive, &known, &inventions))
                .collect();
            let rendered: Vec<_> = stream::iter(renderings).buffered(renderings_side_by_side()).collect().await;
            let objects = rendered.iter().flatten().flat_map(|answer| &answer.first.objects).map(|object| &object.object);
            let more = capabilities::with(&known, own_crd_api_versions(objects));
            if more == known {
                break;
            }
            known = more;
        }
        Ok(known)
    }

    /// Asks the bundle's own registry for every image that the bundle names there.
    ///
    /// # Errors
    /// Where the registry gives no clear answer; missing and denied images are all in the report.
    pub async fn check_images(&self, manifest: &Manifest) -> Result<ImageReport, RenderError> {
        let registry = self.registry(manifest).await?;
        let Images { own, foreign } = Images::of(manifest, registry.host());
        let mut report = ImageReport { checked: own.len(), unchecked: foreign, ..ImageReport::default() };
        let registry = &registry;
        let checks: Vec<_> = own
            .into_iter()
            .map(|image| async move { (registry.exists(&image.repository, &image.digest).await, image.reference) })
            .collect();
        let mut answers = stream::iter(checks).buffered(PULLS_SIDE_BY_SIDE);
        while let Some((found, image)) = answers.next().await {
            match found {
                Ok(true) => {}
                Ok(false) => report.missing.push(image),
                Err(why) if why.is_denial() => report.denied.push(DeniedImage { image, why }),
                Err(source) => return Err(RenderError::Image { image, source }),
            }
        }
        Ok(report)
    }

    /// As [`Self::check_images`], for whoever cannot go on without them.
    ///
    /// # Errors
    /// As there, and [`RenderError::Images`] with every image that is missing or denied.
    pub async fn require_images(&self, manifest: &Manifest) -> Result<ImageReport, RenderError> {
        let report = self.check_images(manifest).await?;
        if report.missing.is_empty() && report.denied.is_empty() {
            return Ok(report);
        }
        Err(RenderError::Images { missing: report.missing, denied: report.denied })
    }

    /// The manifest's registry; its login outlives a call.
    async fn registry(&self, manifest: &Manifest) -> Result<Arc<Registry>, RenderError> {
        let mut kept = self.registry.lock().await;
        let place = (manifest.registry.clone(), manifest.environment.clone());
        if let Some((known, registry)) = &*kept
            && *known == place
        {
            return Ok(Arc::clone(registry));
        }
        let registry = Arc::new(Registry::new(manifest, &self.access).map_err(RenderError::Registry)?);
        *kept = Some((place, Arc::clone(&registry)));
        Ok(registry)
    }

    /// The archives of a manifest's components, in order. What the last manifest had is kept, anything older let go.
    async fn archives(&self, manifest: &Manifest) -> Result<Vec<Arc<str>>, RenderError> {
        let registry = self.registry(manifest).await?;
        let mut kept = self.archives.lock().await;
        let (registry, known) = (&registry, &*kept);
        // Futures are made before they are streamed: a closure over borrowed items would make the whole future not Send.
        let pulls: Vec<_> = manifest
            .components
            .iter()
            .map(|component| async move {
                match known.get(&component.chart.digest) {
                    Some(archive) => Ok(Arc::clone(archive)),
                    None => pull(registry, component).await,
                }
            })
            .collect();
        let archives: Vec<Arc<str>> = stream::iter(pulls).buffered(PULLS_SIDE_BY_SIDE).try_collect().await?;
        *kept = manifest.components.iter().map(|component| component.chart.digest.clone()).zip(archives.iter().cloned()).collect();
        Ok(archives)
    }

    /// Every component with each of these inventions.
    async fn render_all(
        &self,
        manifest: &Manifest,
        archives: &[Arc<str>],
        capabilities: &Capabilities,
        inventions: &[Invention],
    ) -> Result<Vec<Answer>, RenderError> {
        let components = manifest.components.iter().zip(archives);
        let renderings: Vec<_> =
            components.map(|(component, archive)| self.render_one(component, archive, capabilities, inventions)).collect();
        stream::iter(renderings).buffered(renderings_side_by_side()).try_collect().await
    }

    async fn render_one(
        &self,
        component: &Component,
        archive: &str,
        capabilities: &Capabilities,
        inventions: &[Invention],
    ) -> Result<Answer, RenderError> {
        let request = Request {
            archive,
            release: component.release.as_str(),
            namespace: component.namespace.as_str(),
            values: &component.values,
            capabilities,
            inventions,
        };
        let answer = self.engine.render(request).await.map_err(|source| chart_error(component, source))?;
        let found = &answer.first.chart;
        if found.name != component.chart.name || found.version != component.chart.version {
            let found = format!("{} {}", found.name, found.version);
            return Err(RenderError::Identity { component: component.name.to_string(), chart: chart_name(component), found });
        }
        Ok(answer)
    }
}

/// Charts that are rendered at the same time: one for each processor, at least 2 and at most 4. Each child may have
/// [`crate::confine::MAX_ADDRESS_SPACE`], together at worst 6 GiB of address space; the largest real charts use 132 MB each.
fn renderings_side_by_side() -> usize {
    std::thread::available_parallelism().map_or(2, |processors| processors.get().clamp(2, 4))
}

fn finish(manifest: &Manifest, answers: Vec<Answer>) -> Rendered {
    let outputs: Vec<EngineOutput> = answers.into_iter().map(|answer| answer.first).collect();
    let names = manifest.components.iter().map(|component| component.name.to_string());
    let charts = names.zip(outputs.iter().map(|output| output.chart.clone())).collect();
    let normalised = normalise(manifest, outputs);
    Rendered { objects: normalised.objects, placeholders: normalised.placeholders, left_out: normalised.left_out, charts }
}

async fn pull(registry: &Registry, component: &Component) -> Result<Arc<str>, RenderError> {
    let (name, chart) = (component.name.to_string(), chart_name(component));
    let bytes = registry.chart(&component.chart).await.map_err(|source| RenderError::Pull {
        component: name.clone(),
        chart: chart.clone(),
        source,
    })?;
    archive::check(&bytes).map_err(|source| RenderError::Archive { component: name, chart, source })?;
    Ok(base64::engine::general_purpose::STANDARD.encode(&bytes).into())
}

fn chart_error(component: &Component, source: EngineError) -> RenderError {
    RenderError::Chart { component: component.name.to_string(), chart: chart_name(component), source }
}

fn chart_name(component: &Component) -> String {
    format!("{} {}", component.chart.name, component.chart.version)
}
