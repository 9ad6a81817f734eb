//! The corpus' charts through our engine, each in a confined child of its own as the product runs it, and with `helm template`, a process each,
//! in turns; and then once more from what is kept on disk, as a process finds it that starts then.

use std::ffi::OsStr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use agent_api::approval::Capabilities;
use anyhow::{Context as _, Result, ensure};
use base64::Engine as _;
use render::engine::{Answer, ChartRenderer as _, Invention, Request};
use render::{Cache, CacheFolder, Engine};
use serde_json::Value;
use system_tests::chart_case::{self, Case};
use system_tests::{TempFolder, binaries, chart_engine};

use crate::helm;
use crate::percentile::{Times, median};
use crate::table::{Table, figure};

/// Of the time that helm takes for the same chart, the median over all charts.
const OF_HELM: f64 = 0.6;
/// A chart that was rendered before, in milliseconds.
const KEPT: f64 = 5.0;
/// The cluster's version, for both.
const KUBE_VERSION: &str = "v1.37.2";
/// What `helm template` takes a cluster to serve, so that both are told the same.
const SERVED: &str = include_str!("../../../corpus/served.txt");

/// Measures.
pub(crate) async fn measure(table: &mut Table) -> Result<()> {
    let folder = TempFolder::new("render")?;
    let engine = Engine::at(chart_engine(), binaries().clicklink).await?;
    let api_versions = SERVED.lines().map(str::to_owned).collect();
    let capabilities = Capabilities { kube_version: KUBE_VERSION.into(), api_versions, ..Capabilities::default() };
    let kept = CacheFolder::of_service(None, folder.path());

    let (mut ours, mut twice, mut theirs, mut again) = (Times::default(), Times::default(), Times::default(), Times::default());
    let mut shares = Vec::new();
    for case in chart_case::corpus().iter().filter(|case| case.fails.is_empty()) {
        let bytes = case.archive();
        let archive = base64::engine::general_purpose::STANDARD.encode(&bytes);
        let pair = Invention::pair(jiff::Timestamp::UNIX_EPOCH);
        let request = Request {
            archive: &archive,
            release: "rel",
            namespace: "platform",
            values: &case.values,
            capabilities: &capabilities,
            inventions: &pair[..1],
        };
        let began = Instant::now();
        engine.render(Request { inventions: &pair, ..request.clone() }).await.with_context(|| case.name.clone())?;
        twice.push(began.elapsed());
        let began = Instant::now();
        let output = engine.render(request.clone()).await.with_context(|| case.name.clone())?;
        let took = began.elapsed();
        let helm = template(case, &bytes, &folder).await?;
        ours.push(took);
        theirs.push(helm);
        shares.push(took.as_secs_f64() / helm.as_secs_f64());
        if let Some(took) = from_disk(&engine, &kept, request, &output).await? {
            again.push(took);
        }
    }
    let beside =
        format!("{} charts; median {} ms, helm template {} ms", shares.len(), figure(ours.percentile(50)), figure(theirs.percentile(50)));
    table.at_most("a chart rendered: of helm's time, median", median(&mut shares), OF_HELM, "times", &beside);
    let beside = format!("once {} ms", figure(ours.percentile(50)));
    table.figure("a chart rendered twice by one child, p50", twice.percentile(50), "ms", &beside);
    let beside = format!("{} charts, those without a Secret's data; p99 {} ms", again.len(), figure(again.percentile(99)));
    table.at_most("a chart that was rendered before, p50", again.percentile(50), KEPT, "ms", &beside);
    Ok(())
}

/// Kept by one process, looked up by the next; none for a chart that is not kept on disk.
async fn from_disk(engine: &Engine, kept: &CacheFolder, request: Request<'_>, expected: &Answer) -> Result<Option<Duration>> {
    let process = || Cache::new(Arc::new(engine.clone())).keeping_in(kept.clone());
    process().render(request.clone()).await?;
    let next = process();
    let began = Instant::now();
    let found = next.find(&request).await?;
    let took = began.elapsed();
    let Some(found) = found else { return Ok(None) };
    ensure!(found == *expected, "what was kept is not what was rendered");
    Ok(Some(took))
}

async fn template(case: &Case, archive: &[u8], folder: &TempFolder) -> Result<Duration> {
    let archive = folder.write("c.tgz", archive)?;
    let values = folder.write("values.json", Value::Object(case.values.clone()).to_string())?;
    let flags = ["template", "rel", "--namespace", "platform", "--include-crds", "--kube-version", KUBE_VERSION, "--values"];
    let files = [values, archive];
    helm::timed(folder, flags.map(OsStr::new).into_iter().chain(files.iter().map(|file| file.as_os_str()))).await
}
