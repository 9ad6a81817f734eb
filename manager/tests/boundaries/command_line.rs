//! The boundary to people: exit codes, stdout and stderr of the real binary against the real server.

use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use serde_json::{Value, json};

use crate::server::Server;

#[test]
fn the_first_token_ends_the_bootstrap_token() {
    let server = Server::start();
    assert!(!server.data().join("bootstrap-token").exists());
    let tokens = server.json(&["token", "list"]);
    assert_eq!((&tokens[0]["name"], &tokens[0]["permissions"][0]), (&"test".into(), &"admin".into()));
    let error = server.fail(&["token", "revoke", "test"]);
    assert!(error.contains("last valid token") && error.contains("hint: make another one first"), "{error}");
    let second = server.run(&["token", "create", "second"]);
    let file = server.file("second", &second);
    server.run(&["token", "revoke", "second"]);
    let error = server.fail(&["cluster", "list", "--token-file", &file]);
    assert!(error.contains("a valid bearer token is needed"), "{error}");
}

#[test]
fn what_is_refused_says_why_and_what_next() {
    let server = Server::start();
    server.run(&["cluster", "create", "c"]);
    let environment = ["environment", "create", "e", "--cluster", "c", "--registry-mode", "anonymous", "--chart-base", "oci://r/p"];
    server.run(&environment);
    let check = |arguments: &[&str], expected: &str| {
        let error = server.fail(arguments);
        assert!(error.contains(expected), "{arguments:?}: {error}");
    };
    check(&["cluster", "create", "c"], "cluster `c` is there already");
    check(&["cluster", "create", "Upper"], "not a DNS label");
    check(&["cluster", "list", "--endpoint", "https://127.0.0.1:1"], "error[manager_unreachable]: ");
    check(&["cluster", "list", "--token-file", "/nowhere/token"], "error[file_unreadable]: ");
    check(&["release", "create", "-f", "/nowhere/release.yaml"], "error[");
    check(&["release", "create", "-f", &server.file("none.yaml", "name: [")], "error[");
    check(&environment, "cluster `c` has the environment `e`");
    check(&["environment", "get", "x"], "environment `x` is not there");
    check(&["executor", "get", "x"], "executor `x` is not there");
    check(&["release", "propose", "r", "--environment", "e"], "release `r` is not there");
    check(&["release", "manifest", "r", "--environment", "e"], "nothing was proposed to environment `e`");
    check(&["environment", "rearm", "e"], "hint: propose a release");

    let release = |name: &str, part: &str| server.file(name, &format!("name: r\nnamespaces: [ns1]\ncomponents:\n- name: a\n  {part}\n"));
    let digest = format!("sha256:{}", "1".repeat(64));
    let chart = format!("chart: {{name: a, version: '1', digest: '{digest}'}}");
    let create = |name: &str, part: &str, expected: &str| check(&["release", "create", "-f", &release(name, part)], expected);
    create("secret.yaml", &format!("{chart}\n  values: {{auth: {{password: x}}}}"), "components[0].values.auth.password");
    create("typo.yaml", &format!("{chart}\n  imagez: []"), "unknown field `imagez`");
    create("tag.yaml", &format!("{chart}\n  images: ['r/x:latest']"), "components[0].images[0]");
    create("double.yaml", &format!("{chart}\n  name: b"), "duplicate");
    server.run(&["release", "create", "-f", &release("good.yaml", &chart)]);
    create("other.yaml", &format!("{chart}\n  values: {{a: 1}}"), "a release never changes");
    assert_eq!(server.run(&["release", "list", "-o", "name"]), "r");
}

#[test]
fn exit_codes_and_the_data_folder() {
    let server = Server::start();
    let misunderstood = server.output(&["cluster", "frob"]);
    assert_eq!(misunderstood.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&misunderstood.stderr).starts_with("error[usage]: "), "{misunderstood:?}");
    let help = server.output(&["cluster", "--help"]);
    assert!(help.status.success() && help.stderr.is_empty() && !help.stdout.is_empty(), "{help:?}");
    let silent =
        Command::new(env!("CARGO_BIN_EXE_navin-manager")).args(["cluster", "list"]).env_remove("NAVIN_MANAGER_TOKEN").output().unwrap();
    assert_eq!(silent.status.code(), Some(1));
    let told = String::from_utf8_lossy(&silent.stderr);
    assert!(told.starts_with("error[no_token]: ") && told.contains("hint: give --token-file"), "{told}");
    for entry in server.data().read_dir().unwrap().map(Result::unwrap) {
        let mode = entry.metadata().unwrap().permissions().mode() & 0o777;
        let public = ["ca.crt", "lock"].iter().any(|name| entry.file_name() == *name);
        assert_eq!(mode, if public { 0o644 } else { 0o600 }, "{:?}", entry.file_name());
    }
    let data = server.data().display().to_string();
    let second = server.fail(&["serve", "--data-dir", &data, "--listen", "127.0.0.1:0"]);
    assert!(second.starts_with("error[server_failed]: ") && second.contains("in use by another"), "{second}");
}

#[tokio::test]
async fn every_write_is_on_record() {
    let server = Server::start();
    server.run(&["cluster", "create", "c"]);
    server.fail(&["cluster", "create", "c"]);
    server.run(&["cluster", "list"]);
    let file = server.file("stranger", "nvm_stranger");
    server.fail(&["cluster", "create", "d", "--token-file", &file]);
    let export = |more: &[&str]| {
        let text = server.run(&[&["audit", "export"], more].concat());
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect::<Vec<Value>>()
    };
    let told = |entry: &Value| {
        let text = |key: &str| entry[key].as_str().unwrap().to_owned();
        format!("{} {} {} {} {} {}", entry["number"], text("what"), text("who"), text("method"), text("path"), entry["status"])
    };
    let entries = export(&[]);
    assert_eq!(
        entries.iter().map(told).collect::<Vec<_>>(),
        [
            "1 call bootstrap POST /api/v1/tokens 201",
            "2 call token:test POST /api/v1/clusters 201",
            "3 call token:test POST /api/v1/clusters 409",
            "4 call - POST /api/v1/clusters 401",
        ]
    );
    assert_eq!(export(&["--after", "3"]), entries[3..]);
    assert_eq!(export(&["--after", "4"]), [] as [Value; 0]);
    assert_eq!(export(&["--since", entries[2]["at"].as_str().unwrap()]).last(), entries.last());
    assert_eq!(export(&["--since", "2100-01-01T00:00:00Z"]), [] as [Value; 0]);
    let page = server.get("/api/v1/audit?limit=3").await;
    assert_eq!((page["entries"].as_array().unwrap().as_slice(), &page["next"], &page["more"]), (&entries[..3], &json!(3), &json!(true)));
    assert_eq!(server.get("/api/v1/audit?limit=0").await["code"], "invalid_request");
    assert_eq!(server.get("/api/v1/audit?since=yesterday").await["code"], "invalid_request");
}

#[tokio::test]
async fn the_record_is_append_only_for_whoever_has_the_file() {
    let server = Server::start();
    let pool = sqlx::SqlitePool::connect(&format!("sqlite:{}", server.data().join("manager.db").display())).await.unwrap();
    let row = "(number, at, who, what) VALUES";
    for statement in [
        "UPDATE audit SET who = 'somebody'".to_owned(),
        "DELETE FROM audit".to_owned(),
        format!("INSERT OR REPLACE INTO audit {row} (1, 0, 'somebody', 'call')"),
        format!("INSERT INTO audit {row} (7, 0, 'somebody', 'call')"),
    ] {
        let refused = sqlx::query(sqlx::AssertSqlSafe(statement.clone())).execute(&pool).await.unwrap_err();
        assert!(refused.to_string().contains("the audit record is append-only"), "{statement}: {refused}");
    }
    assert_eq!(server.run(&["audit", "export"]).lines().count(), 1);
}
