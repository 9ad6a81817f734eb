//! AWS Signature Version 4, verified.

use aws_lc_rs::hmac::{HMAC_SHA256, Key, sign};

use super::http::Request;
use super::scenario::Keys;
use crate::encode::sha256;

/// Whose credentials signed a request for this region and service.
pub(super) fn signer<'a>(request: &Request, known: &'a [Keys], region: &str, service: &str) -> Result<&'a Keys, String> {
    let header = request.header("authorization").ok_or("no signature")?;
    let fields = header.strip_prefix("AWS4-HMAC-SHA256 ").ok_or("another signature")?;
    let field = |name: &str| {
        let found = fields.split(',').find_map(|field| field.trim().strip_prefix(name)?.strip_prefix('='));
        found.ok_or_else(|| format!("no {name}"))
    };
    let (id, scope) = field("Credential")?.split_once('/').ok_or("no scope")?;
    let keys = known.iter().find(|keys| keys.id == id).ok_or_else(|| format!("unknown access key {id}"))?;
    if request.header("x-amz-security-token").unwrap_or_default() != keys.token {
        return Err("another session token".into());
    }
    let time = request.header("x-amz-date").ok_or("no date")?;
    let day = time.get(..8).ok_or("no date")?;
    if scope != format!("{day}/{region}/{service}/aws4_request") {
        return Err(format!("scope {scope}"));
    }
    let signed = field("SignedHeaders")?;
    if !["host", "x-amz-date"].iter().all(|needed| signed.split(';').any(|name| name == *needed)) {
        return Err(format!("signed headers {signed}"));
    }
    let headers: String = signed.split(';').map(|name| format!("{name}:{}\n", request.header(name).unwrap_or_default())).collect();
    let canonical = format!("{}\n{}\n\n{headers}\n{signed}\n{}", request.method, request.path, hex(&sha256(&request.body)));
    let text = format!("AWS4-HMAC-SHA256\n{time}\n{scope}\n{}", hex(&sha256(canonical)));
    let start = format!("AWS4{}", keys.secret).into_bytes();
    let key = [day, region, service, "aws4_request"].iter().fold(start, |key, part| mac(&key, part));
    if hex(&mac(&key, &text)) == field("Signature")? { Ok(keys) } else { Err("another signature".into()) }
}

fn mac(key: &[u8], text: &str) -> Vec<u8> {
    sign(&Key::new(HMAC_SHA256, key), text.as_bytes()).as_ref().to_vec()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
