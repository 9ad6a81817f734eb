//! The platform bundle: one JSON document whose identity is the sha256 of its exact bytes.
//!
//! Nobody re-serialises a manifest: [`Bundle`] keeps the text beside what was read from it. What a chart renders is judged
//! elsewhere; here is what the document alone can break.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::digest::{OciDigest, Sha256};
use crate::kind::Half;
use crate::name::DnsLabel;
use crate::object::ObjectKey;
use crate::strict_json::{self, StrictJsonError};

/// `apiVersion` of a bundle.
pub const API_VERSION: &str = "clicklink.io/v1";
/// `kind` of a bundle.
pub const KIND: &str = "PlatformBundle";
/// Largest manifest: 1 MiB.
pub const MAX_BYTES: usize = 1 << 20;

/// What a manifest says.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Manifest {
    /// [`API_VERSION`].
    pub api_version: String,
    /// [`KIND`].
    pub kind: String,
    /// The environment it was generated for.
    pub environment: DnsLabel,
    /// When, RFC 3339.
    pub created_at: jiff::Timestamp,
    /// Where the charts are pulled from.
    pub registry: Registry,
    /// The platform namespaces; the workload half may lie in these only.
    pub namespaces: Vec<DnsLabel>,
    /// Components in the order in which they are applied.
    pub components: Vec<Component>,
    /// Further objects, permission kinds only.
    #[serde(default)]
    pub objects: Vec<Value>,
}

/// Where charts come from, and with whose credentials.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Registry {
    /// How one logs in.
    pub mode: RegistryMode,
    /// `oci://host[:port]/path`, to which a chart's name is added.
    pub chart_base: String,
    /// AWS region of an ECR registry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub region: Option<String>,
    /// Role to assume in mode `direct`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pull_role_arn: Option<String>,
}

/// How one logs in at the registry.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RegistryMode {
    /// ECR, by the pull role, assumed from the EC2 instance profile.
    Direct,
    /// ECR, by the ambient AWS credentials of the process.
    Mirror,
    /// User and password.
    Basic,
    /// No login.
    Anonymous,
}

/// One component: a chart at one digest, its values, and the images it may run.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Component {
    /// Name, unique in the bundle.
    pub name: DnsLabel,
    /// Namespace of the release; one of the bundle's.
    pub namespace: DnsLabel,
    /// Helm release name.
    pub release: DnsLabel,
    /// The chart.
    pub chart: Chart,
    /// `registry/repository@sha256:…`, all that its pods may run.
    #[serde(default)]
    pub images: Vec<String>,
    /// Chart values; no secrets (see [`crate::values`]).
    #[serde(default)]
    pub values: Map<String, Value>,
}

/// A chart, pinned by digest.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Chart {
    /// Name: the last part of its repository.
    pub name: String,
    /// Version, for people; the digest decides.
    pub version: String,
    /// Digest of its OCI manifest.
    pub digest: OciDigest,
}

/// A manifest with its exact text; there is no other way to make one than [`Bundle::parse`].
#[derive(Clone, PartialEq, Debug)]
pub struct Bundle {
    text: String,
    sha256: Sha256,
    manifest: Manifest,
}

/// Why a bundle is refused whole.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum ManifestError {
    /// Over [`MAX_BYTES`].
    #[error("the manifest has {0} bytes; at most {MAX_BYTES} (1 MiB) are allowed")]
    TooLarge(usize),
    /// Not JSON, a duplicate key, a field missing or of a wrong type.
    #[error("the manifest is not readable: {0}")]
    Json(#[from] StrictJsonError),
    /// A rule of the format.
    #[error("the manifest is refused: {path}: {problem}")]
    Rule {
        /// Where, e.g. `components[1].namespace`.
        path: String,
        /// What is wrong and what would be right.
        problem: String,
    },
}

impl Bundle {
    /// Reads a manifest and checks every rule that the document alone can break.
    ///
    /// # Errors
    /// One error, naming the place; nothing of a refused manifest is kept.
    pub fn parse(text: String) -> Result<Self, ManifestError> {
        if text.len() > MAX_BYTES {
            return Err(ManifestError::TooLarge(text.len()));
        }
        let manifest: Manifest = strict_json::from_str(&text)?;
        check(&manifest)?;
        Ok(Self { sha256: Sha256::of(text.as_bytes()), text, manifest })
    }

    /// The exact text.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The identity of the bundle.
    #[must_use]
    pub fn sha256(&self) -> &Sha256 {
        &self.sha256
    }

    /// What it says.
    #[must_use]
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }
}

fn refuse(path: impl Into<String>, problem: impl Into<String>) -> ManifestError {
    ManifestError::Rule { path: path.into(), problem: problem.into() }
}

fn check(manifest: &Manifest) -> Result<(), ManifestError> {
    if manifest.api_version != API_VERSION {
        return Err(refuse("apiVersion", format!("`{}` is unknown; this version reads `{API_VERSION}`", manifest.api_version)));
    }
    if manifest.kind != KIND {
        return Err(refuse("kind", format!("`{}` is unknown; `{KIND}` is expected", manifest.kind)));
    }
    check_registry(&manifest.registry)?;
    if manifest.namespaces.is_empty() {
        return Err(refuse("namespaces", "at least one platform namespace is needed"));
    }
    unique(manifest.namespaces.iter().map(DnsLabel::as_str), |i| format!("namespaces[{i}]"))?;
    for (i, namespace) in manifest.namespaces.iter().enumerate() {
        if namespace.as_str() == "default" || namespace.as_str().starts_with("kube-") {
            return Err(refuse(format!("namespaces[{i}]"), format!("`{namespace}` may not be a platform namespace")));
        }
    }
    if manifest.components.is_empty() {
        return Err(refuse("components", "at least one component is needed"));
    }
    unique(manifest.components.iter().map(|c| c.name.as_str()), |i| format!("components[{i}].name"))?;
    for (i, component) in manifest.components.iter().enumerate() {
        check_component(manifest, component, &format!("components[{i}]"))?;
    }
    check_objects(&manifest.objects)
}

fn check_registry(registry: &Registry) -> Result<(), ManifestError> {
    let base = &registry.chart_base;
    let rest = base.strip_prefix("oci://").unwrap_or_default();
    let host = rest.split('/').next().unwrap_or_default();
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"._-/:[]".contains(&b);
    if host.is_empty() || base.ends_with('/') || !rest.bytes().all(plain) {
        return Err(refuse("registry.chartBase", format!("`{base}` is not of the form oci://host[:port]/path without a trailing slash")));
    }
    match registry.mode {
        RegistryMode::Direct if registry.pull_role_arn.is_none() => {
            Err(refuse("registry.pullRoleArn", "mode `direct` needs the role to assume"))
        }
        RegistryMode::Direct | RegistryMode::Mirror | RegistryMode::Basic | RegistryMode::Anonymous => Ok(()),
    }
}

fn check_component(manifest: &Manifest, component: &Component, path: &str) -> Result<(), ManifestError> {
    if !manifest.namespaces.contains(&component.namespace) {
        return Err(refuse(format!("{path}.namespace"), format!("`{}` is not one of the bundle's `namespaces`", component.namespace)));
    }
    if component.release.as_str().len() > 53 {
        return Err(refuse(format!("{path}.release"), "a Helm release name has at most 53 characters"));
    }
    let name_byte = |b: u8| b.is_ascii_alphanumeric() || b"._-".contains(&b);
    if component.chart.name.is_empty() || !component.chart.name.bytes().all(name_byte) || component.chart.name.starts_with('.') {
        return Err(refuse(format!("{path}.chart.name"), format!("`{}` is not a chart name", component.chart.name)));
    }
    for (i, image) in component.images.iter().enumerate() {
        let digest = image.split_once('@').map(|(_, digest)| digest.parse::<OciDigest>());
        if !matches!(digest, Some(Ok(_))) {
            return Err(refuse(
                format!("{path}.images[{i}]"),
                format!("`{image}` is not pinned: registry/repository@sha256:… is expected"),
            ));
        }
    }
    Ok(())
}

fn check_objects(objects: &[Value]) -> Result<(), ManifestError> {
    let mut seen = BTreeSet::new();
    for (i, object) in objects.iter().enumerate() {
        let path = format!("objects[{i}]");
        let key = ObjectKey::of(object);
        if key.kind.is_empty() || key.name.is_empty() || object.get("apiVersion").is_none() {
            return Err(refuse(path, "apiVersion, kind and metadata.name are needed"));
        }
        if !is_path_segment(&key.name) || !(key.namespace.is_empty() || is_path_segment(&key.namespace)) {
            return Err(refuse(path, format!("{key} has a name or namespace that Kubernetes takes for no object")));
        }
        if key.row().map(|row| row.half) != Some(Half::Permissions) {
            return Err(refuse(path, format!("{key} is not of a permission kind; `objects` holds those only")));
        }
        if !seen.insert(key.clone()) {
            return Err(refuse(path, format!("{key} is there twice")));
        }
    }
    Ok(())
}

/// What can stand in a URL's path as one segment: how Kubernetes checks the names of all kinds at least.
fn is_path_segment(name: &str) -> bool {
    !matches!(name, "" | "." | "..") && name.chars().all(|c| !c.is_control() && !c.is_whitespace() && !matches!(c, '/' | '%' | '?' | '#'))
}

fn unique<'a>(names: impl Iterator<Item = &'a str>, path: impl Fn(usize) -> String) -> Result<(), ManifestError> {
    let mut seen = BTreeSet::new();
    for (i, name) in names.enumerate() {
        if !seen.insert(name) {
            return Err(refuse(path(i), format!("`{name}` is there twice")));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
