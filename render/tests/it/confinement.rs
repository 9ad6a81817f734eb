//! What a program in the engine's place cannot do.

use render::{Engine, EngineError};

use crate::engine::render_with;
use crate::support::{Elsewhere, capabilities, chart, probe};

#[tokio::test]
async fn files_programs_sockets_and_others_are_denied() {
    everything_is_denied(&probe().await).await;
}

/// An ordinary user: what root gave up it never had, and everything that confines needs no privilege.
#[tokio::test]
async fn an_ordinary_user_is_confined_as_root_is() {
    holds_through(&["/usr/bin/setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--"]).await;
}

/// As in a pod that is restricted: a user namespace in which nobody has capabilities, and none can be gained.
#[tokio::test]
async fn a_container_without_privileges_is_confined_as_root_is() {
    holds_through(&["/usr/bin/unshare", "--user", "--ipc", "--uts", "/usr/bin/setpriv", "--no-new-privs", "--"]).await;
}

async fn holds_through(command: &[&str]) {
    let Some(elsewhere) = Elsewhere::through(command).await else { return };
    everything_is_denied(&elsewhere.probe).await;
    let memory = elsewhere.probe.run(&["memory"], &[]).await;
    assert!(matches!(memory, Err(EngineError::Memory)), "{memory:?}");
    let flood = elsewhere.probe.run(&["flood"], &[]).await;
    assert!(matches!(flood, Err(EngineError::Output)), "{flood:?}");
    let archive = chart("c", &[("templates/x.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Release.Name }}}\n")]);
    let output = render_with(&elsewhere.engine, &archive, serde_json::json!({}), 0, &capabilities()).await.unwrap();
    assert_eq!(output.objects[0].object["metadata"]["name"], "rel");
}

async fn everything_is_denied(probe: &Engine) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file").display().to_string();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let mut table = vec![vec!["tcp", &address], vec!["udp", &address], vec!["netlink"], vec!["io_uring"], vec!["signal"]];
    if Engine::landlock() {
        table.extend([
            vec!["read", "/etc/passwd"],
            vec!["read", "/proc/self/environ"],
            vec!["list", "/"],
            vec!["write", &file],
            vec!["exec", "/bin/true"],
        ]);
    }
    for args in table {
        let answer = String::from_utf8(probe.run(&args, &[]).await.unwrap()).unwrap();
        assert!(answer.starts_with("denied: "), "{args:?}: {answer}");
    }
    assert_eq!(probe.run(&["unix"], &[]).await.unwrap(), b"done");
    assert_eq!(probe.run(&["environment"], &[]).await.unwrap(), b"[GOGC=200 GOTRACEBACK=none]");
}

#[tokio::test]
async fn memory_processor_time_and_output_are_bounded() {
    let probe = probe().await;
    let (memory, flood, spin, fail) =
        tokio::join!(probe.run(&["memory"], &[]), probe.run(&["flood"], &[]), probe.run(&["spin"], &[]), probe.run(&["fail"], &[]));
    assert!(matches!(memory, Err(EngineError::Memory)), "{memory:?}");
    assert!(matches!(flood, Err(EngineError::Output)), "{flood:?}");
    assert!(matches!(spin, Err(EngineError::Cpu)), "{spin:?}");
    assert_eq!(fail.unwrap_err().to_string(), "chart/templates/x.yaml:3: no such value");
}

#[tokio::test]
async fn the_wall_clock_ends_a_sleeper() {
    let probe = probe().await;
    tokio::time::pause();
    let answer = probe.run(&["sleep"], &[]).await;
    assert!(matches!(answer, Err(EngineError::Time)), "{answer:?}");
}

#[tokio::test]
async fn an_engine_that_is_not_there_is_named() {
    let missing = std::path::PathBuf::from("/nowhere/clicklink-render");
    let error = Engine::at(missing, env!("CARGO_BIN_EXE_engine-sandbox").into()).await.unwrap_err().to_string();
    assert!(error.contains("/nowhere/clicklink-render"), "{error}");
}
