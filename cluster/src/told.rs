//! Errors of the kube client as they may be told: without what they quote of a kubeconfig, or of what an exec plugin was given and said. Both
//! hold credentials, and an error's `Debug`, which a panic would print, must not hold them either: so only text goes on from here.

use std::error::Error;

use agent_api::chain::chain;
use kube::client::AuthError;
use kube::config::KubeconfigError;

/// Why a kubeconfig is not taken. A parser shows the lines around the place; here it is the place alone.
pub(crate) fn kubeconfig(error: &KubeconfigError) -> String {
    match error {
        KubeconfigError::Parse(error) => format!("not a kubeconfig{}", place(error)),
        other => client(other),
    }
}

/// Why there is no connection, or no answer.
pub(crate) fn client(error: &(dyn Error + 'static)) -> String {
    let mut next = Some(error);
    while let Some(error) = next {
        match error.downcast_ref() {
            Some(AuthError::AuthExecRun { out, .. }) => return format!("the kubeconfig's exec plugin failed: {}", out.status),
            Some(AuthError::AuthExecParse(error)) => {
                return format!("what the kubeconfig's exec plugin printed is no ExecCredential{}", place(error));
            }
            Some(AuthError::ParseTokenKey(_)) => return "the kubeconfig's auth provider gave no token".to_owned(),
            Some(_) | None => next = error.source(),
        }
    }
    chain(error)
}

fn place(error: &serde_saphyr::Error) -> String {
    error.location().map_or_else(String::new, |at| format!(": line {}, column {}", at.line(), at.column()))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;
    use std::path::{Path, PathBuf};

    use serde_json::{Value, json};

    use crate::connect;

    const PLANTED: &str = "planted-5e0b7a";

    fn file(folder: &Path, name: &str, text: &str) -> PathBuf {
        let path = folder.join(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    fn kubeconfig(user: &Value) -> Value {
        json!({"apiVersion": "v1", "kind": "Config", "current-context": "c", "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:1"}}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}], "users": [{"name": "u", "user": user}]})
    }

    /// What a person is told, and what a panic would print.
    async fn told(kubeconfig: &Path) -> (String, String) {
        let failed = match connect::person(Some(kubeconfig), None).await {
            Err(error) => (error.to_string(), format!("{error:?}")),
            Ok(connection) => {
                let error = crate::inventory::cluster_uid(&connection.client).await.unwrap_err();
                (error.to_string(), format!("{error:?}"))
            }
        };
        for text in [&failed.0, &failed.1] {
            assert!(!text.contains(PLANTED), "{text}");
        }
        failed
    }

    #[tokio::test]
    async fn a_kubeconfig_that_is_damaged_is_not_repeated() {
        let folder = tempfile::tempdir().unwrap();
        let texts = [
            format!("users:\n- name: u\n  user:\n    token: {PLANTED}\n   oops: [\n"),
            kubeconfig(&json!(PLANTED)).to_string(),
            kubeconfig(&json!({"token": [PLANTED]})).to_string(),
            kubeconfig(&json!({"client-key-data": PLANTED, "client-certificate-data": PLANTED})).to_string(),
        ];
        for (n, text) in texts.iter().enumerate() {
            let (told, _) = told(&file(folder.path(), &n.to_string(), text)).await;
            assert!(told.starts_with("kubeconfig: ") || told.starts_with("the connection could not be set up: "), "{told}");
        }
    }

    #[tokio::test]
    async fn an_exec_plugin_is_not_repeated() {
        let folder = tempfile::tempdir().unwrap();
        let plugin = |name: &str, script: &str| {
            let path = file(folder.path(), name, &format!("#!/bin/sh\n{script}\n"));
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
            let exec = json!({"apiVersion": "client.authentication.k8s.io/v1", "command": path, "args": [PLANTED], "interactiveMode": "Never",
                "env": [{"name": "SOME_KEY", "value": PLANTED}]});
            file(folder.path(), &format!("{name}.kubeconfig"), &kubeconfig(&json!({"exec": exec})).to_string())
        };
        let fails = plugin("fails", "echo $SOME_KEY; echo $SOME_KEY >&2; exit 3");
        assert!(told(&fails).await.0.ends_with("the kubeconfig's exec plugin failed: exit status: 3"), "{:?}", told(&fails).await);
        let odd = plugin("odd", &format!("echo '{{\"apiVersion\": \"v1\", \"status\": \"{PLANTED}\"}}'"));
        assert!(told(&odd).await.0.contains("what the kubeconfig's exec plugin printed is no ExecCredential"), "{:?}", told(&odd).await);
    }
}
