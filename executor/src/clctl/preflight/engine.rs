//! The chart engine: there, of our protocol; and whether this kernel confines it.

use render::Engine;

use super::finding::Findings;
use crate::terminal::chain;

pub(super) async fn check(findings: &mut Findings) {
    match Engine::locate().await {
        Ok(engine) => findings.pass(format!("chart engine {}", engine.version())),
        Err(error) => findings.fail(chain(&error), "install clicklink whole: the engine of the same version belongs beside the program"),
    }
}

pub(super) fn landlock(findings: &mut Findings) {
    if Engine::landlock() {
        findings.pass("this kernel enforces Landlock: the chart engine sees no files");
    } else {
        findings.warn(
            "this kernel does not enforce Landlock; the chart engine's other bounds (seccomp, limits, no network) hold alone",
            "use Linux 5.13 or newer with `landlock` in the kernel's lsm= list",
        );
    }
}
