//! A component's chart, rendered once for each change of its input and kept: fetched and rendered when a spec changes and when the operator
//! starts, never on a timer, and not when a file or what the cluster serves has changed meanwhile. Only where an API did not answer is it asked again.

use std::sync::Arc;
use std::time::Instant;

use agent_api::chain::chain;
use agent_api::digest::Sha256;
use cluster::ClusterError;
use cluster::crd::managed_component::ManagedComponentSpec;
use render::engine::{Answer, ChartRenderer, EngineError, EngineObject, EngineOutput, Invention, Request};
use render::pinned::{CLOCK, TwiceError, render_twice};
use serde_json::{Map, Value, json};
use tokio::sync::Semaphore;

use super::capabilities::Discovery;
use super::queue::Name;
use super::secrets::CHECK;
use super::turns::Turns;
use crate::chart::Charts;
use crate::health::figures::{Figures, Step};
use crate::reconcile::plan::Stopped;
use crate::reconcile::reason::Reason;

/// What a chart became.
#[derive(Clone, Debug)]
struct Rendered {
    /// The engine's answer, which is a fraction of what it reads to.
    answer: Arc<[u8]>,
    version: String,
    unanswered: Arc<[String]>,
}

/// A rendering, or why there is none, by its input.
#[derive(Clone, Debug)]
pub struct Kept {
    generation: i64,
    input: Sha256,
    at: Instant,
    result: Result<Rendered, Stopped>,
}

impl Kept {
    /// Whether it holds for a generation as it is: for good, or where some API did not answer until it is worth asking again.
    fn holds(&self, of: i64) -> bool {
        let lasting = |rendered: &Rendered| rendered.unanswered.is_empty() || self.at.elapsed() < CHECK;
        self.generation == of && self.result.as_ref().is_ok_and(lasting)
    }
}

/// What a chart rendered to.
#[derive(Clone, Debug)]
pub struct Objects {
    /// Objects.
    pub objects: Vec<EngineObject>,
    /// Version of the chart.
    pub version: String,
    /// API groups whose kinds were not known meanwhile, because their own servers did not answer.
    pub unanswered: Arc<[String]>,
}

/// What a rendering goes by.
#[derive(Clone, Copy)]
pub struct With<'a> {
    /// What the cluster serves.
    pub discovery: &'a Discovery,
    /// Turns at registries.
    pub turns: &'a Turns,
    /// Measures.
    pub figures: &'a Figures,
}

/// Whatever renders.
pub struct Renderings {
    charts: Charts,
    engine: Arc<dyn ChartRenderer>,
    children: Semaphore,
}

impl Renderings {
    /// Renders charts of these sources, one for each processor at the same time, at least 2 and at most 4.
    #[must_use]
    pub fn new(charts: Charts, engine: Arc<dyn ChartRenderer>) -> Self {
        let children = std::thread::available_parallelism().map_or(2, |processors| processors.get().clamp(2, 4));
        Self { charts, engine, children: Semaphore::new(children) }
    }

    /// A component's objects; `kept` is what is known and remembers what becomes known. Nothing where the chart has to be pulled and it is not the
    /// component's turn at that registry. The outer error is the API server's, which is told nothing.
    ///
    /// # Errors
    /// The API server does not say what it serves.
    pub async fn objects(
        &self,
        name: &Name,
        (generation, spec): (i64, &ManagedComponentSpec),
        values: &Map<String, Value>,
        with: With<'_>,
        kept: &mut Option<Kept>,
    ) -> Result<Option<Result<Objects, Stopped>>, ClusterError> {
        if let Some(kept) = kept.as_ref().filter(|kept| kept.holds(generation)) {
            return Ok(Some(kept.result.clone().and_then(|rendered| rendered.read())));
        }
        let served = with.discovery.fresh().await?;
        let input = |chart: &Sha256| Sha256::of_json(&json!([name.namespace, name.name, chart, spec.version, values, served.digest]));
        let known = |kept: &mut Option<Kept>, input: &Sha256| {
            let known = kept.as_mut().filter(|known| known.input == *input)?;
            (known.generation, known.at) = (generation, Instant::now());
            Some(known.result.clone().and_then(|rendered| rendered.read()))
        };
        // What a digest pins need not be had to be known.
        let pinned = spec.source.oci.as_deref().map(|reference| Sha256::of(reference.as_bytes()));
        if let Some(known) = pinned.as_ref().and_then(|chart| known(kept, &input(chart))) {
            return Ok(Some(known));
        }
        if let Some(registry) = self.charts.registry_of(&spec.source)
            && !with.turns.take(name, registry)
        {
            return Ok(None);
        }
        let started = Instant::now();
        let archive = match self.charts.archive(&spec.source).await {
            Ok(archive) => archive,
            Err(stopped) => return Ok(Some(Err(stopped))),
        };
        with.figures.took(Step::Fetch, started);
        let input = input(pinned.as_ref().unwrap_or(&archive.digest));
        if let Some(known) = known(kept, &input) {
            return Ok(Some(known));
        }
        let started = Instant::now();
        let request = Request {
            archive: &archive.base64,
            release: &name.name,
            namespace: &name.namespace,
            values,
            capabilities: &served.capabilities,
            inventions: &Invention::pair(CLOCK),
        };
        let child = self.children.acquire().await;
        let answered = render_twice(self.engine.as_ref(), &name.name, &request).await;
        drop(child);
        with.figures.took(Step::Render, started);
        let result = match answered {
            Ok(answered) => match version_problem(spec, &answered.output) {
                None => Ok(Rendered {
                    answer: answered.bytes.into(),
                    version: answered.output.chart.version,
                    unanswered: served.capabilities.server.unknown_groups.clone().into(),
                }),
                Some(problem) => Err(Stopped::new(Reason::VersionMismatch, problem)),
            },
            Err(error) if is_of_the_chart(&error) => Err(refused(&error)),
            // The engine itself, or too little time on a busy machine: not the chart's fault for certain.
            Err(error) => return Ok(Some(Err(Stopped::new(Reason::ChartUnavailable, chain(&error))))),
        };
        *kept = Some(Kept { generation, input, at: Instant::now(), result: result.clone() });
        Ok(Some(result.and_then(|rendered| rendered.read())))
    }
}

impl Rendered {
    fn read(&self) -> Result<Objects, Stopped> {
        let answer = Answer::read(&self.answer).map_err(|error| Stopped::new(Reason::RenderFailed, error))?;
        Ok(Objects { objects: answer.first.objects, version: self.version.clone(), unanswered: Arc::clone(&self.unanswered) })
    }
}

fn version_problem(spec: &ManagedComponentSpec, output: &EngineOutput) -> Option<String> {
    let wanted = spec.version.as_ref()?;
    let found = &output.chart;
    (*wanted != found.version).then(|| format!("version: the spec says {wanted}, the chart is {} {}", found.name, found.version))
}

fn is_of_the_chart(error: &TwiceError) -> bool {
    match error {
        TwiceError::Differs(_) => true,
        TwiceError::Engine(error) => match error {
            EngineError::Chart(_) | EngineError::Output | EngineError::Object { .. } | EngineError::Memory | EngineError::Cpu => true,
            EngineError::Missing(_)
            | EngineError::Protocol { .. }
            | EngineError::Run { .. }
            | EngineError::Time
            | EngineError::Ended { .. }
            | EngineError::Answer(_) => false,
        },
    }
}

fn refused(error: &TwiceError) -> Stopped {
    let reason = match error {
        TwiceError::Differs(_) => Reason::RendersDifferently,
        TwiceError::Engine(_) => Reason::RenderFailed,
    };
    Stopped::new(reason, chain(error))
}
