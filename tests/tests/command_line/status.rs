//! `clctl status` and `commands get` against a local API that says what the test wants.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;

use serde_json::{Value, json};
use system_tests::TempFolder;

use crate::clctl;

const SHA: &str = "3f786850e387550fdab836ed7e6dc881de23001b0f0b0d9f1e2c3a4b5c6d7e8f";

/// A local API that answers each request with the same document.
fn answering(status: &str, body: String) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    let answer = format!("HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}", body.len());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let _ = stream.read(&mut [0; 4096]);
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    endpoint
}

#[test]
fn status_tells_where_the_platform_stands_and_what_to_run() {
    let folder = TempFolder::new("command-line").unwrap();
    let platform = json!({"status": "approval_required", "pending_sha256": SHA, "approved_sha256": null, "approval_expires_at": null,
        "applied_sha256": null, "attempts": 0, "message": null, "leftovers": 0});
    let component = json!({"name": "collectors", "chart_version": null, "app_version": null, "images": [], "state": null,
        "health": "unknown", "operation_state": "blocked", "security_state": "unknown", "ready": 0, "desired": 0, "message": null,
        "observed_at": null});
    let cluster = json!({"uid": null, "kubernetes_version": null, "api_address": null, "reachable": false, "observed_at": null});
    let seen = json!({"platform": platform, "components": [component], "cluster": cluster,
        "access": {"cluster": "absent", "platform": "absent"}, "of_a_later_version": 1});
    let endpoint = answering("200 OK", seen.to_string());
    let next = "clicklink clctl platform approve";

    let table = clctl(folder.path(), &["status", "--endpoint", &endpoint, "-o", "table"], "");
    assert_eq!(table.code, 0, "{}", table.stderr);
    assert!(table.stdout.starts_with(&format!("Platform:  approval_required\nPending:   {SHA}\n")), "{}", table.stdout);
    assert!(table.stdout.contains("Cluster:   not reachable, read never\n"), "{}", table.stdout);
    let why =
        format!("approve the pending bundle, sha {SHA}:\nnext: {next}\nlet the executor see the cluster:\nnext: clicklink clctl executor ");
    assert!(table.stderr.starts_with(&why), "{}", table.stderr);

    let document = clctl(folder.path(), &["status", "--endpoint", &endpoint], "");
    let document: Value = serde_json::from_str(&document.stdout).unwrap();
    assert_eq!(document["next"][0], next);
    assert_eq!(document["old"], json!(["cluster: never read", "component collectors: never read"]));
    assert_eq!(document["platform"]["pending_sha256"], SHA);
    assert_eq!(clctl(folder.path(), &["status", "--endpoint", &endpoint, "-o", "name"], "").stdout, "collectors\n");
    let told = clctl(folder.path(), &["status", "--endpoint", &endpoint, "-o", "name", "-v"], "").stderr;
    assert!(told.starts_with(&format!("GET {endpoint}/v1/platform\nHTTP 200, ")), "{told}");

    let other = answering("200 OK", "<html>".into());
    let ended = clctl(folder.path(), &["status", "--endpoint", &other], "");
    assert_eq!(ended.code, 1);
    assert!(ended.stderr.starts_with("error[local_api_answer]: "), "{}", ended.stderr);
    let problem = json!({"status": 404, "code": "not_found", "title": "Not found", "detail": "there is no command x"});
    let unknown = answering("404 Not Found", problem.to_string());
    let ended = clctl(folder.path(), &["commands", "get", "019b0000-0000-7000-8000-000000000001", "--endpoint", &unknown], "");
    assert!(ended.stderr.starts_with("error[not_found]: there is no command x\nhint: "), "{}", ended.stderr);
}
