//! Where the product's binaries and the testbed's own are: beside the test executable, `target/<profile>/`.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::process::Program;

/// The product's binaries as cargo built them.
#[derive(Debug, Clone)]
pub struct Binaries {
    /// The executor and `clctl`.
    pub clicklink: PathBuf,
    /// The manager and its client.
    pub navin_manager: PathBuf,
    /// The operator.
    pub navin_operator: PathBuf,
}

impl Binaries {
    /// `clicklink` as a program to be run; `name` names its log.
    #[must_use]
    pub fn clicklink(&self, name: &str) -> Program {
        Program::new(name, &self.clicklink)
    }

    /// `navin-manager` as a program to be run; `name` names its log.
    #[must_use]
    pub fn navin_manager(&self, name: &str) -> Program {
        Program::new(name, &self.navin_manager)
    }
}

/// Finds the product's binaries.
///
/// # Panics
/// One is missing; the message says what to run.
#[must_use]
pub fn binaries() -> Binaries {
    let find = |name| beside_executable(name).unwrap_or_else(|error| panic!("{error:#}"));
    Binaries { clicklink: find("clicklink"), navin_manager: find("navin-manager"), navin_operator: find("navin-operator") }
}

/// The chart engine, as it lies beside the product's binaries.
///
/// # Panics
/// It is missing; the message says what to run.
#[must_use]
pub fn chart_engine() -> PathBuf {
    beside_executable("clicklink-render").unwrap_or_else(|error| panic!("{error:#}"))
}

/// The program that confines itself and becomes the chart engine.
///
/// # Panics
/// It is missing; the message says what to run.
#[must_use]
pub fn engine_sandbox() -> PathBuf {
    beside_executable("engine-sandbox").unwrap_or_else(|error| panic!("{error:#}"))
}

/// The supervisor that is built with this crate.
pub(crate) fn supervisor() -> Result<PathBuf> {
    beside_executable("testbed-supervisor")
}

fn beside_executable(name: &str) -> Result<PathBuf> {
    let executable = std::env::current_exe().context("asking for the own executable")?;
    let mut folder = executable.parent().unwrap_or(Path::new("."));
    if folder.ends_with("deps") || folder.ends_with("examples") {
        folder = folder.parent().unwrap_or(folder);
    }
    let path = folder.join(name);
    if !path.is_file() {
        bail!("{} is not built; run `make build`", path.display());
    }
    Ok(path)
}
