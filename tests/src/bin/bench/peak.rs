//! The most memory that a process ever held, as the kernel keeps it (`VmHWM`).

use std::time::Duration;

use anyhow::Result;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::footprint::mebibytes;

/// Pause between two looks for children that live for some ten milliseconds.
const LOOK: Duration = Duration::from_millis(2);
/// As the kernel shortens `clicklink-render`.
const ENGINE: &str = "clicklink-rende";

/// Of a process since its start, MiB.
pub(crate) fn of(pid: i32) -> Result<f64> {
    mebibytes(&std::fs::read_to_string(format!("/proc/{pid}/status"))?, "VmHWM:")
}

/// Looks at every engine that a process starts.
pub(crate) struct Engines {
    highest: watch::Receiver<f64>,
    looking: JoinHandle<()>,
}

impl Engines {
    pub(crate) fn of(parent: i32) -> Self {
        let (found, highest) = watch::channel(0.0);
        let looking = tokio::spawn(async move {
            loop {
                let peak = children(parent).into_iter().filter_map(|pid| of(pid).ok()).fold(0.0, f64::max);
                found.send_modify(|highest| *highest = peak.max(*highest));
                tokio::time::sleep(LOOK).await;
            }
        });
        Self { highest, looking }
    }

    /// The most that one of them held so far, MiB; 0 where none was seen.
    pub(crate) fn highest(&self) -> f64 {
        *self.highest.borrow()
    }
}

impl Drop for Engines {
    fn drop(&mut self) {
        self.looking.abort();
    }
}

/// The engines among a process's children: a child belongs to the thread that started it.
fn children(parent: i32) -> Vec<i32> {
    let threads = std::fs::read_dir(format!("/proc/{parent}/task")).into_iter().flatten().flatten();
    let listed = threads.filter_map(|thread| std::fs::read_to_string(thread.path().join("children")).ok());
    let pids: Vec<i32> = listed.flat_map(|pids| pids.split(' ').filter_map(|pid| pid.parse().ok()).collect::<Vec<_>>()).collect();
    pids.into_iter().filter(|pid| std::fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name.trim() == ENGINE)).collect()
}
