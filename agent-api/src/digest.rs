//! Digests: sha256 of bytes, OCI digests, and the digest of a JSON value in canonical form.
//!
//! The canonical form is JSON without blanks whose object keys are sorted by their UTF-8 bytes at every depth; numbers and
//! strings are as `serde_json` prints them. Both sides of an approval compute it with this code, over objects that the same
//! engine rendered.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest as _, Sha256 as Hasher};

/// A sha256 as 64 lower-case hex digits: the identity of a bundle, of an object's content, of a workload half.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(try_from = "String", into = "String")]
pub struct Sha256(String);

impl Sha256 {
    /// The digest of exactly these bytes.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Self::of_all([bytes])
    }

    /// The digest of these bytes, one part after the other.
    #[must_use]
    pub fn of_all<T: AsRef<[u8]>>(parts: impl IntoIterator<Item = T>) -> Self {
        let mut hasher = Hasher::new();
        parts.into_iter().for_each(|part| hasher.update(part));
        Self(hex(&hasher.finalize()))
    }

    /// The digest of a JSON value in canonical form.
    #[must_use]
    pub fn of_json(value: &Value) -> Self {
        Self::of(canonical(value).as_bytes())
    }

    /// All 64 digits.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The first 12 digits, for people.
    #[must_use]
    pub fn short(&self) -> &str {
        &self.0[..12]
    }
}

impl fmt::Display for Sha256 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Sha256 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Why a text is no digest.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum DigestError {
    /// Not 64 lower-case hex digits.
    #[error("`{0}` is not a sha256: 64 lower-case hex digits are expected")]
    Hex(String),
    /// Not `sha256:` and 64 lower-case hex digits.
    #[error("`{0}` is not an OCI digest: `sha256:` and 64 lower-case hex digits are expected")]
    Oci(String),
}

impl TryFrom<String> for Sha256 {
    type Error = DigestError;

    fn try_from(text: String) -> Result<Self, DigestError> {
        let hex = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
        if text.len() == 64 && text.bytes().all(hex) { Ok(Self(text)) } else { Err(DigestError::Hex(text)) }
    }
}

impl FromStr for Sha256 {
    type Err = DigestError;

    fn from_str(text: &str) -> Result<Self, DigestError> {
        Self::try_from(text.to_owned())
    }
}

impl From<Sha256> for String {
    fn from(digest: Sha256) -> Self {
        digest.0
    }
}

/// The digest of an OCI manifest: `sha256:` and 64 hex digits, the only algorithm that the OCI image specification requires.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct OciDigest(Sha256);

impl OciDigest {
    /// The digest of exactly these bytes.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::of(bytes))
    }
}

impl fmt::Display for OciDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sha256:{}", self.0)
    }
}

impl fmt::Debug for OciDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl TryFrom<String> for OciDigest {
    type Error = DigestError;

    fn try_from(text: String) -> Result<Self, DigestError> {
        match text.strip_prefix("sha256:").map(Sha256::from_str) {
            Some(Ok(digest)) => Ok(Self(digest)),
            Some(Err(_)) | None => Err(DigestError::Oci(text)),
        }
    }
}

impl FromStr for OciDigest {
    type Err = DigestError;

    fn from_str(text: &str) -> Result<Self, DigestError> {
        Self::try_from(text.to_owned())
    }
}

impl From<OciDigest> for String {
    fn from(digest: OciDigest) -> Self {
        digest.to_string()
    }
}

/// The canonical form of a JSON value; see the module.
#[must_use]
pub fn canonical(value: &Value) -> String {
    let mut out = String::new();
    write_canonical(value, &mut out);
    out
}

fn write_canonical(value: &Value, out: &mut String) {
    match value {
        Value::Object(map) => {
            let mut entries: Vec<_> = map.iter().collect();
            entries.sort_by(|a, b| a.0.as_bytes().cmp(b.0.as_bytes()));
            out.push('{');
            for (i, (key, child)) in entries.into_iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                out.push_str(&Value::from(key.as_str()).to_string());
                out.push(':');
                write_canonical(child, out);
            }
            out.push('}');
        }
        Value::Array(items) => {
            out.push('[');
            for (i, child) in items.iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                write_canonical(child, out);
            }
            out.push(']');
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => out.push_str(&value.to_string()),
    }
}

/// Lower-case hex of bytes.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    use fmt::Write as _;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut out, byte| {
        let _ = write!(out, "{byte:02x}");
        out
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn canonical_form_sorts_keys_at_every_depth() {
        let value = json!({"b": [{"z": 1, "a": "x\n"}], "a": null, "é": true, "Z": 1.5});
        assert_eq!(canonical(&value), r#"{"Z":1.5,"a":null,"b":[{"a":"x\n","z":1}],"é":true}"#);
    }

    #[test]
    fn digests_are_lower_case_hex_of_full_length() {
        assert!("E3".parse::<Sha256>().is_err());
        assert!("E3B0C44298FC1C149AFBF4C8996FB92427AE41E4649B934CA495991B7852B855".parse::<Sha256>().is_err());
        let empty = Sha256::of(b"");
        assert_eq!(Sha256::of_all(["cl", "", "ick"]), Sha256::of(b"click"));
        assert_eq!(empty.as_str(), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
        assert_eq!(format!("sha256:{empty}").parse::<OciDigest>(), Ok(OciDigest::of(b"")));
        assert!(empty.as_str().parse::<OciDigest>().is_err());
        assert!("sha512:00".parse::<OciDigest>().is_err());
    }
}
