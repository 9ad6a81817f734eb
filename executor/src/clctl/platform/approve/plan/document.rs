//! The plan as a JSON document: `docs/plan.md` has its schema.

use std::fmt::Write as _;

use serde::Serialize;

use super::{Plan, Summary};
use crate::terminal::escaped;

/// Version of the schema; a field is added without a new one.
const API_VERSION: &str = "clicklink.io/plan/v1";

#[derive(Serialize)]
struct Document<'a> {
    #[serde(rename = "apiVersion")]
    api_version: &'static str,
    summary: Summary,
    #[serde(flatten)]
    plan: &'a Plan,
}

impl Plan {
    /// All of it.
    pub(in super::super) fn json(&self) -> Result<String, serde_json::Error> {
        let document = Document { api_version: API_VERSION, summary: self.summary(), plan: self };
        Ok(ascii(&serde_json::to_string_pretty(&document)?))
    }
}

/// What a terminal must not be shown is escaped as JSON has it: such characters stand in strings only, and the document stays one.
fn ascii(json: &str) -> String {
    json.chars().fold(String::with_capacity(json.len()), |mut out, c| {
        let text = c.to_string();
        if c == '\n' || escaped(&text, &[]) == text {
            out.push(c);
        } else {
            for unit in c.encode_utf16(&mut [0; 2]) {
                let _ = write!(out, "\\u{unit:04x}");
            }
        }
        out
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn what_could_fool_a_terminal_is_escaped_and_the_document_reads_back() {
        let value = json!({"a": "x\u{202e}y\u{7f}\u{e0041}é\u{1b}"});
        let text = ascii(&serde_json::to_string_pretty(&value).unwrap());
        assert!(text.contains("x\\u202ey\\u007f\\udb40\\udc41é\\u001b"), "{text}");
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), value);
    }
}
