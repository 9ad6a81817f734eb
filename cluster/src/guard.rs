//! A kubeconfig that somebody else wrote: only what cannot run, read or reach anything else is taken.
//!
//! Allowed is a short list of fields; every other one is refused by its place, so that a field which a later Kubernetes adds is
//! refused too. Exec plugins, auth providers, file references, proxies, impersonation, `insecure-skip-tls-verify` and plain http
//! are named in the refusal for what they are.

use agent_api::secret::Secret;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

/// Largest guarded kubeconfig.
pub const MAX_BYTES: usize = 64 << 10;

/// What is taken from a guarded kubeconfig.
#[derive(Debug)]
pub struct Guarded {
    /// Address, https.
    pub server: String,
    /// PEM; empty where the system's roots are meant.
    pub ca_pem: Vec<u8>,
    /// The user's token; access bundles keep theirs in a file beside.
    pub token: Option<Secret>,
    /// The user's client certificate, PEM, with its key.
    pub certificate: Option<ClientCertificate>,
}

/// A client certificate with its key, both PEM.
#[derive(Debug)]
pub struct ClientCertificate {
    /// The certificate, and its chain.
    pub certificate: Vec<u8>,
    /// Its private key.
    pub key: Secret,
}

/// By what the user of a guarded kubeconfig may come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Credentials {
    /// A token, or one that lies elsewhere: access bundles.
    Token,
    /// A token or a client certificate, one of the two and in the file: what is handed to the manager and to the operator.
    TokenOrCertificate,
}

/// Why a kubeconfig is refused.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum GuardError {
    /// Over [`MAX_BYTES`].
    #[error("the kubeconfig has more than {MAX_BYTES} bytes")]
    TooLarge,
    /// Not YAML, a duplicate key, an alias bomb.
    #[error("the kubeconfig is not readable: {0}")]
    Yaml(String),
    /// A field that is not allowed, or is missing.
    #[error("the kubeconfig is refused: {path}: {problem}")]
    Field {
        /// E.g. `users[0].user.exec`.
        path: String,
        /// Why.
        problem: String,
    },
}

const TOP: [&str; 7] = ["apiVersion", "kind", "clusters", "users", "contexts", "current-context", "preferences"];
const CLUSTER: [&str; 2] = ["server", "certificate-authority-data"];
const TOKEN: [&str; 1] = ["token"];
const TOKEN_OR_CERTIFICATE: [&str; 3] = ["token", "client-certificate-data", "client-key-data"];
const CONTEXT: [&str; 3] = ["cluster", "user", "namespace"];

/// Reads an access bundle's kubeconfig under the guard.
///
/// # Errors
/// [`GuardError`], naming the field.
pub fn parse(text: &str) -> Result<Guarded, GuardError> {
    parse_with(text, Credentials::Token)
}

/// Reads a kubeconfig under the guard.
///
/// # Errors
/// [`GuardError`], naming the field.
pub fn parse_with(text: &str, credentials: Credentials) -> Result<Guarded, GuardError> {
    if text.len() > MAX_BYTES {
        return Err(GuardError::TooLarge);
    }
    let file: Value = serde_saphyr::from_str(text).map_err(|error| GuardError::Yaml(first_line(&error.to_string())))?;
    only(&file, &TOP, "")?;
    if let Some(preferences) = file.get("preferences") {
        only(preferences, &[], "preferences")?;
    }
    let clusters = entries(&file, "clusters", "cluster", &CLUSTER)?;
    let of_users: &[&str] = match credentials {
        Credentials::Token => &TOKEN,
        Credentials::TokenOrCertificate => &TOKEN_OR_CERTIFICATE,
    };
    let users = entries(&file, "users", "user", of_users)?;
    let contexts = entries(&file, "contexts", "context", &CONTEXT)?;
    for (i, (_, cluster)) in clusters.iter().enumerate() {
        check_server(cluster, &format!("clusters[{i}].cluster.server"))?;
    }
    let current = string(&file, "current-context").ok_or_else(|| missing("current-context"))?;
    let context = named(&contexts, current).ok_or_else(|| refuse("current-context", "names no context of the file"))?;
    let cluster = string(context, "cluster").and_then(|name| named(&clusters, name));
    let cluster = cluster.ok_or_else(|| refuse("contexts", "the current one names no cluster of the file"))?;
    let user = string(context, "user").and_then(|name| named(&users, name));
    let token = user.and_then(|user| string(user, "token")).map(|token| Secret::new(token.to_owned()));
    let certificate = user.map(client_certificate).transpose()?.flatten();
    match (credentials, &token, &certificate) {
        (Credentials::Token, ..) | (_, Some(_), None) | (_, None, Some(_)) => {}
        (Credentials::TokenOrCertificate, Some(_), Some(_)) => {
            return Err(refuse("users", "a token and a certificate: only one is allowed"));
        }
        (Credentials::TokenOrCertificate, None, None) => {
            return Err(refuse("users", "the current one has neither a token nor client-certificate-data and client-key-data"));
        }
    }
    let server = string(cluster, "server").unwrap_or_default().to_owned();
    Ok(Guarded { server, ca_pem: authority(cluster)?, token, certificate })
}

fn client_certificate(user: &Value) -> Result<Option<ClientCertificate>, GuardError> {
    let decoded = |field: &str| {
        let bytes = string(user, field).map(|data| STANDARD.decode(data.trim())).transpose();
        bytes.map_err(|_not_base64| refuse(format!("users: {field}"), "is not base64"))
    };
    match (decoded("client-certificate-data")?, decoded("client-key-data")?) {
        (None, None) => Ok(None),
        (Some(_), None) => Err(missing("users: client-key-data")),
        (None, Some(_)) => Err(missing("users: client-certificate-data")),
        (Some(certificate), Some(key)) => {
            let key = String::from_utf8(key).map_err(|_not_text| refuse("users: client-key-data", "is not PEM"))?;
            Ok(Some(ClientCertificate { certificate, key: Secret::new(key) }))
        }
    }
}

fn authority(cluster: &Value) -> Result<Vec<u8>, GuardError> {
    let data = string(cluster, "certificate-authority-data").unwrap_or_default();
    STANDARD.decode(data.trim()).map_err(|_not_base64| refuse("certificate-authority-data", "is not base64"))
}

fn check_server(cluster: &Value, path: &str) -> Result<(), GuardError> {
    let server = string(cluster, "server").ok_or_else(|| missing(path))?;
    let uri: http::Uri = server.parse().map_err(|_not_a_uri| refuse(path, "is not an address"))?;
    match (uri.scheme_str(), uri.authority()) {
        (Some("https"), Some(authority)) if !authority.as_str().contains('@') => Ok(()),
        (Some("http"), _) => Err(refuse(path, "plain http is not allowed")),
        _ => Err(refuse(path, "is not of the form https://host[:port]")),
    }
}

/// The (name, inner object) of each entry of a list, with nothing but allowed fields.
fn entries<'a>(file: &'a Value, list: &str, inner: &str, allowed: &[&str]) -> Result<Vec<(&'a str, &'a Value)>, GuardError> {
    let items = match file.get(list) {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::Array(items)) => items,
        Some(_) => return Err(refuse(list, "is not a list")),
    };
    let mut found: Vec<(&str, &Value)> = Vec::new();
    for (i, item) in items.iter().enumerate() {
        let path = format!("{list}[{i}]");
        only(item, &["name", inner], &path)?;
        let name = string(item, "name").ok_or_else(|| missing(&format!("{path}.name")))?;
        if named(&found, name).is_some() {
            return Err(refuse(&path, "has the name of an earlier entry"));
        }
        let content = item.get(inner).unwrap_or(&Value::Null);
        only(content, allowed, &format!("{path}.{inner}"))?;
        found.push((name, content));
    }
    Ok(found)
}

fn only(value: &Value, allowed: &[&str], path: &str) -> Result<(), GuardError> {
    let map = match value {
        Value::Null => return Ok(()),
        Value::Object(map) => map,
        Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => return Err(refuse(path, "is not a map")),
    };
    match map.keys().find(|key| !allowed.contains(&key.as_str())) {
        Some(key) if path.is_empty() => Err(refuse(key, reason(key))),
        Some(key) => Err(refuse(format!("{path}.{key}"), reason(key))),
        None => Ok(()),
    }
}

fn reason(field: &str) -> &'static str {
    match field {
        "exec" => "a plugin would be run",
        "auth-provider" => "auth providers are not allowed",
        "certificate-authority" | "client-certificate" | "client-key" | "tokenFile" => "references to files are not allowed",
        "proxy-url" => "proxies are not allowed",
        "as" | "as-uid" | "as-groups" | "as-user-extra" => "impersonation is not allowed",
        "insecure-skip-tls-verify" => "the server's certificate must be verified",
        _ => "this field is not allowed here",
    }
}

fn named<'a>(entries: &[(&str, &'a Value)], name: &str) -> Option<&'a Value> {
    entries.iter().find(|entry| entry.0 == name).map(|entry| entry.1)
}

fn string<'a>(value: &'a Value, field: &str) -> Option<&'a str> {
    value.get(field).and_then(Value::as_str).filter(|text| !text.is_empty())
}

fn refuse(path: impl Into<String>, problem: impl Into<String>) -> GuardError {
    GuardError::Field { path: path.into(), problem: problem.into() }
}

fn missing(path: &str) -> GuardError {
    refuse(path, "is missing")
}

/// The YAML reader's message goes on with an excerpt of the file, which may be secret.
fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(cluster: &str, user: &str) -> String {
        format!(
            "apiVersion: v1\nkind: Config\nclusters:\n- name: c\n  cluster: {{{cluster}}}\nusers:\n- name: u\n  user: {{{user}}}\n\
             contexts:\n- name: x\n  context: {{cluster: c, user: u}}\ncurrent-context: x\n"
        )
    }

    #[test]
    fn what_is_damaged_is_not_repeated() {
        let planted = "planted-5e0b7a";
        for text in [
            format!("users:\n- name: u\n  user:\n    token: {planted}\n   oops: [\n"),
            format!("users: [{{name: u, user: {{token: {planted}, token: {planted}}}}}]"),
            format!("token: *{planted}"),
            format!("token: \"{planted}"),
            format!("token: !!int {planted}"),
        ] {
            let error = parse(&text).unwrap_err();
            assert!(!format!("{error} {error:?}").contains(planted), "{error:?}");
        }
    }

    #[test]
    fn what_an_access_bundle_holds_is_taken() {
        let guarded = parse(&file("server: 'https://10.0.0.1:6443', certificate-authority-data: Y2E=", "token: t")).unwrap();
        assert_eq!((guarded.server.as_str(), guarded.ca_pem.as_slice()), ("https://10.0.0.1:6443", b"ca".as_slice()));
        assert_eq!(guarded.token.unwrap().expose(), "t");
    }

    #[test]
    fn a_certificate_is_taken_where_one_may_come_with_it() {
        let cluster = "server: 'https://h'";
        let both = "client-certificate-data: Y2VydA==, client-key-data: a2V5";
        let taken = |user: &str| parse_with(&file(cluster, user), Credentials::TokenOrCertificate).map_err(|error| error.to_string());
        let certificate = taken(both).unwrap().certificate.unwrap();
        assert_eq!((certificate.certificate.as_slice(), certificate.key.expose()), (b"cert".as_slice(), "key"));
        assert_eq!(taken("token: t").unwrap().token.unwrap().expose(), "t");
        for (user, part) in [
            ("", "neither a token nor"),
            ("client-certificate-data: Y2VydA==", "client-key-data: is missing"),
            ("client-key-data: a2V5", "client-certificate-data: is missing"),
            ("client-certificate-data: '!', client-key-data: a2V5", "client-certificate-data: is not base64"),
            (&format!("token: t, {both}"), "only one is allowed"),
            ("token: t, client-key: /k", "users[0].user.client-key: references to files are not allowed"),
        ] {
            let refused = taken(user).err().unwrap_or_default();
            assert!(refused.contains(part), "{user}: {refused}");
        }
        let refused = parse(&file(cluster, both)).unwrap_err().to_string();
        assert!(refused.contains("users[0].user.client-certificate-data"), "an access bundle has a token: {refused}");
    }

    #[test]
    fn everything_else_is_refused_by_its_place() {
        let https = "server: 'https://h'";
        for (cluster, user, path) in [
            ("server: 'http://h'", "", "clusters[0].cluster.server"),
            ("server: 'https://u@h'", "", "clusters[0].cluster.server"),
            ("", "", "clusters[0].cluster.server"),
            ("server: 'https://h', insecure-skip-tls-verify: false", "", "clusters[0].cluster.insecure-skip-tls-verify"),
            ("server: 'https://h', certificate-authority: /etc/x", "", "clusters[0].cluster.certificate-authority"),
            ("server: 'https://h', proxy-url: 'http://p'", "", "clusters[0].cluster.proxy-url"),
            ("server: 'https://h', tls-server-name: x", "", "clusters[0].cluster.tls-server-name"),
            (https, "exec: {command: sh}", "users[0].user.exec"),
            (https, "auth-provider: {name: gcp}", "users[0].user.auth-provider"),
            (https, "tokenFile: /t", "users[0].user.tokenFile"),
            (https, "client-key: /k", "users[0].user.client-key"),
            (https, "as: root", "users[0].user.as"),
            (https, "as-groups: [a]", "users[0].user.as-groups"),
            (https, "username: a", "users[0].user.username"),
        ] {
            match parse(&file(cluster, user)) {
                Err(GuardError::Field { path: found, .. }) => assert_eq!(found, path),
                other => panic!("{path}: {other:?}"),
            }
        }
    }

    #[test]
    fn odd_documents_are_refused() {
        for text in ["[", "a: 1", "clusters: {}", "kind: A\nkind: B", "apiVersion: v1", "extensions: []", "'x'"] {
            assert!(parse(text).is_err(), "{text}");
        }
        assert_eq!(parse(&" ".repeat(MAX_BYTES + 1)).err(), Some(GuardError::TooLarge));
        let twice = file("server: 'https://h'", "").replace("users:", "- name: c\n  cluster: {server: 'https://evil'}\nusers:");
        assert!(parse(&twice).is_err());
    }
}
