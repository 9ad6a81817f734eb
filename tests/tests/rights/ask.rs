//! Requests with a real token and no library in between, and the forms that writes can have.

use agent_api::keys::PINNED;
use agent_api::names::FIELD_MANAGER_EXECUTOR;
use reqwest::Method;
use serde_json::{Value, json};
use system_tests::landscape::Landscape;

use crate::row::{Request, When};

pub(crate) const MERGE: &str = "application/merge-patch+json";
pub(crate) const STRATEGIC: &str = "application/strategic-merge-patch+json";
pub(crate) const JSON_PATCH: &str = "application/json-patch+json";
pub(crate) const JSON: &str = "application/json";
const APPLY: &str = "application/apply-patch+yaml";

/// Somebody with a bearer token of an account in the home namespace.
pub(crate) struct Identity {
    pub(crate) account: &'static str,
    http: reqwest::Client,
    server: String,
    token: String,
}

impl Identity {
    /// With the token that lies in one of the connector's bundles.
    pub(crate) fn of_bundle(landscape: &Landscape, account: &'static str, bundle: &str) -> Self {
        let token = std::fs::read_to_string(landscape.connector.access_dir().join(bundle).join("token")).unwrap();
        Self::with_token(landscape, account, token.trim())
    }

    pub(crate) fn with_token(landscape: &Landscape, account: &'static str, token: &str) -> Self {
        let ca = reqwest::Certificate::from_pem(landscape.control_plane.ca().as_bytes()).unwrap();
        Self {
            account,
            http: reqwest::Client::builder().no_proxy().tls_certs_only([ca]).build().unwrap(),
            server: landscape.control_plane.url().to_owned(),
            token: token.to_owned(),
        }
    }

    /// Status, and the message of a refusal or the text of an answer.
    pub(crate) async fn ask(&self, asked: &Request) -> (u16, String) {
        let mut request = self.http.request(asked.method.clone(), format!("{}{}", self.server, asked.path)).bearer_auth(&self.token);
        for (name, value) in &asked.headers {
            request = request.header(*name, *value);
        }
        if let Some((media, body)) = &asked.body {
            request = request.header("content-type", *media).body(body.to_string());
        }
        let answer = request.send().await.unwrap();
        let status = answer.status().as_u16();
        let text = answer.text().await.unwrap();
        let message = serde_json::from_str::<Value>(&text).ok().and_then(|body| Some(body.get("message")?.as_str()?.to_owned()));
        (status, message.unwrap_or(text))
    }
}

pub(crate) fn ask(method: Method, path: impl Into<String>) -> Request {
    Request { method, path: path.into(), headers: Vec::new(), body: None, when: When::Present }
}

pub(crate) fn get(path: impl Into<String>) -> Request {
    ask(Method::GET, path)
}

pub(crate) fn delete(path: impl Into<String>) -> Request {
    ask(Method::DELETE, path)
}

pub(crate) fn post(path: impl Into<String>, body: Value) -> Request {
    ask(Method::POST, path).body(JSON, body)
}

pub(crate) fn merge(path: impl Into<String>, body: Value) -> Request {
    ask(Method::PATCH, path).body(MERGE, body)
}

/// Server-side apply as the executor does it.
pub(crate) fn apply(object: Value) -> Request {
    apply_as(object, FIELD_MANAGER_EXECUTOR)
}

/// The same, over whatever other managers own.
pub(crate) fn force(object: Value) -> Request {
    apply_as(object, &format!("{FIELD_MANAGER_EXECUTOR}&force=true"))
}

pub(crate) fn apply_as(object: Value, manager: &str) -> Request {
    let path = format!("{}?fieldManager={manager}", path_of(&object));
    ask(Method::PATCH, path).body(APPLY, object)
}

/// A path under which a write names the executor's field manager.
pub(crate) fn as_executor(path: &str) -> String {
    format!("{path}?fieldManager={FIELD_MANAGER_EXECUTOR}")
}

/// `/apis/<group>/<version>/namespaces/<namespace>/<plural>/<name>`.
pub(crate) fn path_of(object: &Value) -> String {
    format!("{}/{}", collection_of(object), object["metadata"]["name"].as_str().unwrap())
}

pub(crate) fn collection_of(object: &Value) -> String {
    let kind = object["kind"].as_str().unwrap().to_lowercase();
    let plural = match kind.as_str() {
        "endpoints" => kind,
        _ if kind.ends_with('s') => format!("{kind}es"),
        _ if kind.ends_with('y') => format!("{}ies", kind.trim_end_matches('y')),
        _ => format!("{kind}s"),
    };
    let api_version = object["apiVersion"].as_str().unwrap();
    let base = if api_version == "v1" { "/api/v1".to_owned() } else { format!("/apis/{api_version}") };
    match object["metadata"]["namespace"].as_str() {
        Some(namespace) => format!("{base}/namespaces/{namespace}/{plural}"),
        None => format!("{base}/{plural}"),
    }
}

/// An object that carries the label of the pinned ones, so that no layer overlooks it for want of it.
pub(crate) fn object(api_version: &str, kind: &str, namespace: Option<&str>, name: &str, more: Value) -> Value {
    let mut object = json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name, "labels": {PINNED: "true"}}});
    if let Some(namespace) = namespace {
        object["metadata"]["namespace"] = json!(namespace);
    }
    if let Value::Object(more) = more {
        object.as_object_mut().unwrap().extend(more);
    }
    object
}

pub(crate) fn config_map(namespace: &str, name: &str) -> Value {
    object("v1", "ConfigMap", Some(namespace), name, json!({"data": {"a": "b"}}))
}

/// Sets what a JSON pointer names, making what lies on the way; `-` is a new item of a list.
pub(crate) fn put(target: &mut Value, pointer: &str, value: Value) {
    let mut place = target;
    for step in pointer.split('/').skip(1) {
        let step = step.replace("~1", "/").replace("~0", "~");
        if step == "-" {
            if place.is_null() {
                *place = json!([]);
            }
            let items = place.as_array_mut().unwrap();
            items.push(Value::Null);
            place = items.last_mut().unwrap();
        } else if place.is_array() {
            place = &mut place[step.parse::<usize>().unwrap()];
        } else {
            place = &mut place[step.as_str()];
        }
    }
    *place = value;
}

/// Removes what a JSON pointer names.
pub(crate) fn remove(target: &mut Value, pointer: &str) {
    let (parent, field) = pointer.rsplit_once('/').unwrap();
    let field = field.replace("~1", "/");
    target.pointer_mut(parent).and_then(Value::as_object_mut).and_then(|parent| parent.remove(&field)).expect("there is such a field");
}
