//! What is counted: reconciles, durations by step, the queue, convergence lag.

use std::time::{Duration, Instant};

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};

type Labels = [(&'static str, &'static str); 1];

/// The steps of a pass that take time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// The chart's archive.
    Fetch,
    /// The chart engine.
    Render,
    /// Validation, guard, transformation, differences: all that is pure.
    Plan,
    /// Dry runs.
    DryRun,
    /// Writes.
    Apply,
    /// The status.
    Status,
}

impl Step {
    fn as_str(self) -> &'static str {
        match self {
            Self::Fetch => "fetch",
            Self::Render => "render",
            Self::Plan => "plan",
            Self::DryRun => "dry_run",
            Self::Apply => "apply",
            Self::Status => "status",
        }
    }
}

/// How a pass ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ended {
    /// What was found was told.
    Told,
    /// It begins again: something changed meanwhile.
    Again,
    /// The API server did not answer.
    Failed,
}

impl Ended {
    fn as_str(self) -> &'static str {
        match self {
            Self::Told => "told",
            Self::Again => "again",
            Self::Failed => "failed",
        }
    }
}

/// Everything that is counted.
#[derive(Clone)]
pub struct Figures {
    reconciles: Family<Labels, Counter>,
    steps: Family<Labels, Histogram>,
    convergence: Histogram,
    reaction: Histogram,
    /// How many components stand in line.
    pub queue: Gauge,
    /// How many components there are.
    pub components: Gauge,
    /// Whether this operator leads.
    pub leader: Gauge,
}

fn seconds() -> Histogram {
    Histogram::new([0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0])
}

fn lag() -> Histogram {
    Histogram::new([0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1_000.0])
}

impl Default for Figures {
    fn default() -> Self {
        Self {
            reconciles: Family::default(),
            steps: Family::new_with_constructor(seconds),
            convergence: lag(),
            reaction: lag(),
            queue: Gauge::default(),
            components: Gauge::default(),
            leader: Gauge::default(),
        }
    }
}

impl Figures {
    /// A pass has ended.
    pub fn ended(&self, how: Ended) {
        self.reconciles.get_or_create(&[("result", how.as_str())]).inc();
    }

    /// A step took since then.
    pub fn took(&self, step: Step, since: Instant) {
        self.steps.get_or_create(&[("step", step.as_str())]).observe(since.elapsed().as_secs_f64());
    }

    /// A generation was seen to converge so long after it was first seen.
    pub fn converged(&self, after: Duration) {
        self.convergence.observe(after.as_secs_f64());
    }

    /// The first write for a generation came so long after it was first seen.
    pub fn reacted(&self, after: Duration) {
        self.reaction.observe(after.as_secs_f64());
    }

    /// All of it under its published names.
    #[must_use]
    pub fn registry(&self) -> Registry {
        let mut registry = Registry::with_prefix("navin_operator");
        registry.register("reconciles", "Passes over components, by how they ended", self.reconciles.clone());
        registry.register_with_unit("step_duration", "Durations of the steps of a pass", Unit::Seconds, self.steps.clone());
        registry.register("queue_length", "Components that wait for a pass", self.queue.clone());
        registry.register("components", "Components in the managed namespaces; 0 where another operator leads", self.components.clone());
        registry.register("leader", "Whether this operator leads", self.leader.clone());
        let help = "From seeing a generation to seeing it converged";
        registry.register_with_unit("convergence_lag", help, Unit::Seconds, self.convergence.clone());
        let help = "From seeing a generation to the first write for it";
        registry.register_with_unit("reaction", help, Unit::Seconds, self.reaction.clone());
        registry
    }
}
