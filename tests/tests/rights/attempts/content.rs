//! Secrets and ConfigMaps of the bundle: their values, their types, and others than the approved ones.

use serde_json::{Value, json};
use system_tests::bundle::NAMESPACE;

use super::{guard, pin};
use crate::ask::{apply, as_executor, config_map, force, merge, object, path_of, put};
use crate::row::{Denial, Row, row};

const SECRET: &str = "monitoring-collectors-endpoints";
const MAP: &str = "monitoring-collectors";

pub(super) fn secrets() -> Vec<Row> {
    let mut rows = types();
    rows.extend(values());
    rows
}

/// Types to which controllers answer with a credential.
fn types() -> Vec<Row> {
    let token = "a token that never ends, of any account here";
    let of_account = |mut secret: Value| {
        secret["type"] = json!("kubernetes.io/service-account-token");
        put(&mut secret, "/metadata/annotations/kubernetes.io~1service-account.name", json!("clickhouse-operator"));
        secret
    };
    let new = || object("v1", "Secret", Some(NAMESPACE), "x", json!({"data": {"a": "Yg=="}}));
    let retyped = |kind: &'static str| {
        move |live: &crate::live::Live| {
            let retyped = live.changed("Secret", SECRET, |secret| {
                secret["type"] = json!(kind);
                let key = if kind == "kubernetes.io/tls" { ["tls.crt", "tls.key"].as_slice() } else { &["a"] };
                secret["data"] = key.iter().map(|key| ((*key).to_owned(), json!("Yg=="))).collect();
            });
            vec![force(retyped).while_gone()]
        }
    };
    vec![
        row("a token Secret under a new name", token, &[Denial::Rbac, guard::SECRET_TYPE, pin::LISTED, pin::SECRET], move |_| {
            vec![apply(of_account(new()))]
        }),
        row("a token Secret in the place of the bundle's", token, &[guard::SECRET_TYPE, pin::ANNOTATIONS, pin::SECRET], move |live| {
            vec![force(live.changed("Secret", SECRET, |secret| *secret = of_account(secret.clone()))).while_gone()]
        }),
        row("the bundle's Secret turned into a token Secret", token, &[Denial::Server("field is immutable")], move |live| {
            vec![force(live.changed("Secret", SECRET, |secret| *secret = of_account(secret.clone())))]
        }),
        row("a bootstrap token in `kube-system`", "a node's identity", &[Denial::Rbac, guard::PLACE], |_| {
            let more =
                json!({"type": "bootstrap.kubernetes.io/token", "stringData": {"token-id": "abcdef", "token-secret": "0123456789abcdef"}});
            vec![apply(object("v1", "Secret", Some("kube-system"), "bootstrap-token-abcdef", more))]
        }),
        row(
            "a bootstrap token in the place of the bundle's Secret",
            "a node's identity",
            &[guard::SECRET_TYPE, pin::TYPE, pin::SECRET],
            retyped("bootstrap.kubernetes.io/token"),
        ),
        row(
            "another type in its place",
            "a Secret that some controller takes up",
            &[guard::SECRET_TYPE, pin::TYPE, pin::SECRET],
            retyped("example.com/theirs"),
        ),
        row("TLS keys in its place", "a certificate of their own, served", &[pin::TYPE, pin::SECRET], retyped("kubernetes.io/tls")),
        row("a Secret that is not the bundle's", "a Secret that somebody mounts", &[Denial::Rbac, pin::LISTED, pin::SECRET], move |_| {
            vec![apply(new())]
        }),
    ]
}

fn values() -> Vec<Row> {
    let hope = "another configuration or password for the platform";
    let changed = |change: fn(&mut Value)| {
        move |live: &crate::live::Live| {
            let secret = live.changed("Secret", SECRET, change);
            vec![force(secret.clone()), force(secret).while_gone()]
        }
    };
    vec![
        row(
            "another value in the bundle's Secret",
            hope,
            &[pin::SECRET],
            changed(|secret| secret["data"]["endpoints.json"] = json!("W10=")),
        ),
        row("one more value", hope, &[pin::SECRET], changed(|secret| secret["data"]["more"] = json!("W10="))),
        row("a value by `stringData`", hope, &[pin::SECRET], changed(|secret| secret["stringData"] = json!({"endpoints.json": "[]"}))),
        row("no values", hope, &[pin::SECRET], changed(|secret| secret["data"] = json!({}))),
        row("a value removed by a merge patch", hope, &[pin::SECRET], |live| {
            vec![merge(as_executor(&path_of(&live.named("Secret", SECRET))), json!({"data": {"endpoints.json": null}}))]
        }),
        row(
            "`immutable` on the Secret",
            "an update that cannot be applied",
            &[pin::TYPE],
            changed(|secret| secret["immutable"] = json!(true)),
        ),
    ]
}

pub(super) fn config_maps() -> Vec<Row> {
    let hope = "another configuration for the platform";
    let changed = |change: fn(&mut Value)| {
        move |live: &crate::live::Live| {
            let gone = live.changed("ConfigMap", "monitoring-collectors-gateway", change);
            vec![force(live.changed("ConfigMap", MAP, change)), force(gone).while_gone()]
        }
    };
    vec![
        row(
            "another value",
            hope,
            &[pin::CONTENT],
            changed(|map| {
                map["data"].as_object_mut().unwrap().values_mut().for_each(|value| *value = json!("theirs"));
            }),
        ),
        row("one more value", hope, &[pin::CONTENT], changed(|map| map["data"]["more"] = json!("theirs"))),
        row("no values", hope, &[pin::CONTENT], changed(|map| map["data"] = json!({}))),
        row("`binaryData`", hope, &[pin::CONTENT], changed(|map| map["binaryData"] = json!({"more": "AA=="}))),
        row(
            "`immutable` on the ConfigMap",
            "an update that cannot be applied",
            &[pin::CONTENT],
            changed(|map| map["immutable"] = json!(true)),
        ),
        row("a value removed by a merge patch", hope, &[pin::CONTENT], |live| {
            vec![merge(as_executor(&path_of(&live.named("ConfigMap", MAP))), json!({"data": {"collector.yaml": null}}))]
        }),
        row("a ConfigMap that is not the bundle's", "a ConfigMap that somebody mounts", &[Denial::Rbac, pin::LISTED], |_| {
            vec![apply(config_map(NAMESPACE, "x"))]
        }),
        row("the ConfigMap with the cluster's CA", "pods that believe another API server", &[Denial::Rbac, guard::LABEL], |_| {
            let mut map = config_map(NAMESPACE, "kube-root-ca.crt");
            map["metadata"]["labels"] = json!({});
            vec![force(map)]
        }),
    ]
}
