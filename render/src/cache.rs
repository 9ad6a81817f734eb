//! What the engine answered before, so that the same question is not asked twice.
//!
//! The question is all that the engine is given, byte for byte, and the engine itself: whatever could change the answer is in the key.
//! The answer is kept as the engine gave it and read by the same reader, so that it meets the same bounds and comparisons as a fresh one.
//! On disk lie only answers without a Secret's data; those with it, and all where there is no folder to trust, stay in this process.
//! A disk without room is told once and stops nobody: what does not fit is rendered again. Deliberately absent: failures. A chart that failed is rendered again.

mod entry;
mod folder;
mod memory;
mod secrets;

use std::sync::{Arc, OnceLock};

use agent_api::digest::Sha256;

pub use self::folder::CacheFolder;
use self::memory::Memory;
use crate::engine::{Answer, ChartRenderer, EngineError, PROTOCOL, Request};

/// Version of the key and of the files. Another one makes every older file a stranger.
const FORMAT: u32 = 1;

/// An engine that remembers.
pub struct Cache {
    engine: Arc<dyn ChartRenderer>,
    folder: Option<Arc<CacheFolder>>,
    memory: Memory,
    /// What a disk without room was said to be, once it was.
    full: OnceLock<String>,
}

impl Cache {
    /// Remembers in this process alone.
    #[must_use]
    pub fn new(engine: Arc<dyn ChartRenderer>) -> Self {
        Self { engine, folder: None, memory: Memory::default(), full: OnceLock::new() }
    }

    /// Remembers in a folder, too.
    #[must_use]
    pub fn keeping_in(self, folder: CacheFolder) -> Self {
        Self { folder: Some(Arc::new(folder)), ..self }
    }

    /// The engine's version.
    pub(crate) fn version(&self) -> &str {
        self.engine.version()
    }

    /// That there was no room to keep what was rendered, for a person; `None` while there was.
    pub(crate) fn full_disk(&self) -> Option<&str> {
        self.full.get().map(String::as_str)
    }

    /// As [`ChartRenderer::render`], from what is kept where it can be.
    ///
    /// # Errors
    /// As there.
    pub async fn render(&self, request: Request<'_>) -> Result<Answer, EngineError> {
        let input = request.input()?;
        let identity = self.identity().await;
        let key = identity.as_ref().map(|identity| key(identity, &input));
        if let Some(key) = &key
            && let Some(known) = self.kept(key).await
        {
            return Ok(known);
        }
        let bytes = self.engine.answer(&input).await?;
        let answer = Answer::read(&bytes)?;
        // An engine that was replaced while it was asked: nobody knows which of the two answered.
        if let Some(key) = key
            && self.identity().await == identity
        {
            self.keep(key, bytes, &answer).await;
        }
        Ok(answer)
    }

    /// What is kept of this request; the engine is not started.
    ///
    /// # Errors
    /// As [`Request::input`].
    pub async fn find(&self, request: &Request<'_>) -> Result<Option<Answer>, EngineError> {
        let input = request.input()?;
        match self.identity().await {
            Some(identity) => Ok(self.kept(&key(&identity, &input)).await),
            None => Ok(None),
        }
    }

    async fn identity(&self) -> Option<Sha256> {
        let engine = Arc::clone(&self.engine);
        blocking(move || engine.identity()).await
    }

    async fn kept(&self, key: &Sha256) -> Option<Answer> {
        if let Some(answer) = self.memory.get(key) {
            return Answer::read(&answer).ok();
        }
        let (folder, key) = (Arc::clone(self.folder.as_ref()?), key.clone());
        blocking(move || {
            let file = folder.open().and_then(|opened| opened.read(key.as_str())).unwrap_or_else(|problem| {
                tracing::debug!("kept renderings are not looked at: {problem}");
                None
            })?;
            let answer = entry::open(&key, &file);
            if answer.is_none() {
                tracing::debug!(%key, "a kept rendering is damaged or of another version, and is not used");
            }
            Answer::read(answer?).ok()
        })
        .await
    }

    async fn keep(&self, key: Sha256, bytes: Vec<u8>, answer: &Answer) {
        let folder = self.folder.clone().filter(|_| !secrets::any(answer));
        let Some(folder) = folder else { return self.memory.put(key, bytes) };
        let path = folder.path();
        let left = blocking(move || {
            let written = folder.open().and_then(|opened| opened.write(key.as_str(), &entry::close(&key, &bytes)));
            written.err().map(|problem| (key, bytes, problem))
        })
        .await;
        let Some((key, bytes, problem)) = left else { return };
        let told = format!("there is no room to keep renderings in {} ({problem}): charts are rendered again each time", path.display());
        match problem.is_full_disk().then(|| self.full.set(told.clone())) {
            Some(Ok(())) => tracing::warn!("{told}"),
            Some(Err(_)) | None => tracing::debug!("a rendering is not kept on disk: {problem}"),
        }
        self.memory.put(key, bytes);
    }
}

fn key(identity: &Sha256, input: &[u8]) -> Sha256 {
    let head = format!("clicklink rendering {FORMAT}\nprotocol {PROTOCOL}\nengine {identity}\n");
    Sha256::of_all([head.as_bytes(), input])
}

/// Off the runtime's own threads: files and digests of megabytes.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> Option<T> + Send + 'static) -> Option<T> {
    tokio::task::spawn_blocking(work).await.ok().flatten()
}

#[cfg(test)]
mod tests;
