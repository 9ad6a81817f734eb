//! What a bearer token may do.

use serde::{Deserialize, Serialize};

/// A permission of the REST API.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Permission {
    /// Everything.
    Admin,
}
