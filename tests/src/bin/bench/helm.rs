//! The `helm` command as a person runs it, with nothing around it that would count against it.

use std::ffi::OsStr;
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use system_tests::{TempFolder, Tools};
use tokio::process::Command;

/// Runs it, with a home of its own in the folder; what it prints goes nowhere. How long it took.
pub(crate) async fn timed<A: AsRef<OsStr>>(home: &TempFolder, args: impl IntoIterator<Item = A>) -> Result<Duration> {
    let mut command = Command::new(Tools::registry().await?.path("helm"));
    command.args(args).env_clear().env("HOME", home.path());
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let began = Instant::now();
    let status = command.status().await.context("starting helm")?;
    let took = began.elapsed();
    ensure!(status.success(), "{:?} ended with {status}", command.as_std());
    Ok(took)
}
