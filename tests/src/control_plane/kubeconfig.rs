//! Kubeconfig files as people have them: everything inline, one context.

use serde_json::{Value, json};

use crate::encode::base64;
use crate::pki::Identity;

/// The name of the cluster, and of the context, in every kubeconfig of the testbed.
pub const CONTEXT: &str = "testbed";

pub(super) fn with_certificate(server: &str, ca: &str, user: &str, identity: &Identity) -> Vec<u8> {
    let credentials = json!({
        "client-certificate-data": base64(&identity.certificate),
        "client-key-data": base64(&identity.key),
    });
    document(server, ca, user, credentials)
}

pub(super) fn with_token(server: &str, ca: &str, user: &str, token: &str) -> Vec<u8> {
    document(server, ca, user, json!({ "token": token }))
}

fn document(server: &str, ca: &str, user: &str, credentials: Value) -> Vec<u8> {
    let config = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{
            "name": CONTEXT,
            "cluster": { "server": server, "certificate-authority-data": base64(ca) },
        }],
        "users": [{ "name": user, "user": credentials }],
        "contexts": [{ "name": CONTEXT, "context": { "cluster": CONTEXT, "user": user } }],
        "current-context": CONTEXT,
    });
    // JSON is YAML, which is what every reader of a kubeconfig takes.
    format!("{config:#}\n").into_bytes()
}
