//! The API server as an access bundle names it: address and CA, https or nothing.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cluster::connect::Connection;

use crate::error_code::{Code, Coded};

/// Address and CA.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Server {
    /// `https://host[:port]`.
    pub(crate) address: String,
    /// PEM; empty where the system's roots are meant.
    pub(crate) ca_pem: Vec<u8>,
}

/// Why an address or CA is not taken.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ServerError {
    /// Not https.
    #[error("`{0}` cannot be the executor's way to the API server: https://host[:port] is needed; give it with --server")]
    Address(String),
    /// `--ca-data`.
    #[error("--ca-data is neither PEM nor base64 of PEM")]
    CaData,
}

impl Coded for ServerError {
    fn code(&self) -> Code {
        match self {
            Self::Address(_) | Self::CaData => Code::ServerAddress,
        }
    }
}

impl Server {
    /// The context's own.
    pub(crate) fn of_context(connection: &Connection) -> Self {
        Self { address: connection.server.clone(), ca_pem: connection.ca_pem.clone().unwrap_or_default() }
    }

    /// What the flags say over what was found; whatever it is, it is https.
    pub(crate) fn overridden(self, address: Option<&str>, ca_data: Option<&str>) -> Result<Self, ServerError> {
        let address = address.map_or(self.address, |given| given.trim().trim_end_matches('/').to_owned());
        let plain = |rest: &str| !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-:[]/_~%".contains(&byte));
        if !address.strip_prefix("https://").is_some_and(plain) {
            return Err(ServerError::Address(address));
        }
        let ca_pem = match ca_data {
            Some(data) => pem(data).ok_or(ServerError::CaData)?,
            None => self.ca_pem,
        };
        Ok(Self { address, ca_pem })
    }
}

/// As in a kubeconfig (base64), or as it is.
fn pem(data: &str) -> Option<Vec<u8>> {
    const BEGIN: &[u8] = b"-----BEGIN CERTIFICATE-----";
    let given = data.trim();
    let bytes = if given.as_bytes().starts_with(BEGIN) { given.as_bytes().to_vec() } else { STANDARD.decode(given).ok()? };
    bytes.trim_ascii_start().starts_with(BEGIN).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_come_first_and_only_https_is_taken() {
        let found = || Server { address: "https://10.0.0.1:6443".into(), ca_pem: b"ca".to_vec() };
        assert_eq!(found().overridden(None, None).unwrap(), found());
        assert_eq!(found().overridden(Some("https://eks/"), None).unwrap().address, "https://eks");
        for address in ["http://127.0.0.1:8001", "https://", "https://a@b", "ftp://x", "https://a\nb", "https://a'b"] {
            assert!(matches!(found().overridden(Some(address), None), Err(ServerError::Address(_))), "{address}");
        }
        let pem = "-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----\n";
        assert_eq!(found().overridden(None, Some(pem)).unwrap().ca_pem, pem.trim().as_bytes());
        assert_eq!(found().overridden(None, Some(&STANDARD.encode(pem))).unwrap().ca_pem, pem.as_bytes());
        for data in ["", "AA==", "??"] {
            assert!(matches!(found().overridden(None, Some(data)), Err(ServerError::CaData)), "{data}");
        }
    }
}
