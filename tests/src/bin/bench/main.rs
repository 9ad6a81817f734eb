//! `make bench`: what the release binaries cost and how fast they answer, each figure beside a goal or beside something bare that was
//! measured in the same run. A goal that is missed is printed as missed; only a measure that could not be taken is an error.

mod append;
mod approve;
mod commands;
mod fleet;
mod footprint;
mod helm;
mod idle;
mod lone;
mod operator;
mod peak;
mod percentile;
mod pull;
mod render;
mod table;
mod vendor;

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::table::Table;

/// Window of the idle measure, unless `IDLE_SECONDS` sets another.
const IDLE_SECONDS: u64 = 300;
/// Simulated executors at the manager, unless `EXECUTORS` sets another number.
const EXECUTORS: u64 = 1000;

/// Objects of the update beside helm, unless `OBJECTS` sets another number.
const OBJECTS: u64 = 100;

/// Components of the operator, unless `COMPONENTS` sets another number.
const COMPONENTS: u64 = 1000;

/// What `ONLY` may name.
const PARTS: [&str; 7] = ["idle", "commands", "render", "pull", "approve", "fleet", "operator"];

#[tokio::main]
#[expect(clippy::print_stdout, clippy::print_stderr, reason = "the table is data, the rest is talk")]
async fn main() -> ExitCode {
    let mut table = Table::default();
    let measured = measure(&mut table).await;
    println!("{table}");
    match measured {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("a measure could not be taken: {error:#}");
            ExitCode::FAILURE
        }
    }
}

#[expect(clippy::print_stderr, reason = "talk")]
async fn measure(table: &mut Table) -> Result<()> {
    let window = Duration::from_secs(number("IDLE_SECONDS", IDLE_SECONDS)?);
    let executors = usize::try_from(number("EXECUTORS", EXECUTORS)?)?;
    let objects = u32::try_from(number("OBJECTS", OBJECTS)?)?;
    let components = usize::try_from(number("COMPONENTS", COMPONENTS)?)?;
    let only = std::env::var("ONLY").unwrap_or_default();
    let wanted = |name: &str| only.is_empty() || only == name;
    ensure!(only.is_empty() || PARTS.contains(&only.as_str()), "ONLY={only}: it is one of {}", PARTS.join(", "));
    allow_many_files()?;
    if wanted("idle") {
        eprintln!("an executor on a real control plane, idle for {window:?} …");
        idle::measure(table, window).await?;
    }
    if wanted("commands") {
        eprintln!("commands through its journal …");
        commands::measure(table).await?;
    }
    if wanted("render") {
        eprintln!("the corpus' charts, and helm template beside them …");
        render::measure(table).await?;
    }
    if wanted("pull") {
        eprintln!("a large chart from a registry, and helm pull beside it …");
        pull::measure(table).await?;
    }
    if wanted("approve") {
        eprintln!("an update of {objects} objects, and helm beside it …");
        approve::measure(table, objects).await?;
    }
    if wanted("fleet") {
        eprintln!("{executors} simulated executors at a manager …");
        fleet::measure(table, executors).await?;
    }
    if wanted("operator") {
        eprintln!("{components} components at an operator, and helm's loop beside it …");
        operator::measure(table, components, window / 5).await?;
    }
    Ok(())
}

fn number(name: &str, default: u64) -> Result<u64> {
    match std::env::var(name) {
        Ok(text) if !text.is_empty() => text.parse().with_context(|| format!("{name}={text}")),
        Ok(_) | Err(_) => Ok(default),
    }
}

/// A connection is a file, here and in the manager, which inherits the limit.
fn allow_many_files() -> Result<()> {
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum }).context("raising the limit of open files")
}
