//! The real programs of the testbed, built once by `tests/tools/build`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use tokio::sync::OnceCell;

const CONTROL_PLANE: &[&str] = &["etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl", "kwok"];
const REGISTRY: &[&str] = &["registry", "helm"];

/// Where the built programs are.
#[derive(Debug, Clone)]
pub struct Tools {
    paths: Arc<BTreeMap<String, PathBuf>>,
}

impl Tools {
    /// etcd, the control plane's programs, kwok and kubectl; builds those that are missing, with progress on stderr, the first
    /// time this process asks.
    ///
    /// # Errors
    /// One cannot be built; the compiler's words are on stderr.
    pub async fn control_plane() -> Result<Self> {
        static TOOLS: OnceCell<Tools> = OnceCell::const_new();
        TOOLS.get_or_try_init(|| built(CONTROL_PLANE)).await.cloned()
    }

    /// The registry and helm, as [`Tools::control_plane`] does it.
    ///
    /// # Errors
    /// One cannot be built; the compiler's words are on stderr.
    pub async fn registry() -> Result<Self> {
        static TOOLS: OnceCell<Tools> = OnceCell::const_new();
        TOOLS.get_or_try_init(|| built(REGISTRY)).await.cloned()
    }

    /// moto, as [`Tools::control_plane`] does it; its path leads nowhere on a machine without Python, and stderr says so.
    ///
    /// # Errors
    /// It cannot be built; pip's words are on stderr.
    pub async fn moto() -> Result<Self> {
        static TOOLS: OnceCell<Tools> = OnceCell::const_new();
        TOOLS.get_or_try_init(|| built(&["moto"])).await.cloned()
    }

    /// The path of one of them.
    ///
    /// # Panics
    /// There is no tool of this name.
    #[must_use]
    pub fn path(&self, name: &str) -> &Path {
        self.paths.get(name).unwrap_or_else(|| panic!("no tool is called {name}"))
    }
}

async fn built(names: &'static [&'static str]) -> Result<Tools> {
    tokio::task::spawn_blocking(|| build(names)).await.context("building the tools")?
}

fn build(names: &[&str]) -> Result<Tools> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tools/build");
    let status =
        Command::new(&script).args(names).stdin(Stdio::null()).status().with_context(|| format!("starting {}", script.display()))?;
    ensure!(status.success(), "{} ended with {status}", script.display());
    let listed = Command::new(&script)
        .arg("--where")
        .args(names)
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("asking {} where the tools are", script.display()))?;
    ensure!(listed.status.success(), "{} --where ended with {}", script.display(), listed.status);
    let listed = String::from_utf8(listed.stdout).context("the tools' paths")?;
    let paths = listed.lines().filter_map(|line| line.split_once('=')).map(|(name, path)| (name.to_owned(), PathBuf::from(path))).collect();
    Ok(Tools { paths: Arc::new(paths) })
}
