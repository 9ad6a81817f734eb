//! What a process takes, as the kernel counts it: memory from `/proc/PID/status` each second, time from `/proc/PID/stat`.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};

/// Pause between two looks at memory.
const LOOK: Duration = Duration::from_secs(1);

/// A process over a window.
#[derive(Clone, Copy, Default)]
pub(crate) struct Footprint {
    /// Resident, mean of all looks, MiB.
    pub(crate) rss: f64,
    /// Resident, highest look, MiB.
    pub(crate) rss_max: f64,
    /// Resident and of its own: heap and stacks, without mapped files; mean, MiB.
    pub(crate) anonymous: f64,
    /// User and system time, thousandths of a core.
    pub(crate) millicores: f64,
}

/// Watches processes side by side for this long.
pub(crate) async fn of<const N: usize>(pids: [i32; N], window: Duration) -> Result<[Footprint; N]> {
    let started = Instant::now();
    let mut before = [0.0; N];
    for (ticks, pid) in before.iter_mut().zip(pids) {
        *ticks = seconds(pid)?;
    }
    let (mut sums, mut looks) = ([Footprint::default(); N], 0.0);
    while started.elapsed() < window {
        tokio::time::sleep(LOOK.min(window.saturating_sub(started.elapsed()))).await;
        for (sum, pid) in sums.iter_mut().zip(pids) {
            let status = std::fs::read_to_string(format!("/proc/{pid}/status")).context("a measured process has ended")?;
            let rss = mebibytes(&status, "VmRSS:")?;
            sum.rss += rss;
            sum.rss_max = sum.rss_max.max(rss);
            sum.anonymous += mebibytes(&status, "RssAnon:")?;
        }
        looks += 1.0;
    }
    let elapsed = started.elapsed().as_secs_f64();
    for ((sum, pid), before) in sums.iter_mut().zip(pids).zip(before) {
        sum.rss /= looks;
        sum.anonymous /= looks;
        sum.millicores = (seconds(pid)? - before) / elapsed * 1e3;
    }
    Ok(sums)
}

pub(crate) fn mebibytes(status: &str, name: &str) -> Result<f64> {
    let line = status.lines().find_map(|line| line.strip_prefix(name)).with_context(|| format!("no {name} in the status"))?;
    let kibibytes: f64 = line.trim().trim_end_matches(" kB").parse().with_context(|| format!("{name}{line}"))?;
    Ok(kibibytes / 1024.0)
}

/// Processor time since its start.
fn seconds(pid: i32) -> Result<f64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).context("a measured process has ended")?;
    // The second field is the name, in parentheses, and may hold spaces; `utime` and `stime` are fields 14 and 15.
    let (_, fields) = stat.rsplit_once(')').context("/proc/PID/stat without a name")?;
    let ticks: Result<Vec<f64>, _> = fields.split_whitespace().skip(11).take(2).map(str::parse).collect();
    Ok(ticks?.iter().sum::<f64>() / rustix::param::clock_ticks_per_second() as f64)
}
