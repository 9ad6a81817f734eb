//! The state folder: writable, and with room for the journal.

use std::path::Path;

use super::finding::Findings;
use crate::config::Config;

/// Less than this, and the journal may fill it soon: 1 GiB.
const LITTLE: u64 = 1 << 30;
/// Less than this, and a command may not be taken: 64 MiB.
const TOO_LITTLE: u64 = 64 << 20;

pub(super) fn check(config: &Config, findings: &mut Findings) {
    let dir = config.state_dir();
    let name = dir.display();
    match std::fs::metadata(dir) {
        Ok(metadata) if metadata.is_dir() => {}
        Ok(_) => return findings.fail(format!("{name} is not a folder"), format!("mkdir -m 0700 {name}")),
        Err(error) => return findings.fail(format!("{name}: {error}"), format!("mkdir -p -m 0700 {name}, owned by the executor's user")),
    }
    match tempfile::Builder::new().prefix(".preflight-").tempfile_in(dir) {
        Ok(_) => findings.pass(format!("{name} is writable")),
        Err(error) => {
            findings.fail(format!("{name}: {error}"), "run this as the executor's user; mount the folder writable and let it own it")
        }
    }
    room(dir, findings);
}

fn room(dir: &Path, findings: &mut Findings) {
    let name = dir.display();
    let free = match rustix::fs::statvfs(dir) {
        Ok(stat) => stat.f_bavail.saturating_mul(stat.f_frsize),
        Err(error) => return findings.fail(format!("{name}: free space is not known: {error}"), "see the file system with df"),
    };
    let told = format!("{name} has {} MiB free", free >> 20);
    match free {
        ..TOO_LITTLE => findings.fail(told, "make room: without it no command is taken"),
        TOO_LITTLE..LITTLE => findings.warn(told, "make room: 1 GiB is a good measure"),
        _ => findings.pass(told),
    }
}
