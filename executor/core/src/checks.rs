//! The executor's checks before it touches anything: pure, in the contract's order, the first that fails refuses.
//!
//! [`Approved`] is the one type that may be applied. Its only constructor is [`approve`], the last check.

use std::sync::Arc;

use agent_api::approval::{Approval, Versions};
use agent_api::digest::Sha256;
use agent_api::keys;
use agent_api::manifest::Bundle;
use agent_api::name::InstallId;
use agent_api::object::{self, ObjectKey, RenderedObject};
use serde_json::Value;

use crate::bundle::Judged;
use crate::event::TokenBundle;
use crate::refusal::Refusal;

/// A bundle that a person approved and that is still, here and live, what they approved.
#[derive(Debug)]
pub struct Approved {
    bundle: Arc<Bundle>,
    judged: Arc<Judged>,
    install_id: InstallId,
    expires_at: jiff::Timestamp,
}

/// Proof that the approval had not ended when it was asked; wanted by each write.
#[derive(Clone, Copy, Debug)]
pub struct Writable<'a>(&'a Approved);

/// The approval has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expired;

impl Approved {
    /// The bundle.
    #[must_use]
    pub fn bundle(&self) -> &Bundle {
        &self.bundle
    }

    /// Its rendered objects.
    #[must_use]
    pub fn judged(&self) -> &Judged {
        &self.judged
    }

    /// The installation that Jobs are done for.
    #[must_use]
    pub fn install_id(&self) -> InstallId {
        self.install_id
    }

    /// The approval's end, by which a write that is under way must be over.
    #[must_use]
    pub fn expires_at(&self) -> jiff::Timestamp {
        self.expires_at
    }

    /// Asked before every write, by the executor's own clock and without grace.
    ///
    /// # Errors
    /// [`Expired`].
    pub fn writable(&self, now: jiff::Timestamp) -> Result<Writable<'_>, Expired> {
        if now < self.expires_at { Ok(Writable(self)) } else { Err(Expired) }
    }
}

impl<'a> Writable<'a> {
    /// A workload object of the bundle, `None` where it is none: nothing else can be written.
    #[must_use]
    pub fn object(self, key: &ObjectKey) -> Option<&'a RenderedObject> {
        self.0.judged.workload_object(key)
    }
}

/// The token bundle approves this bundle and has not expired.
pub(crate) fn token_bundle(found: &TokenBundle, sha256: &Sha256, now: jiff::Timestamp) -> Result<(), Refusal> {
    if found.approval.bundle_sha256 != *sha256 {
        return Err(Refusal::OtherBundle { found: found.approval.bundle_sha256.clone(), wanted: sha256.clone() });
    }
    let expires_at = found.expires_at();
    if now >= expires_at {
        return Err(Refusal::Expired(expires_at));
    }
    Ok(())
}

/// The live ServiceAccount says the same.
pub(crate) fn account(live: Option<&Value>, sha256: &Sha256) -> Result<(), Refusal> {
    let live = live.ok_or(Refusal::NoAccount)?;
    match annotation(live, keys::BUNDLE_SHA256) {
        Some(found) if found == sha256.as_str() => Ok(()),
        Some(found) => Err(Refusal::AccountOtherBundle { found: found.to_owned(), wanted: sha256.clone() }),
        None => Err(Refusal::AccountUnstamped),
    }
}

/// One permission object is live, stamped with this bundle and this content, and holds every value that the rendering sets.
pub(crate) fn permission(rendered: &RenderedObject, live: Option<&Value>, sha256: &Sha256) -> Result<(), Refusal> {
    let key = rendered.key();
    let Some(live) = live else { return Err(Refusal::PermissionMissing(key)) };
    match annotation(live, keys::BUNDLE_SHA256) {
        Some(found) if found == sha256.as_str() => {}
        Some(_) => return Err(Refusal::PermissionOtherBundle(key)),
        None => return Err(Refusal::PermissionUnstamped(key)),
    }
    let content = rendered.digest();
    if annotation(live, keys::CONTENT_SHA256) != Some(content.as_str()) {
        return Err(Refusal::PermissionDiffers(key));
    }
    match first_difference(&rendered.object, live, String::new()) {
        Some(path) => Err(Refusal::PermissionChanged { key, path }),
        None => Ok(()),
    }
}

/// The live annotation names the workload half that is rendered here. The last check.
pub(crate) fn approve(
    bundle: &Arc<Bundle>,
    judged: &Arc<Judged>,
    live: &Value,
    found: &TokenBundle,
    here: &Versions,
) -> Result<Approved, Refusal> {
    let rendered = judged.workload_sha256();
    if annotation(live, keys::WORKLOAD_SHA256) != Some(rendered.as_str()) {
        let with = &found.approval.versions;
        let versions = (with != here).then(|| Box::new([with.clone(), here.clone()]));
        return Err(Refusal::WorkloadDiffers { rendered: rendered.clone(), versions });
    }
    let Approval { install_id, .. } = found.approval;
    Ok(Approved { bundle: Arc::clone(bundle), judged: Arc::clone(judged), install_id, expires_at: found.expires_at() })
}

fn annotation<'a>(live: &'a Value, key: &str) -> Option<&'a str> {
    live.get("metadata")?.get("annotations")?.get(key)?.as_str()
}

/// The path of the first value that the rendering sets and the live object does not hold. Left out are a webhook's `caBundle`, which
/// another writer fills, and the rules of an aggregated role, which the cluster fills. A field with its type's zero value (false, 0,
/// empty) may be absent: the API server drops such fields where they are optional, and absent means the same.
fn first_difference(rendered: &Value, live: &Value, path: String) -> Option<String> {
    match (rendered, live) {
        (Value::Object(wanted), Value::Object(found)) => {
            let aggregated = wanted.get("aggregationRule").is_some_and(|rule| !is_zero(rule));
            wanted.iter().find_map(|(key, value)| {
                let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                match found.get(key) {
                    _ if key == "caBundle" || (aggregated && key == "rules") => None,
                    Some(found) => first_difference(value, found, path),
                    None if is_zero(value) => None,
                    None => Some(path),
                }
            })
        }
        (Value::Array(wanted), Value::Array(found)) if wanted.len() == found.len() => {
            wanted.iter().zip(found).enumerate().find_map(|(i, (value, found))| first_difference(value, found, format!("{path}[{i}]")))
        }
        (wanted, found) if wanted == found || (is_zero(wanted) && is_zero(found)) => None,
        (Value::Number(wanted), Value::Number(found)) if wanted.as_f64() == found.as_f64() => None,
        _ => Some(path),
    }
}

/// A zero value, or an object of nothing else.
fn is_zero(value: &Value) -> bool {
    value.as_object().map_or_else(|| object::is_zero(value), |map| map.values().all(is_zero))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(rendered: Value, live: Value, expected: Option<&str>) {
        assert_eq!(first_difference(&rendered, &live, String::new()).as_deref(), expected, "{rendered} in {live}");
    }

    #[test]
    fn every_value_that_is_rendered_must_be_live() {
        check(json!({"a": 1}), json!({"a": 1, "added": true}), None);
        check(json!({"a": {"b": [1, 2]}}), json!({"a": {"b": [1, 3]}}), Some("a.b[1]"));
        check(json!({"rules": [{"verbs": ["get"]}]}), json!({"rules": [{"verbs": ["get", "list"]}]}), Some("rules[0].verbs"));
        check(json!({"rules": []}), json!({"rules": null}), None);
        check(json!({"rules": []}), json!({}), None);
        check(json!({"rules": []}), json!({"rules": [{"verbs": ["*"]}]}), Some("rules"));
        check(json!({"x": "y"}), json!({}), Some("x"));
        check(json!({"x": false, "priority": 0, "deprecated": null}), json!({}), None);
        check(json!({"x": true}), json!({}), Some("x"));
        check(json!({"x": false}), json!({"x": true}), Some("x"));
        check(json!({"priority": 0}), json!({"priority": 1}), Some("priority"));
        check(json!({"columns": [{"name": "a", "priority": 0}]}), json!({"columns": [{"name": "a"}]}), None);
        let filled = json!({"aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]}, "rules": [{"verbs": ["get"]}]});
        check(json!({"aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]}, "rules": []}), filled.clone(), None);
        check(json!({"rules": []}), filled, Some("rules"));
        check(
            json!({"clientConfig": {"caBundle": "", "service": {"name": "s"}}}),
            json!({"clientConfig": {"caBundle": "QQ==", "service": {"name": "s"}}}),
            None,
        );
        check(json!({"n": 1.0}), json!({"n": 1}), None);
    }
}
