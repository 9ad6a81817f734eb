//! Where a person's registry credentials lie unless they say otherwise.

use std::path::PathBuf;

/// Docker's own `config.json` (in `DOCKER_CONFIG`, else `~/.docker`), where it is there.
pub(super) fn own_file() -> Option<PathBuf> {
    let folder = std::env::var_os("DOCKER_CONFIG").map(PathBuf::from);
    let folder = folder.or_else(|| std::env::home_dir().map(|home| home.join(".docker")))?;
    Some(folder.join("config.json")).filter(|file| file.exists())
}
