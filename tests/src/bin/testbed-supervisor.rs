//! The testbed's supervisor: runs one program, or watches over one temporary folder, for as long as the pipe on its stdin is
//! open. The other end of that pipe is held by the test process and closes with it, however it ends: by a panic, Ctrl-C or
//! SIGKILL. Then the program and all its descendants are ended, and the folder is removed once nobody uses it.
//!
//! ```text
//! testbed-supervisor run LOCK GRACE_MS STDIN STDOUT STDERR PROGRAM [ARG…]
//! testbed-supervisor folder FOLDER LOCK
//! ```
//!
//! `run` holds a shared lock on LOCK while it lives, `folder` removes FOLDER when it gets that lock for itself. On stdout
//! `run` says `started PID` or `failed REASON`, then `exited code N` or `exited signal N`. Not here: restarts, and any
//! decision about what is run.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Command, ExitCode, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitOptions, kill_process, kill_process_group, waitpid};

fn main() -> ExitCode {
    let args: Vec<OsString> = std::env::args_os().skip(1).collect();
    let done = match args.first().and_then(|mode| mode.to_str()) {
        Some("run") => run(&args[1..]),
        Some("folder") => folder(&args[1..]),
        _ => Err(io::Error::other("usage: run|folder")),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say(&format!("failed {error}"));
            ExitCode::FAILURE
        }
    }
}

/// One line to the test process. That it is gone is no failure: then nobody reads.
fn say(line: &str) {
    let mut out = io::stdout().lock();
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}

fn until_stdin_closes() {
    let mut sink = [0u8; 64];
    let mut pipe = io::stdin().lock();
    while matches!(pipe.read(&mut sink), Ok(n) if n > 0) {}
}

fn folder(args: &[OsString]) -> io::Result<()> {
    let [folder, lock] = args else {
        return Err(io::Error::other("usage: folder FOLDER LOCK"));
    };
    let lock = File::open(lock)?;
    say("started 0");
    until_stdin_closes();
    lock.lock()?;
    std::fs::remove_dir_all(Path::new(folder))
}

fn run(args: &[OsString]) -> io::Result<()> {
    let [lock, grace, stdin, stdout, stderr, program, rest @ ..] = args else {
        return Err(io::Error::other("usage: run LOCK GRACE_MS STDIN STDOUT STDERR PROGRAM [ARG…]"));
    };
    let lock = File::open(lock)?;
    lock.lock_shared()?;
    let grace = grace.to_str().and_then(|ms| ms.parse().ok());
    let grace = Duration::from_millis(grace.ok_or_else(|| io::Error::other("GRACE_MS is a number"))?);
    // Orphaned descendants become children of this process, so that they can be found and ended.
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;

    let stdout_file = log_file(stdout)?;
    let stderr_file = if stderr == stdout { stdout_file.try_clone()? } else { log_file(stderr)? };
    let mut child = Command::new(program)
        .args(rest)
        .process_group(0)
        .stdin(Stdio::from(File::open(stdin)?))
        .stdout(stdout_file)
        .stderr(stderr_file)
        .spawn()?;
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let pid = pid.ok_or_else(|| io::Error::other("the child has no pid"))?;
    say(&format!("started {}", child.id()));

    let (ended, wait_for_end) = channel::<()>();
    thread::spawn(move || {
        until_stdin_closes();
        end_group(pid, grace, &wait_for_end);
    });
    let status = child.wait()?;
    drop(ended);
    say(&exit_line(status));
    end_descendants(pid);
    Ok(())
}

fn log_file(path: &OsString) -> io::Result<File> {
    File::options().create(true).append(true).open(path)
}

fn exit_line(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exited code {code}"),
        (None, signal) => format!("exited signal {}", signal.unwrap_or_default()),
    }
}

/// SIGTERM to the program's group, and SIGKILL when it has not ended after `grace`.
fn end_group(pid: Pid, grace: Duration, ended: &Receiver<()>) {
    let _ = kill_process_group(pid, Signal::TERM);
    if let Err(RecvTimeoutError::Timeout) = ended.recv_timeout(grace) {
        let _ = kill_process_group(pid, Signal::KILL);
    }
}

/// What the program left running: first its group, then, for some seconds at most, every process that came to us.
fn end_descendants(group: Pid) {
    let _ = kill_process_group(group, Signal::KILL);
    for _ in 0..300 {
        for child in children() {
            let _ = kill_process(child, Signal::KILL);
        }
        match waitpid(None, WaitOptions::NOHANG) {
            Err(_) => return,
            Ok(Some(_)) => {}
            Ok(None) => thread::sleep(Duration::from_millis(10)),
        }
    }
}

fn children() -> Vec<Pid> {
    let Ok(threads) = std::fs::read_dir("/proc/self/task") else {
        return Vec::new();
    };
    threads
        .flatten()
        .filter_map(|thread| std::fs::read_to_string(thread.path().join("children")).ok())
        .flat_map(|pids| pids.split_whitespace().filter_map(|pid| pid.parse().ok().and_then(Pid::from_raw)).collect::<Vec<_>>())
        .collect()
}
