//! Errors of every HTTP interface: RFC 9457 problem documents (`application/problem+json`).

use serde::{Deserialize, Serialize};

/// Media type of a problem document.
pub const MEDIA_TYPE: &str = "application/problem+json";

/// A problem document. `type` is `about:blank`-like and left out; `code` is our stable error code.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Problem {
    /// HTTP status, repeated as RFC 9457 advises.
    pub status: u16,
    /// Stable name of the kind of problem, e.g. `not_found`.
    pub code: String,
    /// Short, the same for every problem of this code.
    pub title: String,
    /// This occurrence, for a person.
    pub detail: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shape() {
        let problem =
            Problem { status: 404, code: "not_found".into(), title: "Not found".into(), detail: "no platform bundle is staged".into() };
        let text = r#"{"status":404,"code":"not_found","title":"Not found","detail":"no platform bundle is staged"}"#;
        assert_eq!(serde_json::to_string(&problem).unwrap(), text);
    }
}
