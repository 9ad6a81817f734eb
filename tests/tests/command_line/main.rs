//! The command line of the real binary, as a person or a script meets it: exit code, stdout, stderr.
//!
//! What is printed is compared with the files in `tests/snapshots/`; `UPDATE_SNAPSHOTS=1` writes them anew. Not here: anything that needs a
//! cluster.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod init;
mod preflight;
mod secret;
mod status;

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use system_tests::{TempFolder, binaries};

/// Nobody listens there.
const NOBODY: &str = "127.0.0.1:1";

struct Ended {
    code: i32,
    stdout: String,
    stderr: String,
}

/// Runs `clicklink clctl` with nothing of this process's environment; `{}` in an argument is the folder.
fn clctl(folder: &Path, args: &[&str], stdin: &str) -> Ended {
    let args: Vec<String> = args.iter().map(|arg| arg.replace("{}", &folder.display().to_string())).collect();
    clicklink(folder, &[&["clctl".to_owned()], args.as_slice()].concat(), stdin)
}

fn clicklink(folder: &Path, args: &[String], stdin: &str) -> Ended {
    let mut child = Command::new(&binaries().clicklink)
        .args(args)
        .env_clear()
        .env("HOME", folder)
        .env("NO_COLOR", "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A command that reads nothing may be gone already.
    let _ = child.stdin.take().unwrap().write_all(stdin.as_bytes());
    let output = child.wait_with_output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).replace(&folder.display().to_string(), "<folder>");
    Ended { code: output.status.code().unwrap(), stdout: text(&output.stdout), stderr: text(&output.stderr) }
}

/// Runs each line and compares all that came with `snapshots/<name>.txt`.
fn snapshot(name: &str, lines: &[&[&str]]) {
    let folder = TempFolder::new("command-line").unwrap();
    let mut told = String::new();
    for args in lines {
        let ended = clctl(folder.path(), args, "");
        let line = args.join(" ").replace("{}", "<folder>");
        told.push_str(&format!("$ clicklink clctl {line}\nexit code {}\n", ended.code));
        for (stream, text) in [("stdout", &ended.stdout), ("stderr", &ended.stderr)] {
            if !text.is_empty() {
                told.push_str(&format!("--- {stream}\n{}\n", text.trim_end()));
            }
        }
        told.push('\n');
    }
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/snapshots/{name}.txt"));
    if std::env::var_os("UPDATE_SNAPSHOTS").is_some() {
        std::fs::write(&file, &told).unwrap();
    }
    let expected = std::fs::read_to_string(&file).unwrap_or_default();
    assert_eq!(told, expected, "{} differs; UPDATE_SNAPSHOTS=1 writes it anew", file.display());
}

#[test]
fn each_noun_tells_what_it_can_do() {
    snapshot(
        "help",
        &[
            &["--help"],
            &["platform", "--help"],
            &["executor", "access", "--help"],
            &["commands", "--help"],
            &["init", "--help"],
            &["preflight", "--help"],
            &["status", "--help"],
            &["completion", "--help"],
        ],
    );
}

#[test]
fn what_is_not_understood_is_usage() {
    snapshot(
        "usage",
        &[
            &["--nonsense"],
            &["platfrom"],
            &["status", "-o", "xml"],
            &["commands", "get"],
            &["commands", "get", "not-an-id"],
            &["commands", "list", "--status", "done"],
            &["init", "--region", "eu-west-1"],
            &["init", "--enroll", "https://m", "--handoff", "h", "--region", "eu-west-1"],
            &["platform", "approve", "--ttl", "5m"],
            &["platform", "approve", "--detailed-exitcode"],
            &["platform", "approve", "--endpoint", "ftp://127.0.0.1"],
            &["platform", "approve", "--show", "none,changes"],
            &["platform", "show", "--endpoint", "127.0.0.1:9999"],
            &["status", "--endpoint", "http://user:word@127.0.0.1"],
            &["preflight", "--timeout", "0s"],
            &["completion", "tcsh"],
        ],
    );
}

/// What says how to approve says nothing to taking an approval back, and is not passed over.
#[test]
fn a_revocation_takes_no_flag_that_it_would_ignore() {
    let folder = TempFolder::new("command-line").unwrap();
    let flags: [&[&str]; 14] = [
        &["--bundle", "b"],
        &["--endpoint", "http://127.0.0.1:1"],
        &["--ttl", "3h"],
        &["--server", "https://k"],
        &["--ca-data", "c"],
        &["--registry-config", "r"],
        &["--registry-ca-file", "r"],
        &["--replace"],
        &["--take-over"],
        &["--prune"],
        &["--prune", "--prune-crds"],
        &["--output", "json"],
        &["--show", "all"],
        &["--dry-run", "--detailed-exitcode"],
    ];
    for more in flags {
        let ended = clctl(folder.path(), &[&["platform", "approve", "--revoke"], more].concat(), "");
        assert_eq!(ended.code, 2, "{more:?}: {}", ended.stderr);
        assert!(ended.stderr.starts_with("error[usage]: the argument '--revoke' cannot be used with"), "{more:?}: {}", ended.stderr);
    }
    // Where the connector is may be said.
    let ended = clctl(folder.path(), &["platform", "approve", "--revoke", "--config", "c", "--kubeconfig", "{}/none", "--yes"], "");
    assert!(ended.stderr.starts_with("error[kubeconfig_unusable]: "), "{}", ended.stderr);
}

#[test]
fn without_an_executor_the_way_to_one_is_told() {
    let endpoint = &format!("http://{NOBODY}");
    snapshot(
        "no-executor",
        &[
            &["status", "--endpoint", endpoint],
            &["commands", "list", "--endpoint", endpoint, "-v"],
            &["commands", "get", "019b0000-0000-7000-8000-000000000001", "--endpoint", endpoint],
            &["platform", "approve", "--endpoint", endpoint, "--output-dir", "{}"],
            &["platform", "approve", "--output-dir", "{}"],
            &["platform", "approve", "--output-dir", "{}/nowhere"],
            &["status", "--endpoint", "nonsense"],
        ],
    );
}

#[test]
fn what_is_missing_on_an_empty_machine_is_told() {
    snapshot(
        "empty-machine",
        &[
            &["platform", "approve", "--config", "{}/config.yaml", "--output-dir", "{}"],
            &["platform", "approve", "--bundle", "{}/bundle.json", "--output-dir", "{}"],
            &["executor", "access", "grant", "--cluster", "--output-dir", "{}", "--kubeconfig", "{}/kubeconfig"],
            &["init", "--enroll", "https://127.0.0.1:1", "--region", "r", "--config", "{}/a/config.yaml", "--state-dir", "{}/s"],
            &["init", "--enroll", "http://m", "--region", "r", "--config", "{}/b/config.yaml", "--state-dir", "{}/s"],
            &["init", "--handoff", "{}/handoff.yaml", "--region", "r", "--config", "{}/b/config.yaml", "--state-dir", "{}/s"],
        ],
    );
}

#[test]
fn the_daemon_names_its_code_and_exits_with_it() {
    let folder = TempFolder::new("command-line").unwrap();
    let config = folder.path().join("config.yaml");
    let start = || clicklink(folder.path(), &["executor".into(), "--config".into(), config.display().to_string()], "");
    let check = |expected: &str| {
        let ended = start();
        assert_eq!(ended.code, 78, "{}", ended.stderr);
        assert!(ended.stderr.contains(&format!("error[{expected}]: ")), "{}", ended.stderr);
    };
    check("config_missing");
    std::fs::write(&config, "cloud: aws\ncluod: aws\n").unwrap();
    check("config_invalid");
    write_config(folder.path(), NOBODY);
    check("credentials_missing");
}

#[test]
fn a_completion_script_knows_the_commands() {
    let folder = TempFolder::new("command-line").unwrap();
    for shell in ["bash", "zsh", "fish"] {
        let ended = clctl(folder.path(), &["completion", shell], "");
        assert_eq!((ended.code, ended.stderr.as_str()), (0, ""));
        assert!(ended.stdout.contains("preflight") && ended.stdout.contains("approve"), "{shell}");
    }
}

fn write_config(folder: &Path, endpoint: &str) {
    let at = folder.display();
    let text = format!(
        "pcm_infra_uuid: 019b0000-0000-7000-8000-000000000001\ncloud: aws\nregion: r\napi:\n  endpoint: https://{endpoint}\n  \
         access_key_file: {at}/access-key\n  secret_key_file: {at}/secret-key\n  tls:\n    cert_file: {at}/client.crt\n    \
         key_file: {at}/client.key\n    ca_file: {at}/ca.crt\nexecutor:\n  db_path: {at}/state/executor.db\n  access_dir: {at}/access\n"
    );
    std::fs::write(folder.join("config.yaml"), text).unwrap();
}
