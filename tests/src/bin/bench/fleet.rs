//! What a manager takes for the executors that are connected to it: simulated ones, each with its own certificate and key, a heartbeat
//! every 10 s, nothing to do.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use agent_api::heartbeat::PlatformStatus;
use anyhow::{Context as _, Result};
use futures::StreamExt as _;
use system_tests::landscape::{CLUSTER, Manager};
use system_tests::simulated::{self, Channel, Executor};
use tokio::time::{Interval, MissedTickBehavior, interval_at};

use crate::footprint;
use crate::table::Table;

/// As the manager asks for.
const BEAT: Duration = Duration::from_secs(10);
/// Baseline.
const BEFORE: Duration = Duration::from_secs(10);
/// How long all are connected while it is measured.
const WINDOW: Duration = Duration::from_secs(60);
/// All are let in by then.
const IN: Duration = Duration::from_secs(300);
/// Enrolments under way at once.
const SIDE_BY_SIDE: usize = 16;

/// Measures with so many.
pub(crate) async fn measure(table: &mut Table, count: usize) -> Result<()> {
    anyhow::ensure!(count > 0, "there is nothing to measure without executors");
    let manager = Manager::alone().await?;
    let ca = std::fs::read_to_string(manager.ca_file())?;
    let token = std::fs::read_to_string(Path::new(manager.folder()).join("token"))?;
    let http = simulated::client(&ca, None);
    let enrolled = futures::stream::iter(0..count).map(|_| simulated::enrol(&http, manager.endpoint(), CLUSTER, &token));
    let executors: Vec<Arc<Executor>> = enrolled.buffer_unordered(SIDE_BY_SIDE).map(Arc::new).collect().await;
    let [before] = footprint::of([manager.pid()], BEFORE).await?;

    let deadline = Instant::now() + IN;
    let come = executors.into_iter().map(|executor| tokio::spawn(async move { simulated::come(&executor, deadline).await.0 }));
    let channels: Vec<Channel> = futures::future::try_join_all(come).await.context("an executor was answered wrongly")?;
    let alive: Vec<_> = channels.into_iter().enumerate().map(|(n, channel)| tokio::spawn(live(channel, beats(n, count)))).collect();
    tokio::time::sleep(BEAT).await;
    let [with] = footprint::of([manager.pid()], WINDOW).await?;
    anyhow::ensure!(alive.iter().all(|executor| !executor.is_finished()), "an executor was disconnected");
    alive.iter().for_each(tokio::task::JoinHandle::abort);

    let thousands = count as f64 / 1e3;
    let each = format!("{count} connected; {:.0} KiB each", (with.rss - before.rss) * 1024.0 / count as f64);
    table.figure("manager, without executors connected: RSS", before.rss, "MiB", &format!("after {count} enrolments"));
    table.figure("manager, for 1,000 executors: RSS more", (with.rss - before.rss) / thousands, "MiB", &each);
    let beats = format!("{} heartbeats a second", count as u64 / BEAT.as_secs());
    table.figure("manager, for 1,000 executors: CPU more", (with.millicores - before.millicores) / thousands, "mCPU", &beats);
    Ok(())
}

/// Spread over the interval, as those of executors that came one by one are.
fn beats(n: usize, count: usize) -> Interval {
    let mut beats = interval_at(tokio::time::Instant::now() + BEAT.mul_f64(n as f64 / count as f64), BEAT);
    beats.set_missed_tick_behavior(MissedTickBehavior::Delay);
    beats
}

/// As an executor does: it says that it lives, and reads, so that pings are answered. Returns when it is disconnected.
async fn live(mut channel: Channel, mut beats: Interval) {
    loop {
        tokio::select! {
            _ = beats.tick() => channel.heartbeat(PlatformStatus::None, None).await,
            heard = channel.stream.next() => if !matches!(heard, Some(Ok(_))) { return },
        }
    }
}
