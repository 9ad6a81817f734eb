//! The bootstrap token: while the store has no bearer token, whoever can read the data folder may make the first one.

use std::sync::Arc;

use agent_api::digest::Sha256;
use agent_api::secret::Secret;

use super::ServeError;
use super::data_dir::{BOOTSTRAP_TOKEN, DataDir};
use crate::domain::token;

/// The token's hash, as long as it is worth something.
#[derive(Debug)]
pub struct Bootstrap {
    dir: Arc<DataDir>,
    sha256: Option<Sha256>,
}

impl Bootstrap {
    /// Reads or makes the file while there is no token; removes it otherwise.
    ///
    /// # Errors
    /// The file.
    pub fn open(dir: Arc<DataDir>, has_tokens: bool) -> Result<Self, ServeError> {
        if has_tokens {
            dir.remove(BOOTSTRAP_TOKEN)?;
            return Ok(Self { dir, sha256: None });
        }
        let token = match dir.read(BOOTSTRAP_TOKEN)? {
            Some(text) if !text.trim().is_empty() => Secret::new(text.trim().to_owned()),
            Some(_) | None => {
                let token = token::generate("nvb_")?;
                dir.write(BOOTSTRAP_TOKEN, token.expose().as_bytes(), 0o600)?;
                token
            }
        };
        Ok(Self { dir, sha256: Some(token::hash(&token)) })
    }

    /// Whether a token is the bootstrap token. The caller also makes sure that the store has no token.
    #[must_use]
    pub fn is(&self, sha256: &Sha256) -> bool {
        self.sha256.as_ref() == Some(sha256)
    }

    /// There is a token now: the file goes. It is void already, so that a file that stays is untidy, not dangerous.
    pub fn end(&self) {
        if self.sha256.is_some()
            && let Err(error) = self.dir.remove(BOOTSTRAP_TOKEN)
        {
            tracing::warn!(error = %agent_api::chain::chain(&error), "the void bootstrap token could not be removed");
        }
    }
}
