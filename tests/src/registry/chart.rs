//! Charts in the registry, put there by the real `helm`.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::{PATIENCE, Registry};
use crate::process::{Finished, Program};

/// A chart that was pushed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PushedChart {
    /// Its name.
    pub name: String,
    /// Its version, which is also its tag.
    pub version: String,
    /// The digest of its manifest, `sha256:<64 hex>`, as helm said it.
    pub digest: String,
    /// `oci://127.0.0.1:<port>/platform/<name>`, without tag or digest.
    pub reference: String,
}

impl PushedChart {
    /// `oci://…/<name>@sha256:…`.
    #[must_use]
    pub fn pinned(&self) -> String {
        format!("{}@{}", self.reference, self.digest)
    }
}

impl Registry {
    /// Packages a chart's folder and pushes it; a tag that is there already moves to it.
    ///
    /// # Errors
    /// Helm refuses the chart or cannot push it.
    pub async fn push_chart(&self, chart: &Path, version: Option<&str>) -> Result<PushedChart> {
        let packages = self.folder.folder(format!("packages/{}", uuid::Uuid::new_v4()))?;
        let mut package = self.helm().arg("package").arg(chart).arg("--destination").arg(&packages);
        if let Some(version) = version {
            package = package.args(["--version", version]);
        }
        package.run(&self.folder, PATIENCE).await?.ok()?;
        let archive = only_file(&packages)?;
        let base = self.chart_base();
        let push = self.helm_on_registry(["push".as_ref(), archive.as_os_str(), base.as_ref()]).await?.ok()?;
        let said = format!("{}{}", push.stdout, push.stderr);
        let field = |name| {
            let line = said.lines().find_map(|line| line.trim().strip_prefix(name));
            line.map(str::trim).with_context(|| format!("`{name}` is not in what helm push says:\n{said}"))
        };
        let pushed = field("Pushed:")?;
        let (reference, version) = pushed.rsplit_once(':').context("helm push names no tag")?;
        let (_, name) = reference.rsplit_once('/').context("helm push names no repository")?;
        Ok(PushedChart {
            name: name.to_owned(),
            version: version.to_owned(),
            digest: field("Digest:")?.to_owned(),
            reference: format!("oci://{reference}"),
        })
    }

    /// The digest of a chart's archive, which its manifest names as its only layer.
    ///
    /// # Errors
    /// The registry does not have the chart any more.
    pub fn archive_digest(&self, chart: &PushedChart) -> Result<String> {
        let manifest: serde_json::Value = serde_json::from_slice(&self.read(&chart.digest)?).context("the chart's manifest")?;
        let digest = manifest["layers"][0]["digest"].as_str().context("the chart's manifest has no layer")?;
        Ok(digest.to_owned())
    }

    /// Runs the real `helm` with homes of its own and, in them, this registry's credentials and authority.
    ///
    /// # Errors
    /// It cannot be started or hangs. Its own failure is in [`Finished`].
    pub async fn helm_on_registry<A: AsRef<std::ffi::OsStr>>(&self, args: impl IntoIterator<Item = A>) -> Result<Finished> {
        let program = self.helm().args(args).arg("--ca-file").arg(&self.ca_file);
        program.run(&self.folder, PATIENCE).await
    }

    fn helm(&self) -> Program {
        let home = self.folder.join("helm");
        Program::new("helm", &self.helm)
            .only_given_env()
            .env("HOME", &home)
            .env("HELM_CACHE_HOME", home.join("cache"))
            .env("HELM_CONFIG_HOME", home.join("config"))
            .env("HELM_DATA_HOME", home.join("data"))
            .env("HELM_REGISTRY_CONFIG", &self.docker_config)
            .env("DOCKER_CONFIG", self.folder.path())
    }
}

fn only_file(folder: &Path) -> Result<PathBuf> {
    let mut entries = std::fs::read_dir(folder).with_context(|| format!("listing {}", folder.display()))?;
    let entry = entries.next().context("helm package wrote nothing")??;
    Ok(entry.path())
}
