//! A component's source as the archive that the engine is given: a chart of the charts folder, or one of a registry by digest.
//!
//! Archives of registries are kept while there is room, since many components may come of one; those of the folder are read each time that they
//! are asked for, since nothing pins them.

mod ignore;
mod local;

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use agent_api::chain::chain;
use agent_api::digest::Sha256;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cluster::crd::managed_component::Source;
use render::pinned::{ChartPuller, PinnedError};

use crate::reconcile::plan::Stopped;
use crate::reconcile::reason::Reason;

/// Most bytes of archives that are kept, as base64: 8 MiB. The oldest go first.
const KEPT: usize = 8 << 20;

/// A chart's archive.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Archive {
    /// base64, as the engine takes it.
    pub base64: Arc<str>,
    /// Of its bytes.
    pub digest: Sha256,
}

impl Archive {
    fn of(bytes: &[u8]) -> Self {
        Self { base64: STANDARD.encode(bytes).into(), digest: Sha256::of(bytes) }
    }
}

/// Where charts come from.
pub struct Charts {
    folder: PathBuf,
    puller: ChartPuller,
    kept: Mutex<VecDeque<(String, Archive)>>,
}

impl Charts {
    /// Local ones below a folder, others by this puller.
    #[must_use]
    pub fn new(folder: PathBuf, puller: ChartPuller) -> Self {
        Self { folder, puller, kept: Mutex::default() }
    }

    /// The archive of a valid source.
    ///
    /// # Errors
    /// [`Reason::ChartUnavailable`] where it cannot be had now, [`Reason::ChartRefused`] where it breaks a bound.
    pub async fn archive(&self, source: &Source) -> Result<Archive, Stopped> {
        if let Some(reference) = &source.oci {
            return self.pulled(reference).await;
        }
        let (folder, path) = (self.folder.clone(), source.local.clone().unwrap_or_default());
        let read = tokio::task::spawn_blocking(move || local::archive(&folder, &path).map(|bytes| Archive::of(&bytes)));
        match read.await {
            Ok(Ok(archive)) => Ok(archive),
            Ok(Err(error)) => Err(Stopped::new(error.reason(), chain(&error))),
            Err(error) => Err(Stopped::new(Reason::ChartUnavailable, error)),
        }
    }

    /// The registry that has to be asked for a source; nothing where its archive is at hand.
    #[must_use]
    pub fn registry_of<'a>(&self, source: &'a Source) -> Option<&'a str> {
        let reference = source.oci.as_deref().filter(|reference| self.find(reference).is_none())?;
        reference.strip_prefix("oci://")?.split_once('/').map(|(registry, _)| registry)
    }

    async fn pulled(&self, reference: &str) -> Result<Archive, Stopped> {
        if let Some(known) = self.find(reference) {
            return Ok(known);
        }
        let bytes = self.puller.pull(reference).await.map_err(|error| {
            let reason = match &error {
                PinnedError::Archive(_) | PinnedError::Reference(_) => Reason::ChartRefused,
                PinnedError::Pull(_) => Reason::ChartUnavailable,
            };
            Stopped::new(reason, chain(&error))
        })?;
        let archive = Archive::of(&bytes);
        self.keep(reference.to_owned(), archive.clone());
        Ok(archive)
    }

    fn find(&self, reference: &str) -> Option<Archive> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.iter().find(|(known, _)| known == reference).map(|(_, archive)| archive.clone())
    }

    fn keep(&self, reference: String, archive: Archive) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        // Components that come at the same time pull at the same time.
        kept.retain(|(known, _)| *known != reference);
        kept.push_back((reference, archive));
        while kept.iter().map(|(_, archive)| archive.base64.len()).sum::<usize>() > KEPT {
            kept.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use render::RegistryAccess;

    use super::*;

    #[test]
    fn a_chart_that_many_pulled_at_once_takes_the_room_of_one() {
        let access = RegistryAccess::load(None, None).unwrap();
        let charts = Charts::new(PathBuf::new(), ChartPuller::new(access));
        let large = Archive::of(&vec![7; KEPT / 2]);
        charts.keep("another".to_owned(), Archive::of(b"another"));
        for _ in 0..3 {
            charts.keep("large".to_owned(), large.clone());
        }
        assert_eq!(charts.find("large"), Some(large.clone()));
        assert_eq!(charts.find("another"), Some(Archive::of(b"another")));
        charts.keep("third".to_owned(), large);
        assert_eq!((charts.find("another"), charts.find("large")), (None, None), "the oldest go first");
        assert!(charts.find("third").is_some());
    }
}
