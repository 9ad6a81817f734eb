//! The bare thing beside the journal: bytes appended to a file, and `fsync`.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};

/// An open file.
pub(crate) struct Append {
    file: File,
    bytes: Vec<u8>,
}

impl Append {
    /// A new file in the folder; each time so many bytes are appended.
    pub(crate) fn new(folder: &Path, bytes: usize) -> Result<Self> {
        let file =
            OpenOptions::new().create(true).append(true).open(folder.join("bare-append")).context("making a file beside the journal")?;
        Ok(Self { file, bytes: vec![b'x'; bytes] })
    }

    /// Appends once, durably: how long it took.
    pub(crate) fn once(&mut self) -> Result<Duration> {
        let started = Instant::now();
        self.file.write_all(&self.bytes)?;
        self.file.sync_all()?;
        Ok(started.elapsed())
    }
}
