//! Objects one by one: get, list, server-side apply, create, replace, delete.
//!
//! An apply never forces: fields of another manager with other values are a conflict that is reported. Only a dry run tells what force would do.

use agent_api::frame::Outcome;
use agent_api::object::ObjectKey;
use http::Method;
use kube::Client;
use serde_json::{Value, json};

use crate::error::{self, ClusterError};
use crate::request::{self, Answer, Ask, Content};
use crate::resource;

/// How often a replacement starts over because somebody else wrote in between.
const REPLACE_TRIES: u32 = 5;

/// How an object is applied.
#[derive(Clone, Copy, Debug)]
pub struct Apply {
    /// Field manager, one constant a role.
    pub manager: &'static str,
    /// Nothing is stored; admission and validation run as if it were.
    pub dry_run: bool,
}

/// An applied object.
#[derive(Clone, Debug)]
pub struct Applied {
    /// As the API server answered it.
    pub object: Value,
    /// What the apply did.
    pub outcome: Outcome,
}

/// Reads an object; `None` where it, its namespace or its kind is not there.
///
/// # Errors
/// See [`ClusterError`].
pub async fn get(client: &Client, object: &Value) -> Result<Option<Value>, ClusterError> {
    let (collection, name) = resource::of(object)?;
    let ask = Ask::get(format!("{collection}/{name}"), ObjectKey::of(object).to_string());
    match request::send(client, &ask).await {
        Ok(answer) => Ok(Some(answer.body)),
        Err(ClusterError::NotFound { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Lists a kind, in a namespace or everywhere, page by page; each item gets its `apiVersion` and `kind`.
///
/// # Errors
/// See [`ClusterError`].
pub async fn list(
    client: &Client,
    api_version: &str,
    kind: &str,
    namespace: Option<&str>,
    label_selector: Option<&str>,
) -> Result<Vec<Value>, ClusterError> {
    let collection = resource::collection(api_version, kind, namespace)?;
    let mut path = format!("{collection}?limit=500");
    if let Some(selector) = label_selector {
        path.push_str(&format!("&labelSelector={}", query(selector)));
    }
    let mut items = pages(client, &path, &format!("list of {kind}")).await?;
    for item in items.iter_mut().filter_map(Value::as_object_mut) {
        item.insert("apiVersion".into(), api_version.into());
        item.insert("kind".into(), kind.into());
    }
    Ok(items)
}

/// All items of a list, page by page.
async fn pages(client: &Client, base: &str, about: &str) -> Result<Vec<Value>, ClusterError> {
    let mut items = Vec::new();
    let mut page = base.to_owned();
    loop {
        let mut body = match request::send(client, &Ask::get(page, about.to_owned())).await {
            Ok(answer) => answer.body,
            // The continue token is too old: begin again.
            Err(ClusterError::Other { code: 410, .. }) if !items.is_empty() => {
                items.clear();
                page = base.to_owned();
                continue;
            }
            Err(error) => return Err(error),
        };
        if let Some(Value::Array(more)) = body.get_mut("items").map(Value::take) {
            items.extend(more);
        }
        match body.pointer("/metadata/continue").and_then(Value::as_str) {
            Some(token) if !token.is_empty() => page = format!("{base}&continue={}", query(token)),
            Some(_) | None => return Ok(items),
        }
    }
}

/// All objects of a live CustomResourceDefinition, each with its `apiVersion` and `kind`; none where no version of it is served.
///
/// # Errors
/// See [`ClusterError`].
pub async fn all_of(client: &Client, definition: &Value) -> Result<Vec<Value>, ClusterError> {
    let text = |pointer: &str| definition.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let about = format!("objects of {}", ObjectKey::of(definition));
    for version in served(definition) {
        let path = format!("/apis/{}/{version}/{}?limit=500", query(text("/spec/group")), query(text("/spec/names/plural")));
        match pages(client, &path, &about).await {
            Ok(mut items) => {
                for item in items.iter_mut().filter_map(Value::as_object_mut) {
                    item.insert("apiVersion".into(), format!("{}/{version}", text("/spec/group")).into());
                    item.insert("kind".into(), text("/spec/names/kind").into());
                }
                return Ok(items);
            }
            Err(ClusterError::NotFound { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(Vec::new())
}

/// Names of the versions that a CustomResourceDefinition serves.
fn served(definition: &Value) -> impl Iterator<Item = &str> {
    let versions = definition.pointer("/spec/versions").and_then(Value::as_array).into_iter().flatten();
    let served = versions.filter(|version| version.get("served").and_then(Value::as_bool) == Some(true));
    served.filter_map(|version| version.get("name").and_then(Value::as_str))
}

/// Whether any object of a CustomResourceDefinition is there; `false` too where its kind is not served.
///
/// # Errors
/// See [`ClusterError`].
pub async fn any_of(client: &Client, definition: &Value) -> Result<bool, ClusterError> {
    let text = |pointer: &str| definition.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let about = format!("objects of {}", ObjectKey::of(definition));
    for version in served(definition) {
        let path = format!("/apis/{}/{version}/{}?limit=1", query(text("/spec/group")), query(text("/spec/names/plural")));
        match request::send(client, &Ask::get(path, about.clone())).await {
            Ok(answer) => return Ok(answer.body.get("items").and_then(Value::as_array).is_some_and(|items| !items.is_empty())),
            Err(ClusterError::NotFound { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(false)
}

/// What a dry run found in an object's place.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Found {
    /// Nothing: it would be created.
    Nothing,
    /// An object of this `resourceVersion`.
    Version(String),
}

/// Applies an object in a dry run; what was found in its place.
///
/// # Errors
/// See [`ClusterError`].
pub async fn dry_run(client: &Client, object: &Value, manager: &'static str) -> Result<Found, ClusterError> {
    let answer = patch(client, object, Apply { manager, dry_run: true }).await?;
    // A dry run keeps the stored version.
    let version = version(&answer.body).filter(|_| !answer.created);
    Ok(version.map_or(Found::Nothing, |version| Found::Version(version.to_owned())))
}

/// Applies an object where a dry run told before what is in its place, so that the outcome is exact.
///
/// What is there is read first; a Secret is not (the executor may not), and it has no status that could move its version.
///
/// # Errors
/// See [`ClusterError`].
pub async fn apply(client: &Client, object: &Value, found: &Found, how: Apply) -> Result<Applied, ClusterError> {
    let key = ObjectKey::of(object);
    match found {
        Found::Nothing => apply_over(client, object, None, how).await,
        Found::Version(before) if key.group.is_empty() && key.kind == "Secret" => {
            let answer = patch(client, object, how).await?;
            let outcome = match version(&answer.body) == Some(before.as_str()) {
                _ if answer.created => Outcome::Created,
                true => Outcome::Unchanged,
                false => Outcome::Changed,
            };
            Ok(Applied { object: answer.body, outcome })
        }
        Found::Version(_) => {
            let before = get(client, object).await?;
            apply_over(client, object, before.as_ref(), how).await
        }
    }
}

/// Applies an object where the caller knows what is there.
///
/// The outcome is `created` where the API server says so (201), `unchanged` where the content is the same apart from what the API
/// server keeps (a controller's status may have moved the `resourceVersion` meanwhile).
///
/// # Errors
/// See [`ClusterError`].
pub async fn apply_over(client: &Client, object: &Value, before: Option<&Value>, how: Apply) -> Result<Applied, ClusterError> {
    let answer = patch(client, object, how).await?;
    let outcome = match before {
        Some(_) | None if answer.created => Outcome::Created,
        Some(before) if content(before) == content(&answer.body) => Outcome::Unchanged,
        Some(_) | None => Outcome::Changed,
    };
    Ok(Applied { object: answer.body, outcome })
}

/// What an apply would make of an object if it took the fields of others over; nothing is stored.
///
/// # Errors
/// See [`ClusterError`].
pub async fn forced(client: &Client, object: &Value, manager: &'static str) -> Result<Value, ClusterError> {
    Ok(patch_with(client, object, Apply { manager, dry_run: true }, "&force=true").await?.body)
}

async fn patch(client: &Client, object: &Value, how: Apply) -> Result<Answer, ClusterError> {
    patch_with(client, object, how, "").await
}

async fn patch_with(client: &Client, object: &Value, how: Apply, force: &str) -> Result<Answer, ClusterError> {
    let (collection, name) = resource::of(object)?;
    let key = ObjectKey::of(object);
    let dry_run = if how.dry_run { "&dryRun=All" } else { "" };
    let ask = Ask {
        method: Method::PATCH,
        path: format!("{collection}/{name}?fieldManager={}&fieldValidation=Strict{dry_run}{force}", how.manager),
        body: Some((object, Content::Apply)),
        secret: key.kind == "Secret",
        about: key.to_string(),
    };
    let answer = request::send(client, &ask).await?;
    match error::terminating(&ask.about, &answer.body) {
        // The API server takes an apply to it as to any other, and then it is gone.
        Some(going) => Err(going),
        None => Ok(answer),
    }
}

/// Creates an object that must not be there.
///
/// # Errors
/// [`ClusterError::AlreadyExists`], and see [`ClusterError`].
pub async fn create(client: &Client, object: &Value, how: Apply) -> Result<Value, ClusterError> {
    let (collection, _) = resource::of(object)?;
    let key = ObjectKey::of(object);
    let dry_run = if how.dry_run { "&dryRun=All" } else { "" };
    let ask = Ask {
        method: Method::POST,
        path: format!("{collection}?fieldManager={}&fieldValidation=Strict{dry_run}", how.manager),
        body: Some((object, Content::Json)),
        secret: key.kind == "Secret",
        about: key.to_string(),
    };
    Ok(request::send(client, &ask).await?.body)
}

/// Puts an object as it is given, creating it where it is missing: whatever anybody added to it is gone afterwards. For objects that are
/// wholly ours and where an addition would weaken them; everything else is applied.
///
/// # Errors
/// [`ClusterError::Terminating`] for one that is being deleted, and see [`ClusterError`].
pub async fn replace(client: &Client, object: &Value, manager: &'static str) -> Result<Outcome, ClusterError> {
    let mut tries = 0;
    loop {
        let result = match get(client, object).await? {
            None => create(client, object, Apply { manager, dry_run: false }).await.map(|_| Outcome::Created),
            Some(live) => match going(&live) {
                Some(going) => Err(going),
                None => put(client, object, &live, manager).await,
            },
        };
        match result {
            // Somebody was faster; what is there now is read again.
            Err(ClusterError::AlreadyExists { .. } | ClusterError::Other { code: 409, .. }) if tries < REPLACE_TRIES => tries += 1,
            other => return other,
        }
    }
}

/// Changes what is live by a function of it, which answers with the object to put, or with nothing where it is to stay as it is. Starts
/// over where somebody else wrote in between; `None` where the object is not there or stays.
///
/// # Errors
/// See [`ClusterError`].
pub async fn modify(
    client: &Client,
    object: &Value,
    manager: &'static str,
    change: impl Fn(&Value) -> Option<Value>,
) -> Result<Option<Outcome>, ClusterError> {
    let mut tries = 0;
    loop {
        let Some(live) = get(client, object).await? else { return Ok(None) };
        let Some(wanted) = change(&live) else { return Ok(None) };
        match put(client, &wanted, &live, manager).await {
            Err(ClusterError::Other { code: 409, .. }) if tries < REPLACE_TRIES => tries += 1,
            Err(ClusterError::NotFound { .. }) => return Ok(None),
            other => return other.map(Some),
        }
    }
}

/// What a live object would be if another one were put in its place; nothing is stored. What the cluster chose for it stays.
///
/// # Errors
/// See [`ClusterError`].
pub async fn replaced(client: &Client, object: &Value, live: &Value, manager: &'static str) -> Result<Value, ClusterError> {
    Ok(put_with(client, object, live, manager, "&dryRun=All").await?.body)
}

async fn put(client: &Client, object: &Value, live: &Value, manager: &str) -> Result<Outcome, ClusterError> {
    let stored = put_with(client, object, live, manager, "").await?;
    Ok(if content(&stored.body) == content(live) { Outcome::Unchanged } else { Outcome::Changed })
}

async fn put_with(client: &Client, object: &Value, live: &Value, manager: &str, dry_run: &str) -> Result<Answer, ClusterError> {
    let (collection, name) = resource::of(object)?;
    let mut wanted = object.clone();
    if let Some(metadata) = wanted.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.insert("resourceVersion".into(), version(live).unwrap_or_default().into());
    }
    let ask = Ask {
        method: Method::PUT,
        path: format!("{collection}/{name}?fieldManager={manager}&fieldValidation=Strict{dry_run}"),
        body: Some((&wanted, Content::Json)),
        secret: ObjectKey::of(object).kind == "Secret",
        about: ObjectKey::of(object).to_string(),
    };
    request::send(client, &ask).await
}

/// When an object's dependants are deleted (Kubernetes, "Garbage collection").
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Propagation {
    /// After it.
    Background,
    /// Before it: while one is there, the object is.
    Foreground,
}

/// Deletes an object; `false` where it was not there. One that is given with its `uid` is that one only: another one of its name is left alone.
///
/// # Errors
/// See [`ClusterError`].
pub async fn delete(client: &Client, object: &Value, propagation: Propagation) -> Result<bool, ClusterError> {
    let (collection, name) = resource::of(object)?;
    let uid = object.pointer("/metadata/uid");
    let options = json!({"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": format!("{propagation:?}"),
        "preconditions": uid.map(|uid| json!({"uid": uid}))});
    let ask = Ask {
        method: Method::DELETE,
        path: format!("{collection}/{name}"),
        body: Some((&options, Content::Json)),
        secret: false,
        about: ObjectKey::of(object).to_string(),
    };
    match request::send(client, &ask).await {
        Ok(_) => Ok(true),
        Err(ClusterError::NotFound { .. }) => Ok(false),
        // Of a namespace that is being deleted already it is said as well.
        Err(error @ ClusterError::Other { code: 409, .. }) if uid.is_some() => match get(client, object).await? {
            Some(live) if live.pointer("/metadata/uid") == uid => Err(error),
            Some(_) | None => Ok(false),
        },
        Err(error) => Err(error),
    }
}

fn version(object: &Value) -> Option<&str> {
    object.pointer("/metadata/resourceVersion").and_then(Value::as_str)
}

/// The error of a live object whose deletion has begun: what is put in its place goes with it. `None` for every other.
#[must_use]
pub fn going(live: &Value) -> Option<ClusterError> {
    error::terminating(&ObjectKey::of(live).to_string(), live)
}

/// What has to be done before an object that is being deleted can go (Kubernetes, "Finalizers").
#[must_use]
pub fn finalizers(object: &Value) -> Vec<String> {
    let finalizers = object.pointer("/metadata/finalizers").and_then(Value::as_array).into_iter().flatten();
    finalizers.filter_map(Value::as_str).map(str::to_owned).collect()
}

/// An object without what the API server keeps for itself: status, versions, ids, times, field managers.
#[must_use]
pub fn content(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(map) = object.as_object_mut() {
        map.remove("status");
    }
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        for field in ["managedFields", "resourceVersion", "generation", "creationTimestamp", "uid", "selfLink"] {
            metadata.remove(field);
        }
    }
    object
}

/// A query value, percent-encoded.
pub(crate) fn query(text: &str) -> String {
    use std::fmt::Write as _;
    text.bytes().fold(String::new(), |mut out, byte| {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            let _ = write!(out, "%{byte:02X}");
        }
        out
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_leaves_out_what_the_api_server_keeps() {
        let live = json!({"kind": "ConfigMap", "metadata": {"name": "a", "uid": "u", "resourceVersion": "7", "generation": 2,
            "creationTimestamp": "t", "managedFields": [], "labels": {"l": "v"}}, "data": {"k": "v"}, "status": {}});
        assert_eq!(content(&live), json!({"kind": "ConfigMap", "metadata": {"name": "a", "labels": {"l": "v"}}, "data": {"k": "v"}}));
    }

    #[test]
    fn queries_are_encoded() {
        assert_eq!(query("metadata.name=a,b/c"), "metadata.name%3Da%2Cb%2Fc");
    }
}
