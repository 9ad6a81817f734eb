//! A release, and the manifest that it becomes for one environment.

use std::fmt;
use std::str::FromStr;

use agent_api::manifest::{self, Bundle, Chart, Component, Manifest, ManifestError, Registry, RegistryMode};
use agent_api::name::DnsLabel;
use agent_api::values;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A release's name: letters a–z, digits, `.` and `-`, so that it may hold a version.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ReleaseName(String);

/// A text that names no release.
#[derive(Debug, thiserror::Error)]
#[error("`{0}` is not a release name: 1–63 of a–z, 0–9, `.` and `-`, beginning and ending with a letter or digit")]
pub struct NotAName(String);

impl ReleaseName {
    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for ReleaseName {
    type Error = NotAName;

    fn try_from(text: String) -> Result<Self, NotAName> {
        let labels = text.len() <= 63 && text.split('.').all(|part| part.parse::<DnsLabel>().is_ok());
        if labels { Ok(Self(text)) } else { Err(NotAName(text)) }
    }
}

impl FromStr for ReleaseName {
    type Err = NotAName;

    fn from_str(text: &str) -> Result<Self, NotAName> {
        Self::try_from(text.to_owned())
    }
}

impl From<ReleaseName> for String {
    fn from(name: ReleaseName) -> Self {
        name.0
    }
}

impl fmt::Display for ReleaseName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What a person writes into `release.yaml`. It is the same for all environments and never changes.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Release {
    /// Its name.
    pub name: ReleaseName,
    /// The platform namespaces.
    pub namespaces: Vec<DnsLabel>,
    /// Components, in the order in which they are applied.
    pub components: Vec<ReleaseComponent>,
    /// Further objects, permission kinds only.
    #[serde(default)]
    pub objects: Vec<Value>,
}

/// One component of a release.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReleaseComponent {
    /// Its name.
    pub name: DnsLabel,
    /// Its namespace; may be left out while there is only one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<DnsLabel>,
    /// Helm release name; its name if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub release: Option<DnsLabel>,
    /// Its chart.
    pub chart: Chart,
    /// The images it may run, pinned by digest.
    #[serde(default)]
    pub images: Vec<String>,
    /// Chart values, without secrets.
    #[serde(default)]
    pub values: Map<String, Value>,
}

/// Why a release becomes no manifest.
#[derive(Debug, thiserror::Error)]
pub enum ReleaseError {
    /// No namespace given, and several to choose from.
    #[error("components[{0}].namespace: is needed, since the release has not exactly one namespace")]
    Namespace(usize),
    /// A rule of the format.
    #[error(transparent)]
    Manifest(#[from] ManifestError),
    /// Values that look like secrets, by path.
    #[error("values may not hold secrets: {}", .0.join(", "))]
    Secrets(Vec<String>),
    /// It cannot be written as JSON.
    #[error("the manifest could not be written")]
    Json(#[from] serde_json::Error),
}

/// Generates the manifest of a release for an environment.
///
/// # Errors
/// One error that names the place, or all places of secrets.
pub fn generate(release: &Release, environment: &DnsLabel, registry: &Registry, now: Timestamp) -> Result<Bundle, ReleaseError> {
    let found = secrets(release);
    if !found.is_empty() {
        return Err(ReleaseError::Secrets(found));
    }
    let manifest = Manifest {
        api_version: manifest::API_VERSION.to_owned(),
        kind: manifest::KIND.to_owned(),
        environment: environment.clone(),
        created_at: Timestamp::from_millisecond(now.as_millisecond()).unwrap_or(now),
        registry: registry.clone(),
        namespaces: release.namespaces.clone(),
        components: release.components.iter().enumerate().map(|(i, part)| component(release, i, part)).collect::<Result<_, _>>()?,
        objects: release.objects.clone(),
    };
    // Parsed as the executor will: what it would refuse is not proposed.
    Ok(Bundle::parse(serde_json::to_string_pretty(&manifest)?)?)
}

/// Checks all that does not depend on the environment.
///
/// # Errors
/// As [`generate`].
pub fn check(release: &Release) -> Result<(), ReleaseError> {
    let registry =
        Registry { mode: RegistryMode::Anonymous, chart_base: "oci://registry.invalid/any".to_owned(), region: None, pull_role_arn: None };
    match "any".parse() {
        Ok(environment) => generate(release, &environment, &registry, Timestamp::UNIX_EPOCH).map(drop),
        Err(_) => Ok(()),
    }
}

fn component(release: &Release, index: usize, part: &ReleaseComponent) -> Result<Component, ReleaseError> {
    let namespace = match (&part.namespace, release.namespaces.as_slice()) {
        (Some(namespace), _) => namespace.clone(),
        (None, [only]) => only.clone(),
        (None, _) => return Err(ReleaseError::Namespace(index)),
    };
    Ok(Component {
        name: part.name.clone(),
        namespace,
        release: part.release.clone().unwrap_or_else(|| part.name.clone()),
        chart: part.chart.clone(),
        images: part.images.clone(),
        values: part.values.clone(),
    })
}

fn secrets(release: &Release) -> Vec<String> {
    let in_component = |(i, part): (usize, &ReleaseComponent)| {
        let found = values::secrets_in(&Value::Object(part.values.clone()));
        found.into_iter().map(move |path| format!("components[{i}].values.{path}"))
    };
    release.components.iter().enumerate().flat_map(in_component).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn release() -> Value {
        json!({"name": "platform-2026.11", "namespaces": ["clickhouse-platform"], "components": [
            {"name": "op", "chart": {"name": "op", "version": "1.0.0", "digest": format!("sha256:{}", "1".repeat(64))}, "values": {"replicas": 2}},
        ]})
    }

    fn generated(document: Value) -> Result<Bundle, ReleaseError> {
        let registry: Registry = serde_json::from_value(json!({"mode": "basic", "chartBase": "oci://r.example:5000/platform"})).unwrap();
        let release: Release = serde_json::from_value(document).unwrap();
        generate(&release, &"env-1".parse().unwrap(), &registry, Timestamp::from_second(1_796_000_000).unwrap())
    }

    #[test]
    fn what_is_left_out_is_filled_in() {
        let bundle = generated(release()).unwrap();
        let part = &bundle.manifest().components[0];
        assert_eq!((part.namespace.as_str(), part.release.as_str()), ("clickhouse-platform", "op"));
        assert_eq!(bundle.manifest().environment.as_str(), "env-1");
        assert_eq!(generated(release()).unwrap().sha256(), bundle.sha256());
    }

    #[test]
    fn refusals_name_the_place() {
        let check = |pointer: &str, value: Value, expected: &str| {
            let mut document = release();
            *document.pointer_mut(pointer).unwrap() = value;
            let error = generated(document).expect_err(expected).to_string();
            assert!(error.contains(expected), "{error}");
        };
        check("/namespaces", json!(["a", "b"]), "components[0].namespace");
        check("/namespaces", json!(["kube-system"]), "namespaces[0]");
        check(
            "/components/0/values",
            json!({"a": [{"password": "x"}], "token": "y"}),
            "components[0].values.a[0].password, components[0].values.token",
        );
    }

    #[test]
    fn a_misspelt_key_is_refused() {
        let mut document = release();
        document["components"][0]["imagez"] = json!([]);
        let error = serde_json::from_value::<Release>(document).unwrap_err().to_string();
        assert!(error.contains("unknown field `imagez`"), "{error}");
    }
}
