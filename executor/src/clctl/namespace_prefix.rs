//! The service prefix, read from the connector's configuration; nothing else of the file matters to a person's commands.

use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::error_code::{Code, Coded};

/// Unless configured.
const DEFAULT: &str = "ns-";
/// Largest configuration: 1 MiB.
const MAX_BYTES: u64 = 1 << 20;

/// Why the prefix is not known.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PrefixError {
    /// The file.
    #[error("{}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// Not YAML, or too large.
    #[error("{}: {problem}", path.display())]
    Parse {
        /// The file.
        path: PathBuf,
        /// Why.
        problem: String,
    },
    /// Empty, or not the beginning of a namespace's name.
    #[error("{}: namespace_prefix `{prefix}` is not the beginning of a namespace's name", path.display())]
    Prefix {
        /// The file.
        path: PathBuf,
        /// As configured.
        prefix: String,
    },
}

impl Coded for PrefixError {
    fn code(&self) -> Code {
        match self {
            Self::Read { source, .. } if source.kind() == std::io::ErrorKind::NotFound => Code::ConfigMissing,
            Self::Read { .. } => Code::ConfigUnreadable,
            Self::Parse { .. } | Self::Prefix { .. } => Code::ConfigInvalid,
        }
    }
}

#[derive(Deserialize)]
struct Configuration {
    namespace_prefix: Option<String>,
}

/// Reads it. A file that was named must be there; the default one may be missing.
pub(crate) fn read(named: Option<&Path>) -> Result<String, PrefixError> {
    let path = named.unwrap_or(Path::new(crate::config::DEFAULT_PATH));
    let failed = |source| PrefixError::Read { path: path.to_owned(), source };
    let unreadable = |problem| PrefixError::Parse { path: path.to_owned(), problem };
    match std::fs::metadata(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound && named.is_none() => return Ok(DEFAULT.to_owned()),
        Err(error) => return Err(failed(error)),
        Ok(metadata) if metadata.len() > MAX_BYTES => return Err(unreadable(format!("it has more than {MAX_BYTES} bytes"))),
        Ok(_) => {}
    }
    let text = std::fs::read_to_string(path).map_err(failed)?;
    let configuration: Configuration =
        serde_saphyr::from_str(&text).map_err(|error| unreadable(error.to_string().lines().next().unwrap_or_default().to_owned()))?;
    let prefix = configuration.namespace_prefix.unwrap_or_else(|| DEFAULT.to_owned());
    let letter = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    if prefix.is_empty() || prefix.starts_with('-') || prefix.len() > 40 || !prefix.bytes().all(letter) {
        return Err(PrefixError::Prefix { path: path.to_owned(), prefix });
    }
    Ok(prefix)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_text(text: &str) -> Result<String, PrefixError> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        read(Some(file.path()))
    }

    #[test]
    fn the_prefix_is_all_that_is_read() {
        assert_eq!(read_text("namespace_prefix: svc-\nunknown: {a: [1]}\n").unwrap(), "svc-");
        assert_eq!(read_text("cloud: aws\n").unwrap(), "ns-");
        for text in ["namespace_prefix: ''", "namespace_prefix: -a", "namespace_prefix: \"a'b\"", "namespace_prefix: A", "a: 1\na: 2", "["]
        {
            assert!(read_text(text).is_err(), "{text}");
        }
        assert!(read(Some(Path::new("/nonexistent/config.yaml"))).is_err());
    }
}
