//! What the tests stand on: the engine, built once; charts made of texts; a manifest.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use agent_api::approval::Capabilities;
use agent_api::digest::OciDigest;
use agent_api::manifest::{Bundle, Manifest};
use render::Engine;
use serde_json::{Value, json};

pub(crate) mod registry;

/// Builds a Go program of this crate once for each run of the tests.
fn go_program(folder: &str, name: &str) -> PathBuf {
    let place = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let (out, built) = (place.join(name), place.join(format!("{name}-{}", std::process::id())));
    let status = Command::new("go")
        .args(["build", "-trimpath", "-ldflags=-s -w", "-o"])
        .arg(&built)
        .arg(".")
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join(folder))
        .env("CGO_ENABLED", "0")
        .status()
        .expect("Go is installed");
    assert!(status.success(), "{folder} does not build");
    // Moved into place: another run of the tests may be using the old one.
    std::fs::rename(&built, &out).unwrap();
    out
}

fn sandbox() -> PathBuf {
    PathBuf::from(env!("CARGO_BIN_EXE_engine-sandbox"))
}

fn engine_path() -> PathBuf {
    static PATH: OnceLock<PathBuf> = OnceLock::new();
    PATH.get_or_init(|| go_program("engine", "clicklink-render")).clone()
}

fn probe_path() -> PathBuf {
    static PATH: OnceLock<PathBuf> = OnceLock::new();
    PATH.get_or_init(|| go_program("tests/probe", "probe")).clone()
}

/// The real engine.
pub(crate) async fn engine() -> Engine {
    Engine::at(engine_path(), sandbox()).await.unwrap()
}

/// The program that tries what an engine must not do.
pub(crate) async fn probe() -> Engine {
    Engine::at(probe_path(), sandbox()).await.unwrap()
}

/// Engine and probe as somebody else than the test runs them.
pub(crate) struct Elsewhere {
    pub(crate) engine: Engine,
    pub(crate) probe: Engine,
    _folder: tempfile::TempDir,
}

impl Elsewhere {
    /// Started through this command; none, with a word on stdout, where this machine refuses the command itself.
    #[expect(clippy::print_stdout, reason = "the test runner shows what this machine cannot cover")]
    pub(crate) async fn through(command: &[&str]) -> Option<Self> {
        let allowed = Command::new(command[0]).args(&command[1..]).arg("/bin/true").output().is_ok_and(|output| output.status.success());
        if !allowed {
            println!("not covered here: {}", command.join(" "));
            return None;
        }
        let folder = tempfile::Builder::new().permissions(Permissions::from_mode(0o755)).tempdir().unwrap();
        // By another program: a file that this one has written may still be open in a child that is about to start.
        let copied = |path: PathBuf| {
            let status = Command::new("cp").arg(&path).arg(folder.path()).status().unwrap();
            assert!(status.success(), "{} cannot be copied", path.display());
            folder.path().join(path.file_name().unwrap())
        };
        let (engine, probe, sandbox) = (copied(engine_path()), copied(probe_path()), copied(sandbox()));
        let script = tempfile::tempdir().unwrap();
        let start = script.path().join("start");
        std::fs::write(&start, format!("#!/bin/sh\nexec {} {} \"$@\"\n", command.join(" "), sandbox.display())).unwrap();
        std::fs::set_permissions(&start, Permissions::from_mode(0o755)).unwrap();
        let start = copied(start);
        let engine = Engine::at(engine, start.clone()).await.unwrap();
        Some(Self { engine, probe: Engine::at(probe, start).await.unwrap(), _folder: folder })
    }
}

/// A chart's archive; paths are below the chart's folder. `Chart.yaml` is added where it is not given.
pub(crate) fn chart(name: &str, files: &[(&str, &str)]) -> Vec<u8> {
    let metadata = format!("apiVersion: v2\nname: {name}\nversion: 1.0.0\nappVersion: \"7\"\n");
    let mut entries: Vec<(&str, &[u8])> = files.iter().map(|(path, text)| (*path, text.as_bytes())).collect();
    if files.iter().all(|(path, _)| *path != "Chart.yaml") {
        entries.insert(0, ("Chart.yaml", metadata.as_bytes()));
    }
    archive(name, &entries)
}

/// A gzipped tar of files below one folder.
pub(crate) fn archive(folder: &str, entries: &[(&str, &[u8])]) -> Vec<u8> {
    let mut tar = tar::Builder::new(flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast()));
    for (path, bytes) in entries {
        let mut header = tar::Header::new_gnu();
        header.set_size(bytes.len() as u64);
        header.set_mode(0o644);
        tar.append_data(&mut header, format!("{folder}/{path}"), *bytes).unwrap();
    }
    tar.into_inner().unwrap().finish().unwrap()
}

/// What the tests' cluster serves.
pub(crate) fn capabilities() -> Capabilities {
    Capabilities {
        kube_version: "v1.37.2".into(),
        api_versions: vec!["apps/v1".into(), "apps/v1/Deployment".into(), "v1".into()],
        ..Capabilities::default()
    }
}

/// A component in namespace `platform` whose release has its name.
pub(crate) fn component(name: &str, digest: &OciDigest, values: Value) -> Value {
    json!({"name": name, "namespace": "platform", "release": name, "images": [], "values": values,
        "chart": {"name": name, "version": "1.0.0", "digest": digest.to_string()}})
}

/// A manifest over a registry at `host`.
pub(crate) fn manifest(host: &str, mode: &str, components: Vec<Value>) -> Manifest {
    let text = json!({
        "apiVersion": "clicklink.io/v1", "kind": "PlatformBundle", "environment": "env-1", "createdAt": "2026-11-30T10:00:00Z",
        "registry": {"mode": mode, "chartBase": format!("oci://{host}/charts")},
        "namespaces": ["platform"], "components": components, "objects": []
    });
    Bundle::parse(text.to_string()).unwrap().manifest().clone()
}
