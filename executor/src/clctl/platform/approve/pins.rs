//! What the approval pins: each workload object whole, as the API server makes it of what was rendered.
//!
//! A dry-run *create* under a scratch name, as the person: defaults are filled in, and nothing that lies on a live object can get into
//! an approval, as it would by an apply over it. What the cluster chooses is left out, unless the chart chose it.

use std::collections::BTreeMap;

use agent_api::names::FIELD_MANAGER_APPROVE;
use agent_api::object::RenderedObject;
use agent_api::platform_approval::{key, pin_key};
use cluster::object::{self, Apply};
use cluster::{Client, ClusterError};
use executor_core::bundle::pins::{entry, scratch};
use serde_json::{Value, json};

use crate::clctl::requests;
use crate::error_code::{Code, Coded};

/// Largest approval, and largest Secret of pins: what the API server takes of a Secret, and safely under what etcd takes.
const MOST: usize = 1 << 20;
/// Longest key of a Secret's data (Kubernetes, `Secret` validation).
const LONGEST_KEY: usize = 253;

/// As a pin is asked for.
pub(super) const DRY: Apply = Apply { manager: FIELD_MANAGER_APPROVE, dry_run: true };

/// Why an object cannot be pinned.
#[derive(Debug, thiserror::Error)]
pub(super) enum PinError {
    /// The API server would not create it.
    #[error("{object} would not be created as it was rendered (tried under another name): {source}")]
    Create {
        /// Which.
        object: String,
        /// Why.
        source: ClusterError,
    },
    /// Too much for one object.
    #[error("{what} would have {bytes} bytes, and the API server takes {MOST}; the largest part is {largest}")]
    TooLarge {
        /// What.
        what: &'static str,
        /// How many.
        bytes: usize,
        /// Whose part is the largest.
        largest: String,
    },
    /// A key that no Secret takes.
    #[error(
        "{secret}: its key {key} cannot be pinned: namespace, name and key have {length} characters together, and {LONGEST_KEY} is the most"
    )]
    LongKey {
        /// The Secret.
        secret: String,
        /// Its key.
        key: String,
        /// Characters of the pin's key.
        length: usize,
    },
}

impl Coded for PinError {
    fn code(&self) -> Code {
        match self {
            Self::Create { .. } => Code::ObjectsRefused,
            Self::TooLarge { .. } | Self::LongKey { .. } => Code::ApprovalTooLarge,
        }
    }

    fn hints(&self) -> Vec<String> {
        match self {
            Self::Create { source, .. } => source.hints(),
            Self::TooLarge { .. } | Self::LongKey { .. } => Vec::new(),
        }
    }
}

/// All pins of a workload half.
#[derive(Debug)]
pub(super) struct Pins {
    /// Objects by [`key`].
    pub(super) workloads: BTreeMap<String, Value>,
    /// Values of Secrets, base64, by [`pin_key`].
    secrets: BTreeMap<String, Value>,
}

impl Pins {
    /// `data` of the Secret of pins.
    pub(super) fn secrets(&self) -> Value {
        json!(self.secrets)
    }
}

/// Makes the pins. The namespaces and definitions of the bundle must be there. `shown` has, by their keys, the objects of which a person has seen
/// what the API server makes of them: those are pinned as they were seen, whatever admission has come to make of them since (the probe finds that).
pub(super) async fn make(client: &Client, workload: &[RenderedObject], shown: &BTreeMap<String, Value>) -> Result<Pins, PinError> {
    let created = workload.iter().map(|rendered| async move {
        if let Some(shown) = shown.get(&key(&rendered.key())) {
            return Ok((rendered, shown.clone()));
        }
        let created = object::create(client, &scratch(&rendered.object), DRY).await;
        let created = created.map_err(|source| PinError::Create { object: rendered.key().to_string(), source })?;
        Ok::<_, PinError>((rendered, created))
    });
    let created = requests::until_error(created).await?;
    let (mut workloads, mut secrets) = (BTreeMap::new(), BTreeMap::new());
    for (rendered, created) in created {
        let object = rendered.key();
        workloads.insert(key(&object), entry(&rendered.object, &created));
        if object.kind == "Secret" {
            for (name, value) in created.get("data").and_then(Value::as_object).into_iter().flatten() {
                let pin = pin_key(&object, name);
                if pin.len() > LONGEST_KEY {
                    return Err(PinError::LongKey { secret: object.to_string(), key: name.clone(), length: pin.len() });
                }
                secrets.insert(pin, value.clone());
            }
        }
    }
    fits("the approval", &workloads)?;
    fits("the Secret of pinned values", &secrets)?;
    Ok(Pins { workloads, secrets })
}

fn fits(what: &'static str, parts: &BTreeMap<String, Value>) -> Result<(), PinError> {
    let sizes = parts.iter().map(|(name, value)| (name.len() + value.to_string().len(), name));
    let (bytes, largest) = sizes.fold((0, (0, "")), |(sum, most), (size, name)| (sum + size, most.max((size, name.as_str()))));
    if bytes > MOST { Err(PinError::TooLarge { what, bytes, largest: largest.1.to_owned() }) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_large_names_its_largest_part() {
        let parts = BTreeMap::from([("a".to_owned(), json!("x".repeat(MOST))), ("b".to_owned(), json!("y"))]);
        let error = fits("the approval", &parts).unwrap_err().to_string();
        assert!(error.starts_with("the approval would have 10485") && error.ends_with("the largest part is a"), "{error}");
        assert!(fits("the approval", &BTreeMap::from([("b".to_owned(), json!("y"))])).is_ok());
    }
}
