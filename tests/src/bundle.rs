//! The platform bundle of the tests: three charts of our own in two editions, their images, and a StorageClass.
//!
//! [`push`] puts an edition into a registry; the [`Release`] it gives is data that a test may change before it makes a
//! manifest of it or proposes it to the manager.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::{Value, json};

use crate::folder::TempFolder;
use crate::registry::{PushedChart, Registry};

/// The one platform namespace.
pub const NAMESPACE: &str = "clickhouse-platform";

/// Which of the two: an update goes from the first to the second.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Edition {
    /// snapshot-controller 4.1.0, clickhouse-operator 0.2.0, monitoring-collectors 1.8.0.
    First,
    /// 4.2.0, 0.3.0, 1.9.0: changed in both halves of each, with images of their own.
    Second,
}

/// What a vendor releases: components in the order in which they are applied, and objects beside them.
#[derive(Debug, Clone)]
pub struct Release {
    /// `basic` or `anonymous`, with `chartBase`, as the manifest has it.
    pub registry: Value,
    /// The platform namespaces.
    pub namespaces: Vec<String>,
    /// snapshot-controller, clickhouse-operator, monitoring-collectors.
    pub components: Vec<Component>,
    /// Objects of permission kinds that no chart has: the StorageClass `gp3-encrypted`.
    pub objects: Vec<Value>,
}

/// One component of a release.
#[derive(Debug, Clone)]
pub struct Component {
    /// Its name, which is also the release name that its chart is rendered with.
    pub name: String,
    /// The namespace of its objects.
    pub namespace: String,
    /// The chart in the registry.
    pub chart: PushedChart,
    /// All images that it names, `host/repository@sha256:…`.
    pub images: Vec<String>,
    /// The chart's values.
    pub values: Value,
}

impl Release {
    /// The manifest of a bundle for an environment, made at `created_at` (RFC 3339, seconds, `Z`).
    #[must_use]
    pub fn manifest(&self, environment: &str, created_at: &str) -> Value {
        json!({
            "apiVersion": "clicklink.io/v1",
            "kind": "PlatformBundle",
            "environment": environment,
            "createdAt": created_at,
            "registry": self.registry,
            "namespaces": self.namespaces,
            "components": self.components.iter().map(Component::to_json).collect::<Vec<_>>(),
            "objects": self.objects,
        })
    }

    /// One of its components, to look at or to change.
    ///
    /// # Panics
    /// There is none of this name.
    pub fn component(&mut self, name: &str) -> &mut Component {
        let found = self.components.iter_mut().find(|component| component.name == name);
        found.unwrap_or_else(|| panic!("the release has no component {name}"))
    }
}

impl Component {
    /// As the manifest has it.
    #[must_use]
    pub fn to_json(&self) -> Value {
        json!({
            "name": self.name,
            "namespace": self.namespace,
            "release": self.name,
            "chart": { "name": self.chart.name, "version": self.chart.version, "digest": self.chart.digest },
            "images": self.images,
            "values": self.values,
        })
    }
}

/// A chart of the testbed and where in its values the images go.
struct Model {
    name: &'static str,
    versions: [&'static str; 2],
    /// Image name, and the path of the value `{registry, repository, digest}`.
    images: &'static [(&'static str, &'static [&'static str])],
}

const MODELS: [Model; 3] = [
    Model { name: "snapshot-controller", versions: ["4.1.0", "4.2.0"], images: &[("snapshot-controller", &["image"])] },
    Model { name: "clickhouse-operator", versions: ["0.2.0", "0.3.0"], images: &[("clickhouse-operator", &["image"])] },
    Model {
        name: "monitoring-collectors",
        versions: ["1.8.0", "1.9.0"],
        images: &[
            ("monitoring-collector", &["image"]),
            ("monitoring-migration", &["migration", "image"]),
            ("monitoring-gateway", &["gateway", "image"]),
        ],
    },
];

/// Pushes an edition's charts and images.
///
/// # Errors
/// Helm or the registry refuses.
pub async fn push(registry: &Registry, edition: Edition) -> Result<Release> {
    let mut components = Vec::new();
    for model in &MODELS {
        components.push(push_component(registry, model, edition).await?);
    }
    let mode = if registry.authenticated() { "basic" } else { "anonymous" };
    Ok(Release {
        registry: json!({ "mode": mode, "chartBase": registry.chart_base() }),
        namespaces: vec![NAMESPACE.to_owned()],
        components,
        objects: vec![storage_class()],
    })
}

async fn push_component(registry: &Registry, model: &Model, edition: Edition) -> Result<Component> {
    let version = match edition {
        Edition::First => model.versions[0],
        Edition::Second => model.versions[1],
    };
    let mut values = json!({});
    let mut images = Vec::new();
    for (image, path) in model.images {
        let reference = registry.push_image(image, version).await?;
        set(&mut values, path, image_value(&reference)?);
        images.push(reference);
    }
    Ok(Component {
        name: model.name.to_owned(),
        namespace: NAMESPACE.to_owned(),
        chart: registry.push_chart(&chart(model.name, version), None).await?,
        images,
        values,
    })
}

/// The folder of a chart of the testbed.
#[must_use]
pub fn chart(name: &str, version: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("charts").join(name).join(version)
}

/// A copy of a chart that a test may change before it pushes it.
///
/// # Errors
/// It cannot be copied.
pub fn copy_chart(name: &str, version: &str, home: &TempFolder) -> Result<PathBuf> {
    let copy = home.join(format!("charts/{}/{name}", uuid::Uuid::new_v4()));
    copy_folder(&chart(name, version), &copy)?;
    Ok(copy)
}

/// The StorageClass that comes with the platform.
#[must_use]
pub fn storage_class() -> Value {
    json!({
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": { "name": "gp3-encrypted" },
        "provisioner": "ebs.csi.aws.com",
        "parameters": { "type": "gp3", "encrypted": "true" },
        "reclaimPolicy": "Delete",
        "volumeBindingMode": "WaitForFirstConsumer",
        "allowVolumeExpansion": true,
    })
}

/// `host/repository@digest` as the charts' values have it.
fn image_value(reference: &str) -> Result<Value> {
    let (name, digest) = reference.split_once('@').context("an image reference with a digest")?;
    let (host, repository) = name.split_once('/').context("an image reference with a host")?;
    Ok(json!({ "registry": host, "repository": repository, "digest": digest }))
}

fn set(values: &mut Value, path: &[&str], value: Value) {
    let place = path.iter().fold(values, |inner, key| &mut inner[*key]);
    *place = value;
}

fn copy_folder(from: &Path, to: &Path) -> Result<()> {
    std::fs::create_dir_all(to).with_context(|| format!("making {}", to.display()))?;
    for entry in std::fs::read_dir(from).with_context(|| format!("listing {}", from.display()))? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_folder(&entry.path(), &target)?;
        } else {
            std::fs::copy(entry.path(), &target).with_context(|| format!("copying {}", entry.path().display()))?;
        }
    }
    Ok(())
}
