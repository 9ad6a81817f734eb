//! The confinement of the chart engine: a child that confines itself and then becomes the engine.
//!
//! Charts are programs of others. So the program that needs the engine runs itself again as this small mode, which gives up what a
//! template never needs and replaces itself by the engine. It needs no privilege. Where the kernel has no Landlock, everything else
//! still holds; [`landlock_available`] tells.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::ffi::OsString;
use std::io::Write as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, CompatLevel, Compatible as _, PathBeneath, PathFd, Ruleset, RulesetAttr as _,
    RulesetCreatedAttr as _, RulesetStatus, Scope,
};
use rustix::process::{Resource, Rlimit, setrlimit};
use seccompiler::{BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule};

/// First argument of the child mode; what follows is the engine's path and its arguments.
pub const SUBCOMMAND: &str = "engine-sandbox";

/// Address space: 1.5 GiB. The largest real chart that was tried used 132 MB.
pub const MAX_ADDRESS_SPACE: u64 = 1536 << 20;
/// Processor time, in seconds, for two renderings. Large real charts need less than two for one.
pub const MAX_CPU_SECONDS: u64 = 20;
/// Open files.
const MAX_OPEN_FILES: u64 = 64;

/// All of the engine's environment, for its runtime. A traceback helps nobody here, and pages of it would hide the one line that does. An ordinary
/// chart is rendered before so much is allocated that collecting is worth it: a fifth of its time.
const ENVIRONMENT: [(&str, &str); 2] = [("GOGC", "200"), ("GOTRACEBACK", "none")];

/// Exit code when the child could not confine itself or find the engine.
const EXIT_NOT_CONFINED: u8 = 126;

/// The newest Landlock interface that is asked for; older kernels give what they have.
const LANDLOCK: ABI = ABI::V7;

/// System calls that a template engine never makes and that get round the rest: other processes' memory, kernel programs, rings that
/// open sockets by themselves, mounts, namespaces, and signals to others.
const DENIED: [libc::c_long; 24] = [
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_pidfd_open,
    libc::SYS_pidfd_getfd,
    libc::SYS_pidfd_send_signal,
    libc::SYS_kill,
    libc::SYS_rt_sigqueueinfo,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_chroot,
    libc::SYS_pivot_root,
    libc::SYS_kexec_load,
];

/// Bit that marks the x32 form of a system call on x86-64; both forms are denied.
#[cfg(target_arch = "x86_64")]
const X32: libc::c_long = 0x4000_0000;

/// Why the child could not become a confined engine.
#[derive(Debug, thiserror::Error)]
enum ConfineError {
    #[error("usage: {SUBCOMMAND} ENGINE [ARGUMENT…]")]
    Usage,
    #[error("cannot limit {what}")]
    Limit {
        what: &'static str,
        #[source]
        source: rustix::io::Errno,
    },
    #[error("cannot open {path}")]
    Engine {
        path: PathBuf,
        #[source]
        source: landlock::PathFdError,
    },
    #[error("Landlock")]
    Landlock(#[from] landlock::RulesetError),
    #[error("seccomp")]
    Seccomp(#[from] seccompiler::Error),
    #[error("seccomp filter")]
    Filter(#[from] seccompiler::BackendError),
    #[error("cannot run {path}")]
    Exec {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
}

/// Confines this process and becomes the engine. `args` is what follows [`SUBCOMMAND`]: the engine's path, then its arguments.
///
/// Returns only when that failed, with one line on stderr.
pub fn confined_main(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let error = match become_engine(args.into_iter().collect()) {
        Ok(never) => match never {},
        Err(error) => error,
    };
    let mut line = format!("{SUBCOMMAND}: {error}");
    let mut source = std::error::Error::source(&error);
    while let Some(cause) = source {
        line.push_str(&format!(": {cause}"));
        source = cause.source();
    }
    // Nobody is left to tell if stderr is gone.
    let _ = writeln!(std::io::stderr(), "{line}");
    ExitCode::from(EXIT_NOT_CONFINED)
}

/// Whether this kernel enforces Landlock. Asks by making a ruleset and dropping it: nothing is restricted.
#[must_use]
pub fn landlock_available() -> bool {
    let created = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(ABI::V1))
        .and_then(Ruleset::create);
    created.is_ok()
}

fn become_engine(args: Vec<OsString>) -> Result<Infallible, ConfineError> {
    let mut args = args.into_iter();
    let engine = PathBuf::from(args.next().ok_or(ConfineError::Usage)?);
    limit_resources()?;
    restrict_files(&engine)?;
    seccompiler::apply_filter(&filter()?)?;
    let source = Command::new(&engine).args(args).env_clear().envs(ENVIRONMENT).current_dir("/").exec();
    Err(ConfineError::Exec { path: engine, source })
}

fn limit_resources() -> Result<(), ConfineError> {
    let limits = [
        ("address space", Resource::As, MAX_ADDRESS_SPACE, MAX_ADDRESS_SPACE),
        // The soft limit ends the process with a signal that says why; the hard one ends it for certain.
        ("processor time", Resource::Cpu, MAX_CPU_SECONDS, MAX_CPU_SECONDS + 1),
        ("open files", Resource::Nofile, MAX_OPEN_FILES, MAX_OPEN_FILES),
        ("file size", Resource::Fsize, 0, 0),
        ("core dumps", Resource::Core, 0, 0),
    ];
    for (what, resource, current, maximum) in limits {
        let limit = Rlimit { current: Some(current), maximum: Some(maximum) };
        setrlimit(resource, limit).map_err(|source| ConfineError::Limit { what, source })?;
    }
    Ok(())
}

/// Nothing of the file system but the engine itself, no TCP, no abstract sockets and signals to the outside.
fn restrict_files(engine: &Path) -> Result<RulesetStatus, ConfineError> {
    let file = PathFd::new(engine).map_err(|source| ConfineError::Engine { path: engine.to_owned(), source })?;
    let status = Ruleset::default()
        .handle_access(AccessFs::from_all(LANDLOCK))?
        .handle_access(AccessNet::from_all(LANDLOCK))?
        .scope(Scope::from_all(LANDLOCK))?
        .create()?
        .add_rule(PathBeneath::new(file, AccessFs::Execute | AccessFs::ReadFile))?
        .restrict_self()?;
    Ok(status.ruleset)
}

/// Denies every socket but AF_UNIX, and [`DENIED`], with EPERM.
fn filter() -> Result<BpfProgram, seccompiler::BackendError> {
    let not_unix = || {
        let domain = SeccompCondition::new(0, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, libc::AF_UNIX.unsigned_abs().into())?;
        SeccompRule::new(vec![domain])
    };
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> = BTreeMap::new();
    for call in [libc::SYS_socket, libc::SYS_socketpair] {
        rules.insert(call, vec![not_unix()?]);
        #[cfg(target_arch = "x86_64")]
        rules.insert(call | X32, vec![not_unix()?]);
    }
    for call in DENIED {
        rules.insert(call, Vec::new());
        #[cfg(target_arch = "x86_64")]
        rules.insert(call | X32, Vec::new());
    }
    let denial = SeccompAction::Errno(libc::EPERM.unsigned_abs());
    SeccompFilter::new(rules, SeccompAction::Allow, denial, std::env::consts::ARCH.try_into()?)?.try_into()
}
