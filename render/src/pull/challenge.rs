//! What a registry asks for when it answers 401 (`WWW-Authenticate`, RFC 9110).

use std::collections::BTreeMap;

use reqwest::header::{HeaderMap, WWW_AUTHENTICATE};

/// One challenge; scheme and parameter names in lower case.
pub(super) struct Challenge {
    pub(super) scheme: String,
    parameters: BTreeMap<String, String>,
}

impl Challenge {
    pub(super) fn parameter(&self, name: &str) -> Option<&str> {
        self.parameters.get(name).map(String::as_str)
    }
}

/// Every challenge of an answer; a header that cannot be read counts as none.
pub(super) fn all(headers: &HeaderMap) -> Vec<Challenge> {
    let texts = headers.get_all(WWW_AUTHENTICATE).into_iter().filter_map(|value| value.to_str().ok());
    let parsed = texts.filter_map(|text| http_auth::parse_challenges(text).ok()).flatten();
    parsed
        .map(|challenge| Challenge {
            scheme: challenge.scheme.to_ascii_lowercase(),
            parameters: challenge.params.iter().map(|(name, value)| (name.to_ascii_lowercase(), value.to_unescaped())).collect(),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_of_challenges() {
        let read = |text: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(WWW_AUTHENTICATE, text.parse().unwrap());
            all(&headers)
        };
        let found = read(r#"BEARER Service="a,b", REALM="https://t.example/x", Basic realm="r""#);
        assert_eq!(found.iter().map(|challenge| challenge.scheme.as_str()).collect::<Vec<_>>(), ["bearer", "basic"]);
        assert_eq!(found[0].parameter("service"), Some("a,b"));
        assert_eq!(found[0].parameter("realm"), Some("https://t.example/x"));
        assert!(read("=").is_empty());
    }
}
