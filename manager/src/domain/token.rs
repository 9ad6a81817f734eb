//! Random texts that stand for somebody: bearer tokens, enrolment tokens, signing keys. Only their hashes are stored, where that does.

use agent_api::digest::Sha256;
use agent_api::secret::Secret;
use aws_lc_rs::rand;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

/// The operating system gives no random bytes.
#[derive(Debug, thiserror::Error)]
#[error("the system's random source failed")]
pub struct NoRandom;

/// `prefix` and 256 random bits; the prefix tells people, and scanners of leaked secrets, what it is.
///
/// # Errors
/// [`NoRandom`].
pub fn generate(prefix: &str) -> Result<Secret, NoRandom> {
    let mut bytes = [0; 32];
    rand::fill(&mut bytes).map_err(|_| NoRandom)?;
    Ok(Secret::new(format!("{prefix}{}", URL_SAFE_NO_PAD.encode(bytes))))
}

/// What is stored of a token. It has 256 random bits, so a plain hash is enough.
#[must_use]
pub fn hash(token: &Secret) -> Sha256 {
    Sha256::of(token.expose().as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_differ_and_carry_their_prefix() {
        let (one, two) = (generate("nvm_").unwrap(), generate("nvm_").unwrap());
        assert!(one.expose().starts_with("nvm_") && one.expose().len() == 4 + 43, "{}", one.expose().len());
        assert_ne!(hash(&one), hash(&two));
    }
}
