//! A file that holds a credential and is damaged is told of by its place; nothing of what it holds comes back.

use std::os::unix::fs::PermissionsExt as _;

use serde_json::{Value, json};
use system_tests::TempFolder;

use crate::clctl;

const PLANTED: &str = "planted-5e0b7a";

fn kubeconfig(user: &Value) -> String {
    json!({"apiVersion": "v1", "kind": "Config", "current-context": "c", "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:1"}}], "users": [{"name": "u", "user": user}]})
    .to_string()
}

#[test]
fn what_a_damaged_file_holds_is_not_repeated() {
    let folder = TempFolder::new("command-line").unwrap();
    let file = |name: &str, text: &str| folder.write(name, text).unwrap();
    let check = |args: &[&str], expected: &str| {
        let ended = clctl(folder.path(), args, "");
        assert!(ended.code != 0 && ended.stderr.contains(expected), "{args:?}: {}", ended.stderr);
        assert!(!format!("{}{}", ended.stdout, ended.stderr).contains(PLANTED), "{args:?}: {}", ended.stderr);
    };
    let show = ["platform", "show", "--kubeconfig", "{}/kubeconfig"];
    file("kubeconfig", &format!("users:\n- name: u\n  user:\n    token: {PLANTED}\n   oops: [\n"));
    check(&show, "error[kubeconfig_unusable]: kubeconfig: not a kubeconfig: line ");
    file("kubeconfig", &kubeconfig(&json!(PLANTED)));
    check(&show, "error[kubeconfig_unusable]: kubeconfig: not a kubeconfig: line 1");

    let plugin = file("plugin", &format!("#!/bin/sh\necho {PLANTED}\nexit 3\n"));
    std::fs::set_permissions(&plugin, std::fs::Permissions::from_mode(0o755)).unwrap();
    let exec = json!({"apiVersion": "client.authentication.k8s.io/v1", "command": plugin, "interactiveMode": "Never",
        "env": [{"name": "SOME_KEY", "value": PLANTED}]});
    file("kubeconfig", &kubeconfig(&json!({"exec": exec})));
    check(&show, "the kubeconfig's exec plugin failed: exit status: 3");

    file("handoff.yaml", &format!("secret_key: {PLANTED}\n  access_key: [\n"));
    check(
        &["init", "--handoff", "{}/handoff.yaml", "--region", "r", "--config", "{}/config.yaml", "--state-dir", "{}/s"],
        "error[handoff_invalid]: ",
    );
}
