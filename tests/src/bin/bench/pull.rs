//! A chart of 5 MB from the testbed's registry, logged in and verified anew each time: our client in a process that runs already, and
//! `helm pull`, a process each, in turns.

use std::ffi::OsStr;
use std::sync::Arc;
use std::time::Instant;

use agent_api::approval::Capabilities;
use agent_api::digest::Sha256;
use agent_api::manifest::Bundle;
use anyhow::{Context as _, Result};
use render::engine::{Answering, ChartRenderer};
use render::{RegistryAccess, Renderer};
use serde_json::json;
use system_tests::Registry;
use system_tests::bundle::NAMESPACE;

use crate::helm;
use crate::percentile::Times;
use crate::table::{Table, figure};

const NAME: &str = "large";
const VERSION: &str = "1.0.0";
/// Files of one megabyte that does not compress.
const FILES: u32 = 5;
const MEGABYTE: usize = 1_000_000;
/// Of the time that helm takes.
const OF_HELM: f64 = 1.0;
/// How often.
const TURNS: usize = 10;

/// Measures.
pub(crate) async fn measure(table: &mut Table) -> Result<()> {
    let registry = Registry::start().await;
    let chart = registry.folder().folder(format!("charts/{NAME}/files"))?;
    let mut random = Random(1);
    for n in 0..FILES {
        let bytes: Vec<u8> = std::iter::from_fn(|| Some(random.next())).flat_map(u64::to_le_bytes).take(MEGABYTE).collect();
        std::fs::write(chart.join(format!("{n}.bin")), bytes)?;
    }
    let chart = chart.parent().context("a chart's folder")?.to_owned();
    std::fs::write(chart.join("Chart.yaml"), format!("apiVersion: v2\nname: {NAME}\nversion: {VERSION}\n"))?;
    let pushed = registry.push_chart(&chart, None).await?;
    let component = json!({"name": NAME, "namespace": NAMESPACE, "release": NAME,
        "chart": {"name": NAME, "version": VERSION, "digest": pushed.digest}});
    let manifest = json!({"apiVersion": "clicklink.io/v1", "kind": "PlatformBundle", "environment": "e", "createdAt": "2026-11-30T10:00:00Z",
        "registry": {"mode": "basic", "chartBase": registry.chart_base()}, "namespaces": [NAMESPACE], "components": [component]});
    let bundle = Bundle::parse(manifest.to_string())?;

    let (mut ours, mut theirs) = (Times::default(), Times::default());
    for turn in 0..TURNS {
        let began = Instant::now();
        let access = RegistryAccess::load(Some(registry.docker_config()), Some(registry.ca_file()))?;
        Renderer::over(Arc::new(Nothing), access).render(bundle.manifest(), &Capabilities::default()).await?;
        ours.push(began.elapsed());

        let to = registry.folder().folder(format!("pulled/{turn}"))?;
        let files = [("--destination", to.as_path()), ("--ca-file", registry.ca_file()), ("--registry-config", registry.docker_config())];
        let files = files.into_iter().flat_map(|(flag, file)| [OsStr::new(flag), file.as_os_str()]);
        let command = ["pull", &pushed.reference, "--version", VERSION].map(OsStr::new);
        theirs.push(helm::timed(registry.folder(), command.into_iter().chain(files)).await?);
    }
    let (ours, helm) = (ours.percentile(50), theirs.percentile(50));
    let beside = format!("p50 {} ms, helm pull {} ms", figure(ours), figure(helm));
    table.at_most("a chart of 5 MB pulled and checked: of helm's time", ours / helm, OF_HELM, "times", &beside);
    Ok(())
}

/// Renders every chart to nothing.
struct Nothing;

impl ChartRenderer for Nothing {
    fn version(&self) -> &str {
        "nothing"
    }

    fn identity(&self) -> Option<Sha256> {
        None
    }

    fn answer<'a>(&'a self, _input: &'a [u8]) -> Answering<'a> {
        let rendering = json!({"rendering": {"objects": 0, "chart": {"name": NAME, "version": VERSION}}});
        Box::pin(async move { Ok(format!("{rendering}\n").into_bytes()) })
    }
}

/// Bytes that look like chance and are the same each time (xorshift).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}
