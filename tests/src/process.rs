//! Programs under supervision: every process that a test starts ends with the test process, however that ends.
//!
//! [`Program`] says what to run; [`Program::start`] gives a daemon, [`Program::run`] waits for the end and has what was
//! printed. Not here: readiness, which only the caller can ask for.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, anyhow, ensure};
use rustix::process::{Pid, Signal, kill_process};
use tokio::sync::watch;

use crate::binaries::supervisor;
use crate::folder::TempFolder;

/// How many lines of a log a failed test shows.
const TAIL: usize = 40;

/// A program with its arguments and environment, not yet running. Without [`Program::only_given_env`] it inherits this
/// process's environment.
#[derive(Debug, Clone)]
pub struct Program {
    name: String,
    path: PathBuf,
    args: Vec<OsString>,
    env: BTreeMap<OsString, OsString>,
    inherit_env: bool,
    folder: Option<PathBuf>,
    stdin: Vec<u8>,
    grace: Duration,
    one_stream: bool,
}

impl Program {
    /// A program; `name` names its log file.
    #[must_use]
    pub fn new(name: impl Into<String>, path: impl Into<PathBuf>) -> Self {
        Self {
            name: name.into(),
            path: path.into(),
            args: Vec::new(),
            env: BTreeMap::new(),
            inherit_env: true,
            folder: None,
            stdin: Vec::new(),
            grace: Duration::from_secs(5),
            one_stream: false,
        }
    }

    /// Adds an argument.
    #[must_use]
    pub fn arg(mut self, arg: impl AsRef<OsStr>) -> Self {
        self.args.push(arg.as_ref().to_owned());
        self
    }

    /// Adds arguments.
    #[must_use]
    pub fn args<A: AsRef<OsStr>>(mut self, args: impl IntoIterator<Item = A>) -> Self {
        self.args.extend(args.into_iter().map(|arg| arg.as_ref().to_owned()));
        self
    }

    /// Sets an environment variable.
    #[must_use]
    pub fn env(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self.env.insert(name.as_ref().to_owned(), value.as_ref().to_owned());
        self
    }

    /// Gives the program no variables but `PATH` and those set by [`Program::env`].
    #[must_use]
    pub fn only_given_env(mut self) -> Self {
        self.inherit_env = false;
        self
    }

    /// Runs it in this folder (otherwise in the test's temporary one).
    #[must_use]
    pub fn folder(mut self, folder: impl Into<PathBuf>) -> Self {
        self.folder = Some(folder.into());
        self
    }

    /// Gives it this on stdin (otherwise stdin is empty).
    #[must_use]
    pub fn stdin(mut self, input: impl Into<Vec<u8>>) -> Self {
        self.stdin = input.into();
        self
    }

    /// Lets [`Program::run`] take stdout and stderr as one, in the order in which they were written: what a terminal shows.
    #[must_use]
    pub fn one_stream(mut self) -> Self {
        self.one_stream = true;
        self
    }

    /// How long it may take to end after SIGTERM before it is killed (otherwise 5 s).
    #[must_use]
    pub fn grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    /// Starts it as a daemon. What it prints is appended to `logs/<name>.log` in `home`.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn start(&self, home: &TempFolder) -> Result<Process> {
        let log = home.folder("logs")?.join(format!("{}.log", self.name));
        self.supervise(home, &log, &log)
    }

    /// Runs it to its end, as a person would, for at most `limit`.
    ///
    /// # Errors
    /// It cannot be started, or has not ended within `limit` (then it is ended; the error has what it printed).
    pub async fn run(&self, home: &TempFolder, limit: Duration) -> Result<Finished> {
        static RUN: AtomicU32 = AtomicU32::new(0);
        let number = RUN.fetch_add(1, Ordering::Relaxed);
        let folder = home.folder(format!("runs/{number:04}-{}", self.name))?;
        let out = folder.join("stdout");
        let err = if self.one_stream { out.clone() } else { folder.join("stderr") };
        let mut process = self.supervise(home, &out, &err)?;
        process.quiet = true;
        let waited = process.wait(limit).await;
        let read = |path: &Path| {
            let bytes = std::fs::read(path).with_context(|| format!("reading {}", path.display()))?;
            Ok::<_, anyhow::Error>(String::from_utf8_lossy(&bytes).into_owned())
        };
        let stdout = read(&out)?;
        let stderr = if self.one_stream { String::new() } else { read(&err)? };
        let exit = waited.with_context(|| format!("stdout:\n{stdout}\nstderr:\n{stderr}"))?;
        Ok(Finished { command: self.line(), exit, stdout, stderr })
    }

    /// The command as a person would type it (without quoting).
    #[must_use]
    pub fn line(&self) -> String {
        let program = self.path.file_name().unwrap_or(self.path.as_os_str());
        let words = std::iter::once(program).chain(self.args.iter().map(OsString::as_os_str));
        words.map(OsStr::to_string_lossy).collect::<Vec<_>>().join(" ")
    }

    fn supervise(&self, home: &TempFolder, stdout: &Path, stderr: &Path) -> Result<Process> {
        let stdin = if self.stdin.is_empty() {
            PathBuf::from("/dev/null")
        } else {
            let path = stdout.with_extension("stdin");
            std::fs::write(&path, &self.stdin).with_context(|| format!("writing {}", path.display()))?;
            path
        };
        let mut command = Command::new(supervisor()?);
        if !self.inherit_env {
            command.env_clear();
            command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        }
        let mut child = command
            .envs(&self.env)
            .current_dir(self.folder.as_deref().unwrap_or(home.path()))
            .arg("run")
            .arg(home.lock())
            .arg(self.grace.as_millis().to_string())
            .args([stdin.as_path(), stdout, stderr, self.path.as_path()])
            .args(&self.args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .process_group(0)
            .spawn()
            .with_context(|| format!("starting the supervisor of {}", self.name))?;
        let pipe = child.stdin.take().context("the supervisor has no stdin")?;
        let mut said = BufReader::new(child.stdout.take().context("the supervisor has no stdout")?);
        let mut first = String::new();
        said.read_line(&mut first)?;
        let pid = first.trim().strip_prefix("started ").and_then(|pid| pid.parse().ok());
        let pid = pid.with_context(|| format!("starting {}: {}", self.path.display(), first.trim()))?;
        Ok(Process {
            name: self.name.clone(),
            pid,
            log: stdout.to_owned(),
            exit: watch_exit(child, said),
            pipe: Mutex::new(Some(pipe)),
            grace: self.grace,
            quiet: false,
        })
    }
}

/// How a program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// By itself, with this code.
    Code(i32),
    /// By this signal.
    Signal(i32),
    /// The supervisor ended without saying.
    Unseen,
}

/// A program that has ended, and what it printed.
#[derive(Debug, Clone)]
pub struct Finished {
    /// The command as typed.
    pub command: String,
    /// How it ended.
    pub exit: Exit,
    /// All of its stdout.
    pub stdout: String,
    /// All of its stderr.
    pub stderr: String,
}

impl Finished {
    /// Whether it ended with code 0.
    #[must_use]
    pub fn success(&self) -> bool {
        self.exit == Exit::Code(0)
    }

    /// Its exit code; none when a signal ended it.
    #[must_use]
    pub fn code(&self) -> Option<i32> {
        match self.exit {
            Exit::Code(code) => Some(code),
            Exit::Signal(_) | Exit::Unseen => None,
        }
    }

    /// Itself, if it ended with code 0.
    ///
    /// # Errors
    /// It did not; the error has the command and all that it printed.
    pub fn ok(self) -> Result<Self> {
        ensure!(self.success(), "{}: {:?}\nstdout:\n{}\nstderr:\n{}", self.command, self.exit, self.stdout, self.stderr);
        Ok(self)
    }
}

/// A running program. When this value is dropped it is ended (SIGTERM, then SIGKILL) without waiting; when that happens
/// in a panic the end of its log is printed.
#[derive(Debug)]
pub struct Process {
    name: String,
    pid: i32,
    log: PathBuf,
    exit: watch::Receiver<Option<Exit>>,
    pipe: Mutex<Option<ChildStdin>>,
    grace: Duration,
    quiet: bool,
}

impl Process {
    /// The name it was started with.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its process id.
    #[must_use]
    pub fn pid(&self) -> i32 {
        self.pid
    }

    /// The file with what it printed.
    #[must_use]
    pub fn log(&self) -> &Path {
        &self.log
    }

    /// The last lines of its log.
    #[must_use]
    pub fn log_tail(&self, lines: usize) -> String {
        let text = std::fs::read(&self.log).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let skip = text.lines().count().saturating_sub(lines);
        text.lines().skip(skip).collect::<Vec<_>>().join("\n")
    }

    /// How it ended, if it has.
    #[must_use]
    pub fn exit(&self) -> Option<Exit> {
        *self.exit.borrow()
    }

    /// Fails with the end of its log if it has ended.
    ///
    /// # Errors
    /// It has ended.
    pub fn ensure_running(&self) -> Result<()> {
        match self.exit() {
            None => Ok(()),
            Some(exit) => Err(anyhow!("{} has ended: {exit:?}\n{}", self.name, self.log_tail(TAIL))),
        }
    }

    /// SIGKILL to the program alone, as `kill -9` does. Its children are ended after it.
    pub fn kill_hard(&self) {
        self.signal(Signal::KILL);
    }

    /// SIGTERM to the program alone.
    pub fn terminate(&self) {
        self.signal(Signal::TERM);
    }

    /// Any signal to the program alone; nothing if it has ended.
    pub fn signal(&self, signal: Signal) {
        if let (None, Some(pid)) = (self.exit(), Pid::from_raw(self.pid)) {
            let _ = kill_process(pid, signal);
        }
    }

    /// Waits for its end.
    ///
    /// # Errors
    /// It is still running after `limit`.
    pub async fn wait(&self, limit: Duration) -> Result<Exit> {
        wait_for(self.name.clone(), self.exit.clone(), limit).await
    }

    /// SIGTERM to it and its children, SIGKILL after its grace. That happens now; the future waits for the end.
    ///
    /// # Errors
    /// It did not even end by SIGKILL.
    pub fn stop(&self) -> impl Future<Output = Result<Exit>> + Send + use<> {
        drop(self.pipe.lock().expect("no holder of this lock panics").take());
        wait_for(self.name.clone(), self.exit.clone(), self.grace + Duration::from_secs(10))
    }

    /// Prints the end of the log to stderr, where the test runner shows it with the failed test.
    #[expect(clippy::print_stderr, reason = "the test runner collects it")]
    pub fn show_log(&self) {
        let state = self.exit().map_or("running".to_owned(), |exit| format!("{exit:?}"));
        eprintln!("--- {} ({state}), {}\n{}", self.name, self.log.display(), self.log_tail(TAIL));
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if !self.quiet && std::thread::panicking() {
            self.show_log();
        }
    }
}

async fn wait_for(name: String, mut exit: watch::Receiver<Option<Exit>>, limit: Duration) -> Result<Exit> {
    let ended = tokio::time::timeout(limit, exit.wait_for(Option::is_some)).await;
    match ended {
        Ok(Ok(exit)) => Ok((*exit).unwrap_or(Exit::Unseen)),
        Ok(Err(_)) => Ok(Exit::Unseen),
        Err(_) => Err(anyhow!("{name} is still running after {} s", limit.as_secs_f64())),
    }
}

/// Follows what the supervisor says in a thread: the value outlives the async runtime of the test that started it.
fn watch_exit(mut supervisor: Child, said: BufReader<ChildStdout>) -> watch::Receiver<Option<Exit>> {
    let (tell, exit) = watch::channel(None);
    std::thread::spawn(move || {
        let seen = said.lines().map_while(Result::ok).find_map(|line| parse_exit(&line));
        let _ = tell.send(Some(seen.unwrap_or(Exit::Unseen)));
        let _ = supervisor.wait();
    });
    exit
}

fn parse_exit(line: &str) -> Option<Exit> {
    let (how, number) = line.strip_prefix("exited ")?.split_once(' ')?;
    let number = number.parse().ok()?;
    match how {
        "code" => Some(Exit::Code(number)),
        "signal" => Some(Exit::Signal(number)),
        _ => None,
    }
}
