//! Names and ids as newtypes, checked where they enter.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A DNS label as Kubernetes names a namespace: 1–63 of `a-z`, `0-9`, `-`, beginning and ending with a letter or digit (RFC 1123).
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(try_from = "String", into = "String")]
pub struct DnsLabel(String);

/// A text that is no DNS label.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("`{0}` is not a DNS label: 1–63 of a–z, 0–9 and `-`, beginning and ending with a letter or digit")]
pub struct NotALabel(pub String);

impl DnsLabel {
    /// The label.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for DnsLabel {
    type Error = NotALabel;

    fn try_from(text: String) -> Result<Self, NotALabel> {
        let alphanumeric = |b: &u8| b.is_ascii_lowercase() || b.is_ascii_digit();
        let bytes = text.as_bytes();
        let ends = bytes.first().is_some_and(alphanumeric) && bytes.last().is_some_and(alphanumeric);
        if ends && bytes.len() <= 63 && bytes.iter().all(|b| alphanumeric(b) || *b == b'-') { Ok(Self(text)) } else { Err(NotALabel(text)) }
    }
}

impl FromStr for DnsLabel {
    type Err = NotALabel;

    fn from_str(text: &str) -> Result<Self, NotALabel> {
        Self::try_from(text.to_owned())
    }
}

impl From<DnsLabel> for String {
    fn from(label: DnsLabel) -> Self {
        label.0
    }
}

impl fmt::Display for DnsLabel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for DnsLabel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Identity of a command: UUIDv7, given by whoever created it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(transparent)]
pub struct CommandId(pub uuid::Uuid);

/// Identity of an executor: its `pcm_infra_uuid`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(transparent)]
pub struct ExecutorId(pub uuid::Uuid);

/// Identity of an installation of the platform (UUIDv7); a Job that completed is done for this installation.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct InstallId(pub uuid::Uuid);

macro_rules! uuid_text {
    ($($name:ident),*) => {$(
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self.0, f)
            }
        }

        impl FromStr for $name {
            type Err = uuid::Error;

            fn from_str(text: &str) -> Result<Self, uuid::Error> {
                text.parse().map(Self)
            }
        }
    )*};
}
uuid_text!(CommandId, ExecutorId, InstallId);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels() {
        for good in ["a", "clickhouse-platform", "0", &"x".repeat(63)] {
            assert!(good.parse::<DnsLabel>().is_ok(), "{good}");
        }
        for bad in ["", "-a", "a-", "A", "a.b", "a_b", "é", &"x".repeat(64)] {
            assert!(bad.parse::<DnsLabel>().is_err(), "{bad}");
        }
    }
}
