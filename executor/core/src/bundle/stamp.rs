//! The stamp of a permission object: which bundle it was approved with, and what its content was.

use agent_api::digest::Sha256;
use agent_api::keys;
use agent_api::object::{RenderedObject, metadata_map};
use serde_json::Value;

/// The object as `approve` applies it: as rendered, with the annotations [`keys::BUNDLE_SHA256`] (`bundle`) and
/// [`keys::CONTENT_SHA256`] (its digest before either was added).
#[must_use]
pub fn stamped(object: &RenderedObject, bundle: &Sha256) -> Value {
    let content = object.digest();
    let mut value = object.object.clone();
    if let Some(annotations) = metadata_map(&mut value, "annotations") {
        annotations.insert(keys::BUNDLE_SHA256.to_owned(), Value::from(bundle.as_str()));
        annotations.insert(keys::CONTENT_SHA256.to_owned(), Value::from(content.as_str()));
    }
    value
}
