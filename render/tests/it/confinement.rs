//! What a program in the engine's place cannot do.

use render::{Engine, EngineError};

use crate::support::probe;

#[tokio::test]
async fn files_programs_sockets_and_others_are_denied() {
    let probe = probe().await;
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
    assert_eq!(probe.run(&["environment"], &[]).await.unwrap(), b"[GOTRACEBACK=none]");
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
