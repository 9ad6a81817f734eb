//! The chart engine as a child process: one request in, one or two renderings of its chart out, every quantity bounded.
//!
//! [`ChartRenderer`] is the seam behind which the engine can change. Deliberately absent: what the objects mean.

use std::future::Future;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use agent_api::approval::Capabilities;
use agent_api::digest::Sha256;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::Command;

pub use self::answer::{Answer, ChartMetadata, EngineObject, EngineOutput, Second};
use self::identity::Identity;
pub use self::invention::Invention;
use crate::confine;

mod answer;
mod identity;
mod invention;

/// Name of the engine's program.
pub const PROGRAM: &str = "clicklink-render";
/// Where it lies when it is not beside the executable, from the executable's folder.
const LIBEXEC: &str = "../libexec/clicklink";
/// The request and answer format that this version speaks.
pub(crate) const PROTOCOL: u32 = 3;

/// Longest life of a child, which makes two renderings at most, by the clock on the wall.
const MAX_WALL: Duration = Duration::from_secs(120);
/// Largest rendering: 16 MiB.
const MAX_OUTPUT: usize = 16 << 20;
/// Longest answer of the engine: two of the largest renderings, each of which [`Answer::read`] bounds by itself.
const MAX_ANSWER: usize = 2 * MAX_OUTPUT;
/// Largest object: 1 MiB, somewhat less than an API server takes.
const MAX_OBJECT: usize = 1 << 20;
/// How much of its stderr is read.
const MAX_STDERR: usize = 64 << 10;
/// How much of an error of the engine is shown, in characters.
const MAX_ERROR: usize = 2_000;

/// What the engine is asked to render.
#[derive(Clone, Debug, Serialize)]
pub struct Request<'a> {
    /// The chart's archive (`.tgz`), base64.
    pub archive: &'a str,
    /// Release name.
    pub release: &'a str,
    /// Namespace of the release.
    pub namespace: &'a str,
    /// Values, over the chart's own.
    pub values: &'a Map<String, Value>,
    /// What the chart may ask of the cluster, exactly.
    #[serde(serialize_with = "capabilities")]
    pub capabilities: &'a Capabilities,
    /// One for each rendering that is asked for: one or two.
    pub inventions: &'a [Invention],
}

impl Request<'_> {
    /// The bytes that the engine is given.
    ///
    /// # Errors
    /// Where they are no JSON, which no value of this type is known to cause.
    pub fn input(&self) -> Result<Vec<u8>, EngineError> {
        serde_json::to_vec(self).map_err(|error| EngineError::Answer(error.to_string()))
    }
}

fn capabilities<S: serde::Serializer>(capabilities: &Capabilities, serializer: S) -> Result<S::Ok, S::Error> {
    use serde::ser::SerializeStruct as _;
    let mut out = serializer.serialize_struct("Capabilities", 4)?;
    out.serialize_field("kubeVersion", &capabilities.kube_version)?;
    out.serialize_field("kubeMajor", &capabilities.server.major)?;
    out.serialize_field("kubeMinor", &capabilities.server.minor)?;
    out.serialize_field("apiVersions", &capabilities.api_versions)?;
    out.end()
}

#[derive(Deserialize)]
struct Handshake {
    protocol: u32,
    helm: String,
}

/// Why the engine gave no objects.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// It is not where it belongs.
    #[error("the chart engine {PROGRAM} is missing: looked at {}", .0.iter().map(|p| p.display().to_string()).collect::<Vec<_>>().join(" and "))]
    Missing(Vec<PathBuf>),
    /// It speaks another protocol.
    #[error("the chart engine {path} speaks protocol {found}, this program {PROTOCOL}: they are of different versions")]
    Protocol {
        /// The engine.
        path: PathBuf,
        /// What it speaks.
        found: u32,
    },
    /// The child could not be started or talked to.
    #[error("cannot run the chart engine {path}")]
    Run {
        /// The engine.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The chart cannot be rendered; the engine's own words, with template and line.
    #[error("{0}")]
    Chart(String),
    /// It took longer than it may.
    #[error("the chart was stopped after {} s", MAX_WALL.as_secs())]
    Time,
    /// It used more processor time than it may.
    #[error("the chart was stopped: it used more than {} s of processor time", confine::MAX_CPU_SECONDS)]
    Cpu,
    /// It used more memory than it may.
    #[error("the chart was stopped: it used more than {} MiB of memory", confine::MAX_ADDRESS_SPACE >> 20)]
    Memory,
    /// It printed more than it may.
    #[error("the chart was stopped: it renders to more than {} MiB", MAX_OUTPUT >> 20)]
    Output,
    /// An object is larger than it may be.
    #[error("{template}: an object of {bytes} bytes; at most {MAX_OBJECT} are allowed")]
    Object {
        /// The template.
        template: String,
        /// Size of its JSON.
        bytes: usize,
    },
    /// The child ended without an answer.
    #[error("the chart engine ended with {status}: {stderr}")]
    Ended {
        /// How.
        status: ExitStatus,
        /// The beginning of its stderr.
        stderr: String,
    },
    /// What it printed is not the protocol.
    #[error("the chart engine's answer is not readable: {0}")]
    Answer(String),
}

/// A rendering in progress.
pub type Rendering<'a> = Pin<Box<dyn Future<Output = Result<Answer, EngineError>> + Send + 'a>>;
/// An answer that is not read yet.
pub type Answering<'a> = Pin<Box<dyn Future<Output = Result<Vec<u8>, EngineError>> + Send + 'a>>;

/// Whatever turns a chart into objects.
pub trait ChartRenderer: Send + Sync {
    /// Name and version, as recorded in an approval.
    fn version(&self) -> &str;

    /// What tells it, as it is now, from every other that might answer otherwise; `None` where it cannot say. May read its program.
    fn identity(&self) -> Option<Sha256>;

    /// The answer to [`Request::input`], as it is: for [`Answer::read`].
    fn answer<'a>(&'a self, input: &'a [u8]) -> Answering<'a>;

    /// Renders one chart with each of the request's inventions.
    fn render<'a>(&'a self, request: Request<'a>) -> Rendering<'a> {
        Box::pin(async move { Answer::read(&self.answer(&request.input()?).await?) })
    }
}

/// The engine's program, confined by a program that calls [`confine::confined_main`].
#[derive(Clone, Debug)]
pub struct Engine {
    path: PathBuf,
    sandbox: PathBuf,
    version: String,
    identity: Identity,
}

impl Engine {
    /// Finds the engine beside this executable, else in `../libexec/clicklink/`, and asks for its version. This executable must have the
    /// subcommand [`confine::SUBCOMMAND`].
    ///
    /// # Errors
    /// Where the engine is missing, does not run or is of another protocol.
    pub async fn locate() -> Result<Self, EngineError> {
        let own = std::env::current_exe().map_err(|source| EngineError::Run { path: PathBuf::from(PROGRAM), source })?;
        let folder = own.parent().unwrap_or(Path::new("/"));
        let places = vec![folder.join(PROGRAM), folder.join(LIBEXEC).join(PROGRAM)];
        match places.iter().find_map(|place| place.canonicalize().ok()) {
            Some(path) => Self::at(path, own).await,
            None => Err(EngineError::Missing(places)),
        }
    }

    /// The engine at a path, confined by another program than this executable.
    ///
    /// # Errors
    /// Where it does not run or is of another protocol.
    pub async fn at(path: PathBuf, sandbox: PathBuf) -> Result<Self, EngineError> {
        let identity = Identity::default();
        let mut engine = Self { path, sandbox, version: String::new(), identity };
        let answer = engine.run(&["--version"], &[]).await?;
        let handshake: Handshake = serde_json::from_slice(&answer).map_err(|error| EngineError::Answer(error.to_string()))?;
        if handshake.protocol != PROTOCOL {
            return Err(EngineError::Protocol { path: engine.path, found: handshake.protocol });
        }
        engine.version = format!("helm {}", handshake.helm);
        Ok(engine)
    }

    /// `helm v4.3.1`.
    #[must_use]
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Whether this kernel enforces Landlock; without it the other bounds hold alone.
    #[must_use]
    pub fn landlock() -> bool {
        confine::landlock_available()
    }

    /// Runs the confined child with these arguments and this input, and returns its whole output.
    ///
    /// # Errors
    /// Every bound of the confinement, and every end but exit code 0.
    pub async fn run(&self, args: &[&str], input: &[u8]) -> Result<Vec<u8>, EngineError> {
        tokio::time::timeout(MAX_WALL, self.run_unbounded(args, input)).await.unwrap_or(Err(EngineError::Time))
    }

    async fn run_unbounded(&self, args: &[&str], input: &[u8]) -> Result<Vec<u8>, EngineError> {
        let failed = |source| EngineError::Run { path: self.path.clone(), source };
        let mut child = Command::new(&self.sandbox)
            .arg(confine::SUBCOMMAND)
            .arg(&self.path)
            .args(args)
            .env_clear()
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .map_err(failed)?;
        let (Some(mut stdin), Some(stdout), Some(stderr)) = (child.stdin.take(), child.stdout.take(), child.stderr.take()) else {
            return Err(failed(std::io::ErrorKind::BrokenPipe.into()));
        };
        let write = async move {
            // An engine that ends early closes the pipe; its exit code tells why.
            let _ = stdin.write_all(input).await;
            drop(stdin);
            Ok(())
        };
        let read = async {
            let bytes = read_at_most(stdout, MAX_ANSWER + 1).await.map_err(failed)?;
            if bytes.len() > MAX_ANSWER { Err(EngineError::Output) } else { Ok(bytes) }
        };
        let complain = async { read_at_most(stderr, MAX_STDERR).await.map_err(failed) };
        let ((), output, complaint) = tokio::try_join!(write, read, complain)?;
        let status = child.wait().await.map_err(failed)?;
        if status.success() { Ok(output) } else { Err(explain(status, &complaint)) }
    }
}

impl ChartRenderer for Engine {
    fn version(&self) -> &str {
        &self.version
    }

    fn identity(&self) -> Option<Sha256> {
        self.identity.of(&self.path)
    }

    fn answer<'a>(&'a self, input: &'a [u8]) -> Answering<'a> {
        Box::pin(self.run(&[], input))
    }
}

/// Reads to the end, keeps the first bytes and lets the rest go by only so far that a flood ends the reading.
async fn read_at_most(from: impl AsyncRead + Unpin, limit: usize) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(limit as u64).read_to_end(&mut bytes).await?;
    Ok(bytes)
}

/// The engine says what is wrong with a chart in one line and exits with 1; everything else is a bound that was met.
fn explain(status: ExitStatus, stderr: &[u8]) -> EngineError {
    use std::os::unix::process::ExitStatusExt as _;
    let text = String::from_utf8_lossy(stderr);
    let text: String = text.trim().chars().take(MAX_ERROR).collect();
    let says = |words: &[&str]| words.iter().any(|word| text.contains(word));
    if status.code() == Some(1) && !text.is_empty() {
        return EngineError::Chart(text);
    }
    if matches!(status.signal(), Some(libc::SIGXCPU | libc::SIGKILL)) || says(&["SIGXCPU"]) {
        return EngineError::Cpu;
    }
    if says(&["out of memory", "cannot allocate memory", "failed to reserve", "out-of-memory"]) {
        return EngineError::Memory;
    }
    EngineError::Ended { status, stderr: text.lines().next().unwrap_or_default().to_owned() }
}
