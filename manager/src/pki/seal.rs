//! Sealing: what the store keeps and has to read back is encrypted with a key that lies beside it, not in it.
//!
//! AES-256-GCM; the record's identity is authenticated with it, so that a sealed text moved to another record does not open.

use agent_api::secret::Secret;
use aws_lc_rs::aead::{AES_256_GCM, Aad, NONCE_LEN, Nonce, RandomizedNonceKey};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::serve::data_dir::{self, DataDir, DataDirError};

/// The key.
#[derive(Debug)]
pub struct Seal(RandomizedNonceKey);

/// Why something was not sealed or opened.
#[derive(Debug, thiserror::Error)]
pub enum SealError {
    /// Reading or writing the key file.
    #[error(transparent)]
    Files(#[from] DataDirError),
    /// Its content.
    #[error("`seal.key` does not hold a key (32 bytes in base64)")]
    Key,
    /// The random source failed.
    #[error(transparent)]
    Random(#[from] crate::domain::token::NoRandom),
    /// Sealing.
    #[error("a secret could not be sealed")]
    Seal,
    /// Opening: another key, another record, or damaged.
    #[error("a sealed secret does not open: it was sealed with another `seal.key`, for another record, or is damaged")]
    Open,
}

impl Seal {
    /// Reads the key from the data folder; makes it at the first start.
    ///
    /// # Errors
    /// The file is unreadable or holds no key.
    pub fn open_key(dir: &DataDir) -> Result<Self, SealError> {
        let text = match dir.read(data_dir::SEAL_KEY)? {
            Some(text) => text,
            None => {
                let mut bytes = [0; 32];
                aws_lc_rs::rand::fill(&mut bytes).map_err(|_| crate::domain::token::NoRandom)?;
                let text = STANDARD.encode(bytes);
                dir.write(data_dir::SEAL_KEY, text.as_bytes(), 0o600)?;
                text
            }
        };
        let bytes = STANDARD.decode(text.trim()).map_err(|_| SealError::Key)?;
        RandomizedNonceKey::new(&AES_256_GCM, &bytes).map(Self).map_err(|_| SealError::Key)
    }

    /// Seals a secret for a record: nonce, then ciphertext with its tag.
    ///
    /// # Errors
    /// [`SealError::Seal`].
    pub fn seal(&self, secret: &Secret, record: &str) -> Result<Vec<u8>, SealError> {
        let mut body = secret.expose().as_bytes().to_vec();
        let nonce = self.0.seal_in_place_append_tag(Aad::from(record), &mut body).map_err(|_| SealError::Seal)?;
        Ok([nonce.as_ref().as_slice(), &body].concat())
    }

    /// Opens what [`Seal::seal`] made for the same record.
    ///
    /// # Errors
    /// [`SealError::Open`].
    pub fn open(&self, sealed: &[u8], record: &str) -> Result<Secret, SealError> {
        let (nonce, body) = sealed.split_at_checked(NONCE_LEN).ok_or(SealError::Open)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).map_err(|_| SealError::Open)?;
        let mut body = body.to_vec();
        let plain = self.0.open_in_place(nonce, Aad::from(record), &mut body).map_err(|_| SealError::Open)?;
        String::from_utf8(plain.to_vec()).map(Secret::new).map_err(|_| SealError::Open)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn opens_for_its_record_and_key_only() {
        let parent = tempfile::tempdir().unwrap();
        let dir = DataDir::open(&parent.path().join("d")).unwrap();
        let seal = Seal::open_key(&dir).unwrap();
        let secret = Secret::new("s3cret".into());
        let sealed = seal.seal(&secret, "a").unwrap();
        assert!(!sealed.windows(6).any(|part| part == b"s3cret"));
        assert_eq!(Seal::open_key(&dir).unwrap().open(&sealed, "a").unwrap(), secret);
        assert!(seal.open(&sealed, "b").is_err());
        assert!(seal.open(&sealed[..20], "a").is_err());
        assert!(seal.open(&sealed[..3], "a").is_err());
        dir.remove(data_dir::SEAL_KEY).unwrap();
        assert!(Seal::open_key(&dir).unwrap().open(&sealed, "a").is_err());
    }
}
