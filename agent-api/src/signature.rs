//! The signature on every request of an executor: HTTP Message Signatures (RFC 9421), one algorithm, fixed components.
//!
//! Covered are `@method`, `@request-target` and `content-digest` (RFC 9530, sha-256, also of an empty body), with the parameters
//! `created`, `nonce`, `keyid` and `alg="hmac-sha256"`. A verifier accepts `created` within ±300 s of its clock and each nonce once
//! in that window; keeping the nonces is the verifier's part.

use aws_lc_rs::hmac;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use sha2::{Digest as _, Sha256};

use crate::secret::Secret;

/// How far `created` may lie from the verifier's clock.
pub const WINDOW_S: i64 = 300;
/// Header with the covered components and the parameters.
pub const SIGNATURE_INPUT: &str = "signature-input";
/// Header with the signature.
pub const SIGNATURE: &str = "signature";
/// Header with the body's digest.
pub const CONTENT_DIGEST: &str = "content-digest";

const LABEL: &str = "clicklink";
const COVERED: &str = r#"("@method" "@request-target" "content-digest")"#;

/// The key pair of an executor.
#[derive(Clone, Debug)]
pub struct KeyPair {
    /// Name of the key, sent along.
    pub access_key: String,
    /// The key, never sent.
    pub secret_key: Secret,
}

/// The three headers of a signed request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Headers {
    /// [`CONTENT_DIGEST`].
    pub content_digest: String,
    /// [`SIGNATURE_INPUT`].
    pub signature_input: String,
    /// [`SIGNATURE`].
    pub signature: String,
}

/// What a signature claims, before it is verified.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Claim {
    /// Name of the key.
    pub access_key: String,
    /// Unix seconds.
    pub created: i64,
    /// Different in each request.
    pub nonce: String,
}

/// Why a request is not believed.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum SignatureError {
    /// A header is not there or not of the one form we write.
    #[error("header `{0}` is missing or not of the expected form")]
    Malformed(&'static str),
    /// The body is another one.
    #[error("content-digest does not match the body")]
    Digest,
    /// Clocks apart, or an old request.
    #[error("created lies {0} s away from this clock; at most {WINDOW_S} s are allowed: set the clock (NTP)")]
    Window(i64),
    /// Another key, or something covered was changed.
    #[error("the signature does not match")]
    Mismatch,
}

/// Signs a request. `target` is path and query as sent; `nonce` must be new for each request and consist of letters, digits and `-`.
#[must_use]
pub fn sign(key: &KeyPair, method: &str, target: &str, body: &[u8], created: i64, nonce: &str) -> Headers {
    let content_digest = content_digest(body);
    let params = params(&key.access_key, created, nonce);
    let tag = hmac::sign(&hmac_key(&key.secret_key), base(method, target, &content_digest, &params).as_bytes());
    Headers {
        content_digest,
        signature_input: format!("{LABEL}={params}"),
        signature: format!("{LABEL}=:{}:", BASE64.encode(tag.as_ref())),
    }
}

/// Reads what a request claims, so that the key can be looked up.
///
/// # Errors
/// [`SignatureError::Malformed`].
pub fn claim(headers: &Headers) -> Result<Claim, SignatureError> {
    let malformed = || SignatureError::Malformed(SIGNATURE_INPUT);
    let input = headers.signature_input.as_str();
    let rest = input.strip_prefix(LABEL).and_then(|r| r.strip_prefix('=')).and_then(|r| r.strip_prefix(COVERED)).ok_or_else(malformed)?;
    let mut parts = rest.split(';').skip(1);
    let mut next = |name: &str| parts.next().and_then(|p| p.strip_prefix(name)).and_then(|p| p.strip_prefix('=')).map(str::to_owned);
    let quoted = |text: String| text.strip_prefix('"').and_then(|t| t.strip_suffix('"')).map(str::to_owned);
    let created = next("created").and_then(|c| c.parse().ok()).ok_or_else(malformed)?;
    let nonce = next("nonce").and_then(quoted).ok_or_else(malformed)?;
    let access_key = next("keyid").and_then(quoted).ok_or_else(malformed)?;
    let claim = Claim { access_key, created, nonce };
    // Whatever else the header says, it must be the very text that we would have written.
    if params(&claim.access_key, claim.created, &claim.nonce) == input[LABEL.len() + 1..] { Ok(claim) } else { Err(malformed()) }
}

/// Verifies a request against the key that [`claim`] named.
///
/// # Errors
/// The first of digest, window, signature that does not hold.
pub fn verify(
    claim: &Claim,
    headers: &Headers,
    secret: &Secret,
    method: &str,
    target: &str,
    body: &[u8],
    now: i64,
) -> Result<(), SignatureError> {
    if headers.content_digest != content_digest(body) {
        return Err(SignatureError::Digest);
    }
    let distance = claim.created.abs_diff(now);
    if distance > WINDOW_S.unsigned_abs() {
        return Err(SignatureError::Window(claim.created.saturating_sub(now)));
    }
    let encoded = headers.signature.strip_prefix(LABEL).and_then(|s| s.strip_prefix("=:")).and_then(|s| s.strip_suffix(':'));
    let tag = encoded.and_then(|s| BASE64.decode(s).ok()).ok_or(SignatureError::Malformed(SIGNATURE))?;
    let params = params(&claim.access_key, claim.created, &claim.nonce);
    let base = base(method, target, &headers.content_digest, &params);
    hmac::verify(&hmac_key(secret), base.as_bytes(), &tag).map_err(|_| SignatureError::Mismatch)
}

fn hmac_key(secret: &Secret) -> hmac::Key {
    hmac::Key::new(hmac::HMAC_SHA256, secret.expose().as_bytes())
}

fn content_digest(body: &[u8]) -> String {
    format!("sha-256=:{}:", BASE64.encode(Sha256::digest(body)))
}

fn params(access_key: &str, created: i64, nonce: &str) -> String {
    format!(r#"{COVERED};created={created};nonce="{nonce}";keyid="{access_key}";alg="hmac-sha256""#)
}

fn base(method: &str, target: &str, content_digest: &str, params: &str) -> String {
    signature_base(&[("@method", method), ("@request-target", target), ("content-digest", content_digest)], params)
}

/// RFC 9421, section 2.5.
fn signature_base(components: &[(&str, &str)], params: &str) -> String {
    let mut lines: Vec<String> = components.iter().map(|(name, value)| format!("\"{name}\": {value}")).collect();
    lines.push(format!("\"@signature-params\": {params}"));
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 9421, appendix B.2.5.
    #[test]
    fn the_rfcs_own_vector() {
        let key = BASE64.decode("uzvJfB4u3N0Jy4T7NZ75MDVcr8zSTInedJtkgcu46YW4XByzNJjxBdtjUkdJPBtbmHhIDi6pcl8jsasjlTMtDQ==").unwrap();
        let components = [("date", "Tue, 20 Apr 2021 02:07:55 GMT"), ("@authority", "example.com"), ("content-type", "application/json")];
        let base = signature_base(&components, r#"("date" "@authority" "content-type");created=1618884473;keyid="test-shared-secret""#);
        let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, &key), base.as_bytes());
        assert_eq!(BASE64.encode(tag.as_ref()), "pxcQw6G3AjtMBQjwo8XzkZf/bws5LelbaMk5rGIGtE8=");
    }

    fn signed() -> (Headers, Secret) {
        let secret = Secret::new("s3cret".into());
        let key = KeyPair { access_key: "ak-1".into(), secret_key: secret.clone() };
        (sign(&key, "POST", "/v1/x?y=1", b"body", 1_000, "n-1"), secret)
    }

    fn check(change: impl Fn(&mut Headers), method: &str, target: &str, body: &[u8], now: i64) -> Result<(), SignatureError> {
        let (mut headers, secret) = signed();
        change(&mut headers);
        verify(&claim(&headers)?, &headers, &secret, method, target, body, now)
    }

    #[test]
    fn what_was_signed_is_believed_and_nothing_else() {
        let same = |_: &mut Headers| {};
        assert_eq!(check(same, "POST", "/v1/x?y=1", b"body", 1_000), Ok(()));
        assert_eq!(check(same, "POST", "/v1/x?y=1", b"body", 1_300), Ok(()));
        assert_eq!(check(same, "POST", "/v1/x?y=1", b"body", 1_301), Err(SignatureError::Window(-301)));
        assert_eq!(check(same, "POST", "/v1/x?y=1", b"body", 699), Err(SignatureError::Window(301)));
        assert_eq!(check(same, "GET", "/v1/x?y=1", b"body", 1_000), Err(SignatureError::Mismatch));
        assert_eq!(check(same, "POST", "/v1/x?y=2", b"body", 1_000), Err(SignatureError::Mismatch));
        assert_eq!(check(same, "POST", "/v1/x?y=1", b"Body", 1_000), Err(SignatureError::Digest));
        let nonce = |h: &mut Headers| h.signature_input = h.signature_input.replace("n-1", "n-2");
        assert_eq!(check(nonce, "POST", "/v1/x?y=1", b"body", 1_000), Err(SignatureError::Mismatch));
        for (from, to) in
            [("alg=\"hmac-sha256\"", "alg=\"none\""), ("\"@method\" ", ""), ("created=1000", "created=+1000"), (";nonce=\"n-1\"", "")]
        {
            let edit = |h: &mut Headers| h.signature_input = h.signature_input.replace(from, to);
            assert_eq!(check(edit, "POST", "/v1/x?y=1", b"body", 1_000), Err(SignatureError::Malformed(SIGNATURE_INPUT)), "{from}");
        }
        let cut = |h: &mut Headers| h.signature.truncate(12);
        assert_eq!(check(cut, "POST", "/v1/x?y=1", b"body", 1_000), Err(SignatureError::Malformed(SIGNATURE)));
    }
}
