//! SIGHUP: what is read again without a restart, and what the log says about it.

use std::path::Path;
use std::sync::Arc;

use render::{CacheFolder, Engine, RegistryAccess, RegistryAccessError, Renderer};
use tracing::{info, warn};

use super::Running;
use crate::config::Config;
use crate::log::LevelHandle;
use crate::service_manager;
use crate::terminal::chain;

/// What may change while the daemon runs.
pub(super) struct Rereadable {
    /// Configuration file.
    pub(super) path: std::path::PathBuf,
    /// Level of the log.
    pub(super) level: LevelHandle,
    /// The engine that a new renderer takes over.
    pub(super) engine: Engine,
}

impl Running {
    /// Reads the log level and the registry's files again. A configuration that is refused changes nothing.
    pub(super) fn reread(&mut self) {
        service_manager::reloading();
        match self.rereadable.load() {
            Ok((config, renderer)) => {
                self.worker.renderer = Arc::new(renderer);
                let level = config.log_level().to_owned();
                // Said at the more talkative of both levels.
                if let Err(error) = self.rereadable.level.set(&level) {
                    warn!("the log level stays: {error}");
                }
                info!(level, "re-read: log level, registry credentials and CA; other keys take a restart");
            }
            Err(problem) => warn!("nothing was re-read, and all stays as it was: {problem}"),
        }
        service_manager::ready();
    }
}

impl Rereadable {
    fn load(&self) -> Result<(Config, Renderer), String> {
        let config = Config::load(Path::new(&self.path)).map_err(|error| chain(&error))?;
        let renderer = renderer(&config, self.engine.clone()).map_err(|error| chain(&error))?;
        Ok((config, renderer))
    }
}

/// The renderer of a configuration: with the registry's files as they are now, and what was rendered before.
pub(super) fn renderer(config: &Config, engine: Engine) -> Result<Renderer, RegistryAccessError> {
    let registry = &config.registry;
    let access = RegistryAccess::load(registry.credentials_file.as_deref(), registry.ca_file.as_deref())?;
    let kept = CacheFolder::of_service(std::env::var_os("CACHE_DIRECTORY"), config.state_dir());
    Ok(Renderer::new(engine, access).keeping_in(kept))
}
