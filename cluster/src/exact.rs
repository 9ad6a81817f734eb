//! Writes that name what they change: a version, or this one object and no later one of its name. Whoever comes too late is told, and reads again.

use agent_api::object::ObjectKey;
use http::Method;
use kube::Client;
use serde_json::{Value, json};

use crate::error::ClusterError;
use crate::object::Propagation;
use crate::request::{self, Ask, Content};
use crate::resource;

/// Whether a write came too late: what it named is another by now, or gone.
#[must_use]
pub fn is_late(error: &ClusterError) -> bool {
    matches!(error, ClusterError::Other { code: 409, .. })
}

/// Puts an object, or its `status`, over the version that it names (`metadata.resourceVersion`).
///
/// # Errors
/// See [`is_late`] and [`ClusterError`].
pub async fn update(client: &Client, object: &Value, subresource: Option<&str>, manager: &str) -> Result<Value, ClusterError> {
    let (collection, name) = resource::of(object)?;
    let below = subresource.map(|name| format!("/{name}")).unwrap_or_default();
    let ask = Ask {
        method: Method::PUT,
        path: format!("{collection}/{name}{below}?fieldManager={manager}&fieldValidation=Strict"),
        body: Some((object, Content::Json)),
        secret: false,
        about: ObjectKey::of(object).to_string(),
    };
    Ok(request::send(client, &ask).await?.body)
}

/// Sets `spec.replicas` of a live workload by a plain patch, which takes the count from whoever owns it.
///
/// # Errors
/// See [`is_late`] and [`ClusterError`].
pub async fn set_replicas(client: &Client, live: &Value, replicas: u32, manager: &str) -> Result<Value, ClusterError> {
    let (collection, name) = resource::of(live)?;
    let version = live.pointer("/metadata/resourceVersion");
    let patch = json!({"metadata": {"resourceVersion": version}, "spec": {"replicas": replicas}});
    let ask = Ask {
        method: Method::PATCH,
        path: format!("{collection}/{name}?fieldManager={manager}&fieldValidation=Strict"),
        body: Some((&patch, Content::Merge)),
        secret: false,
        about: ObjectKey::of(live).to_string(),
    };
    Ok(request::send(client, &ask).await?.body)
}

/// Deletes this object, and no later one of its name; `false` where it was not there.
///
/// # Errors
/// See [`is_late`] and [`ClusterError`].
pub async fn delete(client: &Client, live: &Value, propagation: Propagation) -> Result<bool, ClusterError> {
    let (collection, name) = resource::of(live)?;
    let options = json!({"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": format!("{propagation:?}"),
        "preconditions": {"uid": live.pointer("/metadata/uid")}});
    let ask = Ask {
        method: Method::DELETE,
        path: format!("{collection}/{name}"),
        body: Some((&options, Content::Json)),
        secret: false,
        about: ObjectKey::of(live).to_string(),
    };
    match request::send(client, &ask).await {
        Ok(_) => Ok(true),
        Err(ClusterError::NotFound { .. }) => Ok(false),
        Err(error) => Err(error),
    }
}
