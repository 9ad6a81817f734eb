//! Addresses of API servers, compared by one rule and not as text.
//!
//! https only; host in lower case without a trailing dot, an IPv6 address in its shortest form; port 443 where none is given; path without
//! trailing slashes. A user part, a query and a fragment are refused. The path is part of what an address is: behind one host may be many.

use std::fmt;
use std::net::Ipv6Addr;
use std::str::FromStr;

/// Port of https.
const HTTPS: u16 = 443;

/// Where an API server is.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ApiAddress {
    host: String,
    port: u16,
    path: String,
}

/// Text that is no such address.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("`{0}` is not of the form https://host[:port][/path]")]
pub struct AddressError(String);

impl FromStr for ApiAddress {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        let refused = || AddressError(text.to_owned());
        if text.contains(['#', '?', '@', '\\', ' ']) {
            return Err(refused());
        }
        let uri: http::Uri = text.parse().map_err(|_not_a_uri| refused())?;
        let authority = uri.authority().ok_or_else(refused)?;
        if uri.scheme_str() != Some("https") {
            return Err(refused());
        }
        let given = authority.as_str().strip_prefix(authority.host()).ok_or_else(refused)?;
        let port = match given.strip_prefix(':') {
            None => HTTPS,
            Some(digits) => digits.parse().ok().filter(|port| *port > 0).ok_or_else(refused)?,
        };
        let host = host(authority.host()).ok_or_else(refused)?;
        Ok(Self { host, port, path: uri.path().trim_end_matches('/').to_owned() })
    }
}

fn host(text: &str) -> Option<String> {
    if let Some(inner) = text.strip_prefix('[') {
        let address: Ipv6Addr = inner.strip_suffix(']')?.parse().ok()?;
        return Some(format!("[{address}]"));
    }
    let name = text.strip_suffix('.').unwrap_or(text).to_ascii_lowercase();
    (!name.is_empty()).then_some(name)
}

impl fmt::Display for ApiAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, port, path } = self;
        write!(f, "https://{host}:{port}{path}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_address_has_many_forms() {
        for (text, expected) in [
            ("https://api.k8s.banque.example:6443", "https://api.k8s.banque.example:6443"),
            ("https://API.k8s.Banque.example.:6443/", "https://api.k8s.banque.example:6443"),
            ("HTTPS://h", "https://h:443"),
            ("https://h:443//", "https://h:443"),
            ("https://h/k8s/clusters/c-1/", "https://h:443/k8s/clusters/c-1"),
            ("https://h/K8s", "https://h:443/K8s"),
            ("https://[2001:DB8:0:0::1]:6443", "https://[2001:db8::1]:6443"),
            ("https://10.0.0.1", "https://10.0.0.1:443"),
        ] {
            assert_eq!(text.parse::<ApiAddress>().unwrap().to_string(), expected, "{text}");
        }
    }

    #[test]
    fn what_is_no_address_is_refused() {
        for text in [
            "",
            "h",
            "http://h",
            "https://",
            "https://:6443",
            "https://u@h",
            "https://h?x=y",
            "https://h#f",
            "https://h:0",
            "https://h:99999",
            "https://[::g]",
            "https://.",
        ] {
            assert!(text.parse::<ApiAddress>().is_err(), "{text}");
        }
    }
}
