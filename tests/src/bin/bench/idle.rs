//! The executor at rest: its channel to a real manager with heartbeats every 10 s, its watch on a real API server. Beside it, in the same
//! minutes and on the same API server, the smallest thing that anybody would run there: `kubectl get pods --watch`.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use system_tests::bundle::{self, Edition};
use system_tests::landscape::{Landscape, Narrator};
use system_tests::{Program, Tools};

use crate::footprint::{self, Footprint};
use crate::table::{Table, figure};

/// Memory at rest, MiB.
const MEMORY: f64 = 12.0;
/// Processor at rest, thousandths of a core.
const PROCESSOR: f64 = 2.0;
/// Starting is not resting.
const SETTLE: Duration = Duration::from_secs(15);
/// Name of the release.
const RELEASE: &str = "bench";

/// Measures before any update, for a tenth of the window, and after one that was carried out, for all of it.
pub(crate) async fn measure(table: &mut Table, window: Duration) -> Result<()> {
    let mut landscape = Landscape::start(&Narrator::silent()).await?;
    tokio::time::sleep(SETTLE).await;
    let [fresh] = footprint::of([landscape.connector.executor().pid()], window / 10).await?;
    rows(table, "connected, no update yet", fresh, "");

    update(&mut landscape).await?;
    let kubectl = Program::new("kubectl-watch", Tools::control_plane().await?.path("kubectl")).args(["get", "pods", "-A", "--watch"]);
    let kubectl = kubectl.env("KUBECONFIG", landscape.control_plane.admin_kubeconfig()).start(landscape.control_plane.folder())?;
    tokio::time::sleep(SETTLE).await;
    let before = heartbeats(&landscape).await?;
    let [executor, kubectl] = footprint::of([landscape.connector.executor().pid(), kubectl.pid()], window).await?;
    let beats = heartbeats(&landscape).await? - before;
    ensure!(beats + 1.0 >= window.as_secs_f64() / 10.0, "only {beats} heartbeats in {window:?}: it was not connected all the time");
    let (memory, processor) = (figure(kubectl.rss), figure(kubectl.millicores));
    let beside = format!(
        "kubectl --watch {memory} MiB, {processor} mCPU: {} and {} times",
        figure(executor.rss / kubectl.rss),
        figure(executor.millicores / kubectl.millicores)
    );
    rows(table, &format!("{} s after an update", window.as_secs()), executor, &beside);
    Ok(())
}

fn rows(table: &mut Table, when: &str, footprint: Footprint, beside: &str) {
    let max = format!("highest {} MiB", figure(footprint.rss_max));
    let max = if beside.is_empty() { max } else { format!("{max}; {beside}") };
    table.at_most(&format!("executor, idle, {when}: RSS"), footprint.rss, MEMORY, "MiB", &max);
    table.figure(
        &format!("executor, idle, {when}: RssAnon"),
        footprint.anonymous,
        "MiB",
        "the rest is the program's file, in the page cache",
    );
    table.at_most(&format!("executor, idle, {when}: CPU"), footprint.millicores, PROCESSOR, "mCPU", "");
}

/// Proposes a release, approves it and waits until it is there.
async fn update(landscape: &mut Landscape) -> Result<()> {
    let release = bundle::push(&landscape.registry, Edition::First).await?;
    let sha256 = landscape.propose(RELEASE, &release).await?;
    landscape.until_status("approval_required", &sha256).await;
    landscape.connector.approve(&["--yes"]).await?.ok()?;
    landscape.until_status("synced", &sha256).await;
    Ok(())
}

/// How many the executor has sent, by its own count.
async fn heartbeats(landscape: &Landscape) -> Result<f64> {
    let page = landscape.connector.health("/metrics").await?.text().await?;
    let value = page.lines().find_map(|line| line.strip_prefix("clicklink_heartbeats_sent_total "));
    value.context("no count of heartbeats")?.parse().context("the count of heartbeats")
}
