//! Nothing is left behind: processes, their descendants and folders end with the test process, also when it is killed.

use std::path::{Path, PathBuf};
use std::time::Duration;

use system_tests::{Exit, Program, TempFolder, eventually};

const PATIENCE: Duration = Duration::from_secs(20);

/// Set in the process that [`nothing_is_left_after_sigkill`] starts and kills.
const HOLDER: &str = "TESTBED_HOLDER_REPORT";

/// A shell that ignores SIGTERM, with a child in a session of its own; both pids go to the file in `$PIDS`.
const STUBBORN: &str = "trap '' TERM; setsid sleep 600 & echo $! $$ > \"$PIDS.new\"; mv \"$PIDS.new\" \"$PIDS\"; while :; do sleep 1; done";

fn stubborn(folder: &TempFolder) -> Program {
    let program = Program::new("stubborn", "/bin/sh").args(["-c", STUBBORN]).env("PIDS", folder.join("pids"));
    program.grace(Duration::from_millis(200))
}

fn alive(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // A zombie has ended; what is left of it goes when its parent asks.
    let state = stat.rsplit(')').next().and_then(|rest| rest.split_whitespace().next()).unwrap_or("X");
    !matches!(state, "X" | "Z")
}

async fn pids(file: PathBuf) -> Vec<String> {
    eventually("the shell's pids", PATIENCE, || async {
        let text = std::fs::read_to_string(&file)?;
        Ok(text.split_whitespace().map(str::to_owned).collect())
    })
    .await
}

async fn until_gone(pids: &[String], folder: &Path) {
    eventually("the end of all processes and of the folder", PATIENCE, || async {
        let left: Vec<_> = pids.iter().filter(|pid| alive(pid)).collect();
        anyhow::ensure!(left.is_empty() && !folder.exists(), "left: {left:?}, folder there: {}", folder.exists());
        Ok(())
    })
    .await;
}

/// The other half of [`nothing_is_left_after_sigkill`]: does nothing unless it is told where to report.
#[tokio::test]
async fn holder() {
    let Some(report) = std::env::var_os(HOLDER) else { return };
    let folder = TempFolder::new("holder").unwrap();
    let program = stubborn(&folder).start(&folder).unwrap();
    let pids = pids(folder.join("pids")).await;
    std::fs::write(&report, format!("{}\n{}\n", folder.path().display(), pids.join(" "))).unwrap();
    let _ = program.wait(Duration::from_secs(60)).await;
}

#[tokio::test]
async fn nothing_is_left_after_sigkill() {
    let home = TempFolder::new("sigkill").unwrap();
    let report = home.join("report");
    let mut holder = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "holder"])
        .env(HOLDER, &report)
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let (folder, pids) = eventually("the holder's report", PATIENCE, || async {
        let text = std::fs::read_to_string(&report)?;
        let (folder, pids) = text.split_once('\n').filter(|(_, pids)| pids.ends_with('\n')).ok_or_else(|| anyhow::anyhow!("half"))?;
        Ok((PathBuf::from(folder), pids.split_whitespace().map(str::to_owned).collect::<Vec<_>>()))
    })
    .await;
    assert_eq!(pids.len(), 2);
    assert!(pids.iter().all(|pid| alive(pid)) && folder.is_dir());
    holder.kill().unwrap();
    holder.wait().unwrap();
    until_gone(&pids, &folder).await;
}

#[tokio::test]
async fn a_dropped_process_ends_with_its_descendants() {
    let folder = TempFolder::new("drop").unwrap();
    let path = folder.path().to_owned();
    let program = stubborn(&folder).start(&folder).unwrap();
    let pids = pids(folder.join("pids")).await;
    assert!(pids.iter().all(|pid| alive(pid)));
    drop(program);
    drop(folder);
    until_gone(&pids, &path).await;
}

#[tokio::test]
async fn exits_are_told_apart() {
    let folder = TempFolder::new("exits").unwrap();
    let shell = |script: &str| Program::new("sh", "/bin/sh").args(["-c", script]);
    let finished = shell("cat; echo err >&2; exit 3").stdin("hello").run(&folder, PATIENCE).await.unwrap();
    assert_eq!((finished.exit, finished.stdout.as_str(), finished.stderr.as_str()), (Exit::Code(3), "hello", "err\n"));
    assert!(finished.ok().unwrap_err().to_string().contains("exit 3"));

    let sleeper = shell("echo up; exec sleep 600").start(&folder).unwrap();
    sleeper.ensure_running().unwrap();
    assert!(sleeper.wait(Duration::from_millis(50)).await.is_err());
    sleeper.kill_hard();
    assert_eq!(sleeper.wait(PATIENCE).await.unwrap(), Exit::Signal(9));
    assert!(sleeper.ensure_running().unwrap_err().to_string().contains("up"));

    let polite = shell("trap 'exit 0' TERM; echo listening; while :; do sleep 0.05; done").start(&folder).unwrap();
    // Programs of one name share a log: the word has to be its own, or it would be ended before it listens.
    eventually("its first word", PATIENCE, || async {
        anyhow::ensure!(polite.log_tail(1) == "listening", "silent");
        Ok(())
    })
    .await;
    assert_eq!(polite.stop().await.unwrap(), Exit::Code(0));

    let late = shell("echo early; sleep 600").run(&folder, Duration::from_millis(300)).await;
    assert!(format!("{:#}", late.unwrap_err()).contains("early"));
    let missing = Program::new("missing", "/nowhere/program").run(&folder, PATIENCE).await;
    assert!(format!("{:#}", missing.unwrap_err()).contains("/nowhere/program"));
}
