//! What is wrong with a bundle: all of it, in one message.

use std::fmt;

use agent_api::manifest::Manifest;
use agent_api::object::RenderedObject;

/// One reason to refuse a bundle, with the place it was found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Refusal {
    /// Component and chart; `None` for the bundle's own `objects` and namespaces.
    pub component: Option<String>,
    /// Chart of the component, as `name version`.
    pub chart: Option<String>,
    /// Template (`operator/templates/deployment.yaml`), or the place in the manifest.
    pub template: String,
    /// The object, as `Kind.group namespace/name`; empty where no object is meant.
    pub object: String,
    /// What is wrong.
    pub problem: String,
    /// What would avoid it, where that is known.
    pub hint: Option<String>,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(component) = &self.component {
            write!(f, "component {component}")?;
            if let Some(chart) = &self.chart {
                write!(f, " (chart {chart})")?;
            }
            f.write_str(", ")?;
        }
        f.write_str(&self.template)?;
        if !self.object.is_empty() {
            write!(f, ", {}", self.object)?;
        }
        write!(f, ": {}", self.problem)?;
        match &self.hint {
            Some(hint) => write!(f, "; {hint}"),
            None => Ok(()),
        }
    }
}

/// Every refusal of a bundle; never empty.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Refusals(Vec<Refusal>);

impl Refusals {
    /// With further ones behind them, which were found elsewhere.
    #[must_use]
    pub fn and(mut self, more: impl IntoIterator<Item = Refusal>) -> Self {
        self.0.extend(more);
        self
    }

    /// The refusals in the order in which they were found: bundle, components in order, then what concerns several objects.
    #[must_use]
    pub fn iter(&self) -> &[Refusal] {
        &self.0
    }
}

impl fmt::Display for Refusals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.0.len();
        write!(f, "the bundle is refused for {count} {}:", if count == 1 { "reason" } else { "reasons" })?;
        self.0.iter().try_for_each(|refusal| write!(f, "\n  - {refusal}"))
    }
}

impl std::error::Error for Refusals {}

/// Collects refusals while a bundle is judged.
pub(super) struct Findings<'a> {
    manifest: &'a Manifest,
    found: Vec<Refusal>,
}

impl<'a> Findings<'a> {
    pub(super) fn new(manifest: &'a Manifest) -> Self {
        Self { manifest, found: Vec::new() }
    }

    /// Something about an object.
    pub(super) fn object(&mut self, object: &RenderedObject, problem: impl Into<String>, hint: Option<&str>) {
        let chart = object.component.as_ref().and_then(|name| {
            let component = self.manifest.components.iter().find(|component| component.name.as_str() == name)?;
            Some(format!("{} {}", component.chart.name, component.chart.version))
        });
        self.found.push(Refusal {
            component: object.component.clone(),
            chart,
            template: object.template.clone(),
            object: object.key().to_string().trim().to_owned(),
            problem: problem.into(),
            hint: hint.map(str::to_owned),
        });
    }

    /// Something about a place in the manifest.
    pub(super) fn place(&mut self, path: impl Into<String>, problem: impl Into<String>) {
        self.found.push(Refusal {
            component: None,
            chart: None,
            template: path.into(),
            object: String::new(),
            problem: problem.into(),
            hint: None,
        });
    }

    pub(super) fn into_result(self) -> Result<(), Refusals> {
        if self.found.is_empty() { Ok(()) } else { Err(Refusals(self.found)) }
    }
}
